package router

import "syscall"

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
// group is out of its reach.
type signals struct{ group int }

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
}
