package gates

import (
	"math"
	"sort"

	"plumbline/gates/stats"
)

// mostBlocks is as far as MoreBlocks looks in a session without a maximum.
const mostBlocks = 200

// claim is one tested quantity of a row, with all numbers on one scale: ln of
// a ratio for latencies, a difference for rates.
type claim struct {
	estimate     float64
	low, high    float64                  // limits of the estimate, each at the one-sided level
	lower, upper float64                  // edges of the zone
	second       float64                  // an estimate made in another way; equivalence needs it inside too
	slower       float64                  // one-sided p-value of lying above the upper edge; adjusted by correct
	faster       float64                  // and below the lower edge
	barred       string                   // why this claim cannot be relied on
	short        bool                     // too few requests to call it equivalent, wherever the limits are
	noise        float64                  // standard error of the estimate over blocks
	level        func(blocks int) float64 // of the limits, after so many blocks of the session
	// project gives the limits as they would be with this many blocks behind
	// the claim, if the mean and the spread stay.
	project func(blocks int, level float64) (low, high float64)
}

func (c claim) notSlower() bool { return !c.short && c.high < c.upper && c.second < c.upper }
func (c claim) inside() bool    { return c.notSlower() && c.low > c.lower && c.second > c.lower }

// disagrees says that the limits and the second estimate tell different stories.
func (c claim) disagrees() bool {
	return c.high < c.upper && c.second >= c.upper || c.low > c.lower && c.second <= c.lower
}

// excess is how far the interval reaches beyond the zone, in units of the
// edge: below 0 it lies inside.
func (c claim) excess() float64 {
	return max((c.high-c.upper)/c.upper, (c.lower-c.low)/-c.lower)
}

// row is a comparison in the making.
type row struct {
	Comparison
	claims   []claim
	ruledOut bool     // Gate 1 took the row away: its claims are shown, not tested
	disagree []string // Gate 2: why it can be nothing but a regression
	deciding int      // index of the claim that the verdict rests on
}

// family is what the rows of one metric share.
type family struct {
	levels *levels
	blocks int // complete blocks of the session so far
	claims int // that are tested
}

// level is the chance of any false regression in the family with some more blocks.
func (f family) level(more int) float64 { return f.levels.family(f.blocks+more, f.claims) }

// room is how many more blocks there may be.
func (f family) room(r *row) int {
	if f.levels.most == 0 {
		return mostBlocks - r.Blocks
	}
	return f.levels.most - f.blocks
}

// decideFamily adjusts the p-values over all claims of all rows, then gives
// each row its verdict.
func (p *pairing) decideFamily(rows []*row) {
	var tested []*claim
	for _, r := range rows {
		for i := range r.claims {
			if !r.ruledOut && r.claims[i].barred == "" {
				tested = append(tested, &r.claims[i])
			}
		}
	}
	slower, faster := make([]float64, len(tested)), make([]float64, len(tested))
	for i, c := range tested {
		slower[i], faster[i] = c.slower, c.faster
	}
	slower, faster = stats.Holm(slower), stats.Holm(faster)
	for i, c := range tested {
		c.slower, c.faster = slower[i], faster[i]
	}
	f := family{levels: p.levels, blocks: len(p.blocks), claims: len(tested)}
	for _, r := range rows {
		if len(r.claims) > 0 {
			r.decide(f)
		}
	}
}

// decide takes the first verdict that applies, in the order of METHOD.md's
// table. A claim that is barred cannot be a regression itself, but does not
// hide one elsewhere in the row. Repeats that disagree do not hide one either:
// its interval is over these repeats.
func (r *row) decide(f family) {
	r.deciding = r.pick(nil, claim.excess)
	if r.ruledOut {
		return
	}
	level := f.level(0)
	if i := r.pick(func(c claim) bool { return c.barred == "" && c.slower <= level },
		func(c claim) float64 { return (c.low - c.upper) / c.upper }); i >= 0 {
		r.Verdict, r.deciding = RowRegression, i
		r.Reasons = append(append([]string{}, r.disagree...), r.Reasons...)
		return
	}
	if i := r.pick(func(c claim) bool { return c.barred != "" }, claim.excess); i >= 0 {
		r.deciding = i
		r.Reasons = append(r.Reasons, r.claims[i].barred)
		return
	}
	if len(r.disagree) > 0 {
		r.Reasons = append(append([]string{}, r.disagree...), r.Reasons...)
		return
	}
	improved := r.pick(func(c claim) bool { return c.faster <= level },
		func(c claim) float64 { return (c.lower - c.high) / -c.lower })
	inside, notSlower := true, true
	for _, c := range r.claims {
		inside, notSlower = inside && c.inside(), notSlower && c.notSlower()
	}
	switch {
	case improved >= 0 && notSlower:
		r.Verdict, r.deciding = RowImprovement, improved
	case inside:
		r.Verdict = RowEquivalent
	default:
		r.Verdict, r.NotSlower = RowInconclusive, notSlower
		r.explain(f)
	}
}

// explain says why the row is undecided where the interval alone does not, and
// how many more blocks may help.
func (r *row) explain(f family) {
	for i, c := range r.claims {
		switch {
		case c.disagrees():
			r.deciding = i
			r.Reasons = append(r.Reasons, "the pooled percentiles disagree with the slices: "+percent(math.Expm1(c.second))+" against "+percent(math.Expm1(c.estimate)))
			return // no number of blocks mends that
		case i == r.deciding && (c.low > c.upper || c.high < c.lower):
			r.Reasons = append(r.Reasons, "beyond the zone on its own, but not beyond doubt among all rows of its kind")
		}
	}
	r.findFloor(f)
	// Intervals only shrink with more blocks, so the search may halve.
	room := f.room(r)
	if more := 1 + sort.Search(room, func(i int) bool { return r.decidedWith(1+i, f) }); more <= room {
		r.MoreBlocks = more
	}
}

// decidedWith says whether the row would be decided with so many more blocks if
// means and spreads stay. On which side of an edge the truth lies is a coin
// toss where the estimate is within one standard error of it: nothing is promised there.
func (r *row) decidedWith(more int, f family) bool {
	all, blocks := true, r.Blocks+more
	surely := f.level(more) / float64(f.claims) // Holm at its strictest
	for _, c := range r.claims {
		tossUp := min(math.Abs(c.estimate-c.upper), math.Abs(c.estimate-c.lower)) < c.noise
		switch {
		case tossUp:
			all = false
		case c.estimate > c.upper:
			if low, _ := c.project(blocks, surely); low > c.upper {
				return true // one claim is enough for a regression
			}
			all = false
		case c.estimate < c.lower:
			_, high := c.project(blocks, surely)
			all = all && high < c.lower
		case all:
			low, high := c.project(blocks, c.level(f.blocks+more))
			all = low > c.lower && high < c.upper
		}
	}
	return all
}

// pick is the index of the claim with the largest value among those that
// count (nil: all), the first of equals; -1 if there is none.
func (r *row) pick(counts func(claim) bool, value func(claim) float64) int {
	best := -1
	for i, c := range r.claims {
		if (counts == nil || counts(c)) && (best < 0 || value(c) > value(r.claims[best])) {
			best = i
		}
	}
	return best
}
