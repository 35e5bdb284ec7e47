package gates

import (
	"fmt"
	"math"

	"plumbline/gates/stats"
	"plumbline/record"
)

// minRateRequests per arm can tell no errors from a rate at the zone's edge:
// 4,000 for 0.1 points, as Newcombe's limit for 0 of 4,000 against 0 of 4,000 is
// 0.096 points. That limit is z²/(n + z²), so an early look, which has less of the
// level, needs more.
func minRateRequests(zone, level float64) int {
	z := stats.Normal(level)
	return int(math.Ceil(max(4, z*z) / zone))
}

// errorCounts are a route's errors among all requests that were sent, counted
// or not, also by runs that were set aside: a new error is a result, not dirt.
type errorCounts struct {
	total  [2]stats.Count
	blocks stats.Sample // differences of the shares, over blocks in which both arms sent
	codes  [2]map[int]int
}

func (e errorCounts) none() bool { return e.total[0].X == 0 && e.total[1].X == 0 }

func (p *pairing) countErrors(route string) errorCounts {
	var e errorCounts
	byBlock := map[int]*[2]stats.Count{}
	var order []int // blocks as they come: p.all is sorted
	for side, runs := range p.all {
		e.codes[side] = map[int]int{}
		for _, r := range runs {
			codes := map[int]int{}
			addCodes(codes, r, route)
			addCodes(e.codes[side], r, route)
			c := unexpected(codes, p.expected[route])
			if byBlock[r.Block] == nil {
				byBlock[r.Block] = new([2]stats.Count)
				order = append(order, r.Block)
			}
			for _, sum := range []*stats.Count{&e.total[side], &byBlock[r.Block][side]} {
				sum.X += c.X
				sum.N += c.N
			}
		}
	}
	var differences []float64
	for _, block := range order {
		if b := byBlock[block]; b[0].N > 0 && b[1].N > 0 {
			differences = append(differences, b[1].Share()-b[0].Share())
		}
	}
	e.blocks = stats.Describe(differences)
	return e
}

// rates judges the error rate of every route; its claims form one family.
func (p *pairing) rates(rule record.Rule, judged bool) []Comparison {
	counts := make([]errorCounts, len(p.session.Routes))
	var pool errorCounts // of all routes without an error in either arm
	pooled := 0
	for i, route := range p.session.Routes {
		counts[i] = p.countErrors(route.Name)
		if counts[i].none() && len(p.expected[route.Name]) > 0 {
			pooled++
			pool.total[0].N += counts[i].total[0].N
			pool.total[1].N += counts[i].total[1].N
		}
	}
	need := minRateRequests(rule.Zone, p.levels.rate(len(p.blocks)))
	rows := make([]*row, len(counts))
	for i, e := range counts {
		r := &row{Comparison: p.row(p.session.Routes[i].Name, record.ErrorRate, "fraction", rule, judged)}
		rows[i] = r
		r.Requests = [2]int{e.total[0].N, e.total[1].N}
		r.Blocks = e.blocks.N
		switch {
		case min(e.total[0].N, e.total[1].N) == 0:
			r.Reasons = append(r.Reasons, "nothing was measured")
		case len(p.expected[r.Route]) == 0:
			r.Reasons = append(r.Reasons, p.noStatus(r.Route))
		case e.blocks.N < minBlocks:
			r.Reasons = append(r.Reasons, needsBlocks(e.blocks.N))
		case e.none():
			if pooled > 1 && min(e.total[0].N, e.total[1].N) < need {
				e.total = pool.total
				r.Reasons = append(r.Reasons, fmt.Sprintf("no errors; judged together with all %d routes that have none: %d against %d requests",
					pooled, e.total[0].N, e.total[1].N))
			}
			if min(e.total[0].N, e.total[1].N) < need {
				r.Reasons = append(r.Reasons, fmt.Sprintf("too few requests to exclude errors: %d in each arm are needed", need))
			}
			r.claims = []claim{e.claim(rule.Zone, p.levels.rate, len(p.blocks))}
		default:
			r.Reasons = append(r.Reasons, fmt.Sprintf("answers of %s: %s; of %s: %s", p.arms[0], mixNames(e.codes[0]), p.arms[1], mixNames(e.codes[1])))
			r.claims = []claim{e.claim(rule.Zone, p.levels.rate, len(p.blocks))}
		}
	}
	p.decideFamily(rows)
	comparisons := make([]Comparison, len(rows))
	for i, r := range rows {
		if total := counts[i].total; min(total[0].N, total[1].N) > 0 && len(p.expected[r.Route]) > 0 {
			r.Values = &[2]float64{total[0].Share(), total[1].Share()}
		}
		if len(r.claims) > 0 {
			c := r.claims[0]
			effect, low, high := digits(9, c.estimate), digits(9, c.low), digits(9, c.high)
			r.Effect, r.Low, r.High = &effect, &low, &high
		}
		comparisons[i] = r.Comparison
	}
	return comparisons
}

// claim has on each side the wider of Newcombe's limit, which holds without
// any error, and the t limit over blocks, which holds for errors in clusters;
// so its p-value is the larger of the two. Without errors it is Newcombe's alone.
func (e errorCounts) claim(zone float64, level func(blocks int) float64, blocks int) claim {
	first, second := e.total[0], e.total[1]
	c := claim{
		estimate: second.Share() - first.Share(),
		lower:    -zone, upper: zone, level: level,
		slower: 1, faster: 1,
		noise: e.blocks.SD / math.Sqrt(float64(e.blocks.N)),
	}
	c.second = c.estimate
	limits := func(first, second stats.Count, blocks stats.Sample, level float64) (low, high float64) {
		low, high = stats.Newcombe(first, second, level)
		if !e.none() {
			half := blocks.HalfWidth(level)
			low, high = min(low, blocks.Mean-half), max(high, blocks.Mean+half)
		}
		return low, high
	}
	c.low, c.high = limits(first, second, e.blocks, level(blocks))
	if e.none() {
		c.short = min(first.N, second.N) < minRateRequests(zone, level(blocks))
	} else {
		c.slower = max(stats.NewcombeAbove(first, second, zone), e.blocks.Above(zone))
		c.faster = max(stats.NewcombeAbove(second, first, zone), e.blocks.Below(-zone))
	}
	c.project = func(blocks int, level float64) (low, high float64) {
		grow := func(c stats.Count) stats.Count {
			return stats.Count{X: c.X * blocks / e.blocks.N, N: c.N * blocks / e.blocks.N}
		}
		if e.none() && min(grow(first).N, grow(second).N) < minRateRequests(zone, level) {
			return math.Inf(-1), math.Inf(1)
		}
		more := e.blocks
		more.N = blocks
		return limits(grow(first), grow(second), more, level)
	}
	return c
}
