package router

import (
	"syscall"
	"time"
)

// patience is how long killed processes have to disappear: long on a machine
// that is very busy.
const patience = 10 * time.Second

// freezer stops and continues a process with all its descendants.
type freezer interface {
	name() string
	freeze() error // returns when it is frozen
	thaw() error
	kill() // everything of it that still runs
	close()
	pids() []int // what it knows to be running
}

// signals freezes a process group by SIGSTOP. A descendant that left the
// group is out of its reach, but ends with the others if there is a mark to
// know it by.
type signals struct {
	group int
	mark  string
}

func (s signals) name() string { return "SIGSTOP" }
func (s signals) freeze() error {
	if err := syscall.Kill(-s.group, syscall.SIGSTOP); err != nil {
		return err
	}
	return waitStopped(s.group)
}
func (s signals) thaw() error { return syscall.Kill(-s.group, syscall.SIGCONT) }
func (s signals) close()      {}
func (s signals) pids() []int { return groupMembers(s.group) }
func (s signals) kill() {
	_ = syscall.Kill(-s.group, syscall.SIGKILL) // fails if nothing is left
	if s.mark != "" {
		EndMarked(s.mark, 0)
	}
}

// EndGroup kills a process group and returns when nothing of it runs any more.
// What libfaketime leaves of it goes, too.
func EndGroup(group int) {
	ended := append(groupMembers(group), group)
	defer func() { removeClockFiles(ended) }()
	for begun := time.Now(); time.Since(begun) < patience; time.Sleep(time.Millisecond) {
		// Where nobody waits for the dead they stay in their group.
		if syscall.Kill(-group, syscall.SIGKILL) != nil || len(groupMembers(group)) == 0 {
			return
		}
	}
}
