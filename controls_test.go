package plumbline_test

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"plumbline/gates/stats"
	"plumbline/record"
)

// BenchmarkControls holds what the controls of real sessions find against what
// they should (docs/METHOD.md, "Controls"; figures in docs/BENCHMARKS.md):
//
//	go test -run '^$' -bench Controls -benchtime 1x -timeout 1h .
//
// It records an A/A of some 70 s of load with each router and prints, per
// route, the injected delay as found, with its 95 % interval over blocks, and
// how far that is from ln(1 + delay) in percentage points; the effect of the
// negative control; and the share of the load's time that the controls took.
func BenchmarkControls(b *testing.B) {
	plumbline := binary(b)
	for _, l := range routers(plumbline) {
		if l.program != "" {
			needs(b, l.program)
		}
		b.Run(l.name, func(b *testing.B) {
			for b.Loop() {
				worst := 0.0
				s := controlled(b, plumbline, l.plan(b, usual, usual, "warmup: {load: 1s}\nschedule: {block: 12s, blocks: 6}\n"))
				want := math.Log1p(s.Schedule.Controls.Delay)
				for i, rt := range s.Routes {
					found := stats.Describe(controlEffects(s, func(r *record.Run) []controlPair { return delays(r, i) }))
					off := 100 * (found.Mean - want)
					worst = max(worst, math.Abs(off))
					fmt.Fprintf(os.Stderr, "%-8s %-22s found %+.2f %% ± %.2f, injected %+.2f %%, off by %+.2f points\n", l.name, rt.Name, 100*found.Mean, halfWidth(found), 100*want, off)
				}
				none := stats.Describe(responderEffects(s))
				fmt.Fprintf(os.Stderr, "%-8s %-22s found %+.2f %% ± %.2f\n", l.name, "responder", 100*none.Mean, halfWidth(none))
				b.ReportMetric(worst, "points-off")
				b.ReportMetric(100*none.Mean, "responder%")
				b.ReportMetric(controlCost(s), "%time")
			}
			b.ReportMetric(0, "ns/op") // its time says nothing
		})
	}
}

// controlled records a session, whatever its verdict.
func controlled(b *testing.B, plumbline, plan string) *record.Session {
	b.Helper()
	out := filepath.Join(b.TempDir(), "session")
	cmd := exec.Command(plumbline, "run", plan, "--out", out, "--json")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	err := cmd.Run()
	if !whole(out) {
		b.Fatalf("%v\n%s", err, stderr.Bytes())
	}
	s, err := record.Open(out)
	if err != nil {
		b.Fatal(err)
	}
	if s.Schedule.Controls == nil {
		b.Fatal("the session has no controls")
	}
	return s
}

// controlPair is a control pair's latencies on one route, that of the side
// that is to be slower second.
type controlPair [2][]int64

// delays are a run's control pairs on a route.
func delays(r *record.Run, route int) (pairs []controlPair) {
	index := map[int]int{}
	for _, c := range r.Controls {
		if c.Kind == record.Responder {
			continue
		}
		i, ok := index[c.N]
		if !ok {
			i = len(pairs)
			index[c.N], pairs = i, append(pairs, controlPair{})
		}
		side := 0
		if c.Kind == record.Delayed {
			side = 1
		}
		pairs[i][side] = c.Latency[route]
	}
	return pairs
}

// controlEffects are the blocks' effects at P50, of the first baseline's run.
func controlEffects(s *record.Session, pairs func(*record.Run) []controlPair) (effects []float64) {
	for _, r := range s.Runs {
		if r.Arm == s.Arms[0].Name {
			effects = append(effects, effect(pairs(r)))
		}
	}
	return effects
}

// responderEffects are those of the candidate's responder slices against the baseline's.
func responderEffects(s *record.Session) (effects []float64) {
	blocks := map[int]map[int]*controlPair{}
	for _, r := range s.Runs {
		side := 0
		if r.Arm != s.Arms[0].Name {
			side = 1
		}
		for _, c := range r.Controls {
			if c.Kind != record.Responder {
				continue
			}
			if blocks[r.Block] == nil {
				blocks[r.Block] = map[int]*controlPair{}
			}
			if blocks[r.Block][c.N] == nil {
				blocks[r.Block][c.N] = &controlPair{}
			}
			blocks[r.Block][c.N][side] = c.Latency[0]
		}
	}
	for _, block := range blocks {
		var pairs []controlPair
		for n := 1; n <= len(block); n++ {
			pairs = append(pairs, *block[n])
		}
		effects = append(effects, effect(pairs))
	}
	return effects
}

// effect is a block's at P50, as METHOD.md has it: the median over merged
// pairs of at least 20 samples beyond P50 a side, or, with fewer than 3, that
// of the whole block.
func effect(pairs []controlPair) float64 {
	var all, group controlPair
	var ratios []float64
	for _, p := range pairs {
		for side := range p {
			group[side] = append(group[side], p[side]...)
			all[side] = append(all[side], p[side]...)
		}
		if min(len(group[0]), len(group[1])) >= 40 {
			ratios = append(ratios, ratio(group))
			group = controlPair{}
		}
	}
	if len(ratios) < 3 {
		return ratio(all)
	}
	return stats.Median(ratios)
}

func ratio(p controlPair) float64 {
	sorted := func(side int) []int64 { return slices.Sorted(slices.Values(p[side])) }
	return math.Log(float64(stats.NearestRank(50, sorted(1))) / float64(stats.NearestRank(50, sorted(0))))
}

// halfWidth of a 95 % interval, in percent.
func halfWidth(s stats.Sample) float64 { return 100 * s.HalfWidth(0.025) }

// controlCost is, in percent, what the controls took of the time from the
// first slice of each block to its last, at most: all that is not a slice,
// with the freezing in between.
func controlCost(s *record.Session) float64 {
	first, last := map[int]time.Time{}, map[int]time.Time{}
	var measured, whole time.Duration
	for _, r := range s.Runs {
		for _, sl := range r.Slices {
			measured += sl.End.Sub(sl.Start)
			if at := first[r.Block]; at.IsZero() || sl.Start.Before(at) {
				first[r.Block] = sl.Start
			}
			if sl.End.After(last[r.Block]) {
				last[r.Block] = sl.End
			}
		}
	}
	for block := range first {
		whole += last[block].Sub(first[block])
	}
	return 100 * (1 - float64(measured)/float64(whole))
}
