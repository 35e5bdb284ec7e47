package stats

import (
	"cmp"
	"slices"
)

// Holm adjusts the p-values of a family of claims so that rejecting where the
// adjusted value is ≤ α keeps the chance of any false claim at or below α,
// however the tests depend on each other:
//
//	p̃(k) = max over j ≤ k of min(1, (m − j + 1)·p(j)),  p(1) ≤ … ≤ p(m)
//
//	m  claims in the family; the result is in the order of the argument
//
// Source: Holm 1979. Valid for any m; O(m log m).
func Holm(p []float64) []float64 {
	order := make([]int, len(p))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(p[a], p[b]) })
	adjusted := make([]float64, len(p))
	sofar := 0.0
	for k, i := range order {
		sofar = max(sofar, min(1, float64(len(p)-k)*p[i]))
		adjusted[i] = sofar
	}
	return adjusted
}
