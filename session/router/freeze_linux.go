package router

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// newFreezer puts the process into a cgroup (v2) of its own where the user
// may create one, for a cgroup also holds descendants that left the process
// group; else it works by signals. The v1 freezer is not used: a process
// frozen by it cannot even be killed, so a killed plumbline would leave it.
func newFreezer(pid int) freezer {
	if c, err := newCgroup(pid); err == nil {
		return c
	}
	return signals{group: pid}
}

// cgroup is a folder of the unified hierarchy that holds one router.
type cgroup struct {
	signals // the group is killed as well: what was forked before the move is only there
	dir     string
}

const cgroupPrefix = "plumbline-"

func newCgroup(pid int) (*cgroup, error) {
	parent, err := ownCgroup()
	if err != nil {
		return nil, err
	}
	removeStale(parent)
	dir := filepath.Join(parent, fmt.Sprintf("%s%d-%d", cgroupPrefix, os.Getpid(), pid))
	if err := os.Mkdir(dir, 0o755); err != nil {
		return nil, err
	}
	c := &cgroup{signals: signals{group: pid}, dir: dir}
	if _, err = os.Stat(filepath.Join(dir, "cgroup.freeze")); err == nil {
		err = c.adopt()
	}
	if err != nil {
		_ = os.Remove(dir)
		return nil, err
	}
	return c, nil
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

// removeStale takes away the empty cgroups of sessions that were killed.
func removeStale(parent string) {
	old, _ := filepath.Glob(filepath.Join(parent, cgroupPrefix+"*"))
	for _, dir := range old {
		owner, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(dir), cgroupPrefix), "-")
		pid, err := strconv.Atoi(owner)
		if err == nil && errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
			_ = os.Remove(dir) // refused while something is in it
		}
	}
}

// adopt moves every process of the router's group into the cgroup: those
// that were forked before the first move are still outside.
func (c *cgroup) adopt() error {
	pids, err := groupMembers(c.group)
	if err != nil {
		return err
	}
	for _, pid := range pids {
		err := os.WriteFile(filepath.Join(c.dir, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0o644)
		if err != nil && !errors.Is(err, syscall.ESRCH) {
			return err
		}
	}
	return nil
}

func (c *cgroup) name() string { return "cgroup v2" }

func (c *cgroup) freeze() error { return c.set("1") }
func (c *cgroup) thaw() error   { return c.set("0") }

// set writes the wanted state and waits until the kernel says it is reached.
func (c *cgroup) set(state string) error {
	if err := os.WriteFile(filepath.Join(c.dir, "cgroup.freeze"), []byte(state), 0o644); err != nil {
		return err
	}
	for deadline := time.Now().Add(2 * time.Second); ; time.Sleep(50 * time.Microsecond) {
		events, err := os.ReadFile(filepath.Join(c.dir, "cgroup.events"))
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
	b, _ := os.ReadFile(filepath.Join(c.dir, "cgroup.procs"))
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
	// A process may fork while it is being killed, so look again until none is left.
	for deadline := time.Now().Add(2 * time.Second); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		pids := c.pids()
		if len(pids) == 0 {
			return
		}
		for _, pid := range pids {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

// close removes the cgroup; the kernel refuses for a moment after its last process has ended.
func (c *cgroup) close() {
	for range 100 {
		if err := os.Remove(c.dir); err == nil || errors.Is(err, os.ErrNotExist) {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// groupMembers lists the live processes of a process group.
func groupMembers(group int) ([]int, error) {
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return nil, err
	}
	var pids []int
	for _, path := range stats {
		b, err := os.ReadFile(path)
		if err != nil {
			continue // it ended meanwhile
		}
		// The name in brackets may hold anything, so fields count from the last bracket.
		_, rest, ok := strings.Cut(string(b[max(0, strings.LastIndexByte(string(b), ')')):]), ") ")
		f := strings.Fields(rest)
		if !ok || len(f) < 3 || f[0] == "Z" {
			continue
		}
		if g, _ := strconv.Atoi(f[2]); g == group {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
			pids = append(pids, pid)
		}
	}
	return pids, nil
}
