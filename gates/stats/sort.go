package stats

import (
	"math/bits"
	"slices"
)

const (
	digit = 11      // bits
	few   = 1 << 12 // values that the standard library sorts as fast
)

// Sort sorts latencies in place, as slices.Sort does, many times faster on
// the tens of thousands that a block of load has: by their digits, as many as the
// distance from the smallest to the largest value has. It allocates as much
// again.
//
// Source: radix sort from the least significant digit, Knuth, The Art of
// Computer Programming 3, 5.2.5.
func Sort(values []int64) {
	if len(values) < few {
		slices.Sort(values)
		return
	}
	least, most := values[0], values[0]
	sorted := true
	for i, v := range values[1:] {
		least, most = min(least, v), max(most, v)
		sorted = sorted && v >= values[i]
	}
	if sorted {
		return
	}
	if least < 0 && most > least+1<<62 { // the distance may not fit; no latency is like that
		slices.Sort(values)
		return
	}
	from, into := values, make([]int64, len(values))
	for shift := 0; shift < bits.Len64(uint64(most-least)); shift += digit {
		var starts [1 << digit]int
		const mask = 1<<digit - 1
		for _, v := range from {
			starts[(v-least)>>shift&mask]++
		}
		at := 0
		for d := range starts {
			starts[d], at = at, at+starts[d]
		}
		for _, v := range from {
			d := (v - least) >> shift & mask
			into[starts[d]] = v
			starts[d]++
		}
		from, into = into, from
	}
	if &from[0] != &values[0] {
		copy(values, from)
	}
}
