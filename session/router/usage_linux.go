package router

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Memory is that of the router and all it started, in bytes. Pages that
// several of them map count once (proportional set size). 0: the kernel does
// not tell.
func (p *Process) Memory() (bytes int64) {
	for _, pid := range p.freezer.pids() {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
		if err != nil {
			continue // it has just ended
		}
		for line := range strings.Lines(string(b)) {
			if kib, ok := strings.CutPrefix(line, "Pss:"); ok {
				n, _ := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(kib), "kB")), 10, 64)
				bytes += n << 10
			}
		}
	}
	return bytes
}

// CPU is the time that the router and all it started have run so far.
func (p *Process) CPU() (total time.Duration) {
	if c, ok := p.freezer.(*cgroup); ok {
		b, _ := os.ReadFile(filepath.Join(c.folder.Name(), "cpu.stat"))
		for line := range strings.Lines(string(b)) {
			if us, ok := strings.CutPrefix(line, "usage_usec "); ok {
				n, _ := strconv.ParseInt(strings.TrimSpace(us), 10, 64)
				return time.Duration(n) * time.Microsecond
			}
		}
	}
	const tick = 10 * time.Millisecond // USER_HZ is 100 on every architecture that Go runs on
	for _, pid := range p.freezer.pids() {
		f := statFields(fmt.Sprintf("/proc/%d/stat", pid))
		for i := 11; i < 15 && i < len(f); i++ { // user and system, its own and that of children that ended
			n, _ := strconv.ParseInt(f[i], 10, 64)
			total += time.Duration(n) * tick
		}
	}
	return total
}
