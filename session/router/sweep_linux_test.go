package router

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// What runs in a dead session's cgroup ends, frozen or not; a living
// session's does not, nor one's whose process cannot be seen but whose lock can.
func TestSweepEndsWhatTheDeadHaveLeft(t *testing.T) {
	parent, err := ownCgroup()
	if err != nil {
		t.Skip("no cgroup v2: ", err)
	}
	ended := exec.Command("true")
	if err := ended.Run(); err != nil {
		t.Fatal(err)
	}
	dead, living := ended.Process.Pid, os.Getpid()
	for _, tc := range []struct {
		name   string
		owner  int
		frozen bool
		locked bool
		gone   bool
	}{
		{name: "of a dead one", owner: dead, gone: true},
		{name: "of a dead one, frozen", owner: dead, frozen: true, gone: true},
		{name: "of another PID namespace", owner: dead, locked: true},
		{name: "of a living one", owner: living},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := filepath.Join(parent, fmt.Sprintf("%s%d-test", cgroupPrefix, tc.owner))
			if err := os.Mkdir(dir, 0o755); err != nil {
				t.Skip("no cgroup may be made: ", err)
			}
			folder, err := os.Open(dir)
			if err != nil {
				t.Fatal(err)
			}
			c := &cgroup{folder: folder}
			t.Cleanup(func() {
				c.empty()
				c.close()
			})
			if tc.locked {
				if err := unix.Flock(int(folder.Fd()), unix.LOCK_EX); err != nil {
					t.Fatal(err)
				}
			}
			left := exec.Command("sleep", "1000")
			left.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(folder.Fd())}
			if err := left.Start(); err != nil {
				t.Fatal(err)
			}
			gone := make(chan error, 1)
			go func() { gone <- left.Wait() }()
			if tc.frozen {
				if err := c.freeze(); err != nil {
					t.Fatal(err)
				}
			}
			SweepCgroups()
			if _, err := os.Stat(dir); os.IsNotExist(err) != tc.gone {
				t.Errorf("the cgroup: %v", err)
			}
			if tc.gone {
				<-gone // or the test hangs
			} else if !running(left.Process.Pid) {
				t.Error("its process was ended")
			}
		})
	}
}

// A mark finds what has left its group, and no other run's.
func TestMarksTellRunsApart(t *testing.T) {
	start := func(mark string) int {
		cmd := exec.Command("sleep", "1000")
		cmd.Env = []string{"A=b", mark}
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		go cmd.Wait()
		t.Cleanup(func() { _ = cmd.Process.Kill() })
		return cmd.Process.Pid
	}
	session := fmt.Sprintf("TEST_MARK=%d.", os.Getpid())
	one, ten, other := start(session+"1."), start(session+"10."), start("X"+session+"1.")
	EndMarked(session+"1.", 0)
	if running(one) || !running(ten) || !running(other) {
		t.Errorf("of 1, 10 and another's these run: %v %v %v, want only the last two", running(one), running(ten), running(other))
	}
	EndMarked(session, 0)
	if running(ten) || !running(other) {
		t.Errorf("of 10 and another's these run: %v %v, want only the last", running(ten), running(other))
	}
}
