package monitor

import (
	"context"
	"runtime"
	"time"

	"plumbline/record"
)

// End says why a watch is over.
type End string

// The ends.
const (
	Ended  End = "the process has ended"
	Reused End = "its number now belongs to another process"
	TimeUp End = "the time is up"
)

// least is how soon after a late sample the next one may come, as a part of the
// interval: a rate over next to no time says nothing.
const least = 10

// Watch calls row with a sample at once and then at each whole multiple of the
// interval after the first, until the process ends, total has passed (0: no
// limit; there is a sample at its end), the context ends (its cause is the
// error) or row fails. A moment that was missed is left out.
func (p *Process) Watch(ctx context.Context, interval, total time.Duration, row func(record.Usage) error) (End, error) {
	runtime.LockOSThread() // so that the budgets can tell what a reading cost
	defer runtime.UnlockOSThread()
	gone, stop := whenGone(p.pid)
	defer stop()
	for {
		u, end := p.sample()
		if end != "" {
			return end, nil
		}
		if err := row(u); err != nil {
			return "", err
		}
		passed := p.last - p.begun
		if total > 0 && passed >= total {
			return TimeUp, nil
		}
		timer := time.NewTimer(p.begun + next(passed, interval, total) - clock())
		select {
		case <-timer.C:
		case <-gone:
			timer.Stop()
			return Ended, nil
		case <-ctx.Done():
			timer.Stop()
			return "", context.Cause(ctx)
		}
	}
}

// next is when the sample after one at passed is due; all since the first.
func next(passed, interval, total time.Duration) time.Duration {
	due := ((passed+interval/least)/interval + 1) * interval
	if total > 0 && due > total {
		due = total
	}
	return due
}
