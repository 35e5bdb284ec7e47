package gates_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"

	"plumbline/gates"
	"plumbline/gates/stats"
	"plumbline/record"
)

// promise is a row of METHOD.md's operating characteristics: a share of
// sessions, or of their rows, and what it may be.
type promise struct {
	words       string
	share       func(*gates.Verdict) float64 // 0 to 1, of one session
	least, most float64                      // without a promise 0 and 1
}

func atLeast(least float64, words string, share func(*gates.Verdict) float64) promise {
	return promise{words, share, least, 1}
}

func atMost(most float64, words string, share func(*gates.Verdict) float64) promise {
	return promise{words, share, 0, most}
}

// shown has no promise.
func shown(words string, share func(*gates.Verdict) float64) promise {
	return promise{words, share, 0, 1}
}

// cell is one truth and what is promised of it.
type cell struct {
	name     string
	truth    truth
	promises []promise
	few      int // sessions that TestPromises judges
}

func first(change float64) func(int, float64) float64 {
	return func(route int, _ float64) float64 {
		if route > 0 {
			return 0
		}
		return math.Log1p(change)
	}
}

// tail slows the first route from a quantile on, in full from another on.
func tail(change, from, full float64) func(int, float64) float64 {
	return func(route int, q float64) float64 {
		if route > 0 {
			return 0
		}
		return math.Log1p(change) * min(1, max(0, (q-from)/(full-from)))
	}
}

// atEveryEdge puts P50 of every route at the edge of its zone, and all other
// percentiles at the edge of theirs.
func atEveryEdge(_ int, q float64) float64 {
	const p50 = 0.49875 // nearest rank on the grid
	return math.Log1p(0.05) + (math.Log1p(0.10)-math.Log1p(0.05))*min(1, math.Abs(q-p50)/0.05)
}

const slowStart = 0.30

// halfSlow makes half of the starts slow, of the candidate or of both arms.
func halfSlow(both bool) func(*rand.Rand, int, int) float64 {
	return func(rng *rand.Rand, _, side int) float64 {
		if slow := rng.IntN(2) == 0; slow && (both || side == 1) {
			return math.Log1p(slowStart)
		}
		return 0
	}
}

// outlier makes one start of the candidate slow.
func outlier(block int) func(*rand.Rand, int, int) float64 {
	return func(_ *rand.Rand, b, side int) float64 {
		if b == block && side == 1 {
			return math.Log1p(0.20)
		}
		return 0
	}
}

// clusters are errors that come in bursts of some 50, so many of them per run
// in the baseline and in the candidate.
func clusters(perRun ...float64) func(*rand.Rand, int) int {
	return func(rng *rand.Rand, side int) int {
		n := 0.0
		for range int(distuv.Poisson{Lambda: perRun[side], Src: rng}.Rand()) {
			n += 1 + 49*rng.ExpFloat64()
		}
		return int(n)
	}
}

// singles are independent errors, so many per run.
func singles(perRun ...float64) func(*rand.Rand, int) int {
	return func(rng *rand.Rand, side int) int {
		if perRun[side] == 0 {
			return 0
		}
		return int(distuv.Poisson{Lambda: perRun[side], Src: rng}.Rand())
	}
}

// cells are METHOD.md's table, in its order.
func cells() []cell {
	drawn := ordinary(0.01)
	drawn.request, drawn.grid, drawn.within, drawn.routes = true, 1200, 0.15, 5
	anywhere := shareOf(regressed(func(gates.Comparison) bool { return true }))
	var all []cell
	add := func(few int, name string, t truth, promises ...promise) {
		t.seed = uint64(len(all)) << 32 // cells have nothing in common
		all = append(all, cell{name, t, promises, few})
	}
	scatter := []struct {
		name string
		truth
	}{{"0.5 %", ordinary(0.005)}, {"1.5 %", ordinary(0.015)}, {"2.5 %", ordinary(0.025)}, {"1.6 %, 5 routes, requests drawn", drawn}}
	for i, s := range scatter {
		add([]int{60, 60, 20, 6}[i], "no change, "+s.name, s.truth,
			atMost(0.01, "a regression anywhere", anywhere),
			atLeast(0.95, "every row equivalent", shareOf(allEquivalent)))
	}
	// At an edge all that counts is how far the truth is from it in units of the
	// spread, and that is 0: one spread will do.
	edge := ordinary(0.015)
	for _, t := range []struct {
		name string
		few  int
		truth
	}{{"6 to 20 blocks", 100, edge}, {"6 blocks", 400, edge.fixed(6)}} {
		add(t.few, "P50 of one route at the edge, "+t.name, t.with(first(0.05)),
			atMost(0.025, "equivalent there", rowIs(record.LatencyP50, gates.RowEquivalent)),
			shown("a regression there", rowIs(record.LatencyP50, gates.RowRegression)))
	}
	add(40, "P95 of one route at the edge", edge.with(tail(0.10, 0.80, 0.9487)),
		atMost(0.025, "distribution equivalent there", rowIs(record.LatencyDistribution, gates.RowEquivalent)))
	add(40, "every percentile of every route at the edge", edge.with(atEveryEdge),
		atMost(0.025, "P50 rows equivalent", rowsAre(record.LatencyP50, gates.RowEquivalent)),
		atMost(0.025, "distribution rows equivalent", rowsAre(record.LatencyDistribution, gates.RowEquivalent)),
		atMost(0.05, "a regression anywhere", anywhere))
	there := shareOf(regressed(func(c gates.Comparison) bool { return c.Route == routeName(0) }))
	elsewhere := shareOf(regressed(func(c gates.Comparison) bool { return c.Route != routeName(0) }))
	for i, s := range scatter {
		find := atLeast(0.99, "a regression there", there)
		if i >= 2 {
			find.least = 0 // promised at 0.5 and 1.5 % only
		}
		add([]int{40, 40, 0, 0}[i], "one route 7.5 % slower, "+s.name, s.with(first(0.075)), find, atMost(0.01, "elsewhere", elsewhere))
	}
	for i, s := range scatter[:3] {
		find := atLeast(0.99, "a regression there", there)
		if i >= 2 {
			find.least = 0
		}
		add([]int{0, 20, 0}[i], "one route 15 % slower from P75 up, "+s.name, s.with(tail(0.15, 0.65, 0.745)), find, atMost(0.01, "elsewhere", elsewhere))
	}
	for i, s := range scatter[:3] {
		t := s.fixed(6)
		t.start = outlier(4)
		add([]int{20, 0, 0}[i], "one block of six an outlier of 20 %, "+s.name, t,
			atMost(0, "a regression anywhere", anywhere),
			atLeast(1, "the block is named on some route", shareOf(names("outlier"))),
			shown("routes on which it is named", namesEverywhere("outlier")))
	}
	for _, blocks := range []int{6, 20} {
		for _, both := range []bool{true, false} {
			t := ordinary(0.015).fixed(blocks)
			t.start = halfSlow(both)
			p := atLeast(0.95, "routes whose speeds are shown", speedsShown)
			if blocks < 20 {
				p.least = 0
			}
			add(20, fmt.Sprintf("half of the starts 30 %% slow, %s, %d blocks, 1.5 %%", map[bool]string{true: "both arms", false: "candidate"}[both], blocks), t,
				p, shown("routes not comparable: two speeds", namesEverywhere("two speeds")),
				shown("a regression anywhere", anywhere), shown("every row equivalent", shareOf(allEquivalent)))
		}
	}
	for _, blocks := range []int{6, 20} {
		for i, s := range scatter {
			add([]int{20, 20, 20, 0}[i], fmt.Sprintf("one speed, %d blocks, %s", blocks, s.name), s.fixed(blocks),
				atMost(0.005, "two speeds flagged on any route", shareOf(names("two speeds"))),
				shown("an outlier named on any route", shareOf(names("outlier"))))
		}
	}
	unsliced := truth{routes: 15, first: 6, most: 20, within: 0.028, grid: 400, level: 0.15}
	add(40, "no change, not sliced, runs differ by 15 %", unsliced, atMost(0.05, "a regression anywhere", anywhere))
	add(40, "the same, 6 blocks", unsliced.fixed(6), atMost(0.05, "a regression anywhere", anywhere))
	for _, e := range []struct {
		name   string
		errors func(*rand.Rand, int) int
		few    int
		at     bool
	}{
		{"errors 0 : 0 in 100,000", singles(0, 0), 20, false},
		{"errors 3 : 0", singles(0.15, 0), 40, false},
		{"errors 0 : 3", singles(0, 0.15), 40, false},
		{"errors in clusters, 0.2 % in both arms", clusters(0.2, 0.2), 100, false},
		{"errors in clusters, 0.02 % in both arms", clusters(0.02, 0.02), 100, false},
		{"errors in clusters, candidate at the edge (0.2 and 0.3 %)", clusters(0.2, 0.3), 100, true},
		// Missed: where most runs have no error, nothing says that they come in clusters.
		{"errors in clusters, candidate at the edge (0 and 0.1 %)", clusters(0, 0.1), 0, true},
		{"single errors, candidate at the edge (0.2 and 0.3 %)", singles(10, 15), 100, true},
	} {
		t := ordinary(0.005)
		t.errors = e.errors
		promises := []promise{atMost(0.025, "a regression anywhere", anywhere)}
		if e.at {
			promises = append(promises, atMost(0.025, "rows equivalent", rowsAre(record.ErrorRate, gates.RowEquivalent)))
		}
		add(e.few, e.name, t, promises...)
	}
	return all
}

// shareOf makes a share of sessions of a yes or no.
func shareOf(is func(*gates.Verdict) bool) func(*gates.Verdict) float64 {
	return func(v *gates.Verdict) float64 {
		if is(v) {
			return 1
		}
		return 0
	}
}

func regressed(where func(gates.Comparison) bool) func(*gates.Verdict) bool {
	return func(v *gates.Verdict) bool {
		return slices.ContainsFunc(v.Comparisons, func(c gates.Comparison) bool {
			return c.Verdict == gates.RowRegression && where(c)
		})
	}
}

func allEquivalent(v *gates.Verdict) bool {
	return v.Verdict == gates.Pass && !slices.ContainsFunc(v.Comparisons, func(c gates.Comparison) bool {
		return c.Judged && c.Verdict != gates.RowEquivalent
	})
}

// rowIs looks at the first route.
func rowIs(metric record.Metric, want gates.RowVerdict) func(*gates.Verdict) float64 {
	return shareOf(func(v *gates.Verdict) bool {
		return slices.ContainsFunc(v.Comparisons, func(c gates.Comparison) bool {
			return c.Route == routeName(0) && c.Metric == metric && c.Verdict == want
		})
	})
}

// rowsAre is the share of routes.
func rowsAre(metric record.Metric, want gates.RowVerdict) func(*gates.Verdict) float64 {
	return func(v *gates.Verdict) float64 {
		n, of := 0.0, 0.0
		for _, c := range v.Comparisons {
			if c.Metric != metric {
				continue
			}
			of++
			if c.Verdict == want {
				n++
			}
		}
		return n / of
	}
}

// names says whether Gate 2 says this of any row or run.
func names(word string) func(*gates.Verdict) bool {
	return func(v *gates.Verdict) bool {
		return slices.ContainsFunc(v.SetAside, func(a gates.SetAside) bool { return strings.Contains(a.Reason, word) }) ||
			slices.ContainsFunc(v.Comparisons, func(c gates.Comparison) bool { return says(c, word) })
	}
}

func says(c gates.Comparison, word string) bool {
	return slices.ContainsFunc(c.Reasons, func(r string) bool { return strings.Contains(r, word) })
}

// namesEverywhere is the share of the P50 rows of which Gate 2 says this; all,
// if it sets the run aside.
func namesEverywhere(word string) func(*gates.Verdict) float64 {
	return func(v *gates.Verdict) float64 {
		if slices.ContainsFunc(v.SetAside, func(a gates.SetAside) bool { return a.Route == "" && strings.Contains(a.Reason, word) }) {
			return 1
		}
		n, of := 0.0, 0.0
		for _, c := range v.Comparisons {
			if c.Metric == record.LatencyP50 {
				of++
				if says(c, word) {
					n++
				}
			}
		}
		return n / of
	}
}

// speedsShown is the share of the P50 rows that say into which speeds their
// blocks fall: also a regression does.
func speedsShown(v *gates.Verdict) float64 {
	n, of := 0.0, 0.0
	for _, c := range v.Comparisons {
		if c.Metric == record.LatencyP50 {
			of++
			if len(c.Speeds) > 1 {
				n++
			}
		}
	}
	return n / of
}

// judgeMany judges sessions with the seeds 0 to n − 1 on all CPUs.
func judgeMany[T any](n int, judge func(i int) T) []T {
	all := make([]T, n)
	var next atomic.Int64
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for i := int(next.Add(1) - 1); i < n; i = int(next.Add(1) - 1) {
				all[i] = judge(i)
			}
		})
	}
	workers.Wait()
	return all
}

// measuredShare is a mean of shares with an interval.
type measuredShare struct {
	at, low, high float64
}

// meanShare has Wilson's interval for z, with as many trials as have the spread
// of these shares: rows of one session depend on each other, sessions do not.
func meanShare(shares []float64, z float64) measuredShare {
	s := stats.Describe(shares)
	n := float64(s.N)
	trials := n
	if s.SD > 0 {
		trials = s.Mean * (1 - s.Mean) * n / (s.SD * s.SD)
	}
	low, high := stats.Wilson(stats.Count{X: int(math.Round(s.Mean * trials)), N: int(math.Round(trials))}, z)
	return measuredShare{s.Mean, low, high}
}

// sharesOf is what each session says.
func sharesOf(all []*gates.Verdict, share func(*gates.Verdict) float64) []float64 {
	shares := make([]float64, len(all))
	for i, v := range all {
		shares[i] = share(v)
	}
	return shares
}

// TestPromises holds METHOD.md's operating characteristics with few sessions of
// few routes: it fails where they refute a promise, by three standard errors.
// BenchmarkCharacteristics measures them.
func TestPromises(t *testing.T) {
	t.Parallel()
	for _, c := range cells() {
		if c.few == 0 {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			c.truth.routes = 3
			all := judgeMany(c.few, func(i int) *gates.Verdict { return c.truth.judge(uint64(i)) })
			for _, p := range c.promises {
				got := meanShare(sharesOf(all, p.share), 3)
				t.Logf("%s: %.3f [%.3f, %.3f]", p.words, got.at, got.low, got.high)
				if got.low > p.most || got.high < p.least {
					t.Errorf("%s in %.3f [%.3f, %.3f] of %d sessions, promised are %v to %v", p.words, got.at, got.low, got.high, c.few, p.least, p.most)
				}
			}
		})
	}
}
