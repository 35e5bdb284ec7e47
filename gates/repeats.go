package gates

import (
	"fmt"
	"math"
	"slices"

	"plumbline/gates/stats"
	"plumbline/record"
)

// This file is Gate 2: do the repeats agree? In a sliced session the host's
// level cancels between the arms of a block, so how far runs are apart is shown
// and only speeds.go decides. Whole runs must agree, or "no change" is not
// said: those that took turns with the block's level taken out, as it is in the
// comparison, those that did not as they are.

const (
	mostCV       = 0.15 // of P50 or P99 over runs, at the upper 95 % limit
	cvLevel      = 0.05
	mostBetween  = 3.0  // median distance between two runs, in distances between halves of one
	smallBetween = 0.25 // of the zone: distances below do not matter
	thinned      = 1024 // requests of a run of which distances are computed, evenly spaced
	pieces       = 20   // of a run without slices, which go to its halves in turns
)

// repeat tells how far the runs of each arm are apart on a route.
func (p *pairing) repeat(i int, metric record.Metric, zone float64) []Repeat {
	if metric == record.LatencyDistribution {
		return p.repeatDistribution(i, zone)
	}
	percent := map[record.Metric]int{record.LatencyP50: 50, record.LatencyP99: 99}[metric]
	at := placeOf(percent)
	var values [2][]float64
	for b, block := range p.effects[i] {
		if block.effects[at].enough && p.speeds[i].keeps(b) {
			for side := range values {
				values[side] = append(values[side], float64(stats.NearestRank(percent, block.sorted[side])))
			}
		}
	}
	if len(values[0]) < 2 {
		return nil
	}
	levels := blockLevels(values)
	var all []Repeat
	for side, own := range values {
		raw := stats.Describe(own)
		r := Repeat{Route: p.session.Routes[i].Name, Metric: metric, Arm: p.arms[side], Runs: raw.N, Raw: digits(6, raw.SD/max(1, raw.Mean))}
		out := make([]float64, len(own))
		for b, v := range own {
			out[b] = math.Log(max(1, v)) - levels[b]
		}
		// Two arms that share a level each keep half of the variance of their difference.
		r.Own = digits(6, math.Sqrt2*stats.Describe(out).SD)
		cv := p.counts(r)
		bound := stats.VangelUpper(cv, r.Runs, cvLevel)
		if !math.IsInf(bound, 0) {
			shown := digits(6, bound)
			r.Bound = &shown
		}
		if p.unsliced() && bound >= mostCV {
			r.Disagree = fmt.Sprintf("the repeats of %s do not agree: coefficient of variation %.1f %%", r.Arm, 100*cv)
			if n := repeatsNeeded(cv); n > 0 {
				r.Disagree = fmt.Sprintf("not judged: needs %d repeats, has %d: %s of %s varies by %.1f %% over runs, and 15 %% is not excluded", n, r.Runs, metricName(metric), r.Arm, 100*cv)
			}
		}
		all = append(all, r)
	}
	return all
}

// repeatsNeeded is with how many repeats a coefficient of variation would be
// known to be small enough, if it stays; 0: with none.
func repeatsNeeded(cv float64) int {
	for n := 3; n <= mostBlocks; n++ {
		if stats.VangelUpper(cv, n, cvLevel) < mostCV {
			return n
		}
	}
	return 0
}

// needsRepeats is with how many blocks the runs may be found to agree at the
// earliest, in a session that may have so many: no further block is of another
// speed, and the true spread is at the lower limit of what was seen. 0: they
// agree, or there will not be enough.
func (p *pairing) needsRepeats(route int, repeats []Repeat) int {
	most := 0
	if n := p.speeds[route].needs; n > 0 {
		most = max(n, len(p.blocks)+1)
	}
	for _, r := range repeats {
		if r.Disagree == "" {
			continue
		}
		if r.Metric == record.LatencyDistribution {
			return 0 // more of them do not make distances shorter
		}
		n := repeatsNeeded(p.counts(r) * stats.Sample{N: r.Runs, SD: 1}.LeastSD(leastSpread))
		if n == 0 || n > p.levels.most {
			return 0
		}
		most = max(most, n, r.Runs+1)
	}
	if most > p.levels.most || len(p.blocks) >= p.levels.most {
		return 0
	}
	return most
}

// blockLevels are the means of ln(value) over the arms of each block.
func blockLevels(values [2][]float64) []float64 {
	levels := make([]float64, len(values[0]))
	for b := range levels {
		levels[b] = (math.Log(max(1, values[0][b])) + math.Log(max(1, values[1][b]))) / 2
	}
	return levels
}

// repeatDistribution compares whole runs: the distance between two of them
// with that between two halves of one.
func (p *pairing) repeatDistribution(i int, zone float64) []Repeat {
	route := p.session.Routes[i].Name
	var runs [2][][]float64
	var within [2][]float64
	var medians [2][]float64
	for b, block := range p.blocks {
		if !p.effects[i][b].effects[placeOf(50)].enough || !p.speeds[i].keeps(b) {
			continue
		}
		for side, run := range block {
			whole, halves := thin(run, block[1-side], route)
			middle := whole[len(whole)/2]
			runs[side] = append(runs[side], whole)
			medians[side] = append(medians[side], middle)
			if len(halves[0]) > 0 && len(halves[1]) > 0 {
				half := float64(len(halves[0])+len(halves[1])) / 2
				within[side] = append(within[side], stats.Wasserstein(halves[0], halves[1])/max(1, middle)*math.Sqrt(half/float64(len(whole))))
			}
		}
	}
	if len(runs[0]) < 2 {
		return nil
	}
	levels := blockLevels(medians)
	mean := stats.Describe(levels).Mean
	var all []Repeat
	for side := range runs {
		var raw, own []float64
		level := make([][]float64, len(runs[side]))
		for b, run := range runs[side] {
			level[b] = make([]float64, len(run))
			for k, x := range run {
				level[b][k] = x * math.Exp(mean-levels[b])
			}
		}
		for a := range runs[side] {
			for b := range a {
				raw = append(raw, 2*stats.Wasserstein(runs[side][a], runs[side][b])/max(1, medians[side][a]+medians[side][b]))
				own = append(own, stats.Wasserstein(level[a], level[b])/math.Exp(mean))
			}
		}
		r := Repeat{Route: route, Metric: record.LatencyDistribution, Arm: p.arms[side], Runs: len(runs[side]),
			Raw: digits(6, stats.Median(raw)), Own: digits(6, stats.Median(own))}
		inside := digits(6, stats.Median(within[side]))
		r.Within = &inside
		between := p.counts(r)
		if p.unsliced() && between > mostBetween*inside && between > smallBetween*zone {
			r.Disagree = fmt.Sprintf("the repeats of %s do not agree: two runs are %.1f %% of the median apart, two halves of one %.1f %%", r.Arm, 100*between, 100*inside)
		}
		all = append(all, r)
	}
	return all
}

// thin is a run's requests to a route in slices that the other run has too, or
// some of them evenly spaced, sorted; and the same in two halves: alternating
// slices, or pieces of a run without.
func thin(run, other *record.Run, route string) (whole []float64, halves [2][]float64) {
	s := run.Samples[route]
	theirs := slicesByNumber(other, route)
	var shared [][2]int // place in s.Latency and slice
	slice := 0
	for i := range s.Latency {
		for slice < len(s.Ends)-1 && i >= s.Ends[slice] {
			slice++
		}
		if slice >= len(run.Slices) {
			break
		}
		if _, ok := theirs[run.Slices[slice].N]; ok {
			shared = append(shared, [2]int{i, slice})
		}
	}
	step := max(1, len(shared)/thinned)
	for k := 0; k < len(shared); k += step {
		half := shared[k][1] % 2
		if len(s.Ends) < 4 {
			half = k * pieces / len(shared) % 2
		}
		x := float64(s.Latency[shared[k][0]])
		whole, halves[half] = append(whole, x), append(halves[half], x)
	}
	slices.Sort(whole)
	slices.Sort(halves[0])
	slices.Sort(halves[1])
	return whole, halves
}

// unsliced says that whole runs are compared, so that the host's level does
// not cancel.
func (p *pairing) unsliced() bool { return p.session.Loose || p.session.Schedule.Mode != record.Sliced }

// inTurns says that the arms took turns, block by block at least.
func (p *pairing) inTurns() bool {
	return p.session.Schedule.Mode != record.Sequential
}

// counts is how far repeats are apart as the gate takes it: with the block's
// level taken out where the arms took turns, as the comparison does.
func (p *pairing) counts(r Repeat) float64 {
	if p.inTurns() {
		return r.Own
	}
	return r.Raw
}

// disagree says why the row of a metric is not comparable for want of repeats
// that agree.
func (p *pairing) disagree(i int, repeats []Repeat) (reasons []string) {
	if apart := p.speeds[i].apart; apart != "" {
		reasons = append(reasons, apart)
	}
	for _, r := range repeats {
		if r.Disagree != "" {
			reasons = append(reasons, r.Disagree)
		}
	}
	return reasons
}
