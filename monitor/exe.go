package monitor

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// ExeError says that a process runs another program than it should.
type ExeError struct {
	PID        int
	Runs, Want string
	Child      int // a descendant that runs it; 0: none does
}

func (e *ExeError) Error() string {
	hint := "; none of its children does"
	if e.Child > 0 {
		hint = fmt.Sprintf("; its child %d does", e.Child)
	}
	return fmt.Sprintf("process %d runs %s, not %s%s", e.PID, e.Runs, e.Want, hint)
}

// Check says whether the process runs a program: a path, followed to the file,
// or the name of the file alone. Of a script the program is its interpreter.
func (p *Process) Check(exe string) error {
	is, err := matcher(exe)
	if err != nil {
		return err
	}
	runs, err := of(p.pid).Exe()
	if err != nil {
		return fmt.Errorf("finding out what process %d runs: %w", p.pid, err)
	}
	if is(p.pid, runs) {
		return nil
	}
	e := &ExeError{PID: p.pid, Runs: runs, Want: exe}
	for queue := []int{p.pid}; len(queue) > 0 && e.Child == 0; queue = queue[1:] {
		children, _ := childrenOf(queue[0])
		slices.Sort(children)
		for _, pid := range children {
			if runs, err := of(pid).Exe(); err == nil && is(pid, runs) {
				e.Child = pid
				break
			}
		}
		queue = append(queue, children...)
	}
	return e
}

func matcher(exe string) (func(pid int, runs string) bool, error) {
	if !strings.ContainsRune(exe, '/') {
		return func(_ int, runs string) bool {
			return filepath.Base(strings.TrimSuffix(runs, " (deleted)")) == exe
		}, nil
	}
	want, err := os.Stat(exe)
	if err != nil {
		return nil, err
	}
	return func(pid int, runs string) bool {
		got, err := os.Stat(fmt.Sprintf("/proc/%d/exe", pid)) // also where it is mounted elsewhere
		if err != nil {
			got, err = os.Stat(runs)
		}
		return err == nil && os.SameFile(got, want)
	}, nil
}
