package stats

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

// Sample sums up independent observations: for us the effects of the blocks.
type Sample struct {
	N    int
	Mean float64
	SD   float64 // with N − 1 in the denominator; 0 for N < 2
}

// Describe gives the mean and the standard deviation, in two passes, so that a
// small spread around a large mean keeps its digits.
func Describe(values []float64) Sample {
	s := Sample{N: len(values)}
	if s.N == 0 {
		return s
	}
	for _, v := range values {
		s.Mean += v
	}
	s.Mean /= float64(s.N)
	if s.N < 2 {
		return s
	}
	sum := 0.0
	for _, v := range values {
		sum += (v - s.Mean) * (v - s.Mean)
	}
	s.SD = math.Sqrt(sum / float64(s.N-1))
	return s
}

// HalfWidth is how far Student's confidence limit lies from the mean:
//
//	h = t(1−α, N−1) · SD/√N
//
//	α  one-sided level, 0 < α < 0.5: each of the limits Mean ± h is missed with probability α
//
// Source: Student 1908. Valid for independent observations that are about
// normal; the mean of a few blocks' medians is. It is +Inf for N < 2.
func (s Sample) HalfWidth(alpha float64) float64 {
	if s.N < 2 {
		return math.Inf(1)
	}
	return s.student().Quantile(1-alpha) * s.SD / math.Sqrt(float64(s.N))
}

// Above is the one-sided p-value of the claim "the true mean is above edge":
// the probability that a sample of N has a mean this far above the edge or
// farther, if the truth is the edge itself.
//
//	p = P(T ≥ (Mean − edge)/(SD/√N)),  T of Student with N − 1 degrees of freedom
//
// It is the inverse of HalfWidth: Above(edge) ≤ α just where Mean −
// HalfWidth(α) ≥ edge. Without spread it is 0 or 1; for N < 2 it is 1.
func (s Sample) Above(edge float64) float64 {
	if s.N < 2 {
		return 1
	}
	distance := s.Mean - edge
	if s.SD == 0 {
		if distance > 0 {
			return 0
		}
		return 1
	}
	// The lower tail of −t, not 1 − CDF(t): small p-values keep their digits.
	return s.student().CDF(-distance / (s.SD / math.Sqrt(float64(s.N))))
}

// Below is the one-sided p-value of the claim "the true mean is below edge".
func (s Sample) Below(edge float64) float64 {
	s.Mean = -s.Mean
	return s.Above(-edge)
}

func (s Sample) student() distuv.StudentsT {
	return distuv.StudentsT{Sigma: 1, Nu: float64(s.N - 1)}
}
