package stats

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

// Count is x events in n trials, 0 ≤ x ≤ n.
type Count struct {
	X, N int
}

// Share is x/n; 0 for n = 0.
func (c Count) Share() float64 {
	if c.N == 0 {
		return 0
	}
	return float64(c.X) / float64(c.N)
}

// Wilson is the score interval of a proportion:
//
//	(x + z²/2 ∓ z·√(x(n−x)/n + z²/4)) / (n + z²)
//
//	x, n  events and trials (n ≥ 1; without trials it is [0, 1])
//	z     normal quantile of the one-sided level, z ≥ 0
//
// Source: Wilson 1927. Valid for independent trials, also at 0 or n events.
func Wilson(c Count, z float64) (low, high float64) {
	if c.N == 0 {
		return 0, 1
	}
	x, n := float64(c.X), float64(c.N)
	centre := (x + z*z/2) / (n + z*z)
	half := z * math.Sqrt(x*(n-x)/n+z*z/4) / (n + z*z)
	// 0 and n events have an exact limit there; rounding must not step over it.
	return max(0, centre-half), min(1, centre+half)
}

// Newcombe is the interval of the difference p₂ − p₁ of two independent
// proportions, made of their Wilson intervals [l, u] (the hybrid score method):
//
//	low  = p₂ − p₁ − √((p₂−l₂)² + (u₁−p₁)²)
//	high = p₂ − p₁ + √((u₂−p₂)² + (p₁−l₁)²)
//
//	α  one-sided level, 0 < α < 0.5
//
// Source: Newcombe 1998, method 10 (without continuity correction). Valid for
// independent trials, also with no events at all; for errors that come in
// clusters it is too narrow, and the caller must not rely on it alone.
func Newcombe(first, second Count, alpha float64) (low, high float64) {
	return newcombe(first, second, distuv.UnitNormal.Quantile(1-alpha))
}

func newcombe(first, second Count, z float64) (low, high float64) {
	l1, u1 := Wilson(first, z)
	l2, u2 := Wilson(second, z)
	p1, p2 := first.Share(), second.Share()
	return p2 - p1 - math.Hypot(p2-l2, u1-p1), p2 - p1 + math.Hypot(u2-p2, p1-l1)
}

// NewcombeAbove is the one-sided p-value of the claim "p₂ − p₁ is above edge"
// that belongs to Newcombe's interval: the level at which its lower limit
// reaches the edge. The limit falls steadily as z grows, so z is found by
// bisection, to 1e-12, and p = 1 − Φ(z). It is 1 where the observed difference
// is itself not above the edge, and below 1e-300 no longer told from 0.
func NewcombeAbove(first, second Count, edge float64) float64 {
	if second.Share()-first.Share() <= edge {
		return 1
	}
	inside, outside := 0.0, 40.0
	for outside-inside > 1e-12 {
		z := (inside + outside) / 2
		if low, _ := newcombe(first, second, z); low > edge {
			inside = z
		} else {
			outside = z
		}
	}
	return math.Erfc(inside/math.Sqrt2) / 2
}
