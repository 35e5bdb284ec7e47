package monitor

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// A tree in which processes begin, work, end and are waited for, or not, in any
// order: the tally never goes back, never counts twice, and counts all that did
// not get lost between two looks.
func TestCPUTallyCountsOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type process struct {
			spent
			parent int
		}
		tree := map[int]*process{1: {parent: 0}}
		next, used := 2, time.Duration(0)
		orphans := rapid.Bool().Draw(t, "orphans") // whose time moves to nobody
		var tally cpuTally
		late := 0 // a process that was read before a child of it ended, which was read after
		stale, justRaced := spent{}, false
		look := func() {
			now := map[id]spent{}
			for pid, p := range tree {
				now[id{pid, uint64(pid)}] = p.spent
			}
			raced := late > 0
			if raced {
				now[id{late, uint64(late)}] = spent{tree[late].own, stale.waited}
			}
			late, justRaced = 0, raced
			before := tally.total
			tally.look(now)
			if tally.total < before {
				t.Fatalf("goes back from %s to %s", before, tally.total)
			}
			if tally.total > used {
				t.Fatalf("counts %s of %s", tally.total, used)
			}
			if !orphans && !raced && tally.total != used {
				t.Fatalf("counts %s of %s, though nothing got lost", tally.total, used)
			}
		}
		look()
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			pids := []int{}
			for pid := range next {
				if tree[pid] != nil {
					pids = append(pids, pid)
				}
			}
			pid := rapid.SampledFrom(pids).Draw(t, "pid")
			switch what := rapid.IntRange(0, 4).Draw(t, "what"); what {
			case 0:
				tree[next] = &process{parent: pid}
				next++
			case 1:
				d := time.Duration(rapid.IntRange(1, 1000).Draw(t, "work"))
				tree[pid].own += d
				used += d
			case 2, 4: // 4: while somebody looks; not twice in a row, which is not accounted for
				parent := tree[tree[pid].parent]
				if pid == 1 {
					continue
				}
				if justRaced {
					what = 2
				}
				if what == 4 && parent != nil {
					late, stale = tree[pid].parent, parent.spent
				}
				if parent != nil && !(orphans && rapid.Bool().Draw(t, "ignored")) {
					parent.waited += tree[pid].own + tree[pid].waited
				}
				for _, child := range tree { // their time would go to init
					if child.parent == pid {
						child.parent = 1
					}
				}
				delete(tree, pid)
				if what == 4 {
					look()
				}
			case 3:
				look()
			}
		}
		look()
	})
}

func TestSwitchTallyOutlivesThreads(t *testing.T) {
	var s switchTally
	s.look(map[int][2]uint64{1: {100, 10}})
	s.look(map[int][2]uint64{1: {110, 11}, 2: {5, 0}})
	s.look(map[int][2]uint64{1: {111, 11}})
	if s.total != [2]uint64{16, 1} {
		t.Errorf("%v, want 16 voluntary and 1 involuntary", s.total)
	}
}

func TestCounterTallyOutlivesProcesses(t *testing.T) {
	var c counterTally
	// One that had 130 is gone, and is waited for a look later; then one of 20 goes for good.
	for i, want := range []float64{0, 50, 50, 60, 60, 65} {
		if got := c.look([]float64{100, 150, 20, 160, 140, 165}[i]); got != want {
			t.Errorf("look %d: %v, want %v", i, got, want)
		}
	}
}

func TestNextLeavesOutWhatWasMissed(t *testing.T) {
	const ms, s = time.Millisecond, time.Second
	for _, tt := range []struct{ passed, interval, total, want time.Duration }{
		{0, s, 0, s},
		{3 * ms, s, 0, s},
		{1003 * ms, s, 0, 2 * s},
		{1800 * ms, s, 0, 2 * s},   // late, and yet in time for the next
		{1950 * ms, s, 0, 3 * s},   // not for the next
		{75500 * ms, s, 0, 76 * s}, // asleep
		{9000 * ms, s, 9500 * ms, 9500 * ms},
		{200 * ms, 250 * ms, 0, 250 * ms},
		{240 * ms, 250 * ms, 0, 500 * ms},
	} {
		if got := next(tt.passed, tt.interval, tt.total); got != tt.want {
			t.Errorf("after %s of %s by %s: %s, want %s", tt.passed, tt.total, tt.interval, got, tt.want)
		}
	}
}
