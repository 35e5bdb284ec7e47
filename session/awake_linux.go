package session

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strconv"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"plumbline/session/router"
)

// canKeepAwake tells whether this system has what KeepAwake needs.
const canKeepAwake = true

// KeepAwake occupies a CPU with a thread of the lowest priority (SCHED_IDLE),
// which gives way at once to anything else that wants to run. It writes "awake"
// to stdout when it begins, and returns only with an error.
//
// A closed loop with one request under way lets the generator's CPU and the
// router's CPU sleep in turns. Waking one costs as much as a short request does
// (tens of µs in a virtual machine, where it means a halt and an interrupt from
// the host), and how deep it sleeps depends on how long the requests before
// took: a route that gets slower then makes its neighbours slower as well.
func KeepAwake(cpu int) error {
	runtime.LockOSThread()
	debug.SetGCPercent(-1) // nothing is allocated: no collector wakes up
	if err := pinThreads([]int{cpu}); err != nil {
		return fmt.Errorf("keeping CPU %d awake: %w", cpu, err)
	}
	// Never at a priority that could take time from what is measured.
	if err := unix.SchedSetAttr(0, &unix.SchedAttr{Policy: unix.SCHED_IDLE}, 0); err != nil {
		return fmt.Errorf("keeping CPU %d awake: %w", cpu, err)
	}
	if _, err := fmt.Println("awake"); err != nil {
		return err
	}
	for { // spinning is the purpose
	}
}

// keepAwake starts the program's command "awake" once per CPU and waits until
// all of them spin. The returned function ends them. lost is called if one
// ends before: what is measured from then on would not be comparable.
func keepAwake(program string, cpus []int, lost func(error)) (sleep func(), err error) {
	var started []*exec.Cmd
	var waits sync.WaitGroup
	var asleep atomic.Bool
	sleep = func() {
		asleep.Store(true)
		for _, cmd := range started {
			_ = cmd.Process.Kill()
		}
		waits.Wait()
	}
	for _, cpu := range cpus {
		cmd := exec.Command(program, "awake", strconv.Itoa(cpu))
		cmd.Env = append(os.Environ(), "GOMAXPROCS=1")
		cmd.Stderr = os.Stderr
		out, err := cmd.StdoutPipe()
		if err == nil {
			err = router.Spawn(cmd, []int{cpu})
		}
		if err == nil {
			started = append(started, cmd)
			if line, _ := bufio.NewReader(out).ReadString('\n'); line != "awake\n" {
				err = errors.New("the process that was to do it ended")
			}
			waits.Go(func() {
				err := cmd.Wait()
				if !asleep.Load() {
					lost(fmt.Errorf("the process that kept CPU %d awake has ended (%v): what was measured without it could not be compared", cpu, err))
				}
			})
		}
		if err != nil {
			sleep()
			return nil, fmt.Errorf("keeping CPU %d awake: %w; `cpus: {awake: false}` in the plan goes without", cpu, err)
		}
	}
	return sleep, nil
}
