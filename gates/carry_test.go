package gates_test

import (
	"slices"
	"strings"
	"testing"

	"plumbline/gates"
	"plumbline/record"
)

// An arm that works while it is idle makes the latencies not comparable, but
// only where idle arms are not frozen; error rates stay.
func TestCarryOver(t *testing.T) {
	for _, c := range []struct {
		name string
		load float64 // of a CPU, by the idle candidate
		set  func(*record.Schedule)
		want bool
	}{
		{"unfrozen and busy", 0.07, func(*record.Schedule) {}, true},
		{"unfrozen and quiet", 0.006, func(*record.Schedule) {}, false},
		{"frozen", 0.07, func(s *record.Schedule) { s.Freeze = true }, false},
		{"interleaved", 0.07, func(s *record.Schedule) { s.Mode = record.Interleaved }, false},
	} {
		s := small(1).session()
		c.set(&s.Schedule)
		each(s, "candidate", func(r *record.Run) { r.IdleCPU = c.load })
		v := gates.Judge(s)
		for _, row := range v.Comparisons {
			reason := strings.Join(row.Reasons, "; ")
			got := row.Verdict == gates.RowNotComparable && strings.Contains(reason, "carry-over: candidate used 7.0 % of a CPU while the other arm had the load")
			if want := c.want && row.Metric != record.ErrorRate; got != want {
				t.Errorf("%s: %s %s is %s (%s)", c.name, row.Route, row.Metric, row.Verdict, reason)
			}
		}
		if c.want && v.ExitCode == 0 {
			t.Errorf("%s: it passes", c.name)
		}
	}
}

// A warm-up that ended at its limit is said.
func TestUnsettled(t *testing.T) {
	s := small(1).session()
	s.Schedule.WarmupS = 30
	for i, r := range s.Runs {
		settled := i%4 != 0
		r.Warmup.Settled = &settled
	}
	if want := "3 of 12 runs had not settled when their warm-up reached its limit of 30s."; !slices.Contains(gates.Judge(s).Reasons, want) {
		t.Errorf("the reasons lack %q: %q", want, gates.Judge(s).Reasons)
	}
}
