package gates_test

import (
	"bytes"
	"slices"
	"testing"
	"time"

	"plumbline/gates"
	"plumbline/record"

	"pgregory.net/rapid"
)

// TestOddRecords draws records that no session would write and checks what
// holds for all: no panic, a verdict that can be written and read, the same
// one whatever the order of the runs, and a pass only where nothing is open.
func TestOddRecords(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := oddSession(t)
		v := gates.Judge(s)
		data, err := v.JSON()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := gates.ReadVerdict(data); err != nil {
			t.Fatal(err)
		}
		slices.Reverse(s.Runs)
		again, _ := gates.Judge(s).JSON()
		if !bytes.Equal(data, again) {
			t.Fatalf("another order, another verdict:\n%s\n%s", data, again)
		}
		if v.Verdict != gates.Pass && len(v.Reasons) == 0 {
			t.Fatalf("%s without a reason", v.Verdict)
		}
		if v.Verdict == gates.Pass && (!v.Complete || s.State != record.Complete) {
			t.Fatal("an incomplete session passed")
		}
		judged := 0
		for _, c := range v.Comparisons {
			ok := c.Verdict == gates.RowEquivalent || c.Verdict == gates.RowImprovement || c.NotSlower
			if ok && (c.Values == nil || c.Effect == nil || c.Blocks < 3 || min(c.Requests[0], c.Requests[1]) == 0) {
				t.Fatalf("%s without data: %+v", c.Verdict, c)
			}
			if !ok && c.Verdict != gates.RowRegression && len(c.Reasons) == 0 && c.Low == nil {
				t.Fatalf("%s without interval or reason: %+v", c.Verdict, c)
			}
			if c.Judged {
				judged++
			}
			if v.Verdict == gates.Pass && (c.Judged && !ok || c.Verdict == gates.RowRegression) {
				t.Fatalf("passed with %s", c.Verdict)
			}
		}
		if v.Verdict == gates.Pass && judged == 0 {
			t.Fatal("passed without a judged row")
		}
	})
}

func oddSession(t *rapid.T) *record.Session {
	arms := []string{"baseline", "candidate", "stranger"}
	routes := []string{"GET /a", "GET /b"}
	s := &record.Session{Meta: record.Meta{
		State: rapid.SampledFrom([]record.State{record.Complete, record.Complete, record.Stopped, record.Running, "odd"}).Draw(t, "state"),
		Arms:  []record.Arm{{Name: "baseline", Role: record.Baseline}, {Name: "candidate", Role: record.Candidate}},
		Rules: record.DefaultRules(),
	}}
	for _, name := range routes {
		s.Routes = append(s.Routes, record.Route{Name: name, Status: rapid.SampledFrom([][]int{nil, {200}, {200, 404}}).Draw(t, "expected")})
	}
	s.Schedule.Blocks = rapid.IntRange(0, 6).Draw(t, "blocks")
	s.Schedule.MaxBlocks = rapid.SampledFrom([]int{0, 0, 3, 4, 8}).Draw(t, "maximum")
	scale := rapid.SampledFrom([]int64{0, 1, 100, 1e6}).Draw(t, "scale")
	n := rapid.IntRange(0, 12).Draw(t, "runs")
	for i := range n {
		r := &record.Run{
			ID: string(rune('a' + i)), Block: rapid.IntRange(0, 1).Draw(t, "block") + i/2, Arm: arms[i%2],
			State:   rapid.SampledFrom([]record.State{record.Complete, record.Complete, record.Complete, record.Died}).Draw(t, "run state"),
			Started: time.Unix(int64(i%3), 0), Samples: map[string]*record.Samples{},
		}
		if rapid.IntRange(0, 20).Draw(t, "strange") == 0 {
			r.Arm = arms[2]
		}
		for range rapid.IntRange(0, 3).Draw(t, "slices") {
			r.Slices = append(r.Slices, record.Slice{N: rapid.IntRange(0, 3).Draw(t, "n")})
		}
		for _, route := range routes {
			r.Preflight = append(r.Preflight, record.Answer{Route: route, Status: rapid.SampledFrom([]int{200, 200, 200, 0, 401, 500}).Draw(t, "status")})
			samples := &record.Samples{Codes: map[int]int{200: rapid.IntRange(0, 5000).Draw(t, "200s"), 0: rapid.SampledFrom([]int{0, 0, 3, 4000}).Draw(t, "lost")}}
			for range max(0, len(r.Slices)-rapid.IntRange(0, 1).Draw(t, "ends missing")) {
				for range rapid.SampledFrom([]int{0, 1, 50, 500}).Draw(t, "samples") {
					samples.Latency = append(samples.Latency, scale*int64(100+len(samples.Latency)*7919%50))
				}
				samples.Ends = append(samples.Ends, len(samples.Latency))
			}
			if rapid.IntRange(0, 9).Draw(t, "present") > 0 {
				r.Samples[route] = samples
			}
		}
		s.Runs = append(s.Runs, r)
		if rapid.Bool().Draw(t, "ordered") {
			s.Order = append(s.Order, record.RunRef{ID: r.ID})
		}
	}
	return s
}
