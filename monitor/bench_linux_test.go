package monitor

import (
	"os/exec"
	"runtime"
	"testing"
	"time"
)

// What a row costs, also in percent of one CPU at a row a second; with the dear
// readings in each row, which the budgets would spread.
func BenchmarkSample(b *testing.B) {
	for _, tt := range []struct {
		name, script string
		tree         bool
		least        int // processes
	}{
		{"a shell", "echo; exec sleep 1000", false, 1},
		{"ten processes", "for k in 1 2 3 4 5 6 7 8 9; do sleep 1000 & done; echo; wait", true, 10},
		{"forty threads and 400 MiB", "", false, 1},
	} {
		b.Run(tt.name, func(b *testing.B) {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			pid := bigProcess(b, tt.script)
			p, err := Open(pid, tt.tree)
			if err != nil {
				b.Fatal(err)
			}
			before := ownCPU()
			for b.Loop() {
				p.readPSS, p.countFDs, p.countSwitches, p.lookForChildren = budget{}, budget{}, budget{}, budget{}
				if _, end := p.sample(); end != "" {
					b.Fatal(end)
				}
			}
			each := (ownCPU() - before) / time.Duration(b.N)
			b.ReportMetric(float64(each.Microseconds()), "CPU-µs/row")
			b.ReportMetric(100*each.Seconds(), "%CPU-at-1s")
			if len(p.members) < tt.least && tt.tree {
				b.Fatalf("%d processes", len(p.members))
			}
		})
	}
}

// bigProcess is one that runs a script; without one, a Python with threads and memory.
func bigProcess(b *testing.B, script string) int {
	b.Helper()
	args := []string{"sh", "-c", script}
	if script == "" {
		args = []string{"python3", "-c", `
import threading, time
held = bytearray(b"x") * (400 << 20)
for _ in range(39): threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()
print(flush=True)
time.sleep(1000)`}
	}
	c, _ := started(b, exec.Command(args[0], args[1:]...))
	return c.Process.Pid
}
