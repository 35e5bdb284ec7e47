package gates_test

import (
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/stat/distuv"

	"plumbline/gates"
	"plumbline/record"
)

// truth makes sessions whose truth is known, cheap enough to judge a thousand
// of each kind. Where world draws every request, a run here is a grid: the
// exact quantiles of one distribution of latencies (log-normal, with a heavier
// tail), moved by what the run, its block and its arm do. So the only chance is
// what a verdict rests on, the blocks.
type truth struct {
	seed        uint64
	routes      int
	first, most int // blocks: looks from the first to the most; the same: a fixed length
	// sd is the standard deviation of a block's effect at P50, ln. Half of its
	// variance is common to all routes. Towards P95 it grows by 1.7, towards P5 by 1.1.
	sd      float64
	within  float64 // scatter of the requests of one run, ln
	grid    int     // requests per run and route, at least 400 for all percentiles
	request bool    // requests are drawn one by one, see requests
	// level is the standard deviation of a run's own level, ln, where runs are
	// not measured in slices.
	level float64
	// change is what the candidate's route is slower by, ln, at each quantile (0 to 1).
	change func(route int, q float64) float64
	// start is what a run is slower by on all routes, ln, from its start to its end.
	start func(rng *rand.Rand, block, side int) float64
	// errors is how many of a run's perRun requests to a route fail; only error
	// rates are judged then.
	errors func(rng *rand.Rand, side int) int
}

// perRun is how many requests of a run to a route have a status: enough to
// exclude errors at the first look.
const perRun = 5000

func ordinary(sd float64) truth {
	return truth{routes: 15, first: 6, most: 20, sd: sd, within: 0.6, grid: 400}
}

// fixed is the same with a fixed number of blocks.
func (t truth) fixed(blocks int) truth {
	t.first, t.most = blocks, blocks
	return t
}

func (t truth) with(change func(route int, q float64) float64) truth {
	t.change = change
	return t
}

// begin is a session without blocks yet.
func (t truth) begin(seed uint64) *record.Session {
	s := growing(blank(t.seed+seed, t.first, t.routes), t.first, t.most)
	metrics := []record.Metric{record.LatencyP50, record.LatencyDistribution, record.ErrorRate}
	if t.errors != nil {
		metrics = metrics[2:]
	}
	if t.level > 0 {
		s.Schedule.Mode = record.Interleaved
	}
	all := s.Rules.Metrics
	s.Rules.Metrics = map[record.Metric]record.Rule{}
	for _, m := range metrics {
		s.Rules.Metrics[m] = all[m]
	}
	return s
}

// grow measures further blocks, up to so many in all.
func (t truth) grow(s *record.Session, to int) {
	for b := len(s.Runs)/2 + 1; b <= to; b++ {
		rng := rand.New(rand.NewPCG(s.Seed, uint64(b)))
		// What both arms share: the machine's mood in this block, and in each slice.
		host := make([]float64, 1)
		if t.request {
			host = make([]float64, 24)
		}
		host[0] = 0.01*float64(b) + 0.2*rng.NormFloat64()
		for i := 1; i < len(host); i++ {
			host[i] = host[i-1] + 0.03*rng.NormFloat64()
		}
		for side := range 2 {
			run := add(s, b, side, len(host))
			level := t.level * rng.NormFloat64()
			if t.start != nil {
				level += t.start(rng, b, side)
			}
			common, tail := rng.NormFloat64(), rng.NormFloat64()
			for r := range t.routes {
				samples := &record.Samples{Codes: map[int]int{200: perRun}}
				if t.errors != nil {
					failed := min(t.errors(rng, side), perRun)
					samples.Codes = map[int]int{200: perRun - failed, 500: failed}
				}
				// Half of the effect's variance is each arm's, and half of that common to its routes.
				offset := level + t.sd/2*(common+rng.NormFloat64())
				slope := t.sd / 2 * (tail + rng.NormFloat64())
				at := func(q, z float64) float64 {
					x := offset + slope*outwards(z) + t.within*z
					if z > 1 {
						x += t.within * (z - 1) * (z - 1) / 2
					}
					if side == 1 && t.change != nil {
						x += t.change(r, q)
					}
					return math.Log(1e6) + x // 1 ms
				}
				switch {
				case t.errors != nil:
				case t.request:
					t.requests(rng, samples, host, at)
				default:
					for j, z := range grids[t.grid] {
						q := (float64(j) + 0.5) / float64(t.grid)
						samples.Latency = append(samples.Latency, int64(math.Exp(host[0]+at(q, z))))
					}
					samples.Ends = []int{len(samples.Latency)}
				}
				samples.BodyBytes = 512 * int64(len(samples.Latency))
				run.Samples[routeName(r)] = samples
			}
		}
	}
}

// requests draws a run's requests to a route one by one: each depends on the
// one before (0.3), one slice of fifty is hit by a burst that the other arm does
// not see, and one request of fifty takes longer by an exponential time.
func (t truth) requests(rng *rand.Rand, samples *record.Samples, host []float64, at func(q, z float64) float64) {
	z := rng.NormFloat64()
	for _, mood := range host {
		if rng.IntN(50) == 0 {
			mood += math.Log(1.5)
		}
		for range t.grid / len(host) {
			z = 0.3*z + math.Sqrt(0.91)*rng.NormFloat64()
			x := mood + at(distuv.UnitNormal.CDF(z), z)
			if rng.IntN(50) == 0 {
				x += 0.5 * rng.ExpFloat64()
			}
			samples.Latency = append(samples.Latency, int64(math.Exp(x)))
		}
		samples.Ends = append(samples.Ends, len(samples.Latency))
	}
}

// outwards is how much more than the middle a percentile scatters: 1.4 at P95
// and 0.5 at P5, as independent parts of the same unit.
func outwards(z float64) float64 {
	if z > 0 {
		return 1.4 * z / 1.645
	}
	return 0.5 * z / 1.645
}

// grids are the quantiles of a standard normal, by number of requests.
var grids = map[int][]float64{10: normalGrid(10), 400: normalGrid(400)}

func normalGrid(n int) []float64 {
	z := make([]float64, n)
	for j := range z {
		z[j] = distuv.UnitNormal.Quantile((float64(j) + 0.5) / float64(n))
	}
	return z
}

// session has all blocks.
func (t truth) session(seed uint64) *record.Session {
	s := t.begin(seed)
	t.grow(s, t.most)
	return s
}

// judge judges the session when it stops.
func (t truth) judge(seed uint64) *gates.Verdict {
	s := t.begin(seed)
	return stopped(t.first, t.most, func(blocks int) *record.Session {
		t.grow(s, blocks)
		return prefix(s, blocks)
	})
}

// stopped judges a session as it stops: after the first look that leaves no
// judged row open, or at its maximum. The looks in a later verdict say where to
// try, which is cheaper than to try every look; what counts is the verdict on
// the session as it stood there. Whether the blocks that are left are hopeless
// is not in the looks: it is asked after the first look and three blocks later.
func stopped(first, most int, after func(blocks int) *record.Session) *gates.Verdict {
	v := gates.Judge(after(first))
	for have := first; have < most && !v.Decided() && v.Hopeless() == ""; {
		from := have + 1
		if have += 3; have > first+3 {
			have = most
		}
		have = min(have, most)
		v = gates.Judge(after(have))
		for n := firstDecided(v, from); n < have; n++ {
			if v := gates.Judge(after(n)); v.Decided() {
				return v
			}
		}
	}
	return v
}

// firstDecided is the number of blocks, from on, after which every judged row
// had been decided by some look.
func firstDecided(v *gates.Verdict, from int) int {
	for _, c := range v.Comparisons {
		if !c.Judged {
			continue
		}
		n := v.Blocks
		for _, look := range c.Looks {
			if look.Verdict != gates.RowInconclusive {
				n = look.Blocks
				break
			}
		}
		from = max(from, n)
	}
	return from
}
