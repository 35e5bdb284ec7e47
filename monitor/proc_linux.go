package monitor

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// clock is the time since boot; unlike Go's own it goes on while the machine sleeps.
func clock() time.Duration { return readClock(unix.CLOCK_BOOTTIME) }

// ownCPU is the CPU time of the calling thread.
func ownCPU() time.Duration { return readClock(unix.CLOCK_THREAD_CPUTIME_ID) }

func readClock(id int32) time.Duration {
	var ts unix.Timespec
	if unix.ClockGettime(id, &ts) != nil {
		return 0
	}
	return time.Duration(ts.Nano())
}

// stat is what /proc/PID/stat says.
type stat struct {
	parent int
	start  uint64 // in ticks since boot: with the PID, it names a process for good
	waited time.Duration
	ended  bool // nobody has waited for it yet
}

// tick is that of /proc: USER_HZ is 100 on every architecture that Go runs on.
const tick = 10 * time.Millisecond

func readStat(pid int) (stat, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return stat{}, gone(err)
	}
	// The name is in parentheses, and may hold some itself.
	_, rest, _ := strings.Cut(string(data[strings.LastIndexByte(string(data), ')')+1:]), " ")
	f := strings.Fields(rest)
	const state, parent, waitedUser, waitedSystem, threads, start = 0, 1, 13, 14, 17, 19 // from field 3 of proc(5) on
	if len(f) <= start {
		return stat{}, fmt.Errorf("/proc/%d/stat has %d fields", pid, len(f))
	}
	s := stat{parent: int(whole(f[parent])), start: whole(f[start]), waited: time.Duration(whole(f[waitedUser])+whole(f[waitedSystem])) * tick}
	// Other threads can outlive the first one.
	s.ended = (f[state] == "Z" || f[state] == "X") && whole(f[threads]) <= 1
	return s, nil
}

func whole(s string) uint64 {
	n, _ := strconv.ParseUint(s, 10, 64)
	return n
}

// gone makes errGone of what the kernel says of a process that has ended.
func gone(err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH) {
		return errGone
	}
	return err
}

// cpuTime is what a process has used, to the nanosecond: stat counts in ticks.
func cpuTime(pid int) (time.Duration, error) {
	const ofProcess = 2 // CPUCLOCK_SCHED of the whole process; clock_getcpuclockid(3) makes the same number
	var ts unix.Timespec
	if err := unix.ClockGettime(int32(^pid<<3|ofProcess), &ts); err != nil {
		if errors.Is(err, unix.EINVAL) {
			return 0, errGone
		}
		return 0, err
	}
	return time.Duration(ts.Nano()), nil
}

// proportional is the memory of a process in which shared pages count in parts, in bytes.
func proportional(pid int) (uint64, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		return 0, gone(err)
	}
	n, ok := field(string(data), "Pss:")
	if !ok {
		return 0, errUnknown
	}
	return n << 10, nil
}

// field finds the number after a name at the start of a line.
func field(text, name string) (uint64, bool) {
	for line := range strings.Lines(text) {
		if rest, ok := strings.CutPrefix(line, name); ok {
			n, err := strconv.ParseUint(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			return n, err == nil
		}
	}
	return 0, false
}

// switches are the context switches of a process's threads, voluntary and not:
// /proc/PID/status has those of the first thread alone.
func switches(pid int, into map[int][2]uint64) error {
	dir := fmt.Sprintf("/proc/%d/task", pid)
	tasks, err := names(dir)
	if err != nil {
		return gone(err)
	}
	for _, tid := range tasks {
		data, err := os.ReadFile(dir + "/" + tid + "/status")
		if err != nil {
			continue // it has just ended
		}
		voluntary, ok := field(string(data), "voluntary_ctxt_switches:")
		involuntary, ok2 := field(string(data), "nonvoluntary_ctxt_switches:")
		if !ok || !ok2 {
			return errUnknown
		}
		into[int(whole(tid))] = [2]uint64{voluntary, involuntary}
	}
	return nil
}

func names(dir string) ([]string, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return f.Readdirnames(-1)
}

// childrenOf are those of a process. The list of a thread is in its task folder,
// if the kernel was built so.
func childrenOf(pid int) ([]int, error) {
	dir := fmt.Sprintf("/proc/%d/task", pid)
	tasks, err := names(dir)
	if err != nil {
		return nil, gone(err)
	}
	var all []int
	for _, tid := range tasks {
		data, err := os.ReadFile(dir + "/" + tid + "/children")
		if errors.Is(err, fs.ErrNotExist) && tid == strconv.Itoa(pid) {
			return childrenByParent(pid)
		}
		for _, child := range strings.Fields(string(data)) {
			all = append(all, int(whole(child)))
		}
	}
	return all, nil
}

// childrenByParent looks at every process.
func childrenByParent(pid int) (all []int, err error) {
	pids, err := names("/proc")
	if err != nil {
		return nil, err
	}
	for _, name := range pids {
		child, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		if s, err := readStat(child); err == nil && s.parent == pid {
			all = append(all, child)
		}
	}
	return all, nil
}

// whenGone closes the channel when a process has ended; it never is where the
// kernel cannot tell, and the next look does. stop ends the watch.
func whenGone(pid int) (ended <-chan struct{}, stop func()) {
	fd, err := unix.PidfdOpen(pid, unix.PIDFD_NONBLOCK)
	if err != nil {
		return nil, func() {}
	}
	file := os.NewFile(uintptr(fd), "pidfd")
	conn, err := file.SyscallConn()
	if err != nil {
		file.Close()
		return nil, func() {}
	}
	told := make(chan struct{})
	go func() {
		err := conn.Read(func(fd uintptr) bool {
			n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
			return err == nil && n > 0
		})
		if err == nil {
			close(told)
		}
	}()
	return told, func() { file.Close() }
}
