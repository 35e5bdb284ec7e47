package gates_test

import (
	"bytes"
	"maps"
	"runtime"
	"slices"
	"testing"

	"plumbline/gates"
	"plumbline/record"
)

// TestExploratory: other rules give another verdict, which says which they
// are; the record's own give the record's own, byte for byte.
func TestExploratory(t *testing.T) {
	w := small(1)
	w.change = map[string]float64{"GET /b": 0.08}
	s := w.session()
	want, _ := gates.Judge(s).JSON()
	for _, tt := range []struct {
		name    string
		change  func(*record.Rules)
		outcome gates.Outcome
		reason  string // empty: not exploratory
	}{
		{"the same", func(*record.Rules) {}, gates.Regression, ""},
		{"the same zone", func(r *record.Rules) { r.Metrics[record.LatencyP50] = record.Rule{Zone: 0.05} }, gates.Regression, ""},
		{"wide zones", func(r *record.Rules) {
			r.Metrics[record.LatencyP50] = record.Rule{Zone: 0.2}
			r.Metrics[record.LatencyDistribution] = record.Rule{Zone: 0.25}
			r.Metrics[record.ErrorRate] = record.Rule{Zone: 0.0015}
		}, gates.Pass, "zone of P50 ±20 % (before: ±5 %); zone of latency distribution ±25 % (before: ±10 %); zone of error rate ±0.15 points (before: ±0.1 points)"},
		{"other roles", func(r *record.Rules) {
			r.Metrics[record.LatencyP50] = record.Rule{Zone: 0.3, Watch: true}
			r.Metrics[record.LatencyP99] = record.Rule{Zone: 0.1}
		}, gates.Inconclusive, "zone of P50 ±30 % (before: ±5 %); P50 watched (before: judged); P99 judged (before: watched)"},
		{"left out", func(r *record.Rules) {
			delete(r.Metrics, record.LatencyP50)
			delete(r.Metrics, record.LatencyDistribution)
		}, gates.Pass, "P50 left out (before: judged); latency distribution left out (before: judged)"},
		{"another floor", func(r *record.Rules) { r.FloorS = 2e-6 }, gates.Regression, "floor 2µs (before: 5µs)"},
	} {
		rules := s.Rules
		rules.Metrics = maps.Clone(rules.Metrics)
		tt.change(&rules)
		other, v := gates.Explore(s, rules)
		if other.Rules.Metrics[record.LatencyP50] != rules.Metrics[record.LatencyP50] {
			t.Errorf("%s: the session has other rules than it was judged by", tt.name)
		}
		wantOutcome(t, v, tt.outcome, tt.outcome.ExitCode())
		if v.Exploratory != (tt.reason != "") {
			t.Errorf("%s: exploratory is %v", tt.name, v.Exploratory)
		}
		got, _ := v.JSON()
		if tt.reason == "" && !bytes.Equal(got, want) {
			t.Errorf("%s: another verdict", tt.name)
		}
		if says := "Exploratory: judged by other rules than the session was measured with: " + tt.reason + "."; tt.reason != "" && !slices.Contains(v.Reasons, says) {
			t.Errorf("%s: %q, want %q", tt.name, v.Reasons, says)
		}
	}
	s.Loose = true
	if _, v := gates.Explore(s, record.Rules{Metrics: map[record.Metric]record.Rule{record.LatencyP50: {Zone: 0.2}}}); v.Exploratory {
		t.Error("loose files have no rules of their own")
	}
}

// TestSameBytesOnAnyNumberOfCPUs: sessions of fixed length and growing ones.
// It changes a setting of the whole process, so nothing may run beside it.
func TestSameBytesOnAnyNumberOfCPUs(t *testing.T) {
	w := world{seed: 4, blocks: 8, routes: 5, slices: 8, perSlice: 60, runSD: 0.02, change: map[string]float64{"GET /b": 0.06, "GET /d": -0.1}}
	before := runtime.GOMAXPROCS(0)
	defer runtime.GOMAXPROCS(before)
	for _, s := range []*record.Session{w.session(), growing(w.session(), 4, 12)} {
		var want []byte
		for _, cpus := range []int{1, 8, 2, 8} {
			runtime.GOMAXPROCS(cpus)
			got, err := gates.Judge(s).JSON()
			if err != nil {
				t.Fatal(err)
			}
			if want == nil {
				want = got
			}
			if !bytes.Equal(got, want) {
				t.Errorf("at most %d blocks: another verdict on %d CPUs", s.Schedule.MaxBlocks, cpus)
			}
		}
	}
}
