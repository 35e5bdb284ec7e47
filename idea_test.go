package plumbline_test

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
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

// effects are what a recorded session says of each route at P50, P90 and P95:
// 0.05 = +5 %.
type effects map[string][3]float64

var shown = [3]int{50, 90, 95}

// read are a cell's sessions in dir that went to their end.
func (c cell) read(t testing.TB, dir string) []effects {
	t.Helper()
	var all []effects
	for n := 1; n <= *rounds; n++ {
		if !whole(c.folder(dir, n)) {
			continue
		}
		s, err := record.Open(c.folder(dir, n))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, effectsOf(gates.Judge(s)))
	}
	return all
}

// effectsOf has NaN where a percentile could not be compared.
func effectsOf(v *gates.Verdict) effects {
	all := effects{}
	for _, r := range v.Comparisons {
		if r.Metric != record.LatencyDistribution {
			continue
		}
		at := [3]float64{math.NaN(), math.NaN(), math.NaN()}
		for _, pt := range r.Percentiles {
			if i := slices.Index(shown[:], pt.P); i >= 0 {
				at[i] = pt.Effect
			}
		}
		all[r.Route] = at
	}
	return all
}

// BenchmarkIdea weighs real routers in slices and one after the other, at
// equal load time, an A/A and with planted slowdowns (docs/BENCHMARKS.md):
//
//	go test -run '^$' -bench Idea -benchtime 1x -timeout 3h . -args -recorded DIR
//
// It records the sessions that DIR lacks, some 20 minutes a round, and prints
// what they say. -bench Characteristics ./gates draws many sessions from the
// recorded blocks.
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

// tell writes what was recorded as a table.
func tell(t testing.TB, out io.Writer, dir string) {
	t.Helper()
	var seen strings.Builder
	for _, l := range ideaRouters(t, "") {
		for _, mode := range []record.Mode{record.Sliced, record.Sequential} {
			a, b := cell{l, mode, false}.read(t, dir), cell{l, mode, true}.read(t, dir)
			if len(a) == 0 || len(b) == 0 {
				continue
			}
			fmt.Fprintf(&seen, "| %s | %s | %d + %d | %s |\n", l.name, mode, len(a), len(b), strings.Join(seenIn(l, a, b), " | "))
		}
	}
	fmt.Fprintf(out, `
| router | mode | sessions | A/A rows ≥ +5 %% | A/A spread of P50, P90, P95 (largest) | +2 %% of work: right sign of P50, P90, P95 | P50 there | +8 %%: P50 there |
| --- | --- | --- | --- | --- | --- | --- | --- |
%s`, seen.String())
}

// seenIn are the figures of the recorded sessions: A/As a, and b with what is planted.
func seenIn(l live, a, b []effects) []string {
	rows, false5 := 0, 0
	var spread, sign []string
	for i := range shown {
		squares, largest, seen, right := 0.0, 0.0, 0, 0
		for _, s := range a {
			for _, at := range s {
				if math.IsNaN(at[i]) {
					continue
				}
				rows, seen = rows+1, seen+1
				if at[i] >= 0.05 {
					false5++
				}
				squares += at[i] * at[i]
				largest = max(largest, math.Abs(at[i]))
			}
		}
		for _, s := range b {
			if s[l.routes[1]][i] > 0 {
				right++
			}
		}
		spread = append(spread, fmt.Sprintf("%.1f %% (%.1f)", 100*math.Sqrt(squares/float64(seen)), 100*largest))
		sign = append(sign, fmt.Sprint(right))
	}
	p50 := func(route string) string {
		var all []string
		for _, s := range b {
			all = append(all, strings.Replace(fmt.Sprintf("%+.1f", 100*s[route][0]), "+NaN", "–", 1))
		}
		return strings.Join(all, ", ")
	}
	return []string{
		fmt.Sprintf("%d of %d", false5, rows), strings.Join(spread, ", "),
		fmt.Sprintf("%s of %d", strings.Join(sign, ", "), len(b)), p50(l.routes[1]), p50(l.routes[0]),
	}
}

func TestSeen(t *testing.T) {
	l := live{routes: [3]string{"GET /one", "GET /two", "GET /three"}}
	of := func(one, two, three float64) effects {
		return effects{"GET /one": {one, one, one}, "GET /two": {two, two, two}, "GET /three": {three, three, -three}}
	}
	got := seenIn(l, []effects{of(0.03, -0.04, 0), of(0, 0.05, 0.12)}, []effects{of(0.08, 0.02, 0), of(0.081, -0.001, 0)})
	want := []string{"5 of 18", "5.7 % (12.0), 5.7 % (12.0), 5.7 % (12.0)", "1, 1, 1 of 2", "+2.0, -0.1", "+8.0, +8.1"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
