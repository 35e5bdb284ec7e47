//go:build !linux

package load

import (
	"context"
	"time"
)

// alarm wakes a goroutine after a given time, as exactly as Go's timers do.
type alarm struct {
	ctx    context.Context
	cancel context.CancelFunc // ends a sleep under way and every later one
}

func newAlarm() (*alarm, error) {
	a := &alarm{}
	a.ctx, a.cancel = context.WithCancel(context.Background())
	return a, nil
}

// sleep returns after d, or at once with an error when cancel was called.
func (a *alarm) sleep(d time.Duration) error {
	select {
	case <-time.After(d):
		return a.ctx.Err()
	case <-a.ctx.Done():
		return a.ctx.Err()
	}
}

func (a *alarm) close() { a.cancel() }
