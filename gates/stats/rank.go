package stats

import "slices"

// NearestRank is the exact p-th percentile of a sample that comes in sorted
// parts: the smallest value x with count(values ≤ x) ≥ ⌈p·n/100⌉. It is always
// one of the values and never interpolates.
//
//	n  values in all parts together, at least 1 (it panics without any)
//	p  percent, 1 to 100
//
// Source: nearest-rank definition, type 1 of Hyndman & Fan 1996.
//
// Parts need not be merged: the answer lies between the smallest and the
// largest of the parts' own percentiles and is found there by bisection, in
// O(parts · log(part) · log(spread)) time and no memory. Sorting once per part
// thus serves every percentile of every union of parts.
func NearestRank(p int, parts ...[]int64) int64 {
	n, any := 0, false
	var low, high int64
	for _, part := range parts {
		if len(part) == 0 {
			continue
		}
		n += len(part)
		own := part[rank(p, len(part))-1]
		if !any || own < low {
			low = own
		}
		if !any || own > high {
			high = own
		}
		any = true
	}
	if !any {
		panic("stats: NearestRank of no values")
	}
	want := rank(p, n)
	for low < high {
		mid := low + (high-low)/2
		if countUpTo(mid, parts) >= want {
			high = mid
		} else {
			low = mid + 1
		}
	}
	return low
}

// Percentile is NearestRank of one sorted sample, at a finer p: thousandths of
// a percent, 0 to 100,000; 0 is the smallest value. It panics without a value.
func Percentile(thousandths int, sorted []int64) int64 {
	i := (thousandths*len(sorted) + 99_999) / 100_000
	return sorted[max(i, 1)-1]
}

// rank is ⌈p·n/100⌉ in whole numbers, where no rounding can go wrong.
func rank(p, n int) int { return (p*n + 99) / 100 }

// countUpTo counts the values ≤ x.
func countUpTo(x int64, parts [][]int64) int {
	n := 0
	for _, part := range parts {
		below, _ := slices.BinarySearch(part, x+1)
		n += below
	}
	return n
}

// Tick is the step of the clock that the values were read from: their greatest
// common divisor, in the values' unit; 0 if there is no value but 0. Start from
// tick 0 and hand the result back in to go on with further values.
//
// It never understates a regular clock by more than chance: n values of a clock
// with step s have a divisor above s with a probability of about 2^-n. Equal
// values give that value: a clock that shows nothing smaller.
func Tick(tick int64, values []int64) int64 {
	for _, v := range values {
		if tick == 1 {
			break
		}
		for v != 0 {
			tick, v = v, tick%v
		}
	}
	if tick < 0 {
		return -tick
	}
	return tick
}

// Median is the middle of the values, or the mean of the two in the middle; 0
// of no values. It leaves the order of its argument alone.
func Median(values []float64) float64 {
	n := len(values)
	if n == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}
