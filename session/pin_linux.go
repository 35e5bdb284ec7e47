package session

import (
	"fmt"
	"os"
	"runtime"
	"strconv"

	"golang.org/x/sys/unix"
)

// allowedCPUs lists the CPUs this process may use.
func allowedCPUs() []int {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return nil
	}
	var cpus []int
	for c := range len(set) * 64 {
		if set.IsSet(c) {
			cpus = append(cpus, c)
		}
	}
	return cpus
}

// pin binds every thread of this process, the generator, to the CPUs and
// sets GOMAXPROCS to match (a generator on one CPU with two processors of
// Go's scheduler loses a third of its speed). The returned function undoes it.
func pin(cpus []int) (restore func(), err error) {
	if len(cpus) == 0 {
		return func() {}, nil
	}
	before := allowedCPUs()
	if err := pinThreads(cpus); err != nil {
		return nil, fmt.Errorf("pinning the load generator to CPUs %v: %w; this process may use %v (cpus.load in the plan)", cpus, err, before)
	}
	procs := runtime.GOMAXPROCS(len(cpus))
	return func() {
		runtime.GOMAXPROCS(procs)
		_ = pinThreads(before)
	}, nil
}

// pinThreads sets the CPUs of all threads. One that starts meanwhile inherits
// those of its parent, so it looks again until no thread is new.
func pinThreads(cpus []int) error {
	var set unix.CPUSet
	for _, c := range cpus {
		set.Set(c)
	}
	done := map[int]bool{}
	for {
		tasks, err := os.ReadDir("/proc/self/task")
		if err != nil {
			return err
		}
		fresh := false
		for _, t := range tasks {
			tid, err := strconv.Atoi(t.Name())
			if err != nil || done[tid] {
				continue
			}
			if err := unix.SchedSetaffinity(tid, &set); err != nil && err != unix.ESRCH {
				return err
			}
			done[tid], fresh = true, true
		}
		if !fresh {
			return nil
		}
	}
}
