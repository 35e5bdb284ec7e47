package gates

import (
	"math"
	"slices"

	"plumbline/gates/stats"
	"plumbline/record"
)

// pooledAt are the percentiles of which there is an answer over all routes.
var pooledAt = [...]struct {
	metric  record.Metric
	percent int
}{{record.LatencyP50, 50}, {record.LatencyDistribution, 95}}

// pool averages the routes that can be compared within each block and weighs
// these means over blocks: routes share their blocks, so they are no
// independent witnesses. A block counts if it has an effect of every route. The
// rows are those of the same look.
func (p *pairing) pool(rows []Comparison) []Pooled {
	var all []Pooled
	for _, at := range pooledAt {
		if _, ok := p.session.Rules.Metrics[at.metric]; !ok {
			continue
		}
		i := placeOf(at.percent)
		sums, have := make([]float64, len(p.blocks)), make([]int, len(p.blocks))
		routes := 0
		for r, blocks := range p.effects {
			if slices.ContainsFunc(rows, func(c Comparison) bool {
				return c.Route == p.session.Routes[r].Name && c.Metric == at.metric && (c.Verdict == RowNotComparable || c.Speeds != nil)
			}) {
				continue
			}
			any := false
			for b, block := range blocks {
				if e := block.effects[i]; e.enough && p.speeds[r].keeps(b) {
					sums[b] += e.median
					have[b]++
					any = true
				}
			}
			if any {
				routes++
			}
		}
		var means []float64
		for b := range sums {
			if routes > 0 && have[b] == routes {
				means = append(means, sums[b]/float64(routes))
			}
		}
		s := stats.Describe(means)
		if s.N < minBlocks {
			continue
		}
		half := s.HalfWidth(p.levels.percentile(len(p.blocks)))
		shown := func(x float64) float64 { return digits(6, math.Expm1(x)) }
		pooled := Pooled{Metric: at.metric, Arms: p.arms, Effect: shown(s.Mean), Low: shown(s.Mean - half), High: shown(s.Mean + half), Blocks: s.N, Routes: routes}
		if at.metric == record.LatencyDistribution {
			pooled.Percentile = at.percent
		}
		all = append(all, pooled)
	}
	return all
}
