package stats

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

// NominalLevels shares a one-sided level out over several looks at growing
// data. Claiming at the first look whose own p-value is at or below the nominal
// level there is wrong with probability spent[k] up to look k:
//
//	P(Z₁ < z₁, …, Zₖ₋₁ < zₖ₋₁, Zₖ ≥ zₖ) = spent[k] − spent[k−1],  nominal[k] = 1 − Φ(zₖ)
//
//	fractions  information at the looks, t₁ < t₂ < … ≤ 1: blocks so far / maximum
//	spent      probability of a false claim up to each look, growing, 0 < spent < 0.5
//	Zₖ         standard normal at the edge of the claim, Corr(Zⱼ, Zₖ) = √(tⱼ/tₖ) for j < k
//
// A level depends on its own look and the looks before, never on later ones.
//
// Method: Sₖ = Zₖ·√tₖ is a Brownian motion seen at t₁, t₂, …; the density of Sₖ
// among the paths without a claim follows from that of Sₖ₋₁ by one integral
// (Armitage, McPherson & Rowe 1969), and zₖ is the root that spends what is due
// (Lan & DeMets 1983; Jennison & Turnbull 2000, chapter 19). The integral is
// Simpson's over a grid that ends at the boundary: good to four digits. Fifteen
// looks cost about a millisecond, a hundred about fifty.
func NominalLevels(fractions, spent []float64) []float64 {
	var w walk
	w.step = math.Sqrt(fractions[0])
	for k := 1; k < len(fractions); k++ {
		w.step = min(w.step, math.Sqrt(fractions[k]-fractions[k-1]))
	}
	w.step /= perSD
	nominal := make([]float64, len(fractions))
	before, t := 0.0, 0.0
	for k := range fractions {
		w.advance(t, fractions[k], before, spent[k])
		nominal[k] = normalTail(w.edge / math.Sqrt(fractions[k]))
		before, t = spent[k], fractions[k]
	}
	return nominal
}

// walk is the density of a Brownian motion among the paths that stayed below
// every boundary so far: density[i] at edge − i·step.
type walk struct {
	step, edge float64
	density    []float64 // nil before the first look
}

const (
	perSD    = 8.0 // points of the grid to the standard deviation of the smallest step
	reach    = 9.0 // standard deviations beyond which a normal density is taken for 0
	farBelow = 6.0 // standard deviations below 0 from where no path comes back up
)

// advance goes on from time t0 to t, and puts the boundary there so that the
// probability of having crossed one grows from before to spent.
func (w *walk) advance(t0, t, before, spent float64) {
	sd, due := math.Sqrt(t-t0), spent-before
	old := *w
	// The probability is at most that of all paths, and less than that by before at most.
	w.edge = root(Normal(spent)*math.Sqrt(t), Normal(due)*math.Sqrt(t), func(x float64) float64 {
		return math.Log(old.above(x, sd) / due)
	})
	n := max(3, int(math.Ceil((w.edge+farBelow*math.Sqrt(t))/w.step)))
	w.density = make([]float64, n+(n+1)%2) // Simpson needs an odd number
	old.spread(w, sd)
}

// root is where f, which falls from low to high, is 0: regula falsi in the
// Illinois form, which halves the value of an end that stays (Dowell & Jarratt
// 1971). The logarithm of a tail is nearly straight, so it takes a few steps.
func root(low, high float64, f func(float64) float64) float64 {
	atLow, atHigh := f(low), f(high)
	x := high
	for side := 0; high-low > 1e-10 && atLow > 0 && atHigh < 0; {
		x = high - atHigh*(high-low)/(atHigh-atLow)
		switch at := f(x); {
		case math.Abs(at) < 1e-10:
			return x
		case at > 0:
			low, atLow = x, at
			if side > 0 {
				atHigh /= 2
			}
			side = 1
		default:
			high, atHigh = x, at
			if side < 0 {
				atLow /= 2
			}
			side = -1
		}
	}
	return x
}

// above is the probability that a step of standard deviation sd from here ends
// at or above x.
func (w *walk) above(x, sd float64) float64 {
	if w.density == nil {
		return normalTail(x / sd)
	}
	sum := 0.0
	for i, d := range w.density {
		z := (x - w.edge + float64(i)*w.step) / sd
		if z > reach {
			break
		}
		sum += d * w.weight(i) * normalTail(z)
	}
	return sum
}

// spread fills the density after a step of standard deviation sd. All distances
// are whole steps but for the distance of the two edges, so one table of the
// normal density serves the whole grid.
func (w *walk) spread(to *walk, sd float64) {
	normal := distuv.UnitNormal
	if w.density == nil {
		for i := range to.density {
			to.density[i] = normal.Prob((to.edge-float64(i)*to.step)/sd) / sd
		}
		return
	}
	shift := to.edge - w.edge
	// The point i of the new grid lies shift + (j − i)·step above the point j of the old one.
	first := int(math.Floor((-reach*sd - shift) / w.step))
	last := int(math.Ceil((reach*sd - shift) / w.step))
	kernel := make([]float64, last-first+1)
	for k := range kernel {
		kernel[k] = normal.Prob((shift+float64(first+k)*w.step)/sd) / sd
	}
	weighted := make([]float64, len(w.density))
	for j, d := range w.density {
		weighted[j] = d * w.weight(j)
	}
	for i := range to.density {
		from, until := max(0, i+first), min(len(weighted), i+last+1)
		sum := 0.0
		for j := from; j < until; j++ {
			sum += weighted[j] * kernel[j-i-first]
		}
		to.density[i] = sum
	}
}

// weight is Simpson's for point i.
func (w *walk) weight(i int) float64 {
	switch {
	case i == 0 || i == len(w.density)-1:
		return w.step / 3
	case i%2 == 1:
		return w.step * 4 / 3
	}
	return w.step * 2 / 3
}

// Normal is the z that a standard normal exceeds with probability alpha, 0 < alpha < 1.
func Normal(alpha float64) float64 { return -distuv.UnitNormal.Quantile(alpha) }

// normalTail is 1 − Φ(z); small values keep their digits.
func normalTail(z float64) float64 { return math.Erfc(z/math.Sqrt2) / 2 }
