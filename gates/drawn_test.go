package gates_test

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"plumbline/gates"
	"plumbline/gates/stats"
	"plumbline/record"
)

// pool is what was recorded of one router in one mode: an A/A, and a candidate
// whose first route is about 8 % slower.
type pool struct {
	router       string
	mode         record.Mode
	meta         record.Meta
	same, slower [][]block
}

// A minute of load has least blocks; blocks are added up to most until every
// judged row is decided. Three minutes have minutesBlocks.
const least, most, minutesBlocks, mostDrawn = 6, 20, 18, 200

// block is one run of each arm.
type block []*record.Run

// openPools reads the folders ROUTER-MODE-same-N and ROUTER-MODE-slower-N, as
// BenchmarkIdea names them, in the order of their names.
func openPools(t testing.TB, dir string) []pool {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*-same-1"))
	if err != nil {
		t.Fatal(err)
	}
	var all []pool
	for _, name := range names {
		prefix := strings.TrimSuffix(name, "-same-1")
		same, slower := openWhole(t, prefix+"-same-*"), openWhole(t, prefix+"-slower-*")
		if len(same) == 0 || len(slower) == 0 {
			continue
		}
		p := pool{meta: same[0].Meta, mode: same[0].Schedule.Mode}
		p.router = strings.TrimSuffix(filepath.Base(prefix), "-"+string(p.mode))
		p.same, p.slower = blocksOf(p.mode, same), blocksOf(p.mode, slower)
		all = append(all, p)
	}
	return all
}

// openWhole reads the sessions that went to their end.
func openWhole(t testing.TB, pattern string) []*record.Session {
	t.Helper()
	names, err := filepath.Glob(pattern)
	if err != nil {
		t.Fatal(err)
	}
	var all []*record.Session
	for _, name := range names {
		s, err := record.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		if s.State == record.Complete {
			all = append(all, s)
		}
	}
	return all
}

// blocksOf are the recorded blocks from which a session may be drawn, those
// that are whole. The drift between the halves of a sequential session is that
// session's own, so blocks of two of them do not mix.
func blocksOf(mode record.Mode, sessions []*record.Session) [][]block {
	var pools [][]block
	for _, s := range sessions {
		byBlock := map[int]block{}
		for _, r := range s.Runs {
			if r.State == record.Complete {
				byBlock[r.Block] = append(byBlock[r.Block], r)
			}
		}
		maps.DeleteFunc(byBlock, func(_ int, runs block) bool { return len(runs) != len(s.Arms) })
		blocks := slices.Collect(maps.Values(byBlock))
		slices.SortFunc(blocks, func(a, b block) int { return a[0].Block - b[0].Block })
		if mode == record.Sequential || pools == nil {
			pools = append(pools, blocks)
		} else {
			pools[0] = append(pools[0], blocks...)
		}
	}
	return pools
}

// draw is a session of n blocks, drawn with replacement; looks are from first
// to n. They get new numbers; what was measured is shared with the recorded
// runs.
func draw(rng *rand.Rand, meta record.Meta, blocks []block, first, n int) *record.Session {
	s := &record.Session{Meta: meta}
	s.Order, s.Schedule.Blocks, s.Schedule.MaxBlocks = nil, first, 0
	if n > first {
		s.Schedule.MaxBlocks = n
	}
	for b := 1; b <= n; b++ {
		for _, r := range blocks[rng.IntN(len(blocks))] {
			run := *r
			run.Block, run.ID = b, fmt.Sprintf("%03d-%s", len(s.Runs)+1, r.Arm)
			s.Runs = append(s.Runs, &run)
			s.Order = append(s.Order, record.RunRef{ID: run.ID, Block: b, Arm: run.Arm})
		}
	}
	return s
}

// drawing gives the i-th drawn session its blocks.
func drawing(i int) *rand.Rand { return rand.New(rand.NewPCG(1, uint64(i))) }

// drawn are n sessions that stop between the first look and the last.
func (p pool) drawn(from [][]block, n, first, most int) []*gates.Verdict {
	return judgeMany(n, func(i int) *gates.Verdict {
		s := draw(drawing(i), p.meta, from[i%len(from)], first, most)
		return stopped(first, most, func(blocks int) *record.Session { return prefix(s, blocks) })
	})
}

// growing are the figures of sessions of a minute, and of those that grow. A
// sequential session cannot: all of one arm comes first.
func (p pool) growing(n int) []string {
	last := most
	if p.mode == record.Sequential {
		last = least
	}
	minute, slower := p.drawn(p.same, n, least, least), p.drawn(p.slower, n, least, last)
	grown := minute
	if last > least {
		grown = p.drawn(p.same, n, least, last)
	}
	of := func(all []*gates.Verdict, is func(*gates.Verdict) bool) string {
		return percent(stats.Describe(sharesOf(all, shareOf(is))).Mean)
	}
	passes := func(v *gates.Verdict) bool { return v.Verdict == gates.Pass }
	regresses := func(v *gates.Verdict) bool { return v.Verdict == gates.Regression }
	there := p.meta.Routes[0].Name
	return []string{
		of(minute, passes), of(minute, regresses), of(grown, passes), of(grown, regresses), meanBlocks(grown),
		of(slower, regressed(func(c gates.Comparison) bool { return c.Route == there })),
		of(slower, regressed(func(c gates.Comparison) bool { return c.Route != there })), meanBlocks(slower),
	}
}

// threeMinutes are the figures of sessions of three minutes, and what the
// rivals say of the same data: of all routes in the A/A, of the slow one else.
func (p pool) threeMinutes(n int) ([]string, rivalry) {
	type judged struct {
		v       *gates.Verdict
		answers []answer
	}
	of := func(from [][]block, routes []record.Route, change func(*record.Session)) []judged {
		return judgeMany(n, func(i int) judged {
			s := draw(drawing(i), p.meta, from[i%len(from)], minutesBlocks, minutesBlocks)
			if change != nil {
				change(s)
			}
			v := gates.Judge(s)
			if routes == nil {
				return judged{v: v}
			}
			return judged{v, ask(s, v, routes)}
		})
	}
	answers := func(all []judged) (list [][]answer) {
		for _, j := range all {
			list = append(list, j.answers)
		}
		return list
	}
	verdicts := func(all []judged) (list []*gates.Verdict) {
		for _, j := range all {
			list = append(list, j.v)
		}
		return list
	}
	same := of(p.same, p.meta.Routes, nil)
	all := verdicts(same)
	one := verdicts(of(p.same, nil, func(s *record.Session) { scale(s, 1.01, 0.05) }))
	three := verdicts(of(p.same, nil, func(s *record.Session) { scale(s, 1.03, 0.01) }))
	anywhere := shareOf(regressed(func(gates.Comparison) bool { return true }))
	recorded := 0
	for _, blocks := range p.same {
		recorded += len(blocks)
	}
	alarms := stats.Describe(sharesOf(all, anywhere)).Mean
	figures := []string{
		fmt.Sprint(recorded), fmt.Sprintf("%.0f of %d", alarms*float64(n), n),
		percent(stats.Describe(sharesOf(all, rowsAre(record.LatencyP50, gates.RowEquivalent))).Mean),
		halfWidth(all, 50), halfWidth(all, 90),
		percent(stats.Describe(sharesOf(one, rowsAre(record.LatencyP50, gates.RowEquivalent))).Mean),
		percent(stats.Describe(sharesOf(three, rowsAre(record.LatencyP50, gates.RowRegression))).Mean),
	}
	slower := of(p.slower, p.meta.Routes[:1], nil)
	return figures, rivalry{p.router + ", recorded, 18 blocks", sum(answers(same)), sum(answers(slower))}
}

// scale makes the candidate slower by a factor, and the zone of P50 as wide as told.
func scale(s *record.Session, factor, zone float64) {
	s.Rules.Metrics = maps.Clone(s.Rules.Metrics)
	s.Rules.Metrics[record.LatencyP50] = record.Rule{Zone: zone}
	s.Rules.FloorS = 0 // 5 µs of some 500 are 1 %
	each(s, "candidate", func(r *record.Run) {
		r.Samples = maps.Clone(r.Samples)
		for route, old := range r.Samples {
			samples := *old
			samples.Latency = nil
			for _, l := range old.Latency {
				samples.Latency = append(samples.Latency, int64(math.Round(factor*float64(l))))
			}
			r.Samples[route] = &samples
		}
	})
}

// halfWidth is the median over sessions and routes, in percent.
func halfWidth(all []*gates.Verdict, percentile int) string {
	var halves []float64
	for _, v := range all {
		for _, c := range v.Comparisons {
			for _, pt := range c.Percentiles {
				if pt.P == percentile {
					halves = append(halves, (math.Log1p(pt.High)-math.Log1p(pt.Low))/2)
				}
			}
		}
	}
	if len(halves) == 0 {
		return "–"
	}
	return fmt.Sprintf("%.2f %%", 100*median(halves))
}

// synthetic is a session whose latencies follow a pattern; those of the
// candidate's first route are slower by a share.
func synthetic(blocks int, slower float64) *record.Session {
	s := &record.Session{Meta: record.Meta{
		State: record.Complete, Rules: record.DefaultRules(), Schedule: record.Schedule{Mode: record.Sliced},
		Arms:   []record.Arm{{Name: "baseline", Role: record.Baseline}, {Name: "candidate", Role: record.Candidate}},
		Routes: []record.Route{{Name: "GET /one", Status: []int{200}}, {Name: "GET /two", Status: []int{200}}},
	}}
	for b := 1; b <= blocks; b++ {
		for _, arm := range s.Arms {
			run := &record.Run{ID: fmt.Sprint(b, arm.Name), Block: b, Arm: arm.Name, State: record.Complete, PID: 100 + b, Samples: map[string]*record.Samples{}}
			for _, route := range s.Routes {
				run.Preflight = append(run.Preflight, record.Answer{Route: route.Name, Status: 200})
				samples := &record.Samples{Codes: map[int]int{200: 2000}}
				for i := range 2000 {
					latency := 400_000 + 10*float64(i*7919%2000) + 100*float64(b)
					if arm.Role == record.Candidate && route.Name == "GET /one" {
						latency *= 1 + slower
					}
					samples.Latency = append(samples.Latency, int64(latency))
				}
				samples.Ends = []int{500, 1000, 1500, 2000}
				run.Samples[route.Name] = samples
			}
			run.Slices = []record.Slice{{N: 1}, {N: 2}, {N: 3}, {N: 4}}
			s.Runs = append(s.Runs, run)
		}
	}
	return s
}

func TestDrawnSessions(t *testing.T) {
	recorded := []*record.Session{synthetic(2, 0), synthetic(3, 0)}
	recorded[1].Runs[0].PID = 999 // tells its block from the first session's
	lost := synthetic(4, 0).Runs[6:]
	lost[0].State = record.Died
	recorded[1].Runs = append(recorded[1].Runs, lost...)
	sliced := blocksOf(record.Sliced, recorded)
	if sequential := blocksOf(record.Sequential, recorded); len(sliced) != 1 || len(sliced[0]) != 5 || len(sequential) != 2 {
		t.Fatalf("%d sliced and %d sequential pools", len(sliced), len(sequential))
	}
	with := func(seed uint64) *record.Session {
		return draw(rand.New(rand.NewPCG(seed, 0)), recorded[0].Meta, sliced[0], least, most)
	}
	s := with(1)
	if !reflect.DeepEqual(s, with(1)) {
		t.Error("one seed gave two sessions")
	}
	if reflect.DeepEqual(s, with(2)) {
		t.Error("two seeds gave one session")
	}
	if len(s.Runs) != 2*most || s.Schedule.Blocks != least || s.Schedule.MaxBlocks != most {
		t.Fatalf("%d runs, %+v", len(s.Runs), s.Schedule)
	}
	drawn := map[[2]int]bool{}
	for i, r := range s.Runs {
		if want := (record.RunRef{ID: r.ID, Block: 1 + i/2, Arm: s.Arms[i%2].Name}); s.Order[i] != want || r.Block != want.Block || r.Arm != want.Arm {
			t.Errorf("run %d is %s of %s in block %d, the order says %v", i, r.ID, r.Arm, r.Block, s.Order[i])
		}
		if i%2 == 1 {
			drawn[[2]int{s.Runs[i-1].PID, r.PID}] = true
		}
	}
	// Whole blocks: the arms of one are never paired with those of another.
	if want := map[[2]int]bool{{101, 101}: true, {102, 102}: true, {999, 101}: true, {103, 103}: true}; !maps.Equal(drawn, want) {
		t.Errorf("drawn were %v", drawn)
	}
	if recorded[0].Runs[2].Block != 2 || recorded[0].Order != nil {
		t.Error("drawing has changed what was recorded")
	}
}

func TestJudgingDrawnSessions(t *testing.T) {
	one := func(c gates.Comparison) bool { return c.Route == "GET /one" }
	for _, c := range []struct {
		slower float64
		want   gates.Outcome
		found  bool
	}{{0, gates.Pass, false}, {0.02, gates.Pass, false}, {0.3, gates.Regression, true}} {
		s := synthetic(4, c.slower)
		v := pool{meta: s.Meta}.drawn(blocksOf(record.Sliced, []*record.Session{s}), 1, least, most)[0]
		if v.Verdict != c.want || v.Blocks != least || regressed(one)(v) != c.found || regressed(func(c gates.Comparison) bool { return !one(c) })(v) {
			t.Errorf("%+.0f %%: %s after %d blocks: %v", 100*c.slower, v.Verdict, v.Blocks, v.Reasons)
		}
	}
	// Two kinds of blocks, on either side of the zone's edge: two speeds, once
	// no number of blocks up to the maximum could show one to be rare.
	open := []*record.Session{synthetic(2, 0), synthetic(2, 0.1)}
	if v := (pool{meta: open[0].Meta}).drawn(blocksOf(record.Sliced, open), 1, least, most)[0]; v.Verdict != gates.Inconclusive || v.Comparisons[0].Speeds == nil {
		t.Errorf("%s after %d blocks: %v", v.Verdict, v.Blocks, v.Reasons)
	}
}
