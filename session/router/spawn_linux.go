package router

import (
	"os/exec"
	"runtime"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// processAttributes puts the router into a group of its own (a Ctrl-C at the
// terminal is ours to handle) and has the kernel kill it if we are killed.
func processAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// spawner is one thread that starts every router. A child inherits the CPUs
// of the thread that forks it, and the kernel sends Pdeathsig when that very
// thread ends, so the thread must be ours alone and live as long as we do.
var spawner = sync.OnceValue(func() chan<- func() {
	work := make(chan func())
	go func() {
		runtime.LockOSThread()
		for f := range work {
			f()
		}
	}()
	return work
})

// Spawn starts cmd on the given CPUs (none: those of the whole process when
// the first was spawned), in a process group of its own and to be killed by the
// kernel if we are.
func Spawn(cmd *exec.Cmd, cpus []int) error {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = processAttributes()
	}
	errs := make(chan error)
	spawner() <- func() {
		if len(cpus) > 0 {
			var before, set unix.CPUSet
			if err := unix.SchedGetaffinity(0, &before); err != nil {
				errs <- err
				return
			}
			for _, c := range cpus {
				set.Set(c)
			}
			if err := unix.SchedSetaffinity(0, &set); err != nil {
				errs <- &exec.Error{Name: "cpus", Err: err}
				return
			}
			defer func() { _ = unix.SchedSetaffinity(0, &before) }()
		}
		errs <- cmd.Start()
	}
	return <-errs
}
