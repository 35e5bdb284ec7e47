package gates_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"plumbline/gates"
	"plumbline/record"
)

// atRate makes the session one at 1,000/s, all of which was sent.
func atRate(s *record.Session) {
	s.Load.Rate = 1000
	for _, r := range s.Runs {
		deliver(r, 1)
	}
}

// deliver says that a run sent a share of 200 requests due in each slice.
func deliver(r *record.Run, share float64) {
	for i := range r.Slices {
		r.Slices[i].Due = 200
		r.Slices[i].Sent = int(share * 200)
	}
}

// TestDelivered: a run that was not sent what was due does not count, whatever
// its latencies say.
func TestDelivered(t *testing.T) {
	run := func(arm string, blocks ...int) func(*record.Run) bool {
		return func(r *record.Run) bool {
			for _, b := range blocks {
				if r.Arm == arm && r.Block == b {
					return true
				}
			}
			return false
		}
	}
	all := []int{1, 2, 3, 4, 5, 6}
	for _, tt := range []struct {
		name    string
		share   float64
		lose    []func(*record.Run) bool
		verdict gates.Outcome
		reason  string
		aside   int
	}{
		{"all of it", 1, nil, gates.Pass, "", 0},
		{"just enough", 0.98, []func(*record.Run) bool{run("candidate", all...), run("baseline", all...)}, gates.Pass, "", 0},
		{"too little in one of the candidate's", 0.975, []func(*record.Run) bool{run("candidate", 3)}, gates.Inconclusive, "The candidate lost 1 of its runs, the baseline 0: it cannot pass.", 1},
		{"too little in one of the baseline's", 0.6, []func(*record.Run) bool{run("baseline", 3)}, gates.Pass, "5 of 6 planned blocks were judged.", 1},
		{"too little in as many", 0.6, []func(*record.Run) bool{run("baseline", 3), run("candidate", 3)}, gates.Pass, "5 of 6 planned blocks were judged.", 2},
		{"too little in all of the candidate's", 0.6, []func(*record.Run) bool{run("candidate", all...)}, gates.Invalid,
			"The rate was not reached in 6 of 6 runs of the candidate and 0 of 6 of the baseline (002-candidate: delivered 600 of 1,000/s (−40.0 %)): less than 98 % of what was due does not count.", 6},
		{"too little in all", 0.6, []func(*record.Run) bool{run("candidate", all...), run("baseline", all...)}, gates.Invalid,
			"The rate was not reached in 6 of 6 runs of the candidate and 6 of 6 of the baseline", 12},
		{"too little in four blocks", 0.6, []func(*record.Run) bool{run("candidate", 1, 2), run("baseline", 3, 4)}, gates.Invalid,
			"The rate was not reached in 2 of 6 runs of the candidate and 2 of 6 of the baseline", 4},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := small(3).session()
			atRate(s)
			for _, lost := range tt.lose {
				for _, r := range s.Runs {
					if lost(r) {
						deliver(r, tt.share)
					}
				}
			}
			v := gates.Judge(s)
			wantOutcome(t, v, tt.verdict, tt.verdict.ExitCode())
			wantReason(t, v.Reasons, tt.reason)
			if tt.verdict == gates.Invalid && !strings.HasPrefix(v.Reasons[0], "The rate was not reached") {
				t.Errorf("the first reason is %q", v.Reasons[0])
			}
			if len(v.SetAside) != tt.aside {
				t.Errorf("%d runs were set aside, want %d: %v", len(v.SetAside), tt.aside, v.SetAside)
			}
			want := fmt.Sprintf("delivered %.0f of 1,000/s (−%.1f %%)", 1000*tt.share, 100*(1-tt.share))
			for _, a := range v.SetAside {
				if a.Reason != want || a.Route != "" {
					t.Errorf("%s was set aside: %q, want %q", a.Run, a.Reason, want)
				}
			}
		})
	}
}

// A record at a fixed rate that does not say what was due proves nothing.
func TestDueIsMissing(t *testing.T) {
	s := small(3).session()
	atRate(s)
	each(s, "candidate", func(r *record.Run) {
		for i := range r.Slices {
			r.Slices[i].Due = 0
		}
	})
	v := gates.Judge(s)
	wantOutcome(t, v, gates.Invalid, 5)
	wantReason(t, v.Reasons, "the record does not say how many requests were due")
}

// A run that ended early for another reason says nothing about the rate.
func TestEndedEarlyIsNotStarved(t *testing.T) {
	s := small(3).session()
	atRate(s)
	for _, r := range s.Runs {
		r.State, r.Slices = record.Stopped, nil
	}
	s.State = record.Stopped
	v := gates.Judge(s)
	wantOutcome(t, v, gates.Invalid, 5)
	if reasons := strings.Join(v.Reasons, " "); strings.Contains(reasons, "rate") {
		t.Error(reasons)
	}
}

// New errors are a result, also where the rate was not reached.
func TestErrorsBelowTheRate(t *testing.T) {
	s := small(3).session()
	atRate(s)
	each(s, "candidate", func(r *record.Run) {
		deliver(r, 0.5)
		for _, sm := range r.Samples {
			sm.Codes[500] = sm.Codes[200] / 10
		}
	})
	v := gates.Judge(s)
	wantOutcome(t, v, gates.Regression, 3)
	wantReason(t, v.Reasons, "The candidate lost 6 of its runs")
}

func TestDeliveredShares(t *testing.T) {
	s := small(3).session()
	if v := gates.Judge(s); v.Delivered != nil {
		t.Errorf("a closed loop delivered %v", v.Delivered)
	}
	atRate(s)
	deliver(s.Runs[0], 0.5)
	if v := gates.Judge(s); v.Delivered["baseline"] != 0.916667 || v.Delivered["candidate"] != 1 {
		t.Errorf("delivered %v", v.Delivered)
	}
}

// Loose files tell little of how they were measured, and the verdict says so.
func TestLooseNotes(t *testing.T) {
	const unknown = "The files do not tell whether they were measured in turns on one machine: drift of the host is not told apart from a change."
	for name, c := range map[string]struct {
		change func(s *record.Session)
		want   []string
	}{
		"in turns":    {func(*record.Session) {}, []string{unknown}},
		"one by one":  {func(s *record.Session) { s.Schedule.Mode = record.Sequential }, []string{"Undecided: P50 of GET /a, P50 of GET /b, P50 of GET /c.", "Not comparable: latency distribution of GET /a, latency distribution of GET /b, latency distribution of GET /c.", "Sequential: the files of one side end before the other side's begin, so drift of the host is not told apart from a change."}},
		"at once":     {func(s *record.Session) { s.Runs[1].Started = s.Runs[0].Started }, []string{"Files of a block overlap in time (001-baseline and 002-candidate): measured at once, they disturbed each other, or ran on two machines.", unknown}},
		"a long file": {func(s *record.Session) { s.Runs[0].Ended = s.Runs[2].Ended }, []string{"Files of a block overlap in time (001-baseline and 002-candidate): measured at once, they disturbed each other, or ran on two machines.", "Files of one side overlap in time (001-baseline and 003-baseline): they may be parts of one run, and would count as several.", unknown}},
	} {
		s := small(3).session()
		s.Loose = true
		s.Schedule.Mode = record.Interleaved
		for _, r := range s.Runs {
			r.Ended = r.Started.Add(900 * time.Millisecond)
		}
		c.change(s)
		v := gates.Judge(s)
		if len(c.want) > 1 { // what was measured at once never passes
			wantOutcome(t, v, gates.Inconclusive, 4)
		} else {
			wantOutcome(t, v, gates.Pass, 0)
		}
		if fmt.Sprintf("%q", v.Reasons) != fmt.Sprintf("%q", c.want) {
			t.Errorf("%s: %q", name, v.Reasons)
		}
	}
}

func TestMeasure(t *testing.T) {
	s := &record.Session{Meta: record.Meta{
		State: record.Complete, Rules: record.DefaultRules(), Arms: []record.Arm{{Name: "main", Role: record.Baseline}},
		Routes: []record.Route{{Name: "GET /a", Status: []int{200}}, {Name: "GET /never", Status: []int{200}}, {Name: record.NoTarget}},
	}}
	run := func(id string, state record.State, memory int64, latency ...int64) {
		s.Runs = append(s.Runs, &record.Run{ID: id, Block: len(s.Runs) + 1, Arm: "main", State: state, IdleMemory: memory, Samples: map[string]*record.Samples{
			"GET /a":        {Latency: latency, Ends: []int{len(latency)}, Codes: map[int]int{200: len(latency), 500: 1}, BodyBytes: 10 * int64(len(latency))},
			"GET /never":    {},
			record.NoTarget: {Codes: map[int]int{0: 1}},
		}})
	}
	run("1", record.Complete, 1e6, 1000, 9000, 2000)
	run("2", record.Complete, 3e6, 4000)
	run("3", record.Died, 9e6, 1, 1, 1, 1)
	run("4", record.Complete, 5e6, 7000)
	m := gates.Measure(s, []float64{0, 40, 50, 99.9, 100})
	got := fmt.Sprintf("%d runs, %d bytes, %v aside", m.Arms[0].Runs, *m.Arms[0].IdleMemory, m.SetAside)
	if want := "3 runs, 3000000 bytes, [{3  died}] aside"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	a, never, lost := m.Rows[0], m.Rows[1], m.Rows[2]
	got = fmt.Sprint(a.Requests, *a.Errors, a.Counted, a.Latency, *a.BodyBytes)
	if want := "13 0.307692308 5 [1e-06 2e-06 4e-06 9e-06 9e-06] 10"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if never.Requests != 0 || never.Errors != nil || never.Latency != nil || never.BodyBytes != nil {
		t.Errorf("of nothing: %+v", never)
	}
	if lost.Requests != 4 || lost.Errors == nil || *lost.Errors != 1 || lost.Latency != nil {
		t.Errorf("without a target: %+v", lost)
	}
	// Answers that are errors are fast, maybe, but no answers.
	s.Runs[1].Preflight = []record.Answer{{Route: "GET /a", Status: 500}}
	if got := gates.Measure(s, []float64{50}).Rows[0]; got.Counted != 4 || got.Requests != 13 {
		t.Errorf("with a run that failed: %+v", got)
	}
	if s.Runs[0].Samples["GET /a"].Latency[1] != 9000 {
		t.Error("the session's samples were sorted")
	}
	if _, err := m.JSON(); err != nil {
		t.Error(err)
	}
}
