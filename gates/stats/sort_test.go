package stats_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"plumbline/gates/stats"

	"pgregory.net/rapid"
)

func TestSort(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		one := rapid.SampledFrom([]*rapid.Generator[int64]{
			rapid.Int64Range(0, 3), rapid.Int64Range(90_000, 3_000_000), rapid.Int64Range(0, 30e9), rapid.Int64(),
			rapid.SampledFrom([]int64{math.MinInt64, -1, 0, math.MaxInt64}),
		}).Draw(t, "kind")
		values := rapid.SliceOfN(one, 0, 300).Draw(t, "values")
		for range rapid.IntRange(0, 7).Draw(t, "doubled") {
			values = append(values, values...)
		}
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		rng.Shuffle(len(values), func(i, j int) { values[i], values[j] = values[j], values[i] })
		want := slices.Sorted(slices.Values(values))
		if stats.Sort(values); !slices.Equal(values, want) {
			t.Fatal("not sorted")
		}
	})
}

func BenchmarkSort(b *testing.B) {
	for _, n := range []int{200, 2000, 100_000} {
		rng := rand.New(rand.NewPCG(1, 1))
		values := make([]int64, n)
		for i := range values {
			values[i] = int64(200e3 * math.Exp(0.3*rng.NormFloat64()))
		}
		work := make([]int64, n)
		for name, sort := range map[string]func([]int64){"digits": stats.Sort, "slices": func(v []int64) { slices.Sort(v) }} {
			b.Run(fmt.Sprintf("%s/%d", name, n), func(b *testing.B) {
				for b.Loop() {
					copy(work, values)
					sort(work)
				}
			})
		}
	}
}
