package load

import (
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// alarm wakes a goroutine after a given time. It is a timer of the kernel that
// Go waits for as for a connection. time.Sleep is not exact enough: Go hands
// its own timers to epoll_wait in whole milliseconds, so on a thread that has
// nothing else to do each sleep may take one more.
type alarm struct {
	fd   int // not taken from file, whose Fd would make it blocking
	file *os.File
}

func newAlarm() (*alarm, error) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("making a timer for the planned moments: %w", err)
	}
	return &alarm{fd: fd, file: os.NewFile(uintptr(fd), "timerfd")}, nil
}

// sleep returns after d, or at once with an error when cancel was called.
func (a *alarm) sleep(d time.Duration) error {
	// An interval of 0 makes it ring once; a value of 0 would switch it off.
	spec := unix.ItimerSpec{Value: unix.NsecToTimespec(int64(max(d, 1)))}
	if err := unix.TimerfdSettime(a.fd, 0, &spec, nil); err != nil {
		return err
	}
	var times [8]byte // how often it has rung
	_, err := a.file.Read(times[:])
	return err
}

// cancel ends a sleep under way and every later one.
func (a *alarm) cancel() { _ = a.file.SetReadDeadline(time.Unix(1, 0)) } // fails if closed: nobody sleeps then

func (a *alarm) close() { _ = a.file.Close() } // nothing was written
