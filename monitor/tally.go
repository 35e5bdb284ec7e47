package monitor

import "time"

// id names a process for good: its number is used again, but not with the same start.
type id struct {
	pid   int
	start uint64
}

// spent is the CPU time of one process of a tree.
type spent struct {
	own    time.Duration // by its own threads, also those that ended
	waited time.Duration // by children that ended and that it has waited for
}

// cpuTally adds up the CPU time of a tree, in which processes come and go. It
// never goes back: what one that ended had used stays counted, once.
type cpuTally struct {
	total time.Duration // since the first look
	last  map[id]spent  // nil before the first look
	owed  time.Duration // see grown
}

// look takes the processes that live now.
//
// The time of one that has ended moves to the parent that waits for it, with the
// time of those that nobody saw because they began and ended between two looks.
// What has moved beyond what was already counted is theirs.
func (t *cpuTally) look(now map[id]spent) {
	var own, moved time.Duration
	for who, s := range now {
		before := t.last[who] // of a new one all counts: it began after the last look
		own += max(0, s.own-before.own)
		moved += s.waited - before.waited
	}
	for who, s := range t.last {
		if _, lives := now[who]; !lives {
			moved -= s.own + s.waited
		}
	}
	if t.last != nil {
		t.total += own + grown(moved, &t.owed)
	}
	t.last = now
}

// counterTally does the same for a counter of which the kernel does not say
// what moved to the parent.
type counterTally struct {
	total float64
	last  float64
	owed  float64
	begun bool
}

func (t *counterTally) look(now float64) float64 {
	if t.begun {
		t.total += grown(now-t.last, &t.owed)
	}
	t.last, t.begun = now, true
	return t.total
}

// grown is a change as far as it is growth. What was lost with a process may
// come back with the next look: it ended after its parent had been read. It is
// owed that long, so that it does not count twice; if it does not come, nobody
// has waited for the process.
func grown[T time.Duration | float64](change T, owed *T) T {
	growth := max(0, change+*owed)
	*owed = min(0, change)
	return growth
}

// switchTally adds up the context switches of threads, which come and go; with
// a thread goes what it had.
type switchTally struct {
	total [2]uint64
	last  map[int][2]uint64 // by thread
}

func (t *switchTally) look(now map[int][2]uint64) {
	for tid, n := range now {
		before := t.last[tid]
		for i := range n {
			if t.last != nil && n[i] > before[i] {
				t.total[i] += n[i] - before[i]
			}
		}
	}
	t.last = now
}
