package load_test

import (
	"fmt"
	"net/http"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"plumbline/session/load"
)

// A server that takes at least so long tells what must hold of every latency,
// however busy the machine is.
func TestADelayCountsOrIsTakenOff(t *testing.T) {
	const atLeast, share = 2 * time.Millisecond, 1.0
	onEveryWay(t, func(t *testing.T, w way) {
		a := serve(t, w, func(rw http.ResponseWriter, _ *http.Request) {
			time.Sleep(atLeast)
			fmt.Fprint(rw, "hello")
		})
		for _, counts := range []bool{true, false} {
			c := a.client(t)
			_, rs := offerDelayed(t, c, 2*short, load.Delay{Share: share, Counts: counts})
			if len(rs) < 2 {
				t.Fatalf("%d results", len(rs))
			}
			for k, r := range rs {
				if r.Code != 200 || r.BytesIn != 5 || r.Error != "" {
					t.Fatalf("request %d: %+v", k, r)
				}
				if counts && r.Latency < 2*atLeast {
					t.Errorf("request %d took %s, its answer alone takes %s and the delay as long again", k, r.Latency, atLeast)
				}
				if !counts && k > 0 {
					// The one worker spun in between, and its latency does not say so.
					last := rs[k-1]
					if between := r.Timestamp.Sub(last.Timestamp); last.Latency < atLeast || between < last.Latency+atLeast {
						t.Errorf("request %d says %s, but the next one came %s after it", k-1, last.Latency, between)
					}
				}
			}
		}
	})
}

func TestADelayChangesNoRequest(t *testing.T) {
	onEveryWay(t, func(t *testing.T, w way) {
		var headers atomic.Value
		a := serve(t, w, func(_ http.ResponseWriter, r *http.Request) { headers.Store(r.Header.Clone()) })
		a.config.Targets = gets("/0", "/1", "/2")
		a.config.Targets[0].Header.Set("X-Mine", "kept")
		c := a.client(t)
		sent := paths(stretch(t, c, short))
		_, rs := offerDelayed(t, c, short, load.Delay{Share: 0.1})
		sent = append(append(sent, paths(rs)...), paths(stretch(t, c, short))...)
		var want []string
		for k := range c.Sent() {
			want = append(want, fmt.Sprintf("/%d", k%3))
		}
		if !slices.Equal(sent, want) {
			t.Errorf("the sequence does not go on: %v", sent)
		}
		for name := range headers.Load().(http.Header) {
			if name != "User-Agent" && name != "X-Mine" {
				t.Errorf("the server got the header %s", name)
			}
		}
		if got := a.config.Targets[0].Header; len(got) != 1 {
			t.Errorf("the target itself has now %v", got)
		}
	})
}

// Workers that spin on one CPU hold each other up.
func TestADelayHasFewerWorkers(t *testing.T) {
	for _, tc := range []struct {
		share         float64
		workers, want int64
	}{{0.075, 12, 6}, {0.2, 12, 2}, {0.9, 12, 1}, {0.075, 3, 3}} {
		var now, most atomic.Int64
		a := serve(t, ways[0], func(http.ResponseWriter, *http.Request) {
			n := now.Add(1)
			defer now.Add(-1)
			for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
			}
			time.Sleep(time.Millisecond)
		})
		a.config.Workers = int(tc.workers)
		for _, rate := range []float64{0, 50000} {
			most.Store(0)
			a.config.Rate = rate
			c := a.client(t)
			for tries := 0; tries < 50 && (tries < 2 || most.Load() < tc.want); tries++ {
				offerDelayed(t, c, short, load.Delay{Share: tc.share})
			}
			if most.Load() != tc.want {
				t.Errorf("share %g, rate %g: up to %d requests at once, want %d", tc.share, rate, most.Load(), tc.want)
			}
		}
	}
}

// The plan of moments of the stretches without a delay does not know of those with one.
func TestADelayLeavesTheRateAlone(t *testing.T) {
	a := serve(t, ways[0], nothing)
	a.config.Rate = 10
	c := a.client(t)
	var due, delayed []int
	for range 4 {
		o, _ := offer(t, t.Context(), c, 50*time.Millisecond)
		due = append(due, o.Due)
		o, rs := offerDelayed(t, c, 150*time.Millisecond, load.Delay{Share: 0.1, Counts: true})
		delayed = append(delayed, o.Due)
		for _, r := range rs {
			if r.Timestamp.Before(o.Start) || r.Latency <= 0 {
				t.Errorf("a request was due at %s, %s after the start, and took %s", r.Timestamp, r.Timestamp.Sub(o.Start), r.Latency)
			}
		}
	}
	if want := []int{1, 0, 1, 0}; !slices.Equal(due, want) {
		t.Errorf("without delay %v were due, want %v", due, want)
	}
	if want := []int{2, 1, 2, 1}; !slices.Equal(delayed, want) {
		t.Errorf("with delay %v were due, want %v", delayed, want)
	}
}
