package stats

import (
	"math"
	"math/bits"
	"math/rand/v2"
)

const (
	exactBlocks  = 20      // so many have 2^20 sign patterns: half a second with 15 routes × 19 percentiles
	sampledFlips = 1 << 16 // of more blocks: a share of 2.5 % is then good to ±0.06 points
)

// FlipLimit is the sum of a claim's values from which on, whatever their signs,
// the one-sided t test finds their mean above edge (≥ 0) at the level alpha:
// Above(edge) ≤ alpha. The squares do not depend on the signs, so neither does
// the limit. With S = Σx², c = t(1−α, n−1) and k = c²/(n(n−1)), the mean m at the limit
// solves (m − edge)² = k(S − n·m²), m ≥ edge. It is +Inf where no signs lead there.
func FlipLimit(values []float64, edge, alpha float64) float64 {
	n := float64(len(values))
	squares := 0.0
	for _, x := range values {
		squares += x * x
	}
	if n < 2 || squares <= n*edge*edge {
		return math.Inf(1)
	}
	c := Sample{N: len(values), SD: math.Sqrt(n)}.HalfWidth(alpha) // the t quantile
	k := c * c / (n * (n - 1))
	m := (edge + math.Sqrt(edge*edge-(1+k*n)*(edge*edge-k*squares))) / (1 + k*n)
	return m * n
}

// SignFlips re-labels blocks: where nothing differs between two arms, the
// candidate of each block could as well have been called the baseline, which
// turns the sign of all of its values. It gives the share of sign patterns in
// which the sum of any claim's values reaches the claim's limit.
//
//	values  [claim][block]; 0 where a block says nothing of a claim
//	limits  one for each claim, as of FlipLimit
//
// Of up to 20 blocks all 2^blocks patterns are looked at, of more 65,536 that are
// drawn from the seed; flips says how many. A pattern turns whole blocks, as
// claims share them.
//
// Source: Fisher 1935 (randomization test); Winkler et al. 2014 (sign flips of
// whole blocks). Valid where the values are symmetric around 0 without a change.
func SignFlips(values [][]float64, limits []float64, seed uint64) (share float64, flips int) {
	blocks := 0
	for _, v := range values {
		blocks = max(blocks, len(v))
	}
	f := newFlipper(values, limits, blocks)
	hits := 0
	if blocks <= exactBlocks {
		flips = 1 << blocks
		for i := range flips {
			if i > 0 {
				f.flip(bits.TrailingZeros(uint(i))) // Gray code: one block from pattern to pattern
			}
			if f.reached() {
				hits++
			}
		}
	} else {
		flips = sampledFlips
		rng := rand.New(rand.NewPCG(seed, uint64(blocks)))
		for range flips {
			// From the last pattern on, which is as good as any: a fair coin
			// for each block makes it independent of that.
			for b := 0; b < blocks; b += 64 {
				for coins, i := rng.Uint64(), b; i < min(b+64, blocks); coins, i = coins>>1, i+1 {
					if coins&1 == 1 {
						f.flip(i)
					}
				}
			}
			if f.reached() {
				hits++
			}
		}
	}
	return float64(hits) / float64(flips), flips
}

// flipper keeps the sums of a sign pattern.
type flipper struct {
	limits []float64
	sums   []float64
	steps  [][]float64 // by block: what the next turn of it adds to each sum
}

// newFlipper starts with the values as they are. Claims whose limit is out of
// reach of any signs are left out, which are most of those beyond a zone.
func newFlipper(values [][]float64, limits []float64, blocks int) *flipper {
	f := &flipper{steps: make([][]float64, blocks)}
	for c, v := range values {
		sum, reach := 0.0, 0.0
		for _, x := range v {
			sum += x
			reach += math.Abs(x)
		}
		if reach < limits[c]*(1-1e-12) { // but for rounding
			continue
		}
		f.limits, f.sums = append(f.limits, limits[c]), append(f.sums, sum)
		for b := range f.steps {
			step := 0.0
			if b < len(v) {
				step = -2 * v[b]
			}
			f.steps[b] = append(f.steps[b], step)
		}
	}
	return f
}

func (f *flipper) flip(block int) {
	step := f.steps[block]
	for c := range step {
		f.sums[c] += step[c]
		step[c] = -step[c]
	}
}

func (f *flipper) reached() bool {
	for c, sum := range f.sums {
		if sum >= f.limits[c] {
			return true
		}
	}
	return false
}
