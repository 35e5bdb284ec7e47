package plumbline_test

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"sort"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"plumbline/gates"
	"plumbline/record"
)

var (
	recorded = flag.String("recorded", "", "folder of recorded sessions for -bench Idea; what it lacks is recorded")
	rounds   = flag.Int("rounds", 3, "sessions per router, truth and mode that -bench Idea records")
	mode     = flag.String("mode", "", "the only mode that -bench Idea records: sliced or sequential")
)

// What is planted. The routers' own work is some 400 µs a request, so that it
// is nearly all of the latency; even is the A/A.
var (
	even    = work{100, 100, 100}
	planted = map[string]work{ // the first route's latency by 8 %, the second one's work by 2 %
		"demo": {109, 102, 100}, "nginx": {109, 102, 100}, "haproxy": {109, 102, 100}, "node": {110, 102, 100},
	}
)

// cell is what is recorded and judged together.
type cell struct {
	router live
	mode   record.Mode
	slow   bool
}

func (c cell) String() string {
	truth := "same"
	if c.slow {
		truth = "slower"
	}
	return c.router.name + "-" + string(c.mode) + "-" + truth
}

// ideaRouters are the live tests' and one on Node.
func ideaRouters(t testing.TB, plumbline string) []live {
	script, err := filepath.Abs("testdata/server.js")
	if err != nil {
		t.Fatal(err)
	}
	return append(routers(plumbline), live{
		name: "node", program: "node", routes: [3]string{"GET /one", "GET /two", "GET /three"},
		run: func(w work) string {
			return fmt.Sprintf(`[node, %q, "{socket}", "%d", "%d", "%d"]`, script, w[0], w[1], w[2])
		},
	})
}

// cells are in the order of recording: sliced and sequential take turns, so
// that both see the same machine.
func cells(routers []live) []cell {
	var all []cell
	for _, l := range routers {
		for _, slow := range []bool{false, true} {
			all = append(all, cell{l, record.Sliced, slow}, cell{l, record.Sequential, slow})
		}
	}
	return slices.DeleteFunc(all, func(c cell) bool { return *mode != "" && *mode != string(c.mode) })
}

// folder is that of a cell's n-th session.
func (c cell) folder(dir string, n int) string {
	return filepath.Join(dir, fmt.Sprintf("%v-%d", c, n))
}

// recordAll records the sessions that dir lacks through the command line. One
// that was cut short is recorded again.
func recordAll(b *testing.B, dir string) {
	b.Helper()
	type missing struct {
		cell
		n int
	}
	plumbline := filepath.Join(b.TempDir(), "plumbline")
	var todo []missing
	for n := 1; n <= *rounds; n++ {
		all := cells(ideaRouters(b, plumbline))
		if n%2 == 0 {
			slices.Reverse(all) // neither mode always goes first
		}
		for _, c := range all {
			if !whole(c.folder(dir, n)) {
				todo = append(todo, missing{c, n})
			}
		}
	}
	if len(todo) == 0 {
		return
	}
	build(b, plumbline)
	for i, m := range todo {
		if m.router.program != "" {
			needs(b, m.router.program)
		}
		fmt.Fprintf(os.Stderr, "%s recording %v-%d, %d of %d\n", time.Now().Format(time.TimeOnly), m.cell, m.n, i+1, len(todo))
		if err := m.record(b, plumbline, m.folder(dir, m.n), m.n); err != nil {
			fmt.Fprintf(os.Stderr, "%v-%d is lost, the same command records it again: %v\n", m.cell, m.n, err)
		}
	}
}

// record is one session of a minute of load.
func (c cell) record(b *testing.B, plumbline, out string, seed int) error {
	b.Helper()
	candidate := even
	if c.slow {
		candidate = planted[c.router.name]
	}
	extra := fmt.Sprintf("warmup: {load: 1s}\nschedule: {mode: %s, block: 10s, blocks: 6}\n", c.mode)
	if err := os.RemoveAll(out); err != nil {
		return err
	}
	cmd := exec.Command(plumbline, "run", c.router.plan(b, even, candidate, extra), "--out", out, "--json", "--seed", fmt.Sprint(seed))
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Run(); !whole(out) {
		return fmt.Errorf("%w\n%s", err, stderr.Bytes())
	}
	return nil // a regression has an exit code too
}

func whole(session string) bool {
	s, err := record.OpenMeta(session)
	return err == nil && s.State == record.Complete
}

// session is a recorded session and what it says of each route at P50, P90
// and P95: effects, 0.05 = +5 %.
type session struct {
	*record.Session
	effects map[string][3]float64
}

var shown = [3]int{50, 90, 95}

// read are a cell's sessions in dir that went to their end.
func (c cell) read(t testing.TB, dir string) []session {
	t.Helper()
	var all []session
	for n := 1; n <= *rounds; n++ {
		if !whole(c.folder(dir, n)) {
			continue
		}
		s, err := record.Open(c.folder(dir, n))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, session{s, effectsOf(gates.Judge(s))})
	}
	return all
}

// effectsOf has NaN where a percentile could not be compared.
func effectsOf(v *gates.Verdict) map[string][3]float64 {
	all := map[string][3]float64{}
	for _, r := range v.Comparisons {
		if r.Metric != record.LatencyDistribution {
			continue
		}
		effects := [3]float64{math.NaN(), math.NaN(), math.NaN()}
		for _, pt := range r.Percentiles {
			if i := slices.Index(shown[:], pt.P); i >= 0 {
				effects[i] = pt.Effect
			}
		}
		all[r.Route] = effects
	}
	return all
}

// pools are the recorded blocks from which a session may be drawn, those that
// are whole. The drift between the halves of a sequential session is that
// session's own, so blocks of two of them do not mix.
func (c cell) pools(sessions []session) [][][]*record.Run {
	var pools [][][]*record.Run
	for _, s := range sessions {
		byBlock := map[int][]*record.Run{}
		for _, r := range s.Runs {
			if r.State == record.Complete {
				byBlock[r.Block] = append(byBlock[r.Block], r)
			}
		}
		maps.DeleteFunc(byBlock, func(_ int, runs []*record.Run) bool { return len(runs) != len(s.Arms) })
		blocks := slices.Collect(maps.Values(byBlock))
		slices.SortFunc(blocks, func(a, b []*record.Run) int { return a[0].Block - b[0].Block })
		if c.mode == record.Sequential || pools == nil {
			pools = append(pools, blocks)
		} else {
			pools[0] = append(pools[0], blocks...)
		}
	}
	return pools
}

// A minute of load has least blocks; blocks are added up to most until every
// judged row is decided. resampled is how many sessions are drawn per figure.
const least, most, resampled = 6, 20, 200

// draw is a session of up to n blocks, drawn with replacement. They get new
// numbers; what was measured is shared with the recorded runs.
func draw(rng *rand.Rand, meta record.Meta, blocks [][]*record.Run, n int) *record.Session {
	s := &record.Session{Meta: meta}
	s.Order, s.Schedule.Blocks = nil, least
	if n > least {
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

// judge judges a drawn session after its first blocks and, if they leave
// something undecided, after the further ones that decide it. What is decided
// stays so, so the search may halve.
func judge(s *record.Session) *gates.Verdict {
	after := func(n int) *gates.Verdict {
		part := *s
		part.Runs, part.Order = s.Runs[:n*len(s.Arms)], s.Order[:n*len(s.Arms)]
		return gates.Judge(&part)
	}
	v, all := after(least), len(s.Runs)/len(s.Arms)
	if v.Decided() || all == least {
		return v
	}
	more := sort.Search(all-least-1, func(i int) bool { return after(least + 1 + i).Decided() })
	return after(least + 1 + more)
}

// resample judges many sessions of up to n blocks, drawn from recorded ones.
func (c cell) resample(sessions []session, n int) []*gates.Verdict {
	pools := c.pools(sessions)
	all := make([]*gates.Verdict, resampled)
	var next atomic.Int64
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for i := next.Add(1) - 1; i < resampled; i = next.Add(1) - 1 {
				rng := rand.New(rand.NewPCG(1, uint64(i)))
				all[i] = judge(draw(rng, sessions[0].Meta, pools[int(i)%len(pools)], n))
			}
		})
	}
	workers.Wait()
	return all
}

func percentOf(all []*gates.Verdict, is func(*gates.Verdict) bool) string {
	n := 0
	for _, v := range all {
		if is(v) {
			n++
		}
	}
	return fmt.Sprintf("%.1f %%", 100*float64(n)/float64(len(all)))
}

func meanBlocks(all []*gates.Verdict) string {
	n := 0
	for _, v := range all {
		n += v.Blocks
	}
	return fmt.Sprintf("%.1f", float64(n)/float64(len(all)))
}

func passes(v *gates.Verdict) bool  { return v.Verdict == gates.Pass }
func regress(v *gates.Verdict) bool { return v.Verdict == gates.Regression }

// slowerOn says whether a regression was found on a route that is (or is not) the given one.
func slowerOn(route string, is bool) func(*gates.Verdict) bool {
	return func(v *gates.Verdict) bool {
		return slices.ContainsFunc(v.Comparisons, func(r gates.Comparison) bool {
			return r.Verdict == gates.RowRegression && (r.Route == route) == is
		})
	}
}

// BenchmarkIdea weighs real routers in slices and one after the other, at
// equal load time, an A/A and with planted slowdowns (docs/BENCHMARKS.md):
//
//	go test -run '^$' -bench Idea -benchtime 1x -timeout 3h . -args -recorded DIR
//
// It records the sessions that DIR lacks, some 20 minutes a round, then draws
// many sessions from the recorded blocks. It prints two tables.
func BenchmarkIdea(b *testing.B) {
	if *recorded == "" {
		b.Skip("it takes an hour; name a folder: -args -recorded DIR")
	}
	dir, err := filepath.Abs(*recorded)
	if err != nil {
		b.Fatal(err)
	}
	recordAll(b, dir)
	tell(b, os.Stdout, dir)
	b.ReportMetric(0, "ns/op") // its time says nothing
}

// tell writes what was recorded, and what is drawn from it, as two tables.
func tell(t testing.TB, out io.Writer, dir string) {
	t.Helper()
	var seen, drawn strings.Builder
	for _, l := range ideaRouters(t, "") {
		for _, mode := range []record.Mode{record.Sliced, record.Sequential} {
			same, slower := cell{l, mode, false}, cell{l, mode, true}
			a, b := same.read(t, dir), slower.read(t, dir)
			if len(a) == 0 || len(b) == 0 {
				continue
			}
			fmt.Fprintf(&seen, "| %s | %s | %d + %d | %s |\n", l.name, mode, len(a), len(b), strings.Join(seenIn(l, a, b), " | "))
			fmt.Fprintf(&drawn, "| %s | %s | %s |\n", l.name, mode, strings.Join(drawnFrom(same, slower, a, b), " | "))
		}
	}
	fmt.Fprintf(out, `
| router | mode | sessions | A/A rows ≥ +5 %% | A/A spread of P50, P90, P95 (largest) | +2 %% of work: right sign of P50, P90, P95 | P50 there | +8 %%: P50 there |
| --- | --- | --- | --- | --- | --- | --- | --- |
%s
| router | mode | A/A, 6 blocks: pass | a regression | A/A, 6 to 20: pass | a regression | blocks | +8 %%: found | elsewhere | blocks |
| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |
%s`, seen.String(), drawn.String())
}

// seenIn are the figures of the recorded sessions: A/As a, and b with what is planted.
func seenIn(l live, a, b []session) []string {
	rows, false5 := 0, 0
	var spread, sign []string
	for i := range shown {
		squares, largest, seen, right := 0.0, 0.0, 0, 0
		for _, s := range a {
			for _, effects := range s.effects {
				if math.IsNaN(effects[i]) {
					continue
				}
				rows, seen = rows+1, seen+1
				if effects[i] >= 0.05 {
					false5++
				}
				squares += effects[i] * effects[i]
				largest = max(largest, math.Abs(effects[i]))
			}
		}
		for _, s := range b {
			if s.effects[l.routes[1]][i] > 0 {
				right++
			}
		}
		spread = append(spread, fmt.Sprintf("%.1f %% (%.1f)", 100*math.Sqrt(squares/float64(seen)), 100*largest))
		sign = append(sign, fmt.Sprint(right))
	}
	p50 := func(route string) string {
		var all []string
		for _, s := range b {
			all = append(all, strings.Replace(fmt.Sprintf("%+.1f", 100*s.effects[route][0]), "+NaN", "–", 1))
		}
		return strings.Join(all, ", ")
	}
	return []string{
		fmt.Sprintf("%d of %d", false5, rows), strings.Join(spread, ", "),
		fmt.Sprintf("%s of %d", strings.Join(sign, ", "), len(b)), p50(l.routes[1]), p50(l.routes[0]),
	}
}

// drawnFrom are the figures of sessions that are drawn from the recorded ones.
// A sequential session cannot grow: all of one arm comes first.
func drawnFrom(same, slower cell, a, b []session) []string {
	n := most
	if same.mode == record.Sequential {
		n = least
	}
	minute, planted := same.resample(a, least), slower.resample(b, n)
	grown := minute
	if n > least {
		grown = same.resample(a, n)
	}
	there := same.router.routes[0]
	return []string{
		percentOf(minute, passes), percentOf(minute, regress),
		percentOf(grown, passes), percentOf(grown, regress), meanBlocks(grown),
		percentOf(planted, slowerOn(there, true)), percentOf(planted, slowerOn(there, false)), meanBlocks(planted),
	}
}

// synthetic is a session whose latencies follow a pattern; those of the
// candidate's first route are slower by a share.
func synthetic(blocks int, slower float64) session {
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
	return session{Session: s}
}

func TestDrawnSessions(t *testing.T) {
	recorded := []session{synthetic(2, 0), synthetic(3, 0)}
	recorded[1].Runs[0].PID = 999 // tells its block from the first session's
	lost := synthetic(4, 0).Runs[6:]
	lost[0].State = record.Died
	recorded[1].Runs = append(recorded[1].Runs, lost...)
	sliced := cell{mode: record.Sliced}.pools(recorded)
	if sequential := (cell{mode: record.Sequential}).pools(recorded); len(sliced) != 1 || len(sliced[0]) != 5 || len(sequential) != 2 {
		t.Fatalf("%d sliced and %d sequential pools", len(sliced), len(sequential))
	}
	with := func(seed uint64) *record.Session {
		return draw(rand.New(rand.NewPCG(seed, 0)), recorded[0].Meta, sliced[0], most)
	}
	s := with(1)
	if diff := cmp.Diff(s, with(1)); diff != "" {
		t.Error("one seed gave two sessions: ", diff)
	}
	if cmp.Equal(s, with(2)) {
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
	for _, c := range []struct {
		slower float64
		want   gates.Outcome
		found  bool
	}{{0, gates.Pass, false}, {0.02, gates.Pass, false}, {0.3, gates.Regression, true}} {
		s := synthetic(4, c.slower)
		v := judge(draw(rand.New(rand.NewPCG(1, 0)), s.Meta, cell{mode: record.Sliced}.pools([]session{s})[0], most))
		if v.Verdict != c.want || v.Blocks != least || slowerOn("GET /one", true)(v) != c.found || slowerOn("GET /one", false)(v) {
			t.Errorf("%+.0f %%: %s after %d blocks: %v", 100*c.slower, v.Verdict, v.Blocks, v.Reasons)
		}
	}
	// Two kinds of blocks, on either side of the zone's edge: never decided.
	open := []session{synthetic(2, 0), synthetic(2, 0.1)}
	if v := judge(draw(rand.New(rand.NewPCG(1, 0)), open[0].Meta, cell{mode: record.Sliced}.pools(open)[0], most)); v.Blocks != most || v.Decided() {
		t.Errorf("%s after %d blocks: %v", v.Verdict, v.Blocks, v.Reasons)
	}
}

func TestSeen(t *testing.T) {
	l := live{routes: [3]string{"GET /one", "GET /two", "GET /three"}}
	of := func(one, two, three float64) session {
		return session{effects: map[string][3]float64{"GET /one": {one, one, one}, "GET /two": {two, two, two}, "GET /three": {three, three, -three}}}
	}
	got := seenIn(l, []session{of(0.03, -0.04, 0), of(0, 0.05, 0.12)}, []session{of(0.08, 0.02, 0), of(0.081, -0.001, 0)})
	want := []string{"5 of 18", "5.7 % (12.0), 5.7 % (12.0), 5.7 % (12.0)", "1, 1, 1 of 2", "+2.0, -0.1", "+8.0, +8.1"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
