package report_test

import (
	"fmt"

	"plumbline/gates"
	"plumbline/record"
)

// story builds a session and its verdict by hand, row by row.
type story struct {
	s record.Session
	v gates.Verdict
}

func newStory(outcome gates.Outcome) *story {
	st := &story{}
	st.s.Meta = record.Meta{
		Format: record.Format, Tool: "dev", Command: []string{"against", "main", "--blocks", "6"},
		State: record.Complete, Seed: 1, Rules: record.DefaultRules(),
		Arms: []record.Arm{
			{Name: "baseline", Role: record.Baseline, Label: "main", Commit: "1a2b3c4d5e6f708192a3b4c5d6e7f8091a2b3c4d"},
			{Name: "candidate", Role: record.Candidate, Label: "HEAD+dirty", Commit: "9f8e7d6c5b4a39281706f5e4d3c2b1a09f8e7d6c", Dirty: true},
		},
		Schedule: record.Schedule{Mode: record.Sliced, Blocks: 6, BlockS: 10, SliceS: 0.2, Freeze: true},
		Load:     record.Load{Workers: 1, Protocol: "h1", CPUs: []int{0}, ArmCPUs: []int{1}},
		Host:     record.Host{Hostname: "runner-7", OS: "linux", Kernel: "6.8.0", CPU: "AMD EPYC 7763", CPUs: 2},
	}
	st.v = gates.Verdict{
		Format: 1, Verdict: outcome, ExitCode: outcome.ExitCode(), Complete: true, Blocks: 6, Planned: 6,
	}
	return st
}

// row adds a comparison with the first baseline. base is in the metric's unit;
// effect, low and high are fractions.
func (st *story) row(m record.Metric, route string, base, effect, low, high float64, verdict gates.RowVerdict) *gates.Comparison {
	rule := st.s.Rules.Metrics[m]
	c := gates.Comparison{
		Route: route, Metric: m, Judged: !rule.Watch, Arms: [2]string{"baseline", "candidate"},
		Values: &[2]float64{base, base * (1 + effect)}, Unit: "s",
		Effect: &effect, Low: &low, High: &high, Zone: rule.Zone,
		Blocks: st.v.Blocks, Requests: [2]int{40000, 40000}, Verdict: verdict,
	}
	switch m {
	case record.ErrorRate:
		c.Unit, c.Values = "fraction", &[2]float64{base, base + effect}
	case record.LatencyDistribution:
		c.Percentile = 90
	}
	st.v.Comparisons = append(st.v.Comparisons, c)
	return &st.v.Comparisons[len(st.v.Comparisons)-1]
}

// missing adds a row without any number.
func (st *story) missing(m record.Metric, route, reason string) *gates.Comparison {
	c := st.row(m, route, 0, 0, 0, 0, gates.RowNotComparable)
	c.Values, c.Effect, c.Low, c.High, c.Blocks, c.Percentile = nil, nil, nil, nil, 0, 0
	c.Reasons = []string{reason}
	return c
}

// quiet adds rows of all metrics that found no change.
func (st *story) quiet(routes ...string) *story {
	for i, r := range routes {
		base := 180e-6 * float64(i+1)
		wobble := 0.002 * float64(i%5-2)
		st.s.Routes = append(st.s.Routes, record.Route{Name: r})
		st.row(record.LatencyP50, r, base, wobble, wobble-0.006, wobble+0.009, gates.RowEquivalent)
		st.row(record.LatencyDistribution, r, base*1.6, 2*wobble, 2*wobble-0.02, 2*wobble+0.022, gates.RowEquivalent)
		st.row(record.LatencyP99, r, base*2.7, 3*wobble, 3*wobble-0.04, 3*wobble+0.045, gates.RowEquivalent)
		st.row(record.ErrorRate, r, 0, 0, -0.0001, 0.0001, gates.RowEquivalent)
	}
	return st
}

// change overwrites the row of a metric and a route.
func (st *story) change(m record.Metric, route string, base, effect, low, high float64, verdict gates.RowVerdict) *gates.Comparison {
	c := st.row(m, route, base, effect, low, high, verdict)
	for i := range st.v.Comparisons {
		old := &st.v.Comparisons[i]
		if old != c && old.Metric == m && old.Route == route {
			*old = *c
			st.v.Comparisons = st.v.Comparisons[:len(st.v.Comparisons)-1]
			return old
		}
	}
	return c
}

// alsoAgainst copies all rows so far for a second, watched baseline.
func (st *story) alsoAgainst(label string) {
	name := fmt.Sprintf("baseline-%d", len(st.s.Arms))
	last := len(st.s.Arms) - 1
	arms := append([]record.Arm{}, st.s.Arms[:last]...)
	arms = append(arms, record.Arm{Name: name, Role: record.Baseline, Label: label, Commit: "0011223344556677889900112233445566778899"}, st.s.Arms[last])
	st.s.Arms = arms
	for _, c := range st.v.Comparisons {
		if c.Arms[0] == "baseline" {
			c.Arms[0], c.Judged = name, false
			st.v.Comparisons = append(st.v.Comparisons, c)
		}
	}
}
