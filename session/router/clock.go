package router

import (
	"fmt"
	"strings"
	"time"
)

// Clock moves a process's own clock by preloading libfaketime; the zero value
// does not.
type Clock struct {
	Start   time.Time // what it shows when the process is started
	Library string    // path of libfaketime.so.1, as CheckClock has found it good
}

// ClockError says that a process that lives and answers does not go by the
// clock that it was given.
type ClockError struct{ Err error }

func (e *ClockError) Error() string { return e.Err.Error() }
func (e *ClockError) Unwrap() error { return e.Err }

// environment adds to env what moves the clock of a process that is started
// now, and says by how much: so many whole seconds that the clock at the start
// lies in [Start, Start + 1 s).
//
// An offset knows no time zone, and all processes of a router share it. A
// moment with "@" is read in the local time zone, and begins anew in every
// process that is exec'd. The offset has no fraction, which some locales would
// have read with a comma.
func (c Clock) environment(env []string, now time.Time) (all []string, offset time.Duration) {
	preload := c.Library
	for _, one := range env {
		switch name, value, _ := strings.Cut(one, "="); {
		case name == "LD_PRELOAD":
			if value != "" {
				preload = c.Library + ":" + value
			}
		case name != "FAKETIME_SHARED": // of a libfaketime that plumbline itself runs under
			all = append(all, one)
		}
	}
	seconds := c.Start.Unix() - now.Unix()
	return append(all,
		"LD_PRELOAD="+preload,
		fmt.Sprintf("FAKETIME=%+d", seconds),
		"FAKETIME_DONT_FAKE_MONOTONIC=1", // timeouts need the real one
		"FAKETIME_DISABLE_SHM=1",         // from 0.9.11; before, its files are removed when the router is stopped
	), time.Duration(seconds) * time.Second
}

// ClockOffset is how far the process's own clock is ahead of the host's, in
// whole seconds; false: it was not moved.
func (p *Process) ClockOffset() (time.Duration, bool) {
	return p.clockOffset, p.cfg.Clock != Clock{}
}
