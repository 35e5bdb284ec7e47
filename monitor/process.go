package monitor

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/shirou/gopsutil/v4/process"

	"plumbline/record"
)

var (
	errGone    = errors.New("the process has ended")
	errUnknown = errors.New("this system does not tell")
)

// ErrNoProcess says that there is no process of that number.
var ErrNoProcess = errors.New("there is no such process")

// Process is one that is watched, known by its number and its start.
type Process struct {
	pid   int
	start uint64
	tree  bool

	begun, last time.Duration // the first sample and the one before, by clock
	members     map[int]uint64
	cpu         cpuTally
	switched    switchTally
	io          [2]counterTally
	quota       [3]counterTally
	cgroup      cgroup
	quotaOf     string // the folder that has its figures
	denied      map[record.Quantity]bool

	lookForChildren, readPSS, countFDs, countSwitches budget
}

// throttle is what a CPU quota did.
type throttle struct {
	periods, throttled uint64
	seconds            float64
}

// Open finds a process, with tree also all that it has started. Descendants
// stay in the tree if their parents end first.
func Open(pid int, tree bool) (*Process, error) {
	s, err := readStat(pid)
	if errors.Is(err, errGone) || err == nil && s.ended {
		return nil, fmt.Errorf("process %d: %w", pid, ErrNoProcess)
	}
	if err != nil {
		return nil, fmt.Errorf("process %d: %w", pid, err)
	}
	return &Process{pid: pid, start: s.start, tree: tree, denied: map[record.Quantity]bool{}}, nil
}

// Denied are the quantities that this user may not read of the process, as far
// as it was sampled.
func (p *Process) Denied() (all []record.Quantity) {
	for _, q := range record.Quantities() {
		if p.denied[q] {
			all = append(all, q)
		}
	}
	return all
}

// alive checks that it still is the same process.
func (p *Process) alive() (stat, End) {
	s, err := readStat(p.pid)
	switch {
	case err != nil || s.start == p.start && s.ended:
		return s, Ended
	case s.start != p.start:
		return s, Reused
	}
	return s, ""
}

// sample makes a row; of a process that is not there any more none.
func (p *Process) sample() (record.Usage, End) {
	var u record.Usage
	if _, end := p.alive(); end != "" {
		return u, end
	}
	family := p.family(clock())
	now := clock() // next to the reading of the CPU's time
	spent, ok := spentBy(family)
	p.cpu.look(spent)
	if p.begun == 0 {
		p.begun = now
	} else if ok && now > p.last {
		u.Set(record.CPUPercent, 100*float64(p.cpu.total)/float64(now-p.last))
	}
	p.cpu.total, p.last = 0, now
	u.ElapsedS = (now - p.begun).Seconds()
	p.levels(&u, now, family)
	p.counters(&u, now, family)
	_, end := p.alive() // what was read of a process that ended meanwhile is no sample
	return u, end
}

// spentBy is the CPU time of each process that still can be asked.
func spentBy(family map[int]stat) (all map[id]spent, ok bool) {
	all, ok = map[id]spent{}, true
	for pid, s := range family {
		own, err := cpuTime(pid)
		if err == nil {
			all[id{pid, s.start}] = spent{own, s.waited}
		} else if !errors.Is(err, errGone) {
			ok = false
		}
	}
	return all, ok
}

// family are the processes to be summed, with what stat says of each.
func (p *Process) family(now time.Duration) map[int]stat {
	known := map[int]stat{}
	add := func(pid int) bool {
		if _, ok := known[pid]; ok {
			return false
		}
		s, err := readStat(pid)
		start, seen := p.members[pid]
		if err != nil || seen && start != s.start { // gone, or another one by now
			return false
		}
		known[pid] = s
		return true
	}
	add(p.pid)
	if !p.tree {
		// What its children have used is not its own.
		for pid, s := range known {
			s.waited = 0
			known[pid] = s
		}
		return known
	}
	for pid := range p.members {
		add(pid)
	}
	p.lookForChildren.spend(now, func() {
		queue := slices.Collect(maps.Keys(known))
		for len(queue) > 0 {
			children, _ := childrenOf(queue[0]) // one that has ended has none
			queue = queue[1:]
			for _, pid := range children {
				delete(p.members, pid) // if the number was used before, then by another
				if add(pid) {
					queue = append(queue, pid)
				}
			}
		}
	})
	p.members = map[int]uint64{}
	for pid, s := range known {
		p.members[pid] = s.start
	}
	return known
}

// levels are what is used at this moment. One unreadable part makes a sum unknown.
func (p *Process) levels(u *record.Usage, now time.Duration, family map[int]stat) {
	const mib = 1 << 20
	level := func(q record.Quantity, read func(pid int) (float64, error)) {
		total, known := p.sum(family, func(pid int) ([2]float64, error) {
			x, err := read(pid)
			return [2]float64{x}, err
		}, q)
		if known {
			u.Set(q, total[0])
		}
	}
	level(record.RSSMiB, func(pid int) (float64, error) {
		m, err := of(pid).MemoryInfo()
		if err != nil {
			return 0, err
		}
		if m.RSS == 0 {
			return 0, errUnknown // its memory is gone already, or it is the kernel's
		}
		return float64(m.RSS) / mib, nil
	})
	level(record.Threads, func(pid int) (float64, error) {
		n, err := of(pid).NumThreads()
		return float64(n), err
	})
	p.readPSS.spend(now, func() {
		level(record.PSSMiB, func(pid int) (float64, error) {
			n, err := proportional(pid)
			return float64(n) / mib, err
		})
	})
	p.countFDs.spend(now, func() {
		level(record.FDs, func(pid int) (float64, error) {
			n, err := of(pid).NumFDs()
			return float64(n), err
		})
	})
}

func of(pid int) *process.Process { return &process.Process{Pid: int32(pid)} }

// sum adds up over the family what one reading tells of one or two quantities,
// and says whether it is known.
func (p *Process) sum(family map[int]stat, read func(pid int) ([2]float64, error), quantities ...record.Quantity) (total [2]float64, known bool) {
	for pid, s := range family {
		if s.ended {
			continue // it holds nothing any more
		}
		x, err := read(pid)
		if err != nil && pid != p.pid {
			if _, gone := readStat(pid); gone != nil {
				continue
			}
		}
		if err != nil {
			for _, q := range quantities {
				p.denied[q] = p.denied[q] || errors.Is(err, fs.ErrPermission)
			}
			return total, false
		}
		for i := range total {
			total[i] += x[i]
		}
	}
	return total, true
}

// counters only grow, from 0 in the first row.
func (p *Process) counters(u *record.Usage, now time.Duration, family map[int]stat) {
	p.countSwitches.spend(now, func() { p.contextSwitches(u, family) })
	stored, known := p.sum(family, func(pid int) ([2]float64, error) {
		c, err := of(pid).IOCounters()
		if err != nil {
			return [2]float64{}, err
		}
		return [2]float64{float64(c.DiskReadBytes), float64(c.DiskWriteBytes)}, nil
	}, record.ReadBytes, record.WriteBytes)
	if known {
		u.Set(record.ReadBytes, p.io[0].look(stored[0]))
		u.Set(record.WriteBytes, p.io[1].look(stored[1]))
	}
	t, where, ok := p.cgroup.throttle(p.pid)
	if !ok {
		return
	}
	if where != p.quotaOf { // moved: what the other one had is no part of this
		p.quotaOf = where
		for i := range p.quota {
			p.quota[i].begun = false
		}
	}
	u.Set(record.Periods, p.quota[0].look(float64(t.periods)))
	u.Set(record.ThrottledPeriods, p.quota[1].look(float64(t.throttled)))
	u.Set(record.ThrottledS, math.Round(1e6*p.quota[2].look(t.seconds))/1e6)
}

func (p *Process) contextSwitches(u *record.Usage, family map[int]stat) {
	threads := map[int][2]uint64{}
	for pid, s := range family {
		if err := switches(pid, threads); err != nil && !s.ended && !errors.Is(err, errGone) {
			denied := errors.Is(err, fs.ErrPermission)
			p.denied[record.CtxVoluntary] = p.denied[record.CtxVoluntary] || denied
			p.denied[record.CtxInvoluntary] = p.denied[record.CtxInvoluntary] || denied
			return
		}
	}
	p.switched.look(threads)
	u.Set(record.CtxVoluntary, float64(p.switched.total[0]))
	u.Set(record.CtxInvoluntary, float64(p.switched.total[1]))
}
