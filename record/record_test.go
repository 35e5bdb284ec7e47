package record_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	vegeta "github.com/tsenart/vegeta/v12/lib"
	"pgregory.net/rapid"

	"plumbline/record"
)

var epoch = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func meta() record.Meta {
	return record.Meta{
		Format: record.Format, Tool: "test", State: record.Complete, Seed: 1, Rules: record.DefaultRules(),
		Arms:   []record.Arm{{Name: "baseline", Role: record.Baseline, Label: "main"}, {Name: "candidate", Role: record.Candidate, Label: "HEAD"}},
		Routes: []record.Route{{Name: "GET /a?x=1", Status: []int{200}}, {Name: "POST /b", Status: []int{201, 202}}},
		Order:  []record.RunRef{{ID: "001-baseline", Block: 1, Arm: "baseline"}, {ID: "002-candidate", Block: 1, Arm: "candidate"}},
	}
}

// result is request seq of a slice, sent ms after its start.
func result(slice int, seq int, ms float64, route string, code uint16, latency time.Duration) *vegeta.Result {
	method, path, _ := strings.Cut(route, " ")
	return &vegeta.Result{
		Seq: uint64(seq), Code: code, Method: method, URL: "http://router" + path, Latency: latency, BytesIn: 10,
		Timestamp: epoch.Add(time.Duration(slice)*time.Second + time.Duration(ms*1e6)),
		Body:      []byte("0123456789"), Headers: map[string][]string{"X": {"y"}},
	}
}

func slice(n, sent int) record.Slice {
	at := epoch.Add(time.Duration(n) * time.Second)
	return record.Slice{N: n, Start: at, Counted: at.Add(5 * time.Millisecond), End: at.Add(200 * time.Millisecond), Sent: sent}
}

func writeRun(t testing.TB, f *record.Folder, r record.Run, all map[int][]*vegeta.Result) {
	t.Helper()
	w, err := f.StartRun(r)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range slices.Sorted(maps.Keys(all)) {
		if err := w.Results(n, all[n]); err != nil {
			t.Fatal(err)
		}
		if err := w.Slice(slice(n, len(all[n]))); err != nil {
			t.Fatal(err)
		}
	}
	r.State = record.Complete
	if err := w.Finish(r); err != nil {
		t.Fatal(err)
	}
}

func newSession(t testing.TB) *record.Folder {
	t.Helper()
	f, err := record.Create(filepath.Join(t.TempDir(), "a session"))
	if err != nil {
		t.Fatal(err)
	}
	if err := f.SaveMeta(meta()); err != nil {
		t.Fatal(err)
	}
	return f
}

var baselineRun = record.Run{ID: "001-baseline", Block: 1, Arm: "baseline", State: record.Running, Started: epoch}

// some holds one slice with everything that is sent but not counted.
func some() map[int][]*vegeta.Result {
	a, b := "GET /a?x=1", "POST /b"
	return map[int][]*vegeta.Result{
		1: {
			result(1, 0, 0, a, 200, 900), // the slice's first moments
			result(1, 1, 1, b, 201, 901),
			result(1, 2, 6, a, 200, 100),
			result(1, 3, 7, b, 202, 200),
			result(1, 4, 8, b, 500, 3), // not an expected answer
			result(1, 5, 9, a, 0, 5),   // no answer
			result(1, 6, 10, a, 200, 101),
		},
		3: {
			result(3, 0, 6, a, 200, 902), // the route's first request in the slice
			result(3, 1, 7, a, 200, 102),
		},
	}
}

func TestWhatCounts(t *testing.T) {
	f := newSession(t)
	writeRun(t, f, baselineRun, some())
	s, err := record.Open(f.Dir())
	if err != nil {
		t.Fatal(err)
	}
	r := s.Runs[0]
	want := map[string]*record.Samples{
		"GET /a?x=1": {Latency: []int64{100, 101, 102}, Ends: []int{2, 3}, Codes: map[int]int{200: 5, 0: 1}, BodyBytes: 30},
		"POST /b":    {Latency: []int64{200}, Ends: []int{1, 1}, Codes: map[int]int{201: 1, 202: 1, 500: 1}, BodyBytes: 10},
	}
	if diff := cmp.Diff(want, r.Samples); diff != "" {
		t.Error(diff)
	}
	if r.Sent != 9 {
		t.Errorf("%d sent, want 9", r.Sent)
	}
	if got := r.Samples["GET /a?x=1"].Slice(1); !slices.Equal(got, []int64{102}) {
		t.Errorf("the second slice holds %v", got)
	}
	if got := r.Samples["POST /b"].Slice(1); len(got) != 0 {
		t.Errorf("the second slice holds %v", got)
	}
}

// vegeta's own tools must be able to read a run.
func TestVegetaReadsIt(t *testing.T) {
	f := newSession(t)
	writeRun(t, f, baselineRun, some())
	data, err := os.ReadFile(filepath.Join(f.Dir(), "runs", "001-baseline", "result.bin"))
	if err != nil {
		t.Fatal(err)
	}
	dec := vegeta.DecoderFor(bytes.NewReader(data))
	if dec == nil {
		t.Fatal("vegeta does not know the format")
	}
	var m vegeta.Metrics
	for {
		var r vegeta.Result
		if err := dec(&r); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		if r.Body != nil || r.Headers != nil {
			t.Error("a body or headers were kept")
		}
		if r.Attack != "1" && r.Attack != "3" {
			t.Errorf("attack %q is no slice", r.Attack)
		}
		m.Add(&r)
	}
	m.Close()
	if m.Requests != 9 || m.StatusCodes["200"] != 5 {
		t.Errorf("vegeta counts %d requests, %v", m.Requests, m.StatusCodes)
	}
}

// A run in one slice is too long to be held at once; what is read does not
// depend on the pieces it is read in, nor on copies that come pieces later.
func TestLongSlice(t *testing.T) {
	const n = 300_000 // more than two pieces
	f := newSession(t)
	var all []*vegeta.Result
	for i := range n {
		// Answers of two workers: every other pair comes in the wrong order.
		k := i ^ 1
		all = append(all, result(1, k, 6+float64(k)/1000, "GET /a?x=1", 200, time.Duration(1+k)))
	}
	writeRun(t, f, baselineRun, map[int][]*vegeta.Result{1: all})
	path := filepath.Join(f.Dir(), "runs", "001-baseline", "result.bin")
	for _, change := range []func([]vegeta.Result) []vegeta.Result{
		func(all []vegeta.Result) []vegeta.Result { return all },
		func(all []vegeta.Result) []vegeta.Result { return append(all, all[:1000]...) },
	} {
		rewrite(t, path, change)
		s, err := record.Open(f.Dir())
		if err != nil {
			t.Fatal(err)
		}
		got := s.Runs[0].Samples["GET /a?x=1"].Latency
		if s.Runs[0].Sent != n || len(got) != n-1 { // without the slice's first
			t.Fatalf("%d sent, %d counted, want %d and %d", s.Runs[0].Sent, len(got), n, n-1)
		}
		for i, v := range got {
			if v != int64(i+2) {
				t.Fatalf("sample %d is %d, want %d", i, v, i+2)
			}
		}
	}
}

// rewrite changes the results of a run's file as they stand.
func rewrite(t *testing.T, path string, change func([]vegeta.Result) []vegeta.Result) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var all []vegeta.Result
	dec := vegeta.NewDecoder(bytes.NewReader(data))
	for {
		var r vegeta.Result
		if dec(&r) != nil {
			break
		}
		all = append(all, r)
	}
	var out bytes.Buffer
	enc := vegeta.NewEncoder(&out)
	for _, r := range change(all) {
		if err := enc(&r); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(path, out.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}

// A record says the same whatever the order of its requests, and however
// often each is written: one observation stays one.
func TestOrderAndCopiesDoNotCount(t *testing.T) {
	f := newSession(t)
	writeRun(t, f, baselineRun, some())
	s, err := record.Open(f.Dir())
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(f.Dir(), "runs", "001-baseline", "result.bin")
	original, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(rt *rapid.T) {
		if err := os.WriteFile(path, original, 0o644); err != nil {
			rt.Fatal(err)
		}
		copies := rapid.IntRange(1, 10).Draw(rt, "copies")
		rewrite(t, path, func(all []vegeta.Result) []vegeta.Result {
			return rapid.Permutation(slices.Repeat(all, copies)).Draw(rt, "order")
		})
		again, err := s.ReadRun("001-baseline")
		if err != nil {
			rt.Fatal(err)
		}
		if diff := cmp.Diff(s.Runs[0], again); diff != "" {
			rt.Fatal(diff)
		}
	})
}

func TestDamageIsAnError(t *testing.T) {
	cases := map[string]struct {
		file   string
		damage func(t *testing.T, path string)
		want   string
	}{
		"cut short": {"result.bin", func(t *testing.T, path string) {
			if err := os.Truncate(path, 400); err != nil {
				t.Fatal(err)
			}
		}, "cut short"},
		"empty": {"result.bin", func(t *testing.T, path string) {
			if err := os.Truncate(path, 0); err != nil {
				t.Fatal(err)
			}
		}, "holds 0 requests, but"},
		"a request lost": {"result.bin", func(t *testing.T, path string) {
			rewrite(t, path, func(all []vegeta.Result) []vegeta.Result { return all[1:] })
		}, "holds 8 requests, but"},
		"an unknown route": {"result.bin", func(t *testing.T, path string) {
			rewrite(t, path, func(all []vegeta.Result) []vegeta.Result { all[3].URL = "http://x/other"; return all })
		}, `request 4 is "POST /other", a route that session.json does not have`},
		"a failed target": {"result.bin", func(t *testing.T, path string) {
			rewrite(t, path, func(all []vegeta.Result) []vegeta.Result {
				all[0].URL, all[0].Method, all[0].Code = "", "", 0
				return all
			})
		}, `request 1 is " /"`},
		"an unknown slice": {"result.bin", func(t *testing.T, path string) {
			rewrite(t, path, func(all []vegeta.Result) []vegeta.Result { all[0].Attack = "7"; return all })
		}, `request 1 belongs to slice "7"`},
		"two files in one": {"result.bin", func(t *testing.T, path string) {
			data, _ := os.ReadFile(path)
			if err := os.WriteFile(path, append(data, data...), 0o644); err != nil {
				t.Fatal(err)
			}
		}, "request 10 cannot be read"},
		"no results": {"result.bin", func(t *testing.T, path string) { os.Remove(path) }, "no such file"},
		"no slices":  {"slices.csv", func(t *testing.T, path string) { os.Remove(path) }, "no such file"},
		"slices without a number": {"slices.csv", func(t *testing.T, path string) {
			replace(t, path, "\n1,", "\none,")
		}, `slices.csv:2: slice: strconv.ParseInt: parsing "one"`},
		"slices out of order": {"slices.csv", func(t *testing.T, path string) { replace(t, path, "\n3,", "\n1,") }, "slices.csv:3: slice 1 comes after slice 1"},
		"another header":      {"slices.csv", func(t *testing.T, path string) { replace(t, path, "sent", "count") }, "slices.csv:1: the header is not"},
		"another arm":         {"run.json", func(t *testing.T, path string) { replace(t, path, `"arm": "baseline"`, `"arm": "candidate"`) }, "is not the one that session.json has planned"},
		"no JSON":             {"run.json", func(t *testing.T, path string) { os.Truncate(path, 10) }, "run.json: unexpected end"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := newSession(t)
			writeRun(t, f, baselineRun, some())
			tc.damage(t, filepath.Join(f.Dir(), "runs", "001-baseline", tc.file))
			_, err := record.Open(f.Dir())
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want an error with %q", err, tc.want)
			}
		})
	}
}

func replace(t *testing.T, path, old, new string) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(data), old) {
		t.Fatalf("%s does not hold %q", path, old)
	}
	if err := os.WriteFile(path, []byte(strings.Replace(string(data), old, new, 1)), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestSessionFileIsChecked(t *testing.T) {
	cases := []struct{ old, new, want string }{
		{`"format": 1`, `"format": 2`, "format 2 is not one this version knows"},
		{`"format": 1`, `"format": 0`, "format 0 is not one"},
		{`"name": "candidate"`, `"name": "baseline"`, `arms[1].name: "baseline" is empty or used twice`},
		{`"role": "candidate"`, `"role": "x"`, `arms[1].role`},
		{`"name": "POST /b"`, `"name": "GET /a?x=1"`, `routes[1].name`},
		{`"id": "002-candidate"`, `"id": "../002"`, `order[1].id`},
		{`"block": 1`, `"block": 0`, `order[0]: arm "baseline", block 0`},
		{`"latency_p50"`, `"latency_p51"`, "rules.metrics.latency_p50: needs a zone"},
		{`"zone": 0.05`, `"zone": 0`, "rules.metrics.latency_p50: needs a zone"},
		{`"blocks": 0`, `"blocks": 6, "max_blocks": 5`, "schedule.max_blocks: 5 with blocks 6: needs 1 ≤ blocks ≤ max_blocks"},
		{`"blocks": 0`, `"blocks": 0, "max_blocks": 5`, "schedule.max_blocks: 5 with blocks 0"},
		{`"blocks": 0`, `"blocks": 0, "controls": {"pairs": 0, "delay": 0.075}`, "schedule.controls: needs pairs of at least 1, not 0"},
		{`"blocks": 0`, `"blocks": 0, "controls": {"pairs": 1}`, "and a delay between 0 and 10, not 0"},
		{`{`, `[`, "session.json"},
	}
	for _, tc := range cases {
		f := newSession(t)
		replace(t, filepath.Join(f.Dir(), "session.json"), tc.old, tc.new)
		if _, err := record.Open(f.Dir()); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s → %s: got %v, want an error with %q", tc.old, tc.new, err, tc.want)
		}
	}
	if _, err := record.Open(t.TempDir()); err == nil || !strings.Contains(err.Error(), "is no session folder") {
		t.Errorf("an empty folder: %v", err)
	}
}

func TestFolderIsNeverWrittenOver(t *testing.T) {
	f := newSession(t)
	if _, err := record.Create(f.Dir()); err == nil || !strings.Contains(err.Error(), "is not empty; name another folder") {
		t.Errorf("got %v", err)
	}
}

// A killed session leaves a run without its end; what is whole can be read.
func TestKilledRun(t *testing.T) {
	f := newSession(t)
	writeRun(t, f, baselineRun, some())
	w, err := f.StartRun(record.Run{ID: "002-candidate", Block: 1, Arm: "candidate", State: record.Running})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Results(1, some()[1]); err != nil {
		t.Fatal(err)
	}
	s, err := record.Open(f.Dir())
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Runs) != 2 || s.Runs[0].State != record.Complete || s.Runs[1].State != record.Running {
		t.Errorf("got %d runs", len(s.Runs))
	}
}

func TestRouteName(t *testing.T) {
	for _, tc := range []struct{ method, url, want string }{
		{"GET", "http://router/actors?select=*", "GET /actors?select=*"},
		{"GET", "http://router", "GET /"},
		{"GET", "http://router?", "GET /?"},
		{"POST", "/x", "POST /x"},
		{"GET", "http://router/a%2Fb", "GET /a%2Fb"},
		{"GET", "http://router/a#frag", "GET /a"},
		{"GET", "http://[bad", "GET http://[bad"},
	} {
		if got := record.RouteName(tc.method, tc.url); got != tc.want {
			t.Errorf("RouteName(%q, %q) = %q, want %q", tc.method, tc.url, got, tc.want)
		}
	}
}

// FuzzOpen: whatever a session folder's files hold, reading it neither
// panics nor passes something off as whole that is not.
func FuzzOpen(f *testing.F) {
	good, err := json.Marshal(meta())
	if err != nil {
		f.Fatal(err)
	}
	run := []byte(`{"id":"001-baseline","block":1,"arm":"baseline","state":"complete"}`)
	f.Add(good, run, []byte("slice,start_unix_ns,counted_unix_ns,end_unix_ns,sent\n1,0,0,0,0\n"), []byte{})
	f.Add([]byte(`{}`), []byte(`{}`), []byte("x"), []byte{1, 2, 3})
	folder := newSession(f)
	writeRun(f, folder, baselineRun, some())
	whole := func(name string) []byte {
		data, err := os.ReadFile(filepath.Join(folder.Dir(), "runs", "001-baseline", name))
		if err != nil {
			f.Fatal(err)
		}
		return data
	}
	f.Add(good, whole("run.json"), whole("slices.csv"), whole("result.bin"))
	f.Add(good, []byte(`{"id":"001-baseline","block":1,"arm":"baseline","state":"running"}`), whole("slices.csv"), whole("result.bin")[:300])
	dir := f.TempDir()
	runDir := filepath.Join(dir, "runs", "001-baseline")
	if err := os.MkdirAll(runDir, 0o755); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, session, run, slices, results []byte) {
		for path, data := range map[string][]byte{
			filepath.Join(dir, "session.json"): session, filepath.Join(runDir, "run.json"): run,
			filepath.Join(runDir, "slices.csv"): slices, filepath.Join(runDir, "result.bin"): results,
		} {
			if err := os.WriteFile(path, data, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		s, err := record.Open(dir)
		if err != nil {
			return
		}
		for _, r := range s.Runs {
			holdsTogether(t, s, r)
		}
	})
}

// holdsTogether checks that no part of a run contradicts another.
func holdsTogether(t *testing.T, s *record.Session, r *record.Run) {
	planned, sent := 0, 0
	for _, sl := range r.Slices {
		planned += sl.Sent
		if sl.Sent < 0 || sl.Due < 0 || sl.Counted.Before(sl.Start) {
			t.Errorf("slice %+v", sl)
		}
	}
	if len(r.Samples) != len(s.Routes) {
		t.Errorf("samples of %d routes, %d are known", len(r.Samples), len(s.Routes))
	}
	for name, sm := range r.Samples {
		if len(sm.Ends) != len(r.Slices) {
			t.Errorf("%s: %d ends for %d slices", name, len(sm.Ends), len(r.Slices))
		}
		counted, all := 0, 0
		for i := range r.Slices {
			counted += len(sm.Slice(i))
		}
		for _, n := range sm.Codes {
			all += n
		}
		if counted != len(sm.Latency) || counted > all || slices.ContainsFunc(sm.Latency, func(ns int64) bool { return ns < 0 }) {
			t.Errorf("%s: %d requests in slices, %d latencies, %d answers", name, counted, len(sm.Latency), all)
		}
		sent += all
	}
	if sent != r.Sent || r.State == record.Complete && planned != r.Sent {
		t.Errorf("%d requests on the routes, %d in the run, %d planned", sent, r.Sent, planned)
	}
}

func BenchmarkReadRun(b *testing.B) {
	f, err := record.Create(filepath.Join(b.TempDir(), "s"))
	if err != nil {
		b.Fatal(err)
	}
	if err := f.SaveMeta(meta()); err != nil {
		b.Fatal(err)
	}
	w, err := f.StartRun(baselineRun)
	if err != nil {
		b.Fatal(err)
	}
	const perSlice, n = 2000, 25
	for k := 1; k <= n; k++ {
		var rs []*vegeta.Result
		for i := range perSlice {
			rs = append(rs, result(k, i, float64(i)/10, "GET /a?x=1", 200, time.Duration(50000+i*7%9973)))
		}
		if err := w.Results(k, rs); err != nil {
			b.Fatal(err)
		}
		if err := w.Slice(slice(k, perSlice)); err != nil {
			b.Fatal(err)
		}
	}
	r := baselineRun
	r.State = record.Complete
	if err := w.Finish(r); err != nil {
		b.Fatal(err)
	}
	s, err := record.OpenMeta(f.Dir())
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if r, err := s.ReadRun("001-baseline"); err != nil || r.Sent != perSlice*n {
			b.Fatal(fmt.Sprint(err))
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/(perSlice*n), "ns/request")
}

// The system's clock is set back by an hour between two slices, and forward
// again: every request still counts in its own slice.
func TestClockSteps(t *testing.T) {
	write := func(steps map[int]time.Duration) *record.Run {
		f := newSession(t)
		w, err := f.StartRun(baselineRun)
		if err != nil {
			t.Fatal(err)
		}
		for n := 1; n <= 3; n++ {
			var rs []*vegeta.Result
			for i := range 10 {
				r := result(n, i, float64(6+i), "GET /a?x=1", 200, time.Duration(100*n+i))
				r.Timestamp = r.Timestamp.Add(steps[n])
				rs = append(rs, r)
			}
			sl := slice(n, len(rs))
			sl.Start, sl.Counted, sl.End = sl.Start.Add(steps[n]), sl.Counted.Add(steps[n]), sl.End.Add(steps[n])
			if err := errors.Join(w.Results(n, rs), w.Slice(sl)); err != nil {
				t.Fatal(err)
			}
		}
		r := baselineRun
		r.State = record.Complete
		if err := w.Finish(r); err != nil {
			t.Fatal(err)
		}
		s, err := record.Open(f.Dir())
		if err != nil {
			t.Fatal(err)
		}
		return s.Runs[0]
	}
	want, got := write(nil), write(map[int]time.Duration{2: -time.Hour, 3: time.Minute})
	if diff := cmp.Diff(want.Samples, got.Samples); diff != "" || len(got.Samples["GET /a?x=1"].Latency) != 27 {
		t.Errorf("%d latencies count, want 27: %s", len(got.Samples["GET /a?x=1"].Latency), diff)
	}
}

// What a run says of its clock comes back from disk to the second.
func TestClock(t *testing.T) {
	f := newSession(t)
	now := time.Date(2026, 1, 2, 3, 4, 5, 678, time.UTC)
	for _, c := range []struct {
		id   string
		zero time.Time // what the router's clock showed at now
	}{
		{"001-baseline", time.Date(2000, 1, 1, 0, 0, 0, 678, time.UTC)},
		{"002-candidate", now},
	} {
		run := baselineRun
		run.ID, run.Arm = c.id, c.id[4:]
		offset := record.Seconds(c.zero.Sub(now).Seconds())
		run.ClockOffsetS = &offset
		writeRun(t, f, run, some())
	}
	s, err := record.Open(f.Dir())
	if err != nil {
		t.Fatal(err)
	}
	later := now.Add(time.Hour)
	if at, moved := s.Runs[0].Clock(later); !moved || !at.Equal(time.Date(2000, 1, 1, 1, 0, 0, 678, time.UTC)) {
		t.Errorf("an hour later it shows %s (moved: %v)", at, moved)
	}
	if at, moved := s.Runs[1].Clock(later); !moved || !at.Equal(later) {
		t.Errorf("moved by nothing it shows %s (moved: %v)", at, moved)
	}
	if at, moved := (record.Run{}).Clock(later); moved || !at.Equal(later) {
		t.Errorf("not moved it shows %s (moved: %v)", at, moved)
	}
}
