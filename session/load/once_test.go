package load_test

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	vegeta "github.com/tsenart/vegeta/v12/lib"

	"plumbline/session/load"
	"plumbline/targets"
)

// numbered are targets /0 to /n-1.
func numbered(n int) []targets.Target {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf("/%d", i))
	}
	return gets(all...)
}

// counter notes how often each path was asked for.
type counter struct {
	mu   sync.Mutex
	seen map[string]int
}

func (c *counter) handle(_ http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.seen == nil {
		c.seen = map[string]int{}
	}
	c.seen[r.URL.Path]++
}

// untilUsedUp gives the client stretches by send until its targets are used up.
func untilUsedUp(t *testing.T, send func(sink func([]*vegeta.Result) error) (load.Offered, error)) (*load.UsedUpError, []*vegeta.Result) {
	t.Helper()
	var all []*vegeta.Result
	for end := time.Now().Add(patience); time.Now().Before(end); {
		_, err := send(func(rs []*vegeta.Result) error {
			all = append(all, rs...)
			return nil
		})
		var used *load.UsedUpError
		if errors.As(err, &used) {
			return used, all
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	t.Fatal("the targets do not end")
	return nil, nil
}

func TestOnceSendsEachTargetOnce(t *testing.T) {
	const n = 500
	for _, tt := range []struct {
		name    string
		workers int
		rate    float64
		delayed bool
	}{
		{"closed loop", 1, 0, false},
		{"closed loop, 8 workers", 8, 0, false},
		{"fixed rate", 8, 2000, false},
		{"delayed", 1, 0, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var server counter
			a := serve(t, ways[0], server.handle)
			a.config.Workers, a.config.Rate, a.config.Targets, a.config.Once = tt.workers, tt.rate, numbered(n), true
			c := a.client(t)
			send := func(sink func([]*vegeta.Result) error) (load.Offered, error) {
				if tt.delayed {
					return c.Delayed(t.Context(), short, load.Delay{Share: 0.1}, sink)
				}
				return c.Stretch(t.Context(), short, sink)
			}
			used, all := untilUsedUp(t, send)
			if used.Sent != n || used.Skipped != 0 || used.Load <= 0 || c.Sent() != n {
				t.Errorf("%+v, sent %d", used, c.Sent())
			}
			got := paths(all)
			slices.Sort(got)
			want := paths(all)[:0]
			for i := range n {
				want = append(want, fmt.Sprintf("/%d", i))
			}
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Errorf("%d results, not each of %d targets", len(got), n)
			}
			for path, times := range server.seen {
				if times != 1 {
					t.Errorf("%s was sent %d times", path, times)
				}
			}
			if len(server.seen) != n {
				t.Errorf("the server got %d of %d targets", len(server.seen), n)
			}
			if again, none := untilUsedUp(t, send); again.Sent != n || len(none) != 0 {
				t.Errorf("a stretch more: %+v, %d results", again, len(none))
			}
		})
	}
}

// The control pair's sides go on in the same sequence.
func TestOnceSharesItsTargetsWithDelayed(t *testing.T) {
	var server counter
	a := serve(t, ways[0], server.handle)
	a.config.Targets, a.config.Once = numbered(300), true
	c := a.client(t)
	turn, took := 0, time.Duration(0)
	used, all := untilUsedUp(t, func(sink func([]*vegeta.Result) error) (o load.Offered, err error) {
		if turn++; turn%2 == 0 {
			o, err = c.Delayed(t.Context(), short/10, load.Delay{Share: 0.1}, sink)
		} else {
			o, err = c.Stretch(t.Context(), short/10, sink)
		}
		took += o.End.Sub(o.Start)
		return o, err
	})
	if used.Load != took {
		t.Errorf("%s of load, want %s of %d stretches", used.Load, took, turn)
	}
	if len(all) != 300 || len(server.seen) != 300 || turn < 3 {
		t.Errorf("%d results, %d targets at the server, %d turns", len(all), len(server.seen), turn)
	}
}

func TestOnceSkipsWhatIsAboutToExpire(t *testing.T) {
	base := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	var now atomic.Int64 // ns after base
	var server counter
	a := serve(t, ways[0], func(w http.ResponseWriter, r *http.Request) {
		server.handle(w, r)
		if r.URL.Path == "/11" { // as if it had stalled
			now.Store(int64(20 * time.Second))
		}
	})
	a.config.Once = true
	a.config.Clock = func() time.Time { return base.Add(time.Duration(now.Load())) }
	a.config.Targets = numbered(40)
	for i := range a.config.Targets {
		a.config.Targets[i].Until = base.Add(time.Duration(i) * time.Second)
	}
	a.config.Targets[30].Until = time.Time{} // no matter when
	c := a.client(t)
	skipped := 0
	used, all := untilUsedUp(t, func(sink func([]*vegeta.Result) error) (load.Offered, error) {
		o, err := c.Stretch(t.Context(), short, sink)
		skipped += o.Skipped
		return o, err
	})
	if again, err := c.Stretch(t.Context(), short, func([]*vegeta.Result) error { return nil }); again.Skipped != 0 {
		t.Errorf("a stretch more skips %d (%v)", again.Skipped, err)
	}
	var want []string
	for i := range 40 {
		if i >= 3 && i <= 11 || i >= 23 { // later than the clock and 2 s
			want = append(want, fmt.Sprintf("/%d", i))
		}
	}
	if got := paths(all); !slices.Equal(got, want) {
		t.Errorf("sent %v, want %v", got, want)
	}
	if used.Late { // the last of them was sent
		t.Errorf("%+v is late", used)
	}
	if used.Sent != len(want) || used.Skipped != 40-len(want) || c.Sent() != len(want) || skipped != used.Skipped {
		t.Errorf("%+v, want %d sent; the stretches skipped %d", used, len(want), skipped)
	}
}

// Targets of which the last had expired were too old, however many were sent.
func TestOnceIsLate(t *testing.T) {
	a := serve(t, ways[0], nothing)
	a.config.Once, a.config.Targets = true, numbered(3)
	a.config.Targets[2].Until = time.Now().Add(time.Second)
	c := a.client(t)
	used, _ := untilUsedUp(t, func(sink func([]*vegeta.Result) error) (load.Offered, error) {
		return c.Stretch(t.Context(), short, sink)
	})
	if !used.Late || used.Sent != 2 || used.Skipped != 1 {
		t.Errorf("%+v", used)
	}
}

// A sink's error is worth more than that the targets are used up.
func TestOnceKeepsTheSinksError(t *testing.T) {
	a := serve(t, ways[0], nothing)
	a.config.Targets, a.config.Once = numbered(3), true
	full := errors.New("disk full")
	_, err := a.client(t).Stretch(t.Context(), short, func([]*vegeta.Result) error { return full })
	if !errors.Is(err, full) {
		t.Errorf("got %v", err)
	}
}
