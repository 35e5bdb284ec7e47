package load

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	vegeta "github.com/tsenart/vegeta/v12/lib"

	"plumbline/record"
)

// stamps notes when each request is sent.
type stamps struct {
	next http.RoundTripper
	mu   sync.Mutex
	sent []time.Time
}

func (s *stamps) RoundTrip(req *http.Request) (*http.Response, error) {
	s.mu.Lock()
	s.sent = append(s.sent, time.Now())
	s.mu.Unlock()
	return s.next.RoundTrip(req)
}

// lateness empties the notes of a stretch in which request k was due at start + moment(k).
func (s *stamps) lateness(start time.Time, rate float64) []time.Duration {
	var late []time.Duration
	for k, at := range s.sent {
		late = append(late, at.Sub(start.Add(moment(rate, k))))
	}
	s.sent = s.sent[:0]
	return late
}

// sleeper is a pacer that has vegeta sleep.
type sleeper struct{ pacer }

func (s *sleeper) Pace(elapsed time.Duration, hits uint64) (time.Duration, bool) {
	return max(0, moment(s.rate, int(hits))-elapsed), int(hits) >= s.due
}

// BenchmarkRate compares, at a fixed rate, how late requests are sent and how
// long they take from the moment they were due, with our pacer and with one
// that has vegeta sleep: in turns of 200 ms against one server in another
// process. Each iteration is one turn of both.
func BenchmarkRate(b *testing.B) {
	const turn, rate = 200 * time.Millisecond, 1000
	address := startServer(b, "unix", 400, false, 0)
	var notes [2]*stamps
	var clients [2]*Client
	for k := range clients {
		clients[k] = New(Config{
			Protocol: "h1", Workers: 50, Rate: rate, Targets: someTargets("router"),
			Dial: func(ctx context.Context) (net.Conn, error) {
				var d net.Dialer
				return d.DialContext(ctx, "unix", address)
			},
		})
		defer clients[k].Close()
		notes[k] = &stamps{next: clients[k].load.next}
		clients[k].load.next = notes[k]
	}
	w := must(must(record.Create(b.TempDir())).StartRun(record.Run{ID: "001-baseline"}))
	ways := []func(*cost) (start time.Time){
		func(c *cost) time.Time {
			o, err := clients[0].Stretch(context.Background(), turn, func(rs []*vegeta.Result) error {
				for _, r := range rs {
					check(c.add(r))
				}
				return w.Results(1, rs)
			})
			check(err)
			return o.Start
		},
		func(c *cost) time.Time {
			attacker := vegeta.NewAttacker(vegeta.Client(&http.Client{Transport: clients[1].load}), vegeta.Workers(firstWorkers), vegeta.MaxWorkers(50))
			start := time.Now()
			clients[1].load.began = start
			for r := range attacker.Attack(clients[1].target, &sleeper{pacer{rate: rate, due: dueWithin(rate, turn)}}, 0, "") {
				r.Latency += r.Timestamp.Sub(start.Add(moment(rate, int(r.Seq))))
				check(c.add(r))
				check(w.Results(1, []*vegeta.Result{r}))
			}
			return start
		},
	}
	var latency, late [2][]time.Duration
	for i := range b.N + 1 {
		for _, k := range []int{i % 2, 1 - i%2} {
			var start time.Time
			c := measure(b, func(c *cost) error {
				start = ways[k](c)
				return nil
			})
			if l := notes[k].lateness(start, rate); i > 0 { // not the first moments
				latency[k] = append(latency[k], c.latency...)
				late[k] = append(late[k], l...)
			}
		}
	}
	b.ReportMetric(0, "ns/op") // a turn's length is no result
	for k, name := range []string{"pacer", "sleep"} {
		for _, p := range []int{50, 95, 99} {
			b.ReportMetric(us(late[k], p), fmt.Sprintf("%s-late-p%d-µs", name, p))
			b.ReportMetric(us(latency[k], p), fmt.Sprintf("%s-latency-p%d-µs", name, p))
		}
	}
	b.Logf("requests: pacer %d, sleep %d", len(late[0]), len(late[1]))
}

// us is a percentile by nearest rank, in µs.
func us(v []time.Duration, p int) float64 {
	s := slices.Sorted(slices.Values(v))
	return float64(s[(len(s)*p+99)/100-1]) / 1e3
}
