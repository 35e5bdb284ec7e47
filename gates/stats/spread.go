package stats

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

// LeastSD is the lower confidence limit of the standard deviation:
//
//	SD · √((N−1)/χ²(1−α, N−1))
//
//	α  one-sided level, 0 < α < 0.5: the true one is below the limit with probability α
//
// Source: Cochran 1934. Valid for independent observations that are about
// normal. It is 0 for N < 2.
func (s Sample) LeastSD(alpha float64) float64 {
	if s.N < 2 {
		return 0
	}
	free := float64(s.N - 1)
	return s.SD * math.Sqrt(free/distuv.ChiSquared{K: free}.Quantile(1-alpha))
}

// MostSD is the upper confidence limit of the standard deviation:
//
//	SD · √((N−1)/χ²(α, N−1))
//
//	α  one-sided level, 0 < α < 0.5: the true one is above the limit with probability α
//
// Source and validity as of LeastSD. It is +Inf for N < 2.
func (s Sample) MostSD(alpha float64) float64 {
	if s.N < 2 {
		return math.Inf(1)
	}
	free := float64(s.N - 1)
	return s.SD * math.Sqrt(free/distuv.ChiSquared{K: free}.Quantile(alpha))
}
