package stats

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

// Detectable is how far beyond an edge the true mean must lie for a t test over
// n blocks to find it beyond that edge with some power, in standard deviations
// of one block:
//
//	P(T′ ≥ t(1−α, n−1)) = power,  T′ of the noncentral t distribution with n − 1
//	degrees of freedom and noncentrality d·√n;  the result is d
//
//	n      blocks; below 2 the result is +Inf
//	alpha  one-sided level of the test, 0 < alpha < 0.5
//	power  wanted probability, alpha < power < 1
//
// Source: Cohen 1988, chapter 2; the noncentral t is gonum's (Lenth 1989), good
// to about 1e-10 up to a noncentrality of 37 (all of n ≥ 6), beyond that a
// normal approximation. Valid for effects that are about normal.
func Detectable(n int, alpha, power float64) float64 {
	if n < 2 {
		return math.Inf(1)
	}
	nu := float64(n - 1)
	critical := distuv.StudentsT{Sigma: 1, Nu: nu}.Quantile(1 - alpha)
	missed := func(shift float64) float64 { return distuv.NoncentralT{Nu: nu, Mu: shift}.CDF(critical) }
	low, high := 0.0, critical
	for missed(high) > 1-power {
		low, high = high, 2*high
	}
	for high-low > 1e-12*high {
		if mid := (low + high) / 2; missed(mid) > 1-power {
			low = mid
		} else {
			high = mid
		}
	}
	return high / math.Sqrt(float64(n))
}

// Components parts the variance of a block's value: what differs from block to
// block, and what differs within a block, by which its value is uncertain. Each
// block gives two values, one from each half of it.
//
//	within  = MS(within)/2                  of the mean of both halves
//	between = (MS(between) − MS(within))/2
//
// MS are the mean squares of the one-way analysis of variance. The two add up
// to the variance of the blocks' values. Between may come out below 0, where
// it is small beside within: none was found. (It is not cut off there, so that
// a sum over several quantities is not biased.)
//
// Source: Searle, Casella & McCulloch 1992, chapter 3 (analysis of variance
// estimators). It needs two blocks; with fewer both are NaN.
func Components(halves [][2]float64) (between, within float64) {
	if len(halves) < 2 {
		return math.NaN(), math.NaN()
	}
	means := make([]float64, len(halves))
	for i, h := range halves {
		means[i] = (h[0] + h[1]) / 2
		within += (h[0] - h[1]) * (h[0] - h[1]) / 4 / float64(len(halves))
	}
	sd := Describe(means).SD
	return sd*sd - within, within
}
