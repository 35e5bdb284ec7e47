package session

import (
	"os"
	"runtime"
	"strings"

	"plumbline/record"
)

// thisHost reads the facts that must be equal in all runs of a session. What
// a system does not tell stays empty.
func thisHost() record.Host {
	h := record.Host{OS: runtime.GOOS, CPUs: runtime.NumCPU(), CPU: runtime.GOARCH}
	h.Hostname, _ = os.Hostname()
	line := func(path string) string {
		b, _ := os.ReadFile(path)
		return strings.TrimSpace(string(b))
	}
	h.Kernel = line("/proc/sys/kernel/osrelease")
	h.BootID = line("/proc/sys/kernel/random/boot_id")
	for l := range strings.Lines(line("/proc/cpuinfo")) {
		if name, value, ok := strings.Cut(l, ":"); ok && strings.TrimSpace(name) == "model name" {
			h.CPU = strings.TrimSpace(value)
			break
		}
	}
	return h
}
