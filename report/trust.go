package report

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"plumbline/gates"
	"plumbline/record"
)

// section is a small table of words, ready to be laid out; the renderer makes
// names safe.
type section struct {
	title string
	heads []string
	rows  [][]cell
	bad   bool // it stands in the way of the verdict
}

// cell is ours, or a name that came from strangers.
type cell struct {
	text string
	name bool
}

// show writes a cell, a name as the renderer does.
func (c cell) show(name func(string) string) string {
	if c.name {
		return name(c.text)
	}
	return c.text
}

// trust are the sections that say how far the verdict can be trusted: what the
// session made of what was known, and how far its repeats are apart.
func trust(s *record.Session, v *gates.Verdict) (all []section) {
	if len(v.Controls) > 0 {
		all = append(all, controls(v))
	}
	if len(v.Repeats) > 0 {
		all = append(all, repeats(s, v))
	}
	return all
}

func controls(v *gates.Verdict) section {
	out := section{title: "Controls: what the session made of what was known", heads: []string{"control", "known", "found", "interval", "verdict"}}
	for _, c := range v.Controls {
		what, must := "no change: a responder in plumbline", "within ±"+share(c.Zone)
		if c.Kind == "positive" {
			what, must = "a delay, on the baseline alone", "beyond +"+share(c.Zone)
		}
		effect, between := missing, missing
		if c.Effect != nil {
			effect, between = Percent(*c.Effect), Percent(*c.Low)+to+Percent(*c.High)
		}
		out.rows = append(out.rows, words(what, Percent(c.Want), effect, between, string(c.Verdict)+" (must be "+must+")"))
		out.bad = out.bad || c.Verdict != gates.ControlHeld
	}
	return out
}

// words are cells of ours.
func words(texts ...string) (cells []cell) {
	for _, t := range texts {
		cells = append(cells, cell{text: t})
	}
	return cells
}

// repeats sums Gate 2 up per metric and arm: the median over routes, and the
// route whose repeats are farthest apart.
func repeats(s *record.Session, v *gates.Verdict) section {
	out := section{title: "Repeats: how far the runs of an arm are apart, median over routes (largest)", heads: []string{"metric", "arm", "as measured", "block's level taken out", "halves of one run", "largest on"}}
	type place struct {
		metric record.Metric
		arm    string
	}
	var order []place
	of := map[place][]gates.Repeat{}
	for _, r := range v.Repeats {
		at := place{r.Metric, r.Arm}
		if of[at] == nil {
			order = append(order, at)
		}
		if !slices.ContainsFunc(of[at], func(o gates.Repeat) bool { return o.Route == r.Route }) { // a second baseline repeats the candidate's
			of[at] = append(of[at], r)
		}
	}
	for _, at := range order {
		all := of[at]
		raw, own, within := make([]float64, len(all)), make([]float64, len(all)), []float64{}
		worst := all[0]
		for i, r := range all {
			raw[i], own[i] = r.Raw, r.Own
			if r.Within != nil {
				within = append(within, *r.Within)
			}
			if r.Own > worst.Own {
				worst = r
			}
		}
		name := map[record.Metric]string{record.LatencyP50: "P50", record.LatencyP99: "P99", record.LatencyDistribution: "distribution"}[at.metric]
		out.rows = append(out.rows, append([]cell{{name, false}, {labelOf(s, at.arm), true}}, append(words(spread(raw), spread(own), spread(within)), cell{worst.Route, true})...))
	}
	return out
}

// spread: "3.1 % (4.0 %)", the median and the largest.
func spread(x []float64) string {
	if len(x) == 0 {
		return missing
	}
	slices.Sort(x)
	return share(x[len(x)/2]) + " (" + share(x[len(x)-1]) + ")"
}

func share(x float64) string { return strconv.FormatFloat(100*x, 'f', 1, 64) + " %" }

// pooledLine is the answer over all routes: "All 5 routes together: P50 +0.3 %
// (−0.2 % … +0.8 %)"; empty where there is none or only one route.
func pooledLine(s *record.Session, v *gates.Verdict) string {
	all := baselines(s, v)
	if len(all) == 0 {
		return ""
	}
	var parts []string
	head := ""
	for _, p := range v.Pooled {
		if p.Arms[0] != all[0] || p.Routes < 2 {
			continue
		}
		at := "P50"
		if p.Percentile > 0 {
			at = fmt.Sprintf("P%d", p.Percentile)
		}
		if len(parts) == 0 {
			head = fmt.Sprintf("All %d routes together: ", p.Routes)
		}
		parts = append(parts, fmt.Sprintf("%s %s (%s)", at, Percent(p.Effect), Percent(p.Low)+to+Percent(p.High)))
	}
	return head + strings.Join(parts, ", ")
}

// rareLine says what may have gone unseen.
func rareLine(v *gates.Verdict) string {
	if v.RareStart <= 0 || v.RareStart >= 1 {
		return ""
	}
	return fmt.Sprintf("Not excluded by %[2]s: another speed, chosen at their start, of up to %.0[1]f %% of the candidate's processes, or one that differs by less than %.0[3]f %%.",
		100*v.RareStart, count(v.Blocks, "block"), 100*v.RareGap)
}
