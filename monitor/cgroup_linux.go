package monitor

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// cgroup is the one that controls a process's CPU.
type cgroup struct {
	own       string // all cgroups of the process, as the kernel lists them
	top, path string // where its hierarchy is mounted, and the way from there
}

// throttle reads the CPU quota's figures; where names the folder that has them.
func (c *cgroup) throttle(pid int) (t throttle, where string, ok bool) {
	own, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
	if err != nil {
		return throttle{}, "", false
	}
	if string(own) != c.own { // the first time, or it was moved; the list of mounts can be long
		mounts, err := os.ReadFile("/proc/self/mountinfo")
		if err != nil {
			return throttle{}, "", false
		}
		c.own = string(own)
		c.top, c.path, _ = cpuCgroup(c.own, string(mounts))
	}
	if c.top == "" {
		return throttle{}, "", false
	}
	return throttleOf(c.top, c.path)
}

// cpuCgroup finds the folder of the cgroup that controls a process's CPU: in
// version 1 where that has the controller, else in version 2. top is where its
// hierarchy is mounted, path the way from there.
func cpuCgroup(own, mounts string) (top, path string, ok bool) {
	var v1, v2 string
	for line := range strings.Lines(own) {
		f := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3)
		switch {
		case len(f) < 3:
		case slices.Contains(strings.Split(f[1], ","), "cpu"):
			v1 = f[2]
		case f[0] == "0" && f[1] == "":
			v2 = f[2]
		}
	}
	for line := range strings.Lines(mounts) {
		head, tail, _ := strings.Cut(line, " - ")
		f, kind := strings.Fields(head), strings.Fields(tail)
		if len(f) < 5 || len(kind) < 3 {
			continue
		}
		of := v2
		if kind[0] == "cgroup" && slices.Contains(strings.Split(kind[2], ","), "cpu") {
			of = v1
		} else if kind[0] != "cgroup2" || v1 != "" {
			continue
		}
		if of == "" || strings.Contains(of, "/..") { // of another namespace
			continue
		}
		// In a container, the mount may show only a part of the hierarchy.
		rest, below := strings.CutPrefix(of, strings.TrimSuffix(f[3], "/"))
		if below && (rest == "" || rest[0] == '/') {
			return f[4], filepath.Clean("/" + rest), true
		}
	}
	return "", "", false
}

// throttleOf reads the cgroup at path below top, or the nearest one above it
// that has a quota: that is the one by which it waits.
func throttleOf(top, path string) (throttle, string, bool) {
	for at := path; ; at = filepath.Dir(at) {
		if dir := filepath.Join(top, at); hasQuota(dir) {
			path = at
			break
		}
		if at == "/" {
			break // no quota: its own figures, which are 0
		}
	}
	dir := filepath.Join(top, path)
	data, err := os.ReadFile(filepath.Join(dir, "cpu.stat"))
	if err != nil {
		return throttle{}, "", false
	}
	var t throttle
	var known [3]bool
	t.periods, known[0] = field(string(data), "nr_periods ")
	t.throttled, known[1] = field(string(data), "nr_throttled ")
	us, ok := field(string(data), "throttled_usec ") // version 2
	ns, ok1 := field(string(data), "throttled_time ")
	t.seconds, known[2] = float64(us)/1e6+float64(ns)/1e9, ok || ok1
	return t, dir, known == [3]bool{true, true, true}
}

func hasQuota(dir string) bool {
	if data, err := os.ReadFile(filepath.Join(dir, "cpu.max")); err == nil { // version 2
		return !strings.HasPrefix(string(data), "max")
	}
	data, err := os.ReadFile(filepath.Join(dir, "cpu.cfs_quota_us"))
	return err == nil && !strings.HasPrefix(string(data), "-")
}
