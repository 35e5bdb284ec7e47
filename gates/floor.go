package gates

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"plumbline/gates/stats"
	"plumbline/record"
)

// Floor says of an inconclusive row that its zone is below the noise floor: no
// block up to the session's maximum is likely to decide it, even if the blocks
// scatter less than they seem to.
type Floor struct {
	Percentile int     `json:"percentile,omitempty"` // of a latency, where it is worst
	Zone       float64 `json:"zone"`                 // in force there
	// HalfWidth is that of the interval after the last block, if the spread
	// stays; null where there will be too few requests to say anything.
	HalfWidth *float64 `json:"half_width"`
}

// leastSpread is the level of the lower limit of the spread over blocks: a
// session is not to be given up because its first blocks scattered by chance.
const leastSpread = 0.01

// findFloor looks whether the row can be decided at all within the maximum. The
// row is hopeless where the narrowest interval to be hoped for is wider than
// the zone, unless it may still turn out to be a regression (the truth may be
// a standard error higher than it looks), an improvement, or not slower.
func (r *row) findFloor(f family) {
	room := f.levels.most - f.blocks
	if room <= 0 || !f.levels.due(f.blocks) {
		return
	}
	last := r.Blocks + room
	shrink := stats.Sample{N: r.Blocks, SD: 1}.LeastSD(leastSpread)
	surely := f.level(room) / float64(f.claims) // Holm at its strictest
	notSlower, worst, excess := true, -1, 1.0
	for i, c := range r.claims {
		low, high := c.project(last, c.level(f.levels.most))
		notSlower = notSlower && high < c.upper
		if over := shrink * (high - low) / (c.upper - c.lower); over >= excess {
			worst, excess = i, over
		}
		low, high = c.project(last, surely)
		if c.estimate+c.noise-shrink*(c.estimate-low) > c.upper || c.estimate+shrink*(high-c.estimate) < c.lower {
			return
		}
	}
	if worst < 0 || notSlower {
		return
	}
	c := r.claims[worst]
	r.Floor = &Floor{Zone: r.Zone}
	low, high := c.project(last, c.level(f.levels.most))
	half := (high - low) / 2
	if r.Metric != record.ErrorRate {
		r.Floor.Percentile, r.Floor.Zone, half = r.Percentiles[worst].P, r.Percentiles[worst].Zone, math.Expm1(half)
	}
	if !math.IsInf(half, 0) {
		half = digits(6, half)
		r.Floor.HalfWidth = &half
	}
}

// Hopeless says in a sentence or two why the blocks that are left cannot decide
// the session: every judged row that is open is below the noise floor. It is
// empty as long as one may be decided, and in a session of fixed length. Rows
// that only wait for a control do not count: what it says cannot mend the others.
func (v *Verdict) Hopeless() string {
	open := v.rows(func(c Comparison) bool { return v.isOpen(c) && !waitsForControl(c) })
	worst, excess := -1, 0.0
	for _, i := range open {
		f := v.Comparisons[i].Floor
		if f == nil {
			return ""
		}
		over := math.Inf(1)
		if f.HalfWidth != nil {
			over = *f.HalfWidth / f.Zone
		}
		if over > excess {
			worst, excess = i, over
		}
	}
	if worst < 0 {
		return ""
	}
	c := v.Comparisons[worst]
	if c.Floor.HalfWidth == nil {
		return fmt.Sprintf("The zone of %s needs more requests than %d blocks have: too few to exclude errors of %s. Longer blocks have more.",
			amount(c.Metric, c.Floor.Zone), v.MaxBlocks, c.Route)
	}
	what := fmt.Sprintf("P%d of %s", c.Floor.Percentile, c.Route)
	if c.Metric == record.ErrorRate {
		what = "the error rate of " + c.Route
	}
	return fmt.Sprintf("The zone of %s is below the noise floor met here: after %d blocks %s would be known to ±%s. `plumbline variance` shows what this machine can see.",
		amount(c.Metric, c.Floor.Zone), v.MaxBlocks, what, amount(c.Metric, *c.Floor.HalfWidth))
}

// waitsForControl says that the row was equivalent by itself.
func waitsForControl(c Comparison) bool {
	return c.Verdict == RowInconclusive && slices.Contains(c.Reasons, unseen)
}

// amount: "2.4 %", of an error rate "0.15 points".
func amount(m record.Metric, x float64) string {
	unit := " %"
	if m == record.ErrorRate {
		unit = " points"
	}
	if x *= 100; x < 1 {
		return strconv.FormatFloat(x, 'g', 2, 64) + unit
	}
	return strconv.FormatFloat(math.Round(10*x)/10, 'f', -1, 64) + unit
}
