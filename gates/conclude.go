package gates

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"plumbline/record"
)

// conclude takes the first of invalid, regression, inconclusive and pass that
// applies, and says why.
func (v *Verdict) conclude(s *record.Session) {
	judged := v.rows(func(c Comparison) bool { return c.Judged })
	silent := v.rows(func(c Comparison) bool { return c.Judged && c.Verdict == RowNotComparable })
	regressions := v.rows(func(c Comparison) bool { return c.Verdict == RowRegression })
	switch {
	case s.Loose && v.Blocks < minBlocks:
		v.invalid(s, tooFewFiles(v.Blocks))
		return
	case v.Blocks < minBlocks && len(regressions) == 0 && starved(s) != "":
		v.invalid(s, starved(s))
		return
	case s.State == record.Stopped && v.Blocks < minBlocks:
		v.invalid(s, fmt.Sprintf("The session stopped with %d complete blocks; a verdict needs %d.", v.Blocks, minBlocks))
		return
	case v.failed():
		v.invalid(s, fmt.Sprintf("The negative control failed: a responder that no arm can touch was %s beside the candidate (between %s and %s). Something else than the arms differs between their slices.",
			slowerOrFaster(*v.control("negative").Effect), percent(*v.control("negative").Low), percent(*v.control("negative").High)))
		return
	case len(v.Comparisons) == 0:
		v.invalid(s, "There is nothing to compare: the session names no route or no metric.")
		return
	case len(judged) == 0:
		v.invalid(s, "No metric may decide: the rules only watch.")
		return
	case len(silent) == len(judged):
		v.invalid(s, "No row could be judged: "+v.Comparisons[silent[0]].firstReason()+".")
		return
	}

	open := v.rows(func(c Comparison) bool { return c.Judged && c.Verdict == RowInconclusive && !c.NotSlower })
	var limits []string // each alone keeps the session from passing
	if s.State != record.Complete {
		limits = append(limits, fmt.Sprintf("The session is not complete (%s): %d of %d planned blocks.", stateAndReason(s), v.Blocks, v.Planned))
	}
	if n := missingRuns(s); n > 0 && s.State == record.Complete {
		limits = append(limits, fmt.Sprintf("Data are missing: the record holds nothing of %d of %d planned runs.", n, len(s.Order)))
	}
	if lost := lostRuns(s); lost[1] > lost[0] {
		limits = append(limits, fmt.Sprintf("The candidate lost %d of its runs, the baseline %d: it cannot pass.", lost[1], lost[0]))
	}
	if s.Loose {
		limits = append(limits, overlaps(s)...)
	}
	for _, metric := range slices.Sorted(maps.Keys(s.Rules.Metrics)) {
		if !slices.Contains(record.Metrics[:], metric) {
			limits = append(limits, fmt.Sprintf("The rules name %q, which this version does not judge.", metric))
		}
	}

	if len(regressions) > 0 {
		v.Reasons = append(v.Reasons, "Regression: "+v.names(regressions)+".")
	}
	controls := v.controlLimits()
	v.Reasons = append(v.Reasons, controls...)
	if len(open) > 0 {
		v.Reasons = append(v.Reasons, "Undecided: "+v.names(open)+".")
	}
	if len(silent) > 0 {
		v.Reasons = append(v.Reasons, "Not comparable: "+v.names(silent)+".")
	}
	v.Reasons = append(v.Reasons, limits...)
	v.notes(s)
	switch {
	case len(regressions) > 0:
		v.set(Regression)
	case len(open)+len(silent)+len(limits)+len(controls) > 0:
		v.set(Inconclusive)
	default:
		v.set(Pass)
	}
}

// notes are what limits any verdict.
func (v *Verdict) notes(s *record.Session) {
	if s.State == record.Complete && s.Reason != "" { // it ended before its maximum
		v.Reasons = append(v.Reasons, s.Reason)
	}
	if v.AA {
		v.Reasons = append(v.Reasons, "A/A: both arms are the same build with the same configuration.")
	}
	if s.Loose {
		v.Reasons = append(v.Reasons, looseNote(s))
	} else if s.Schedule.Mode == record.Sequential {
		v.Reasons = append(v.Reasons, "Sequential: drift of the host is not told apart from a change.")
	}
	if n, of := unsettled(s); n > 0 {
		v.Reasons = append(v.Reasons, fmt.Sprintf("%d of %d runs had not settled when their warm-up reached its limit of %v.", n, of, s.Schedule.WarmupS.Duration()))
	}
	if s.State == record.Complete && v.Blocks < v.Planned {
		v.Reasons = append(v.Reasons, fmt.Sprintf("%d of %d planned blocks were judged.", v.Blocks, v.Planned))
	}
}

// unsettled counts the runs whose warm-up was to last until latency and memory
// had settled, and in which they had not.
func unsettled(s *record.Session) (n, of int) {
	for _, r := range s.Runs {
		if r.Warmup.Settled == nil {
			continue
		}
		of++
		if !*r.Warmup.Settled {
			n++
		}
	}
	return n, of
}

// invalid says first what the session itself gave as the reason.
func (v *Verdict) invalid(s *record.Session, why string) {
	v.set(Invalid)
	if s.Reason != "" && s.State != record.Complete {
		v.Reasons = append(v.Reasons, s.Reason)
	}
	v.Reasons = append(v.Reasons, why)
	v.notes(s)
}

func (v *Verdict) set(o Outcome) { v.Verdict, v.ExitCode = o, o.ExitCode() }

// rows are the indices of the comparisons that match.
func (v *Verdict) rows(match func(Comparison) bool) []int {
	var found []int
	for i, c := range v.Comparisons {
		if match(c) {
			found = append(found, i)
		}
	}
	return found
}

// names lists rows for a sentence; beyond a few only their number.
func (v *Verdict) names(rows []int) string {
	const most = 5
	deciding := v.Comparisons[0].Arms[0]
	var parts []string
	for _, i := range rows[:min(most, len(rows))] {
		c := v.Comparisons[i]
		name := metricName(c.Metric) + " of " + c.Route
		if c.Arms[0] != deciding {
			name += " against " + c.Arms[0]
		}
		parts = append(parts, name)
	}
	if n := len(rows) - most; n > 0 {
		parts = append(parts, fmt.Sprintf("and %d more", n))
	}
	return strings.Join(parts, ", ")
}

func metricName(m record.Metric) string {
	switch m {
	case record.LatencyP50:
		return "P50"
	case record.LatencyP99:
		return "P99"
	case record.LatencyDistribution:
		return "latency distribution"
	case record.ErrorRate:
		return "error rate"
	}
	return string(m)
}

// lostRuns counts the runs of the deciding baseline and the candidate whose
// router died or could not be sent what was due.
func lostRuns(s *record.Session) (lost [2]int) {
	baselines, candidate, ok := sides(s.Arms)
	if !ok {
		return lost
	}
	for _, r := range s.Runs {
		if r.State != record.Died && (r.State != record.Complete || shortfall(s, r) == "") {
			continue
		}
		switch r.Arm {
		case baselines[0].Name:
			lost[0]++
		case candidate.Name:
			lost[1]++
		}
	}
	return lost
}

func stateAndReason(s *record.Session) string {
	if s.State == record.Running {
		return "its writer was killed, or is still at work"
	}
	if s.Reason == "" {
		return string(s.State)
	}
	return string(s.State) + ": " + s.Reason
}

func (c Comparison) firstReason() string {
	if len(c.Reasons) == 0 {
		return "no reason was noted"
	}
	return c.Reasons[0]
}

// Worst is the judged row whose interval reaches farthest beyond its zone, or
// comes nearest to the edge, of the open ones if there are any: what a session
// has to wait for. It is false while no judged row has an interval.
func (v *Verdict) Worst() (Comparison, bool) {
	var open []Comparison
	for _, i := range v.rows(v.isOpen) {
		open = append(open, v.Comparisons[i])
	}
	if worst, ok := worstOf(open); ok {
		return worst, true
	}
	return worstOf(v.Comparisons)
}

func worstOf(rows []Comparison) (Comparison, bool) {
	var worst Comparison
	most := math.Inf(-1)
	for _, c := range rows {
		if !c.Judged || c.Verdict == RowNotComparable || c.Low == nil || c.High == nil {
			continue
		}
		low, high, edge := *c.Low, *c.High, c.Zone
		if c.Metric != record.ErrorRate {
			low, high, edge = math.Log1p(low), math.Log1p(high), math.Log1p(edge)
		}
		if excess := max(high, -low)/edge - 1; excess > most {
			worst, most = c, excess
		}
	}
	return worst, !math.IsInf(most, -1)
}
