package stats_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"plumbline/gates/stats"

	"pgregory.net/rapid"
)

// Reference: python3-scipy 1.10.1,
//
//	c = stats.t.ppf(1 - alpha, n - 1)
//	brentq(lambda d: stats.nct.sf(c, n - 1, d * math.sqrt(n)) - power, 1e-6, 30, xtol=1e-13)
//
// and the first three also from R 4.2.2, to 9 digits: power.t.test(n=n, sd=1, power=power,
// sig.level=alpha, type="one.sample", alternative="one.sided", tol=1e-12)$delta.
func TestDetectable(t *testing.T) {
	for _, tt := range []struct {
		n            int
		alpha, power float64
		want         float64
	}{
		{3, 0.025, 0.8, 3.26404354993},
		{6, 0.025, 0.8, 1.43454534439},
		{6, 0.005, 0.8, 2.10934851468},
		{12, 0.025 / 15, 0.8, 1.36016160061},
		{24, 0.025, 0.9, 0.691148048692},
		{6, 0.025 / 285, 0.8, 4.95729986285},
		{24, 0.025 / 285, 0.8, 1.10720421238},
	} {
		near(t, "detectable", stats.Detectable(tt.n, tt.alpha, tt.power), tt.want, 1e-8)
	}
	if d := stats.Detectable(1, 0.025, 0.8); !math.IsInf(d, 1) {
		t.Errorf("one block detects %v", d)
	}
}

// Detectable is what the t test of Sample really finds: 100,000 samples, whose
// share of finds has a standard error of 0.13 points.
func TestDetectablePower(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 0))
	const n, alpha, edge, sd, samples = 6, 0.005, 0.05, 0.01, 100_000
	truth := edge + sd*stats.Detectable(n, alpha, 0.8)
	found := 0
	for range samples {
		var values [n]float64
		for i := range values {
			values[i] = truth + sd*rng.NormFloat64()
		}
		if stats.Describe(values[:]).Above(edge) <= alpha {
			found++
		}
	}
	if share := float64(found) / samples; math.Abs(share-0.8) > 0.005 {
		t.Errorf("power is %.4f, want 0.8", share)
	}
}

// Reference: R 4.2.2, sqrt((n-1)/qchisq(.05, n-1)).
func TestMostSD(t *testing.T) {
	for n, want := range map[int]float64{3: 4.4153964427, 6: 2.08925746296, 12: 1.55063529693, 24: 1.3255178031} {
		near(t, "most SD", stats.Sample{N: n, SD: 1}.MostSD(0.05), want, 1e-9)
	}
	if b := (stats.Sample{N: 1, SD: 1}).MostSD(0.05); !math.IsInf(b, 1) {
		t.Errorf("one block bounds the spread by %v", b)
	}
}

// Reference: R 4.2.2, with the halves as the rows of h:
//
//	d <- data.frame(y=c(h), b=factor(rep(1:nrow(h), 2)))
//	m <- summary(aov(y~b, d))[[1]][["Mean Sq"]]; c((m[1]-m[2])/2, m[2]/2)
//
// The second one has less than nothing between its blocks.
func TestComponents(t *testing.T) {
	between, within := stats.Components([][2]float64{{0.011, 0.013}, {-0.004, 0.001}, {0.02, 0.022}, {0.009, 0.004}, {0.015, 0.018}, {-0.001, 0.004}})
	near(t, "between", between, 7.24333333333334e-05, 1e-12)
	near(t, "within", within, 3.83333333333334e-06, 1e-12)
	between, within = stats.Components([][2]float64{{0.01, -0.01}, {-0.02, 0.021}, {0.015, -0.012}})
	near(t, "between", between, -0.000233583333333333, 1e-12)
	near(t, "within", within, 0.000234166666666667, 1e-12)
	if between, within = stats.Components([][2]float64{{1, 2}}); !math.IsNaN(between) || !math.IsNaN(within) {
		t.Errorf("one block has components %v and %v", between, within)
	}
}

// Reference: R 4.2.2, with the values as the rows of x:
//
//	flips <- as.matrix(expand.grid(rep(list(c(1,-1)),6)))
//	sum(apply(flips, 1, function(s) any(p.adjust(apply(x, 1, function(e)
//	  t.test(e*s, mu=edge, alternative="greater")$p.value), "holm") <= alpha)))
//
// The smallest of Holm's adjusted values is the number of claims times the
// smallest value, so "any" is a matter of alpha divided by that number.
func TestSignFlips(t *testing.T) {
	values := [][]float64{
		{0.012, -0.003, 0.021, 0.007, 0.016, 0.001},
		{0.004, 0.009, -0.002, 0.013, 0.008, 0.011},
		{-0.02, 0.005, 0.001, -0.007, 0.012, -0.004},
	}
	for _, tt := range []struct {
		edge, alpha float64
		want        float64
	}{
		{0, 0.025, 1}, {0, 0.1, 7}, {0, 0.25, 16}, {0.002, 0.025, 0}, {0.002, 0.1, 2}, {0.002, 0.25, 8}, {0.005, 0.1, 0}, {0.005, 0.25, 1},
	} {
		var limits []float64
		for _, v := range values {
			limits = append(limits, stats.FlipLimit(v, tt.edge, tt.alpha/3))
		}
		share, flips := stats.SignFlips(values, limits, 1)
		if flips != 64 || share != tt.want/64 {
			t.Errorf("edge %v, level %v: %v of %d, want %v of 64", tt.edge, tt.alpha, share*float64(flips), flips, tt.want)
		}
	}
}

// A pattern reaches a limit just where the t test of the turned values rejects.
func TestSignFlipsAreTTests(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		blocks := rapid.IntRange(2, 8).Draw(t, "blocks")
		edge := rapid.SampledFrom([]float64{0, 0.01, 0.05}).Draw(t, "edge")
		alpha := rapid.SampledFrom([]float64{0.2, 0.025, 0.001}).Draw(t, "alpha")
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		var values [][]float64
		var limits []float64
		for range rapid.IntRange(1, 4).Draw(t, "claims") {
			v := make([]float64, blocks)
			for b := range v {
				v[b] = 0.03 + 0.02*rng.NormFloat64()
			}
			values, limits = append(values, v), append(limits, stats.FlipLimit(v, edge, alpha))
		}
		want := 0
		for pattern := range 1 << blocks {
			any := false
			for _, v := range values {
				turned := make([]float64, blocks)
				for b := range turned {
					turned[b] = v[b] * float64(1-2*(pattern>>b&1))
				}
				any = any || stats.Describe(turned).Above(edge) <= alpha
			}
			if any {
				want++
			}
		}
		share, flips := stats.SignFlips(values, limits, 1)
		if got := int(math.Round(share * float64(flips))); got != want || flips != 1<<blocks {
			t.Fatalf("%d of %d patterns, want %d of %d", got, flips, want, 1<<blocks)
		}
	})
}

// Where there are too many patterns they are drawn: what comes out is the
// test's level, and the same from the same seed.
func TestSignFlipsDrawn(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 0))
	v := make([]float64, 70)
	for b := range v {
		v[b] = rng.NormFloat64()
	}
	limit := []float64{stats.FlipLimit(v, 0, 0.025)}
	share, flips := stats.SignFlips([][]float64{v}, limit, 7)
	if flips != 1<<16 || math.Abs(share-0.025) > 0.003 { // five standard errors
		t.Errorf("%v of %d patterns, want about 2.5 %%", share, flips)
	}
	if again, _ := stats.SignFlips([][]float64{v}, limit, 7); again != share {
		t.Errorf("the same seed gives %v and %v", share, again)
	}
	for _, none := range [][]float64{nil, {0.1}, {0, 0, 0}} {
		if limit := stats.FlipLimit(none, 0, 0.025); !math.IsInf(limit, 1) {
			t.Errorf("%v are enough for a claim from %v on", none, limit)
		}
	}
}
