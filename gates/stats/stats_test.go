package stats_test

import (
	"math"
	"slices"
	"testing"

	"plumbline/gates/stats"

	"pgregory.net/rapid"
)

func near(t *testing.T, what string, got, want, relative float64) {
	t.Helper()
	if math.Abs(got-want) > relative*math.Abs(want) {
		t.Errorf("%s is %.15g, want %.15g", what, got, want)
	}
}

func TestNearestRank(t *testing.T) {
	// The worked example of the nearest-rank method: the ordered list 15, 20,
	// 35, 40, 50 has P5 = 15, P30 = 20, P40 = 20, P50 = 35, P100 = 50.
	parts := [][]int64{{20, 50}, {}, {15, 35, 40}}
	for p, want := range map[int]int64{5: 15, 30: 20, 40: 20, 50: 35, 100: 50} {
		if got := stats.NearestRank(p, parts...); got != want {
			t.Errorf("P%d = %d, want %d", p, got, want)
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("a percentile of nothing")
		}
	}()
	stats.NearestRank(50, nil, []int64{})
}

// TestNearestRankOfParts compares with the definition on the merged values.
func TestNearestRankOfParts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		parts := rapid.SliceOfN(rapid.SliceOf(rapid.OneOf(rapid.Int64Range(-50, 50), rapid.Int64Range(-1e12, 1e12))), 1, 8).Draw(t, "parts")
		merged := slices.Concat(parts...)
		if len(merged) == 0 {
			return
		}
		for _, part := range parts {
			slices.Sort(part)
		}
		slices.Sort(merged)
		p := rapid.IntRange(1, 100).Draw(t, "p")
		want := merged[len(merged)-1]
		for i, v := range merged {
			if (i+1)*100 >= p*len(merged) {
				want = v
				break
			}
		}
		if got := stats.NearestRank(p, parts...); got != want {
			t.Fatalf("P%d of %v is %d, want %d", p, parts, got, want)
		}
	})
}

// Reference: R 4.2.2, quantile(c(7,1,3,3,9,12,5), p, type=1).
func TestPercentile(t *testing.T) {
	sorted := []int64{1, 3, 3, 5, 7, 9, 12}
	for thousandths, want := range map[int]int64{0: 1, 100: 1, 10_000: 1, 25_000: 3, 50_000: 5, 90_000: 12, 99_900: 12, 100_000: 12} {
		if got := stats.Percentile(thousandths, sorted); got != want {
			t.Errorf("P%v is %d, want %d", float64(thousandths)/1000, got, want)
		}
	}
}

func TestTick(t *testing.T) {
	for _, tt := range []struct {
		tick   int64
		values []int64
		want   int64
	}{
		{0, nil, 0},
		{0, []int64{0, 0}, 0},
		{0, []int64{7000, 7000}, 7000},
		{0, []int64{3000, 0, 12000, 9000}, 3000},
		{3000, []int64{8000}, 1000},
		{0, []int64{1e9 + 1, 1e9}, 1},
		{0, []int64{-4000, 6000}, 2000},
	} {
		if got := stats.Tick(tt.tick, tt.values); got != tt.want {
			t.Errorf("tick of %v from %d is %d, want %d", tt.values, tt.tick, got, tt.want)
		}
	}
}

func TestMedian(t *testing.T) {
	values := []float64{3, 1, 2}
	if got := stats.Median(values); got != 2 || values[0] != 3 {
		t.Errorf("median %v, argument now %v", got, values)
	}
	if got := stats.Median([]float64{4, 1, 2, 3}); got != 2.5 {
		t.Errorf("median of four is %v, want 2.5", got)
	}
	if got := stats.Median(nil); got != 0 {
		t.Errorf("median of nothing is %v", got)
	}
}

// Reference: python3-scipy 1.10.1, scipy.stats.t.ppf(1 - alpha, nu).
func TestStudentQuantiles(t *testing.T) {
	for _, tt := range []struct {
		n     int
		alpha float64
		want  float64
	}{
		{2, 0.025, 12.706204736432095}, {2, 0.0215, 14.782589387391287},
		{3, 0.025, 4.302652729911275}, {3, 0.0215, 4.665490345132427}, {3, 0.005, 9.92484320091807},
		{6, 0.025, 2.5705818366147395}, {6, 0.0215, 2.695787867326031}, {6, 0.005, 4.032142983557536},
		{20, 0.025, 2.093024054408263}, {20, 0.0215, 2.1687487177038203}, {20, 0.005, 2.860934606449914},
	} {
		s := stats.Sample{N: tt.n, SD: math.Sqrt(float64(tt.n))}
		near(t, "t quantile", s.HalfWidth(tt.alpha), tt.want, 1e-9)
	}
}

// Reference: python3 statistics.mean and .stdev; python3-scipy 1.10.1,
// scipy.stats.ttest_1samp(x, edge, alternative='greater').pvalue.
func TestStudentP(t *testing.T) {
	s := stats.Describe([]float64{0.012, -0.003, 0.021, 0.007, 0.016, 0.001})
	near(t, "mean", s.Mean, 0.009, 1e-14)
	near(t, "sd", s.SD, 0.00909945053286186, 1e-13)
	for edge, want := range map[float64]float64{
		0: 0.02995807315130378, 0.005: 0.1653864665747769, -0.02: 0.0002763797939426528, -0.5: 1.9639700070598936e-10,
	} {
		near(t, "p above", s.Above(edge), want, 1e-9)
		near(t, "p below", s.Below(edge), 1-want, 1e-9)
	}
}

// Reference: R 4.2.2, sqrt((n-1)/qchisq(1-alpha, n-1)).
func TestLeastSD(t *testing.T) {
	for _, tt := range []struct {
		n           int
		alpha, want float64
	}{
		{3, 0.01, 0.4659906017846561}, {6, 0.01, 0.5756970825586224}, {20, 0.01, 0.7245649038314336},
		{3, 0.025, 0.5206582666988174}, {6, 0.025, 0.6242080022589825}, {20, 0.025, 0.7604903943298742},
	} {
		near(t, "least SD", stats.Sample{N: tt.n, SD: 1}.LeastSD(tt.alpha), tt.want, 1e-9)
	}
	if got := (stats.Sample{N: 1, SD: 1}).LeastSD(0.01); got != 0 {
		t.Errorf("of one value it is %v", got)
	}
}

func TestStudentWithoutSpread(t *testing.T) {
	for _, tt := range []struct {
		values []float64
		above  float64
		half   float64
	}{
		{nil, 1, math.Inf(1)},
		{[]float64{9}, 1, math.Inf(1)},
		{[]float64{2, 2, 2}, 0, 0},
		{[]float64{1, 1, 1}, 1, 0}, // at the edge is not above it
	} {
		s := stats.Describe(tt.values)
		if p, h := s.Above(1), s.HalfWidth(0.025); p != tt.above || h != tt.half {
			t.Errorf("%v: p %v, half-width %v, want %v and %v", tt.values, p, h, tt.above, tt.half)
		}
	}
}

// Reference: R 4.2.2, sprintf("%.15g", -qnorm(alpha)).
func TestNormal(t *testing.T) {
	for alpha, want := range map[float64]float64{
		0.5: 0, 0.0215: 2.02370999093497, 0.025: 1.95996398454005, 0.005: 2.5758293035489, 1e-6: 4.7534243088229, 1e-12: 7.03448382530113,
	} {
		near(t, "z", stats.Normal(alpha), want, 1e-12)
	}
}

// Source: Newcombe 1998 (Statistics in Medicine 17:857–872), whose
// examples of Wilson intervals these are, to four digits; further digits from
// python3-statsmodels 0.13.5, proportion_confint(x, n, 0.05, 'wilson').
func TestWilson(t *testing.T) {
	const z = 1.959963984540054
	for _, tt := range []struct {
		c         stats.Count
		low, high float64
	}{
		{stats.Count{X: 81, N: 263}, 0.2552885198782742, 0.36620957698280004},
		{stats.Count{X: 15, N: 148}, 0.06238639953073628, 0.16048724172330803},
		{stats.Count{X: 0, N: 20}, 0, 0.1611251580528194},
		{stats.Count{X: 1, N: 29}, 0.006113214292762667, 0.17175521879320294},
		{stats.Count{X: 20, N: 20}, 1 - 0.1611251580528194, 1},
		{stats.Count{}, 0, 1},
	} {
		low, high := stats.Wilson(tt.c, z)
		near(t, "low", low, tt.low, 1e-12)
		near(t, "high", high, tt.high, 1e-12)
	}
}

// Source: Newcombe 1998 (Statistics in Medicine 17:873–890), table II, method
// 10, which prints four digits: 56/70 − 48/80 is 0.0524 to 0.3339, 9/10 − 3/10
// is 0.1705 to 0.8090, 5/56 − 0/29 is −0.0381 to 0.1926. Further digits and
// cases: python3-statsmodels 0.13.5, confint_proportions_2indep(x2, n2, x1, n1, method='newcomb', compare='diff').
func TestNewcombe(t *testing.T) {
	for _, tt := range []struct {
		second, first stats.Count
		low, high     float64
	}{
		{stats.Count{X: 56, N: 70}, stats.Count{X: 48, N: 80}, 0.05243147240236498, 0.33387265403690614},
		{stats.Count{X: 9, N: 10}, stats.Count{X: 3, N: 10}, 0.1705227239345029, 0.809017973535488},
		{stats.Count{X: 5, N: 56}, stats.Count{X: 0, N: 29}, -0.038137147903536936, 0.19256001385511165},
		{stats.Count{X: 10, N: 10}, stats.Count{X: 0, N: 20}, 0.6790860371419145, 1},
		{stats.Count{X: 0, N: 4000}, stats.Count{X: 0, N: 4000}, -0.0009594432897014869, 0.0009594432897014869},
		{stats.Count{X: 500, N: 100_000}, stats.Count{X: 520, N: 100_000}, -0.0008257640973811965, 0.0004252519434701992},
	} {
		low, high := stats.Newcombe(tt.first, tt.second, 0.025)
		near(t, "low", low, tt.low, 1e-9)
		near(t, "high", high, tt.high, 1e-9)
	}
}

// Reference: R 4.2.2,
//
//	wilson <- function(x, n, z) (x + z^2/2 + c(-1, 1)*z*sqrt(x*(n-x)/n + z^2/4)) / (n + z^2)
//	low <- function(x1, n1, x2, n2, z) { a <- wilson(x1, n1, z); b <- wilson(x2, n2, z)
//	  x2/n2 - x1/n1 - sqrt((x2/n2 - b[1])^2 + (a[2] - x1/n1)^2) }
//	pnorm(uniroot(function(z) low(x1, n1, x2, n2, z) - edge, c(0, 40), tol=1e-13)$root, lower.tail=FALSE)
func TestNewcombeP(t *testing.T) {
	for _, tt := range []struct {
		first, second stats.Count
		edge, want    float64
	}{
		{stats.Count{X: 48, N: 80}, stats.Count{X: 56, N: 70}, 0, 0.0040665701793},
		{stats.Count{X: 3, N: 10}, stats.Count{X: 9, N: 10}, 0.1, 0.0110374239409},
		{stats.Count{X: 0, N: 4000}, stats.Count{X: 40, N: 4000}, 0.001, 4.87449642517e-08},
	} {
		near(t, "p", stats.NewcombeAbove(tt.first, tt.second, tt.edge), tt.want, 1e-8)
	}
}

// TestNewcombeAbove: the p-value is the level at which the limit reaches the edge.
func TestNewcombeAbove(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		count := func(name string) stats.Count {
			n := rapid.IntRange(1, 10_000).Draw(t, name)
			return stats.Count{X: rapid.IntRange(0, n).Draw(t, name+" events"), N: n}
		}
		first, second := count("first"), count("second")
		edge := rapid.Float64Range(-0.2, 0.2).Draw(t, "edge")
		p := stats.NewcombeAbove(first, second, edge)
		if second.Share()-first.Share() <= edge {
			if p != 1 {
				t.Fatalf("p = %v without an effect above the edge", p)
			}
			return
		}
		if p < 0 || p > 0.5 {
			t.Fatalf("p = %v", p)
		}
		if p > 1e-9 && p < 0.499 {
			if low, _ := stats.Newcombe(first, second, p); math.Abs(low-edge) > 1e-6 {
				t.Fatalf("the limit at p = %v is %v, want the edge %v", p, low, edge)
			}
		}
	})
}

// The first family is Holm's by hand: 4·0.005, 3·0.01, 2·0.03, then 0.04
// raised to what came before. The second is Benjamini & Hochberg 1995's
// (myocardial infarction, 15 claims). Both as python3-statsmodels 0.13.5 has
// them: multipletests(p, method='holm')[1].
func TestHolm(t *testing.T) {
	for _, tt := range []struct{ p, want []float64 }{
		{nil, nil},
		{[]float64{0.01, 0.04, 0.03, 0.005}, []float64{0.03, 0.06, 0.06, 0.02}},
		{
			[]float64{.0001, .0004, .0019, .0095, .0201, .0278, .0298, .0344, .0459, .3240, .4262, .5719, .6528, .7590, 1},
			[]float64{.0015, .0056, .0247, .114, .2211, .278, .278, .278, .3213, 1, 1, 1, 1, 1, 1},
		},
	} {
		got := stats.Holm(tt.p)
		if len(got) != len(tt.want) {
			t.Fatalf("%d values, want %d", len(got), len(tt.want))
		}
		for i := range got {
			near(t, "adjusted p", got[i], tt.want[i], 1e-12)
		}
	}
}
