package router

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// startFrozen starts cmd so that it can be frozen: in a cgroup (v2) of its own
// where the user may create one, for that also holds descendants that left the
// process group; else by signals. The v1 freezer is not used: what it has
// frozen cannot even be killed, so a killed plumbline would leave it behind.
//
// The process is born in its cgroup: moved later, it could have forked before.
func startFrozen(newCmd func() *exec.Cmd, cpus []int, mark string) (*exec.Cmd, freezer, error) {
	if c, err := newCgroup(); err == nil {
		cmd := newCmd()
		cmd.SysProcAttr.UseCgroupFD, cmd.SysProcAttr.CgroupFD = true, int(c.folder.Fd())
		err := Spawn(cmd, cpus)
		if err == nil {
			c.group = cmd.Process.Pid
			return cmd, c, nil
		}
		c.close()
	}
	cmd := newCmd()
	if err := Spawn(cmd, cpus); err != nil {
		return nil, nil, err
	}
	return cmd, signals{group: cmd.Process.Pid, mark: mark}, nil
}

// cgroup is a folder of the unified hierarchy that holds one router.
type cgroup struct {
	signals
	folder *os.File
}

const cgroupPrefix = "plumbline-"

// cgroups numbers those of this process.
var cgroups atomic.Int64

func newCgroup() (c *cgroup, err error) {
	parent, err := ownCgroup()
	if err != nil {
		return nil, err
	}
	sweepCgroups(parent)
	// Another session that sweeps in the very moment before the lock is taken
	// removes the folder; it does not do so twice.
	for range 2 {
		dir := filepath.Join(parent, fmt.Sprintf("%s%d-%d", cgroupPrefix, os.Getpid(), cgroups.Add(1)))
		if c, err = makeCgroup(dir); err == nil {
			break
		}
	}
	return c, err
}

// makeCgroup makes the folder and locks it, so that nobody takes it for a dead session's.
func makeCgroup(dir string) (*cgroup, error) {
	if err := os.Mkdir(dir, 0o755); err != nil {
		return nil, err
	}
	folder, err := os.Open(dir)
	if err == nil {
		if err = unix.Flock(int(folder.Fd()), unix.LOCK_EX); err == nil {
			if _, err = os.Stat(filepath.Join(dir, "cgroup.freeze")); err == nil {
				return &cgroup{folder: folder}, nil
			}
		}
		folder.Close()
	}
	_ = os.Remove(dir)
	return nil, err
}

// ownCgroup is the folder of the cgroup (v2) that this process is in.
func ownCgroup() (string, error) {
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return "", err
	}
	own, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(mounts)) {
		f := strings.Fields(line)
		if len(f) < 3 || f[2] != "cgroup2" {
			continue
		}
		for line := range strings.Lines(string(own)) {
			if path, ok := strings.CutPrefix(strings.TrimSpace(line), "0::"); ok {
				return filepath.Join(f[1], path), nil
			}
		}
	}
	return "", errors.New("no cgroup v2")
}

// SweepCgroups ends what sessions that were killed have left running in their
// cgroups, frozen or not, and removes these. What it may not do is somebody else's.
func SweepCgroups() {
	if parent, err := ownCgroup(); err == nil {
		sweepCgroups(parent)
	}
}

func sweepCgroups(parent string) {
	all, _ := filepath.Glob(filepath.Join(parent, cgroupPrefix+"*"))
	for _, dir := range all {
		folder, err := os.Open(dir)
		if err != nil {
			continue
		}
		if orphaned(folder) {
			c := &cgroup{folder: folder}
			c.empty()
			c.close()
		}
		folder.Close()
	}
}

// orphaned tells whether the plumbline that made a cgroup is dead, and its
// cgroup ours to sweep. Both must hold: no process has the number in its name,
// and nobody has the lock, which a session in another PID namespace has.
func orphaned(folder *os.File) bool {
	owner, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(folder.Name()), cgroupPrefix), "-")
	pid, err := strconv.Atoi(owner)
	if err != nil || unix.Access(folder.Name(), unix.W_OK) != nil {
		return false
	}
	state, _ := readStat(fmt.Sprintf("/proc/%d/stat", pid))
	return (state == "" || state == "Z") && unix.Flock(int(folder.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil
}

func (c *cgroup) name() string { return "cgroup v2" }

func (c *cgroup) freeze() error { return c.set("1") }
func (c *cgroup) thaw() error   { return c.set("0") }

// set writes the wanted state and waits until the kernel says it is reached.
func (c *cgroup) set(state string) error {
	if err := os.WriteFile(filepath.Join(c.folder.Name(), "cgroup.freeze"), []byte(state), 0o644); err != nil {
		return err
	}
	for deadline := time.Now().Add(2 * time.Second); ; time.Sleep(50 * time.Microsecond) {
		events, err := os.ReadFile(filepath.Join(c.folder.Name(), "cgroup.events"))
		if err != nil {
			return err
		}
		if strings.Contains(string(events), "frozen "+state) {
			return nil
		}
		if time.Now().After(deadline) {
			return errors.New("the cgroup did not reach the state within 2 s")
		}
	}
}

func (c *cgroup) pids() []int {
	b, _ := os.ReadFile(filepath.Join(c.folder.Name(), "cgroup.procs"))
	var pids []int
	for _, f := range strings.Fields(string(b)) {
		if pid, err := strconv.Atoi(f); err == nil && pid > 0 {
			pids = append(pids, pid)
		}
	}
	return pids
}

func (c *cgroup) kill() {
	c.signals.kill()
	c.empty()
}

// empty kills all that is in the cgroup. What libfaketime leaves of it goes, too.
func (c *cgroup) empty() {
	ended := c.pids()
	defer func() { removeClockFiles(ended) }()
	_ = os.WriteFile(filepath.Join(c.folder.Name(), "cgroup.kill"), []byte("1"), 0) // from Linux 5.14
	// A process may fork while it is being killed, so look again until none is left.
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		pids := c.pids()
		if len(pids) == 0 {
			return
		}
		ended = append(ended, pids...)
		for _, pid := range pids {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

// close removes the cgroup; the kernel refuses for a moment after its last process has ended.
func (c *cgroup) close() {
	c.folder.Close()
	for range 100 {
		if err := os.Remove(c.folder.Name()); err == nil || errors.Is(err, os.ErrNotExist) {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// groupMembers lists the live processes of a process group.
func groupMembers(group int) []int {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	var pids []int
	for _, path := range stats {
		state, g := readStat(path)
		if g == group && state != "Z" {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
			pids = append(pids, pid)
		}
	}
	return pids
}

// readStat returns the state and the process group in a stat file of /proc.
// Empty: the process has ended.
func readStat(path string) (state string, group int) {
	f := statFields(path)
	if len(f) < 3 {
		return "", 0
	}
	group, _ = strconv.Atoi(f[2])
	return f[0], group
}

// statFields are those of a stat file of /proc from the state on; none: the
// process has ended. The name in brackets before them may hold anything, so
// fields count from the last bracket.
func statFields(path string) []string {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	return strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
}

// waitStopped waits until every thread of a process has taken its SIGSTOP:
// sending it returns while they may still run.
func waitStopped(pid int) error {
	for deadline := time.Now().Add(2 * time.Second); ; time.Sleep(50 * time.Microsecond) {
		threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
		stopped := true
		for _, path := range threads {
			if state, _ := readStat(path); state != "T" && state != "Z" && state != "" {
				stopped = false
				break
			}
		}
		if stopped {
			return nil
		}
		if time.Now().After(deadline) {
			return errors.New("it did not stop within 2 s of SIGSTOP")
		}
	}
}
