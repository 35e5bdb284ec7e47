//go:build !linux

package monitor

import (
	"context"
	"time"

	"github.com/shirou/gopsutil/v4/process"
)

// begun is when the program was started.
var begun = time.Now()

func clock() time.Duration  { return time.Since(begun) }
func ownCPU() time.Duration { return clock() }

type stat struct {
	parent int
	start  uint64
	waited time.Duration
	ended  bool
}

func readStat(pid int) (stat, error) {
	p := &process.Process{Pid: int32(pid)}
	start, err := p.CreateTimeWithContext(context.Background())
	if err != nil {
		return stat{}, errGone
	}
	return stat{start: uint64(start)}, nil
}

func cpuTime(pid int) (time.Duration, error) {
	times, err := (&process.Process{Pid: int32(pid)}).Times()
	if err != nil {
		return 0, err
	}
	return time.Duration((times.User + times.System) * float64(time.Second)), nil
}

func childrenOf(pid int) (all []int, err error) {
	children, err := (&process.Process{Pid: int32(pid)}).Children()
	for _, c := range children {
		all = append(all, int(c.Pid))
	}
	return all, err
}

func proportional(int) (uint64, error)       { return 0, errUnknown }
func switches(int, map[int][2]uint64) error  { return errUnknown }
func whenGone(int) (<-chan struct{}, func()) { return nil, func() {} }

type cgroup struct{}

func (*cgroup) throttle(int) (throttle, string, bool) { return throttle{}, "", false }
