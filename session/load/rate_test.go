package load_test

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	vegeta "github.com/tsenart/vegeta/v12/lib"

	"plumbline/session/load"
)

// offerAll repeats a first stretch, each time of a new client, until every
// request was sent: a machine with other work may hold up this process for
// longer than a stretch. What is missing although nothing was late is an error
// at once. requests is how many the clients have sent.
func offerAll(t *testing.T, client func() *load.Client, d time.Duration) (o load.Offered, rs []*vegeta.Result, requests int) {
	t.Helper()
	for range 20 {
		c := client()
		o, rs = offer(t, t.Context(), c, d)
		requests += c.Sent()
		if len(rs) == o.Due {
			return o, rs, requests
		}
		if len(rs) > o.Due || o.End.Sub(o.Start) <= d {
			t.Fatalf("%d requests were sent, %d were due", len(rs), o.Due)
		}
	}
	t.Fatal("in 20 stretches something was due and not sent")
	panic("unreachable")
}

// checkMoments sorts the results and makes sure that each is the next one due.
func checkMoments(t *testing.T, o load.Offered, rate float64, rs []*vegeta.Result) {
	t.Helper()
	slices.SortFunc(rs, func(a, b *vegeta.Result) int { return cmp.Compare(a.Seq, b.Seq) })
	for k, r := range rs {
		due := o.Start.Add(time.Duration(math.Round(float64(k) * 1e9 / rate)))
		if r.Seq != uint64(k) || !r.Timestamp.Equal(due) {
			t.Fatalf("request %d is recorded as %d at %v, due at %v", k, r.Seq, r.Timestamp, due)
		}
		if end := r.Timestamp.Add(r.Latency); r.Latency <= 0 || end.After(o.End) {
			t.Fatalf("request %d, due at %v, ends at %v; the stretch at %v", k, due, end, o.End)
		}
	}
}

func TestAFixedRate(t *testing.T) {
	onEveryWay(t, func(t *testing.T, w way) {
		a := serve(t, w, nothing)
		a.config.Targets = gets("/0", "/1", "/2")
		for _, tt := range []struct {
			rate    float64
			workers int
			due     int
		}{{200, 50, 30}, {333.3, 1, 50}, {0.5, 4, 1}} {
			a.config.Rate, a.config.Workers = tt.rate, tt.workers
			before := a.seen.Load()
			o, rs, requests := offerAll(t, func() *load.Client { return a.client(t) }, 150*time.Millisecond)
			if o.Due != tt.due {
				t.Errorf("%d are due at %g/s, want %d", o.Due, tt.rate, tt.due)
			}
			checkMoments(t, o, tt.rate, rs)
			for _, r := range rs {
				if r.Code != 200 || r.Error != "" {
					t.Fatalf("got %+v", r)
				}
			}
			if n := int(a.seen.Load() - before); n != requests || n < tt.due {
				t.Errorf("%d requests seen, %d sent", n, requests)
			}
		}
	})
}

// TestAStallIsSeenByAllThatWait has the server answer nobody until 100 ms after its first request.
func TestAStallIsSeenByAllThatWait(t *testing.T) {
	const stall, rate = 100 * time.Millisecond, 200
	for _, workers := range []int{1, 8, 100} {
		t.Run(fmt.Sprint(workers), func(t *testing.T) {
			onEveryWay(t, func(t *testing.T, w way) {
				var first sync.Once
				a := serve(t, w, func(http.ResponseWriter, *http.Request) {
					first.Do(func() { time.Sleep(stall) }) // the others wait for it
				})
				a.config.Rate, a.config.Workers = rate, workers
				o, rs := offer(t, t.Context(), a.client(t), 2*stall)
				checkMoments(t, o, rate, rs)
				for k, r := range rs {
					if least := stall - r.Timestamp.Sub(o.Start); r.Latency < least {
						t.Errorf("request %d says %s, it has waited for %s", k, r.Latency, least)
					}
				}
				if seen := int(a.seen.Load()); seen != len(rs) || seen == 0 {
					t.Errorf("%d results of %d requests", len(rs), seen)
				}
			})
		})
	}
}

func TestAServerThatCannotReachTheRate(t *testing.T) {
	const rate, workers, answer, d = 1000, 2, 20 * time.Millisecond, 100 * time.Millisecond
	onEveryWay(t, func(t *testing.T, w way) {
		a := serve(t, w, func(http.ResponseWriter, *http.Request) { time.Sleep(answer) })
		a.config.Rate, a.config.Workers = rate, workers
		c := a.client(t)
		for range 2 {
			before := c.Sent()
			o, rs := offer(t, t.Context(), c, d)
			if sent := c.Sent() - before; o.Due != 100 || len(rs) != sent || sent == 0 || sent > workers*int(d/answer+1)+1 {
				t.Errorf("%d results of %d requests, %d were due", len(rs), sent, o.Due)
			}
			checkMoments(t, o, rate, rs)
			for k, r := range rs {
				// Only two at a time can have been before it.
				done := time.Duration(k/workers+1) * answer
				if r.Latency < done-r.Timestamp.Sub(o.Start) {
					t.Errorf("request %d, due after %s, says %s; that many take %s", k, r.Timestamp.Sub(o.Start), r.Latency, done)
				}
			}
		}
	})
}

func TestAWaitBetweenRequestsIsCut(t *testing.T) {
	for name, cut := range map[string]func(cancel func(), c *load.Client){
		"by the context": func(cancel func(), _ *load.Client) { cancel() },
		"by Close":       func(_ func(), c *load.Client) { c.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			seen := make(chan struct{}, 1)
			a := serve(t, ways[0], func(http.ResponseWriter, *http.Request) { seen <- struct{}{} })
			a.config.Rate, a.config.Workers = 0.001, 20
			c := a.client(t)
			ctx, cancel := context.WithCancel(t.Context())
			go func() {
				<-seen
				cut(cancel, c)
			}()
			if o, rs := offer(t, ctx, c, time.Hour); len(rs) != 1 || o.Due != 4 {
				t.Errorf("%d results, %d were due; want 1 and 4", len(rs), o.Due)
			}
			if o, rs := offer(t, ctx, c, time.Hour); len(rs) > 1 || o.Due != 4 {
				t.Errorf("a closed client gives %d results, %d were due", len(rs), o.Due)
			}
		})
	}
}

// TestNeverMoreUnderWay holds the number of requests at once against the workers.
func TestNeverMoreUnderWay(t *testing.T) {
	for _, rate := range []float64{0, 5000} {
		t.Run(fmt.Sprint(rate), func(t *testing.T) {
			onEveryWay(t, func(t *testing.T, w way) {
				var now, most atomic.Int64
				full := make(chan struct{})
				a := serve(t, w, func(http.ResponseWriter, *http.Request) {
					n := now.Add(1)
					defer now.Add(-1)
					for {
						m := most.Load()
						if n <= m {
							break
						}
						if most.CompareAndSwap(m, n) && n == 12 {
							close(full)
						}
					}
					select { // until so many have come; a machine under load may be late to send them
					case <-full:
					case <-time.After(300 * time.Millisecond):
					}
				})
				a.config.Rate, a.config.Workers = rate, 12
				c := a.client(t)
				for tries := 0; tries < 20 && (tries < 2 || most.Load() < 12); tries++ {
					stretch(t, c, 50*time.Millisecond)
				}
				if most.Load() != 12 {
					t.Errorf("up to %d requests at once, want 12", most.Load())
				}
			})
		})
	}
}
