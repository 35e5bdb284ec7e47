package gates

import (
	"maps"
	"math"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"plumbline/gates/stats"
	"plumbline/record"
)

const (
	minBeyond    = 20 // samples beyond a percentile that a group of slice pairs needs in each arm, and a block in all
	minBeyondP99 = 50 // the same for P99 and a whole block
	minGroups    = 3  // with fewer, their median is no better than pooling the block
)

// percentiles are the points that are measured: P5 to P95 in steps of 5, and P99.
func percentiles() []int {
	return []int{5, 10, 15, 20, 25, 30, 35, 40, 45, 50, 55, 60, 65, 70, 75, 80, 85, 90, 95, 99}
}

// placeOf is the index of one of percentiles(), which is that of its effect in a block.
func placeOf(percent int) int { return slices.Index(percentiles(), percent) }

// blockEffects is what one block says of one route.
type blockEffects struct {
	n       [2]int
	tick    int64 // of the clock, in ns
	sorted  [2][]int64
	effects []effect // one for each of percentiles()
}

// effect is ln(candidate/baseline) at a percentile.
type effect struct {
	enough         bool // the block holds enough samples beyond the percentile
	median, pooled float64
}

// measured is what the blocks say of one route.
type measured struct {
	blocks   int
	requests [2]int
	tick     int64   // of the clock, in ns
	flat     bool    // all latencies are the same
	points   []point // one for each of percentiles()
}

// point is one percentile of a route.
type point struct {
	p       int
	values  [2]int64     // ns, over all blocks
	effects []float64    // ln(candidate/baseline), one for each block with enough samples
	pooled  []float64    // the same without regard to slices
	levels  [2][]float64 // ln of each arm's own percentile, block by block
}

// measureAll measures every route.
func (p *pairing) measureAll() {
	p.effects = make([][]blockEffects, len(p.session.Routes))
	each(len(p.effects), func(i int) { p.effects[i] = p.measure(p.session.Routes[i].Name) })
}

// each calls f for 0 to n−1 on all CPUs. What f writes must be its own.
func each(n int, f func(i int)) {
	var next atomic.Int64
	var done sync.WaitGroup
	for range min(n, runtime.GOMAXPROCS(0)) {
		done.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				f(i)
			}
		})
	}
	done.Wait()
}

// measure reduces a route's samples to effects, block by block. Each slice is
// sorted once, in a copy; every percentile of every group, block and arm is
// then read from these.
func (p *pairing) measure(route string) []blockEffects {
	blocks := make([]blockEffects, len(p.blocks))
	for i, runs := range p.blocks {
		parts := pairSlices(runs, route)
		b := blockEffects{n: parts.n}
		for side := range b.sorted {
			b.sorted[side] = slices.Concat(parts.parts[side]...)
			stats.Sort(b.sorted[side])
			b.tick = stats.Tick(b.tick, b.sorted[side])
		}
		for _, percent := range percentiles() {
			var e effect
			if e.enough = parts.enough(percent); e.enough {
				e.pooled = logRatio(percent, b.sorted[:1], b.sorted[1:])
				e.median = parts.effect(percent, e.pooled)
			}
			b.effects = append(b.effects, e)
		}
		blocks[i] = b
	}
	return blocks
}

// putTogether sums up the blocks that count.
func putTogether(blocks []blockEffects, counts func(block int) bool) *measured {
	m := &measured{}
	var all [2][][]int64
	var least, most int64 = math.MaxInt64, 0
	for i, b := range blocks {
		if !counts(i) {
			continue
		}
		m.blocks++
		m.tick = stats.Tick(m.tick, []int64{b.tick})
		for side, sorted := range b.sorted {
			m.requests[side] += b.n[side]
			all[side] = append(all[side], sorted)
			if len(sorted) > 0 {
				least, most = min(least, sorted[0]), max(most, sorted[len(sorted)-1])
			}
		}
	}
	m.flat = least >= most
	for i, percent := range percentiles() {
		pt := point{p: percent}
		if m.requests[0] > 0 && m.requests[1] > 0 {
			pt.values = [2]int64{stats.NearestRank(percent, all[0]...), stats.NearestRank(percent, all[1]...)}
		}
		for j, b := range blocks {
			if e := b.effects[i]; e.enough && counts(j) {
				pt.effects = append(pt.effects, e.median)
				pt.pooled = append(pt.pooled, e.pooled)
				for side := range pt.levels {
					own := stats.NearestRank(percent, b.sorted[side])
					pt.levels[side] = append(pt.levels[side], math.Log(max(1, float64(own))))
				}
			}
		}
		m.points = append(m.points, pt)
	}
	return m
}

// samples are the counted latencies of one block and route, slice pair by
// slice pair: parts[0][i] and parts[1][i] were measured back to back. Each part is sorted.
type samples struct {
	parts [2][][]int64
	n     [2]int
}

// pairSlices matches slices by their number; one without a partner is dropped.
func pairSlices(runs [2]*record.Run, route string) samples {
	return matched([2]map[int][]int64{slicesByNumber(runs[0], route), slicesByNumber(runs[1], route)})
}

// matched pairs what has the same number on both sides.
func matched(byN [2]map[int][]int64) (out samples) {
	for _, n := range slices.Sorted(maps.Keys(byN[0])) {
		if _, ok := byN[1][n]; !ok {
			continue
		}
		for side := range byN {
			part := slices.Clone(byN[side][n])
			stats.Sort(part)
			out.parts[side] = append(out.parts[side], part)
			out.n[side] += len(part)
		}
	}
	return out
}

// slicesByNumber holds every slice of the run, also one without a request to
// the route; of a number that comes twice, the first.
func slicesByNumber(r *record.Run, route string) map[int][]int64 {
	byN := map[int][]int64{}
	s := r.Samples[route]
	for i, slice := range r.Slices {
		if _, twice := byN[slice.N]; twice {
			continue
		}
		byN[slice.N] = nil
		if s != nil && i < len(s.Ends) {
			byN[slice.N] = s.Slice(i)
		}
	}
	return byN
}

// tail is the smaller share on either side of a percentile, in percent.
func tail(percent int) int { return min(percent, 100-percent) }

// enough says whether both arms hold enough samples beyond the percentile.
func (s samples) enough(percent int) bool {
	need := minBeyond
	if percent == 99 {
		need = minBeyondP99
	}
	return min(s.n[0], s.n[1])*tail(percent) >= need*100
}

// effect is the block's ln(Q(candidate)/Q(baseline)) at a percentile: the
// median over groups of consecutive slice pairs, each just large enough, which
// a burst on the host cannot move. With too few groups it is the pooled ratio of
// the whole block, which a mixture of two speeds cannot hide from.
func (s samples) effect(percent int, pooled float64) float64 {
	var ends []int
	var n [2]int
	for i := range s.parts[0] {
		n[0] += len(s.parts[0][i])
		n[1] += len(s.parts[1][i])
		if min(n[0], n[1])*tail(percent) >= minBeyond*100 {
			ends = append(ends, i+1)
			n = [2]int{}
		}
	}
	if len(ends) < minGroups {
		return pooled
	}
	ends[len(ends)-1] = len(s.parts[0]) // leftovers join the last group
	ratios := make([]float64, len(ends))
	start := 0
	for i, end := range ends {
		ratios[i] = logRatio(percent, s.parts[0][start:end], s.parts[1][start:end])
		start = end
	}
	return stats.Median(ratios)
}

// logRatio is ln(Q(candidate)/Q(baseline)). A latency of 0 counts as 1 ns to
// stay finite; such a row fails for its resolution.
func logRatio(percent int, base, cand [][]int64) float64 {
	b, c := stats.NearestRank(percent, base...), stats.NearestRank(percent, cand...)
	return math.Log(float64(max(c, 1)) / float64(max(b, 1)))
}
