package router

import (
	"fmt"
	"os"
	"strconv"
	"strings"
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
