package session

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// turnsDir is where sessions of all users meet.
const turnsDir = "/tmp"

// takeTurn waits until no other session measures on any of the CPUs: two at
// once would measure each other. waiting is called once if it has to. The
// returned function gives the CPUs back; the kernel does so if we are killed.
//
// Where a lock cannot be had for another reason than another session, nobody
// waits: it protects measurements, it does not guard a resource.
func takeTurn(ctx context.Context, dir string, cpus []int, waiting func(cpu int)) (release func(), err error) {
	cpus = slices.Sorted(slices.Values(cpus))
	told := false
	wait := func(cpu int) error {
		if !told {
			waiting(cpu)
			told = true
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(turnPoll):
			return nil
		}
	}
	// Only one session at a time tries to get the CPUs, or who begins one
	// session after the other would be quicker each time.
	next, err := openLock(filepath.Join(dir, fmt.Sprintf("plumbline-cpu-%d-next.lock", slices.Min(append(cpus, math.MaxInt)))))
	if err == nil {
		defer next.Close()
		for errors.Is(unix.Flock(int(next.Fd()), unix.LOCK_EX|unix.LOCK_NB), unix.EWOULDBLOCK) {
			if err := wait(cpus[0]); err != nil {
				return nil, err
			}
		}
	}
	for {
		var held []*os.File
		release = func() {
			for _, f := range held {
				f.Close()
			}
		}
		busy := -1
		for _, cpu := range cpus {
			f, err := openLock(filepath.Join(dir, fmt.Sprintf("plumbline-cpu-%d.lock", cpu)))
			if err != nil {
				continue
			}
			held = append(held, f)
			if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); errors.Is(err, unix.EWOULDBLOCK) {
				busy = cpu
				break
			}
		}
		if busy < 0 {
			return release, nil
		}
		release()
		if err := wait(busy); err != nil {
			return nil, err
		}
	}
}

const turnPoll = 100 * time.Millisecond

// openLock opens a lock file or makes it. Not in one step: in a folder like
// /tmp the kernel refuses to open another user's file with O_CREATE.
func openLock(path string) (*os.File, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		f, err = os.OpenFile(path, os.O_RDONLY|os.O_CREATE|os.O_EXCL, 0o644)
		if errors.Is(err, fs.ErrExist) { // another session was quicker
			f, err = os.Open(path)
		}
	}
	return f, err
}
