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

// One worker sends, however many there are and at whatever rate, and the plan
// of moments of the other stretches does not know of it.
func TestADelayHasOneWorker(t *testing.T) {
	var now, most atomic.Int64
	a := serve(t, ways[0], func(http.ResponseWriter, *http.Request) {
		most.Store(max(most.Load(), now.Add(1)))
		time.Sleep(time.Millisecond)
		now.Add(-1)
	})
	a.config.Rate, a.config.Workers = 10, 12
	c := a.client(t)
	var due []int
	for range 4 {
		o, _ := offer(t, t.Context(), c, 50*time.Millisecond)
		due = append(due, o.Due)
		o, rs := offerDelayed(t, c, 2*short, load.Delay{Share: 0.1, Counts: true})
		if o.Due != 0 || len(rs) == 0 {
			t.Errorf("%d requests, %d were due", len(rs), o.Due)
		}
	}
	if want := []int{1, 0, 1, 0}; !slices.Equal(due, want) {
		t.Errorf("without delay %v were due, want %v", due, want)
	}
	if most.Load() != 1 {
		t.Errorf("up to %d requests at once, want 1", most.Load())
	}
}
