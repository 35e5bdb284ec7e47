package plumbline_test

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"plumbline/record"
)

var (
	recorded = flag.String("recorded", "", "folder of recorded sessions for -bench Idea; what it lacks is recorded")
	rounds   = flag.Int("rounds", 3, "sessions per router, truth and mode that -bench Idea records")
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
	return all
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
		m.record(b, plumbline, m.folder(dir, m.n), m.n)
	}
}

// record is one session of a minute of load.
func (c cell) record(b *testing.B, plumbline, out string, seed int) {
	b.Helper()
	candidate := even
	if c.slow {
		candidate = planted[c.router.name]
	}
	extra := fmt.Sprintf("warmup: {load: 1s}\nschedule: {mode: %s, block: 10s, blocks: 6}\n", c.mode)
	if err := os.RemoveAll(out); err != nil {
		b.Fatal(err)
	}
	cmd := exec.Command(plumbline, "run", c.router.plan(b, even, candidate, extra), "--out", out, "--json", "--seed", fmt.Sprint(seed))
	if stderr, err := cmd.CombinedOutput(); !whole(out) {
		b.Fatalf("recording %v: %v\n%s", c, err, stderr)
	}
}

func whole(session string) bool {
	s, err := record.OpenMeta(session)
	return err == nil && s.State == record.Complete
}

func BenchmarkIdea(b *testing.B) {
	if *recorded == "" {
		b.Skip("it takes an hour; name a folder: -args -recorded DIR")
	}
	dir, err := filepath.Abs(*recorded)
	if err != nil {
		b.Fatal(err)
	}
	recordAll(b, dir)
}
