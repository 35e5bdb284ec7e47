package router

import (
	"errors"
	"syscall"
)

// freezer stops and continues a process with all its descendants.
type freezer interface {
	name() string
	freeze() error
	thaw() error
	kill() // everything of it that still runs
	close()
}

// signals freezes a process group by SIGSTOP. A descendant that left the
// group is out of its reach.
type signals struct{ group int }

func (s signals) name() string  { return "SIGSTOP" }
func (s signals) freeze() error { return syscall.Kill(-s.group, syscall.SIGSTOP) }
func (s signals) thaw() error   { return syscall.Kill(-s.group, syscall.SIGCONT) }
func (s signals) close()        {}
func (s signals) kill() {
	if err := syscall.Kill(-s.group, syscall.SIGKILL); errors.Is(err, syscall.ESRCH) {
		return
	}
}
