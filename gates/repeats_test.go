package gates_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"plumbline/gates"
	"plumbline/record"
)

// start slows the processes of an arm down in some blocks, on every route, from
// their start to their end.
func start(s *record.Session, arm string, factor float64, blocks ...int) {
	each(s, arm, func(r *record.Run) {
		if !slices.Contains(blocks, r.Block) {
			return
		}
		for _, samples := range r.Samples {
			for i, l := range samples.Latency {
				samples.Latency[i] = int64(float64(l) * factor)
			}
		}
	})
}

// TestOneSlowStart: a process that was slow from its start to its end is named
// and set aside, and the other blocks are judged without it.
func TestOneSlowStart(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change map[string]float64
		slow   func(*record.Session)
		want   gates.RowVerdict
		run    string
		reason string
	}{
		{"of the candidate", nil, func(s *record.Session) { start(s, "candidate", 1.2, 4) }, gates.RowNotComparable, "008-candidate", "outlier: block 4 lies apart; P50 of candidate was "},
		{"of the baseline", nil, func(s *record.Session) { start(s, "baseline", 1.9, 4) }, gates.RowEquivalent, "007-baseline", "outlier: block 4 lies apart; P50 of baseline was "},
		{"does not drown a regression", map[string]float64{"GET /a": math.Log(1.09)}, func(s *record.Session) { start(s, "baseline", 1.9, 4) }, gates.RowRegression, "007-baseline", "outlier: block 4"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := small(3)
			w.change = tt.change
			s := w.session()
			tt.slow(s)
			v := gates.Judge(s)
			for _, metric := range []record.Metric{record.LatencyP50, record.LatencyDistribution} {
				c := find(t, v, "GET /a", metric)
				if metric == record.LatencyP50 && c.Verdict != tt.want || c.Blocks != 5 {
					t.Errorf("%s is %s after %d blocks, want %s after 5: %q", metric, c.Verdict, c.Blocks, tt.want, c.Reasons)
				}
				wantReason(t, c.Reasons, "outlier: judged without block 4, which lies apart")
			}
			if i := slices.IndexFunc(v.SetAside, func(a gates.SetAside) bool { return a.Run == tt.run && a.Route == "GET /a" }); i < 0 || !strings.Contains(v.SetAside[i].Reason, tt.reason) {
				t.Errorf("set aside: %+v, want %s", v.SetAside, tt.run)
			}
			if v.Blocks != 6 {
				t.Errorf("%d blocks, want 6: only latencies were set aside", v.Blocks)
			}
		})
	}
}

// TestTwoSpeeds holds when blocks that lie apart are no accident.
func TestTwoSpeeds(t *testing.T) {
	for _, tt := range []struct {
		name   string
		blocks int
		slow   func(*record.Session)
		want   gates.RowVerdict
		reason string
	}{
		{"candidate, half of its starts", 12, func(s *record.Session) { start(s, "candidate", 1.3, 1, 4, 5, 8, 9, 12) }, gates.RowNotComparable, "two speeds: 6 blocks at "},
		{"both arms, half of their starts", 20, func(s *record.Session) {
			start(s, "candidate", 1.3, 1, 4, 5, 8, 9, 12, 13, 16, 17, 20)
			start(s, "baseline", 1.3, 1, 2, 5, 6, 9, 10, 13, 14, 17, 18)
		}, gates.RowNotComparable, "two speeds: 5 blocks at −2"},
		{"one slow candidate of six", 6, func(s *record.Session) { start(s, "candidate", 1.3, 2) }, gates.RowNotComparable, "the candidate was slow in 1 of 6 blocks: a slow start may be no exception; 11 blocks without another would show that it is"},
		{"one slow candidate of twelve", 12, func(s *record.Session) { start(s, "candidate", 1.3, 2) }, gates.RowEquivalent, "outlier: judged without block 2, which lies apart"},
		{"one slow candidate in every four", 20, func(s *record.Session) { start(s, "candidate", 1.3, 2, 9, 15, 16, 20) }, gates.RowNotComparable, "the candidate was slow in 5 of 20 blocks"},
		{"both arms, now and then", 18, func(s *record.Session) { start(s, "candidate", 1.3, 2, 9); start(s, "baseline", 1.3, 15) }, gates.RowEquivalent, "outlier: judged without blocks 2, 9 and 15, which lie apart"},
		{"two of six", 6, func(s *record.Session) { start(s, "candidate", 1.3, 2, 5) }, gates.RowNotComparable, "two speeds: 4 blocks at "},
		{"one of five is named and stays", 5, func(s *record.Session) { start(s, "candidate", 1.3, 2) }, gates.RowInconclusive, "outlier: block 2 lies apart"},
		{"both of them slower than the zone", 12, func(s *record.Session) {
			start(s, "candidate", 1.2, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12)
			start(s, "candidate", 1.3, 1, 4, 5, 8, 9, 12)
		}, gates.RowRegression, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := small(5)
			w.blocks, w.routes = tt.blocks, 2
			s := w.session()
			tt.slow(s)
			v := gates.Judge(s)
			c := find(t, v, "GET /b", record.LatencyP50)
			if c.Verdict != tt.want || c.NotSlower {
				t.Errorf("%s, want %s; %q", c.Verdict, tt.want, c.Reasons)
			}
			wantReason(t, c.Reasons, tt.reason)
			if tt.want == gates.RowNotComparable {
				if len(c.Speeds) < 2 {
					t.Errorf("speeds are %+v", c.Speeds)
				}
				wantOutcome(t, v, gates.Inconclusive, 4)
			}
		})
	}
}

// TestTwoSpeedsStayOpen: in a session that may grow more blocks can show that a
// second speed is rare.
func TestTwoSpeedsStayOpen(t *testing.T) {
	w := small(5)
	w.blocks = 15
	s := growing(w.session(), 6, 20)
	for _, r := range s.Runs {
		for _, samples := range r.Samples {
			samples.Codes[200] = 4000
		}
	}
	start(s, "candidate", 1.3, 2, 5)
	if v := gates.Judge(prefix(s, 6)); v.Decided() || find(t, v, "GET /a", record.LatencyP50).Verdict != gates.RowNotComparable {
		t.Errorf("after 6 blocks: decided %v, P50 is %s", v.Decided(), find(t, v, "GET /a", record.LatencyP50).Verdict)
	}
	if v := gates.Judge(s); !v.Decided() || find(t, v, "GET /a", record.LatencyP50).Verdict != gates.RowEquivalent {
		t.Errorf("after 15 blocks: decided %v, P50 is %s", v.Decided(), find(t, v, "GET /a", record.LatencyP50).Verdict)
	}
}

// TestRepeatsOfWholeRuns: without slices, runs that vary by themselves are no
// ground for "no change", but do not hide a regression beyond all of them.
func TestRepeatsOfWholeRuns(t *testing.T) {
	for _, tt := range []struct {
		name   string
		mode   record.Mode
		cv     float64
		change float64
		metric record.Metric
		want   gates.RowVerdict
		reason string
	}{
		{"agree", record.Interleaved, 0.01, 0, record.LatencyP50, gates.RowEquivalent, ""},
		{"agree", record.Interleaved, 0.01, 0, record.LatencyDistribution, gates.RowEquivalent, ""},
		{"vary", record.Interleaved, 0.12, 0, record.LatencyP50, gates.RowNotComparable, "needs "},
		{"vary", record.Sequential, 0.12, 0, record.LatencyDistribution, gates.RowNotComparable, "the repeats of baseline do not agree: two runs are"},
		{"vary by far", record.Sequential, 0.5, 0, record.LatencyP50, gates.RowNotComparable, "the repeats of baseline do not agree: coefficient of variation"},
		{"vary, and twice as slow", record.Interleaved, 0.12, math.Log(2), record.LatencyP50, gates.RowRegression, ""},
		{"would vary, but are sliced", record.Sliced, 0.02, 0, record.LatencyP50, gates.RowEquivalent, ""},
	} {
		t.Run(tt.name+" "+string(tt.mode)+" "+string(tt.metric), func(t *testing.T) {
			w := small(11)
			w.runSD, w.slices, w.perSlice, w.blocks = tt.cv, 1, 900, 10
			w.latency = func(rng *rand.Rand, _ bool, _ int) float64 { return 0.03 * rng.NormFloat64() }
			w.change = map[string]float64{"GET /a": tt.change}
			s := w.session()
			s.Schedule.Mode = tt.mode
			v := gates.Judge(s)
			c := find(t, v, "GET /a", tt.metric)
			if c.Verdict != tt.want || c.NotSlower {
				t.Errorf("%s, want %s; %q", c.Verdict, tt.want, c.Reasons)
			}
			wantReason(t, c.Reasons, tt.reason)
			n := 0
			for _, r := range v.Repeats {
				if r.Runs != 10 || r.Raw <= 0 || r.Own <= 0 {
					t.Errorf("%+v", r)
				}
				n++
			}
			if n != 3*2*2 { // routes, arms, and the two metrics with enough requests
				t.Errorf("%d repeats are told", n)
			}
		})
	}
}

// TestOrderConfounded: all of the baseline's runs first, and the machine slows
// down all the time. The candidate is the same and no regression.
func TestOrderConfounded(t *testing.T) {
	regressions, explained := 0, 0
	for seed := range uint64(60) {
		w := small(seed)
		w.runSD, w.slices, w.perSlice, w.routes = 0.01, 1, 900, 1
		w.latency = func(rng *rand.Rand, _ bool, _ int) float64 { return 0.03 * rng.NormFloat64() }
		s := w.session()
		s.Schedule.Mode = record.Sequential
		for i, r := range s.Runs {
			at := i / 2 // runs are listed block by block, but were made arm by arm
			if r.Arm == "candidate" {
				at += w.blocks
			}
			for j, l := range r.Samples["GET /a"].Latency {
				r.Samples["GET /a"].Latency[j] = int64(float64(l) * math.Exp(0.02*float64(at)))
			}
		}
		v := gates.Judge(s)
		if v.Verdict == gates.Regression || v.Verdict == gates.Pass {
			regressions++
			t.Logf("seed %d: %s", seed, v.Reasons)
		}
		c := find(t, v, "GET /a", record.LatencyP50)
		for _, r := range c.Reasons {
			if strings.HasPrefix(r, "the candidate was measured last: what changes from run to run may make ±") {
				explained++
			}
		}
		wantReason(t, v.Reasons, "Sequential: drift of the host is not told apart from a change.")
	}
	if regressions > 0 || explained != 60 {
		t.Errorf("%d of 60 were called something that the drift was, %d rows say why not", regressions, explained)
	}
}

// TestTooFewRepeatsStayOpen: a row of which is said that it needs more repeats
// gets them, if the session may have so many.
func TestTooFewRepeatsStayOpen(t *testing.T) {
	for _, tt := range []struct {
		cv      float64
		most    int
		decided bool
	}{
		{0.08, 20, false},
		{0.5, 20, true}, // no number would do
	} {
		w := small(1)
		w.runSD, w.slices, w.perSlice, w.blocks, w.routes = tt.cv, 1, 900, 20, 1
		w.latency = func(rng *rand.Rand, _ bool, _ int) float64 { return 0.1 * rng.NormFloat64() }
		s := growing(prefix(w.session(), 6), 6, tt.most)
		s.Schedule.Mode = record.Interleaved
		s.Rules.Metrics = map[record.Metric]record.Rule{record.LatencyP50: {Zone: 0.1}}
		v := gates.Judge(s)
		c := find(t, v, "GET /a", record.LatencyP50)
		if c.Verdict != gates.RowNotComparable || v.Decided() != tt.decided || (c.NeedsRepeats > 0) == tt.decided {
			t.Errorf("CV %v, at most %d blocks: decided %v, %s, needs %d; %q", tt.cv, tt.most, v.Decided(), c.Verdict, c.NeedsRepeats, c.Reasons)
		}
	}
}

// TestFewSharedSlices: a run's requests in slices that the other run has are
// thinned, not those of all slices: else there may be none left.
func TestFewSharedSlices(t *testing.T) {
	w := small(1)
	w.routes = 1
	s := w.session()
	for _, r := range s.Runs {
		samples := r.Samples["GET /a"]
		shared := slices.Clone(samples.Latency[:60])
		if r.Arm == "candidate" {
			r.Slices, samples.Latency, samples.Ends = []record.Slice{{N: 2}}, shared, []int{60}
			continue
		}
		const alone = 100_011
		r.Slices = []record.Slice{{N: 1}, {N: 2}}
		samples.Latency = append(slices.Repeat([]int64{200e3}, alone), shared...)
		samples.Ends = []int{alone, alone + 60}
	}
	if c := find(t, gates.Judge(s), "GET /a", record.LatencyP50); c.Blocks != 6 {
		t.Errorf("%d blocks, %q", c.Blocks, c.Reasons)
	}
}
