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

// Trend is how a quantity changes from one observation to the next.
type Trend struct {
	Slope float64 // per observation
	SE    float64 // its standard error
	DF    int     // degrees of freedom
}

// CommonTrend fits one slope to several series of observations at even
// distances, each with a level of its own: least squares within the series.
// DF is 0 or less, and the error +Inf, if there are too few observations.
//
// Source: analysis of covariance, e.g. Snedecor & Cochran 1989, ch. 18.
func CommonTrend(series ...[]float64) Trend {
	sxx, sxy, syy, n := 0.0, 0.0, 0.0, 0
	for _, y := range series {
		mean, middle := Describe(y).Mean, float64(len(y)-1)/2
		for i, v := range y {
			x := float64(i) - middle
			sxx += x * x
			sxy += x * (v - mean)
			syy += (v - mean) * (v - mean)
		}
		n += len(y)
	}
	t := Trend{DF: n - len(series) - 1, SE: math.Inf(1)}
	if t.DF < 1 || sxx == 0 {
		return t
	}
	t.Slope = sxy / sxx
	t.SE = math.Sqrt(max(0, syy-t.Slope*sxy) / float64(t.DF) / sxx)
	return t
}

// Farthest is how large the slope may be, one way or the other, with one-sided
// level α: |Slope| + t(1−α, DF)·SE.
func (t Trend) Farthest(alpha float64) float64 {
	if t.DF < 1 {
		return math.Inf(1)
	}
	return math.Abs(t.Slope) + distuv.StudentsT{Sigma: 1, Nu: float64(t.DF)}.Quantile(1-alpha)*t.SE
}
