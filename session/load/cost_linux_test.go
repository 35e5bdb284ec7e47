package load

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	vegeta "github.com/tsenart/vegeta/v12/lib"
	"golang.org/x/sys/unix"

	"plumbline/record"
	"plumbline/targets"
)

// someTargets are like those of a small API.
func someTargets(address string) []targets.Target {
	var ts []targets.Target
	for i := range 15 {
		ts = append(ts, targets.Target{
			Method: "GET", URL: fmt.Sprintf("http://%s/actors_%d?select=*&order=id", address, i),
			Header: http.Header{"Authorization": {"Bearer abcdefghijklmnopqrstuvwxyz"}},
		})
	}
	return ts
}

// cost is what one piece of load took.
type cost struct {
	cpu     time.Duration // of this process, user and system
	latency []time.Duration
}

func cpuTime() time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// measure starts without garbage of the piece before.
func measure(b *testing.B, piece func(c *cost) error) cost {
	b.Helper()
	c := cost{latency: make([]time.Duration, 0, 1<<16)}
	runtime.GC()
	before := cpuTime()
	err := piece(&c)
	c.cpu = cpuTime() - before
	if err != nil {
		b.Fatal(err)
	}
	if len(c.latency) == 0 {
		b.Fatal("no request was sent")
	}
	return c
}

func (c *cost) add(r *vegeta.Result) error {
	if r.Code != 200 {
		return fmt.Errorf("%d %s", r.Code, r.Error)
	}
	c.latency = append(c.latency, r.Latency)
	return nil
}

func (c cost) perRequest() float64 { return float64(c.cpu) / float64(len(c.latency)) }

// viaVegeta is what vegeta's own command does for `vegeta attack -rate 0
// -max-workers N`, but for the system calls of its output, which is unbuffered.
func viaVegeta(network, address, protocol string, secure bool, workers uint64, d time.Duration) func(*cost) error {
	host, socket, dnsTTL := address, "", time.Duration(0)
	if network == "unix" {
		host, socket, dnsTTL = "router", address, -1
	}
	var ts []vegeta.Target
	for _, t := range someTargets(host) {
		if secure {
			t.URL = "https" + strings.TrimPrefix(t.URL, "http")
		}
		ts = append(ts, vegeta.Target{Method: t.Method, URL: t.URL, Header: t.Header})
	}
	return func(c *cost) error {
		attacker := vegeta.NewAttacker(
			vegeta.Redirects(vegeta.DefaultRedirects),
			vegeta.Timeout(vegeta.DefaultTimeout),
			vegeta.LocalAddr(vegeta.DefaultLocalAddr),
			vegeta.TLSConfig(&tls.Config{InsecureSkipVerify: true}),
			vegeta.Workers(workers),
			vegeta.MaxWorkers(workers),
			vegeta.KeepAlive(true),
			vegeta.Connections(vegeta.DefaultConnections),
			vegeta.MaxConnections(vegeta.DefaultMaxConnections),
			vegeta.HTTP2(protocol != "h1"), // -http2=false, or h1 over TLS would become h2
			vegeta.H2C(protocol == "h2c"),
			vegeta.MaxBody(vegeta.DefaultMaxBody),
			vegeta.UnixSocket(socket),
			vegeta.ChunkedBody(false),
			vegeta.DNSCaching(dnsTTL),
		)
		encoder := vegeta.NewEncoder(io.Discard)
		interrupt := make(chan os.Signal, 1)
		results := attacker.Attack(vegeta.NewStaticTargeter(ts...), vegeta.Rate{Per: time.Second}, d, "")
		for {
			select {
			case <-interrupt:
				attacker.Stop()
			case r, ok := <-results:
				if !ok {
					return nil
				}
				if err := encoder.Encode(r); err != nil {
					return err
				}
				if err := c.add(r); err != nil {
					return err
				}
			}
		}
	}
}

// viaStretch is what a session does for one slice, its record included.
func viaStretch(client *Client, w *record.RunWriter, d time.Duration) func(*cost) error {
	n := 0
	return func(c *cost) error {
		n++
		sl := record.Slice{N: n}
		o, err := client.Stretch(context.Background(), d, func(rs []*vegeta.Result) error {
			for _, r := range rs {
				if err := c.add(r); err != nil {
					return err
				}
			}
			return w.Results(n, rs)
		})
		if err != nil {
			return err
		}
		sl.Start, sl.End = o.Start, o.End
		sl.Counted, sl.Sent = sl.Start.Add(5*time.Millisecond), len(c.latency)
		return w.Slice(sl)
	}
}

// BenchmarkCost compares the generator's own work per request with that of
// vegeta's command, in turns of 200 ms against one server in another process.
// Each iteration is one turn of both.
func BenchmarkCost(b *testing.B) {
	const turn = 200 * time.Millisecond
	for _, bm := range []struct {
		network, protocol string
		tls               bool
		workers, body     int
		work              time.Duration // of the server
	}{
		{"unix", "h1", false, 1, 400, 0},
		{"unix", "h1", false, 1, 400, 500 * time.Microsecond},
		{"unix", "h1", false, 1, 64 << 10, 0},
		{"unix", "h1", false, 8, 400, 0},
		{"tcp", "h1", false, 1, 400, 0},
		{"tcp", "h2c", false, 1, 400, 0}, // vegeta's command cannot send h2c to a unix socket
		{"tcp", "h2c", false, 8, 400, 0},
		{"unix", "h1", true, 1, 400, 0},
		{"unix", "h2", true, 1, 400, 0},
		{"unix", "h2", true, 8, 400, 0},
	} {
		b.Run(fmt.Sprintf("%s/%s/tls=%v/workers=%d/body=%d/work=%s", bm.network, bm.protocol, bm.tls, bm.workers, bm.body, bm.work), func(b *testing.B) {
			address := startServer(b, bm.network, bm.body, bm.tls, bm.work)
			host := address
			if bm.network == "unix" {
				host = "router"
			}
			client := New(Config{
				Protocol: bm.protocol, TLS: bm.tls, Workers: bm.workers, Targets: someTargets(host),
				Dial: func(ctx context.Context) (net.Conn, error) {
					var d net.Dialer
					return d.DialContext(ctx, bm.network, address)
				},
			})
			defer client.Close()
			w := must(must(record.Create(b.TempDir())).StartRun(record.Run{ID: "001-baseline"}))
			ways := []func(*cost) error{
				viaStretch(client, w, turn),
				viaVegeta(bm.network, address, bm.protocol, bm.tls, uint64(bm.workers), turn),
			}
			for _, way := range ways { // the server's and our first moments
				measure(b, way)
			}
			var cpu [2][]float64
			var ratio, ratioP50 []float64
			var latency [2][]time.Duration
			for i := range b.N {
				var p50 [2]float64
				for _, k := range []int{i % 2, 1 - i%2} {
					c := measure(b, ways[k])
					p50[k] = float64(median(c.latency))
					cpu[k] = append(cpu[k], c.perRequest())
					latency[k] = append(latency[k], c.latency...)
				}
				ratio = append(ratio, cpu[0][i]/cpu[1][i])
				ratioP50 = append(ratioP50, p50[0]/p50[1])
			}
			b.ReportMetric(0, "ns/op") // a turn's length is no result
			b.ReportMetric(median(ratio), "cpu-ratio")
			b.ReportMetric(median(ratioP50), "p50-ratio")
			for k, name := range []string{"plumbline", "vegeta"} {
				b.ReportMetric(median(cpu[k]), name+"-cpu-ns/req")
				b.ReportMetric(float64(median(latency[k])), name+"-p50-ns")
			}
			if b.N >= 10 { // with fewer the sign test says nothing
				low, high := interval(ratio)
				low50, high50 := interval(ratioP50)
				b.Logf("cpu ratio %.3f to %.3f, P50 ratio %.3f to %.3f (95 %%, %d turns); requests: plumbline %d, vegeta %d",
					low, high, low50, high50, b.N, len(latency[0]), len(latency[1]))
			}
		})
	}
}

func median[T float64 | time.Duration](v []T) T {
	return slices.Sorted(slices.Values(v))[(len(v)-1)/2]
}

// interval is that of the median, 95 %, by the normal approximation of the
// sign test (Conover 1999, section 3.2). A mean would be at the mercy of the
// few turns in which the host stood still.
func interval(ratios []float64) (low, high float64) {
	s := slices.Sorted(slices.Values(ratios))
	n := float64(len(s))
	half := 1.96 * math.Sqrt(n) / 2
	return s[max(0, int(math.Floor(n/2-half)))], s[min(len(s)-1, int(math.Ceil(n/2+half)))]
}
