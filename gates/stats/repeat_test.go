package stats_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"plumbline/gates/stats"

	"pgregory.net/rapid"
)

// Reference values from SciPy 1.10: u = chi2.ppf(0.05, n−1), then Vangel's formula.
func TestVangelUpper(t *testing.T) {
	for _, tt := range []struct {
		cv   float64
		n    int
		want float64
	}{
		{0.05, 6, 0.10473510152098435},
		{0.1, 30, 0.1283314576500834},
		{0.03, 3, 0.13281089528681359},
		{0.2, 12, 0.31709775112154787},
		{0, 4, 0},
		{0.1, 1, math.Inf(1)},
		{3, 3, math.Inf(1)},
	} {
		if got := stats.VangelUpper(tt.cv, tt.n, 0.05); got != tt.want {
			near(t, "limit", got, tt.want, 1e-9)
		}
	}
}

// TestVangelUpperCovers: the limit lies below the truth in 5 % of samples, and
// METHOD.md's figures for a true coefficient of 5 and 10 % hold.
func TestVangelUpperCovers(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 4))
	for _, tt := range []struct {
		cv     float64
		n      int
		passes [2]float64 // share of samples with a limit below 15 %
	}{{0.05, 6, [2]float64{0.92, 0.94}}, {0.10, 30, [2]float64{0.89, 0.97}}, {0.10, 6, [2]float64{0, 0.35}}, {0.15, 20, [2]float64{0.04, 0.06}}} {
		const samples = 20_000
		missed, passed := 0, 0
		for range samples {
			values := make([]float64, tt.n)
			for i := range values {
				values[i] = 1 + tt.cv*rng.NormFloat64()
			}
			s := stats.Describe(values)
			limit := stats.VangelUpper(s.SD/s.Mean, tt.n, 0.05)
			if limit < tt.cv {
				missed++
			}
			if limit < 0.15 {
				passed++
			}
		}
		if share := float64(missed) / samples; share < 0.045 || share > 0.055 {
			t.Errorf("cv %v of %d values: the limit is below the truth in %.4f, want 0.05", tt.cv, tt.n, share)
		}
		if share := float64(passed) / samples; share < tt.passes[0] || share > tt.passes[1] {
			t.Errorf("cv %v of %d values: below 15 %% in %.4f, want %v", tt.cv, tt.n, share, tt.passes)
		}
	}
}

// Reference values from scipy.stats.wasserstein_distance, SciPy 1.10.
func TestWasserstein(t *testing.T) {
	for _, tt := range []struct {
		a, b []float64
		want float64
	}{
		{[]float64{0, 1, 3}, []float64{5, 6, 8}, 5},
		{[]float64{1, 2, 2, 4, 9}, []float64{2, 3, 3.5}, 1.7},
		{[]float64{5}, []float64{5}, 0},
		{[]float64{1, 1, 1, 1}, []float64{1, 1, 1, 2}, 0.25},
	} {
		near(t, "distance", stats.Wasserstein(tt.a, tt.b), tt.want, 1e-12)
		near(t, "distance", stats.Wasserstein(tt.b, tt.a), tt.want, 1e-12)
	}
}

func TestWassersteinIsADistance(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func(name string) []float64 {
			x := rapid.SliceOfN(rapid.Float64Range(0, 100), 1, 30).Draw(t, name)
			slices.Sort(x)
			return x
		}
		a, b, c := draw("a"), draw("b"), draw("c")
		ab, bc, ac := stats.Wasserstein(a, b), stats.Wasserstein(b, c), stats.Wasserstein(a, c)
		if ab < 0 || stats.Wasserstein(a, a) != 0 || ac > ab+bc+1e-9 {
			t.Fatalf("%v %v %v", ab, bc, ac)
		}
		if means := math.Abs(stats.Describe(a).Mean - stats.Describe(b).Mean); ab < means-1e-9 {
			t.Fatalf("%v is less than the means are apart, %v", ab, means)
		}
	})
}

// Reference values: scipy.stats.beta.ppf(0.95, k+1, n−k), SciPy 1.10; those for
// 0 of 6 and 3 of 20 also from R's binom.test(alternative="less").
func TestRareShare(t *testing.T) {
	for _, tt := range []struct {
		k, n int
		want float64
	}{
		{0, 6, 0.39303776899708265}, {0, 20, 0.13910834066826516}, {1, 6, 0.5818034092520259},
		{3, 20, 0.3436638043142818}, {19, 20, 0.9974386212234697}, {20, 20, 1}, {0, 0, 1},
	} {
		near(t, "share", stats.RareShare(tt.k, tt.n), tt.want, 1e-9)
	}
}

func TestGroups(t *testing.T) {
	for _, tt := range []struct {
		name    string
		values  []float64
		of      []int
		largest int
	}{
		{"none", nil, []int{}, 0},
		{"two are no group", []float64{0, 1}, []int{0, 0}, 0},
		{"three are too few", []float64{0, 0, 1}, []int{0, 0, 0}, 0},
		{"one apart", []float64{0, 0.01, 1, 0.02}, []int{0, 0, 1, 0}, 0},
		{"two speeds", []float64{1, 0, 0.01, 1.01, 1.02}, []int{1, 0, 0, 1, 1}, 1},
		{"three speeds at even distances", []float64{-1, 0, 1, -1.01, 0.01, 1.01, 0.02}, []int{0, 1, 2, 0, 1, 2, 1}, 1},
		{"one behind the other", []float64{0, 0.01, 0.02, 0.01, 0.5, 1.5}, []int{0, 0, 0, 0, 1, 2}, 0},
		{"a gap that noise may make", []float64{0, 0.1, 0.2, 0.3, 0.55}, []int{0, 0, 0, 0, 0}, 0},
		{"closer than the gap", []float64{0, 0, 0, 0.04, 0.04}, []int{0, 0, 0, 0, 0}, 0},
		{"all the same", []float64{1, 1, 1, 1}, []int{0, 0, 0, 0}, 0},
	} {
		of, n, largest := stats.Groups(tt.values, 0.05, 4)
		want := 1
		for _, g := range tt.of {
			want = max(want, g+1)
		}
		if !slices.Equal(of, tt.of) || n != want || largest != tt.largest {
			t.Errorf("%s: %v in %d groups, the largest %d; want %v, %d", tt.name, of, n, largest, tt.of, tt.largest)
		}
	}
}

func TestGroupsLieApart(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.Float64Range(-1, 1), 0, 25).Draw(t, "values")
		of, n, largest := stats.Groups(values, 0.05, 4)
		size := make([]int, n)
		for i, g := range of {
			size[g]++
			for j, h := range of {
				if g < h && values[j]-values[i] < 0.05 {
					t.Fatalf("%v in group %d and %v in %d", values[i], g, values[j], h)
				}
			}
		}
		if slices.Max(size) != size[largest] || n > 1 && size[largest] < 3 {
			t.Fatalf("sizes %v, largest %d", size, largest)
		}
	})
}

// TestGroupsOfNoise: where there is one speed, one is found.
func TestGroupsOfNoise(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, tt := range []struct {
		n    int
		most float64
	}{{6, 0.013}, {8, 0.006}, {12, 0.002}, {20, 0.0005}} {
		const samples = 20_000
		several := 0
		for range samples {
			values := make([]float64, tt.n)
			for i := range values {
				values[i] = 0.025 * rng.NormFloat64()
			}
			if _, n, _ := stats.Groups(values, math.Log(1.05), 4); n > 1 {
				several++
			}
		}
		if share := float64(several) / samples; share > tt.most {
			t.Errorf("%d values of one kind are several groups in %.4f of cases, want %v at most", tt.n, share, tt.most)
		}
	}
}

// Reference values from R: summary(lm(y ~ arm + x)) with the series
// 1, 3, 2, 5 and 10, 11, 13, 13 as two arms, x from 0 to 3 in each.
func TestCommonTrend(t *testing.T) {
	got := stats.CommonTrend([]float64{1, 3, 2, 5}, []float64{10, 11, 13, 13})
	near(t, "slope", got.Slope, 1.1, 1e-12)
	near(t, "standard error", got.SE, 0.260768096208106, 1e-9)
	if got.DF != 5 {
		t.Errorf("%d degrees of freedom, want 5", got.DF)
	}
	near(t, "farthest", got.Farthest(0.025), 1.1+2.57058183563631*0.260768096208106, 1e-9)
	if few := stats.CommonTrend([]float64{1}, []float64{2}); !math.IsInf(few.Farthest(0.025), 1) {
		t.Errorf("two observations have the trend %+v", few)
	}
}
