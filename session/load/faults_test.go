package load_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	vegeta "github.com/tsenart/vegeta/v12/lib"

	"plumbline/session/load"
	"plumbline/targets"
)

// hang answers nothing and tells when the first request is there.
func hang(inside chan<- struct{}) http.HandlerFunc {
	return func(_ http.ResponseWriter, r *http.Request) {
		select {
		case inside <- struct{}{}:
		default:
		}
		<-r.Context().Done()
	}
}

func TestAStretchUnderAHangingServerIsCut(t *testing.T) {
	for name, cut := range map[string]func(cancel func(), c *load.Client){
		"by the context": func(cancel func(), _ *load.Client) { cancel() },
		"by Close":       func(_ func(), c *load.Client) { c.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			onEveryWay(t, func(t *testing.T, w way) {
				inside := make(chan struct{})
				a := serve(t, w, hang(inside))
				a.config.Workers, a.config.Timeout = 3, time.Hour
				c := a.client(t)
				ctx, cancel := context.WithCancel(t.Context())
				go func() {
					<-inside
					cut(cancel, c)
				}()
				rs := stretchUntil(t, ctx, c, time.Hour)
				if len(rs) != c.Sent() || len(rs) == 0 {
					t.Errorf("%d results of %d requests", len(rs), c.Sent())
				}
				for _, r := range rs {
					if r.Code != 0 || r.Error == "" {
						t.Fatalf("got %+v", r)
					}
				}
				if got := c.Ask(t.Context(), a.config.Targets[0]); !strings.Contains(got.Error, "use of closed network connection") {
					t.Errorf("a client that is closed answers %+v", got)
				}
			})
		})
	}
}

func TestAHangingDialIsCut(t *testing.T) {
	inside := make(chan struct{}, 1)
	dial := func(ctx context.Context) (net.Conn, error) {
		select {
		case inside <- struct{}{}:
		default:
		}
		<-ctx.Done()
		return nil, ctx.Err()
	}
	c := load.New(load.Config{Dial: dial, Protocol: "h1", Workers: 2, Targets: gets("/"), Timeout: time.Hour})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-inside
		cancel()
	}()
	if rs := stretchUntil(t, ctx, c, time.Hour); len(rs) == 0 || rs[0].Error == "" {
		t.Errorf("got %v", rs)
	}
}

// TestAnErrorOfTheSinkEndsTheStretch fails its first piece, while the next request hangs.
func TestAnErrorOfTheSinkEndsTheStretch(t *testing.T) {
	const piece = 1 << 14
	var n atomic.Int64
	inside := make(chan struct{})
	wait := hang(inside)
	a := serve(t, ways[0], func(w http.ResponseWriter, r *http.Request) {
		if n.Add(1) > piece {
			wait(w, r)
		}
	})
	a.config.Timeout = time.Hour
	full := errors.New("the disk is full")
	calls := 0
	done := make(chan error, 1)
	c := a.client(t)
	go func() {
		_, err := c.Stretch(t.Context(), time.Hour, func(rs []*vegeta.Result) error {
			calls++
			<-inside
			return full
		})
		done <- err
	}()
	select {
	case err := <-done:
		if err != full || calls != 1 {
			t.Errorf("error %v after %d calls", err, calls)
		}
	case <-time.After(5 * patience): // it takes a while to send the first piece
		t.Fatal("the stretch does not end")
	}
	// Also at the end of a stretch.
	b := serve(t, ways[0], nothing)
	if _, err := b.client(t).Stretch(t.Context(), short, func([]*vegeta.Result) error { return full }); err != full {
		t.Errorf("got %v", err)
	}
}

// TestServersThatMisbehave looks at what becomes of each request; the stretch always ends.
func TestServersThatMisbehave(t *testing.T) {
	raw := func(text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			conn, _, err := w.(http.Hijacker).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			conn.Write([]byte(text))
			conn.Close()
		}
	}
	endless := func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			w.Write(make([]byte, 1<<16))
		}
	}
	tests := []struct {
		name    string
		handler http.HandlerFunc
		timeout time.Duration
		h1      bool // only there
		code    uint16
		err     string
	}{
		{name: "500", handler: func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "broken", 500) }, code: 500, err: "500 Internal Server Error"},
		{name: "404", handler: http.NotFound, code: 404, err: "404 Not Found"},
		{name: "closes without an answer", handler: raw(""), h1: true, err: `Get "http://router/": EOF`},
		{name: "closes after each answer", handler: raw("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nConnection: close\r\n\r\nx"), h1: true, code: 200},
		{name: "closes within the body", handler: raw("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nx"), h1: true, err: "unexpected EOF"},
		{name: "is no HTTP server", handler: raw("220 welcome\r\n"), h1: true, err: "malformed HTTP"},
		{name: "never answers", handler: hang(nil), timeout: short, err: "deadline exceeded"},
		{name: "sends an endless body", handler: endless, timeout: short, err: "deadline exceeded"},
		{name: "is slower than the stretch", handler: func(http.ResponseWriter, *http.Request) { time.Sleep(3 * short) }, code: 200},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			onEveryWay(t, func(t *testing.T, w way) {
				if tt.h1 && w.http2() {
					t.Skip("HTTP/1.1 only")
				}
				a := serve(t, w, tt.handler)
				a.config.Timeout, a.config.Workers = tt.timeout, 2
				// On a busy machine the time may be over while it connects, which is another error.
				dial := a.config.Dial
				a.config.Dial = func(ctx context.Context) (net.Conn, error) { return dial(context.WithoutCancel(ctx)) }
				c := a.client(t)
				rs := append(stretch(t, c, short), stretch(t, c, short)...)
				if len(rs) != c.Sent() || len(rs) < 2 {
					t.Errorf("%d results of %d requests", len(rs), c.Sent())
				}
				for _, r := range rs {
					if r.Code != tt.code || !strings.Contains(r.Error, tt.err) || (r.Error == "") != (tt.err == "") {
						t.Fatalf("code %d, error %q; want %d, %q", r.Code, r.Error, tt.code, tt.err)
					}
				}
				answer := a.client(t).Ask(t.Context(), a.config.Targets[0])
				failed := tt.code == 0 // a 500 is an answer, and not for this package to judge
				if answer.Status != int(tt.code) || failed && !strings.Contains(answer.Error, tt.err) || !failed && answer.Error != "" {
					t.Errorf("asked: %+v", answer)
				}
			})
		})
	}
}

// TestADroppedRequestIsAnError has a server drop every tenth request, on a connection that lives:
// net/http would send it again and nobody would know.
func TestADroppedRequestIsAnError(t *testing.T) {
	var n atomic.Int64
	a := serve(t, ways[0], func(w http.ResponseWriter, _ *http.Request) {
		if n.Add(1)%10 == 0 {
			panic(http.ErrAbortHandler)
		}
	})
	c := a.client(t)
	failed := 0
	rs := stretch(t, c, 2*short)
	for _, r := range rs {
		if r.Error == `Get "http://router/": the server closed the connection without an answer` && r.Code == 0 {
			failed++
		} else if r.Code != 200 || r.Error != "" {
			t.Fatalf("got %+v", r)
		}
	}
	if dropped := int(n.Load()) / 10; failed != dropped || failed == 0 {
		t.Errorf("%d of %d results say so, the server dropped %d of %d", failed, len(rs), dropped, n.Load())
	}
}

// TestAnIdleConnectionMayBeClosed has a server close it just when the second stretch begins.
func TestAnIdleConnectionMayBeClosed(t *testing.T) {
	var drop atomic.Bool
	a := serve(t, ways[0], func(http.ResponseWriter, *http.Request) {
		if drop.Swap(false) {
			panic(http.ErrAbortHandler)
		}
	})
	c := a.client(t)
	first := stretch(t, c, short)
	drop.Store(true)
	for _, r := range append(first, stretch(t, c, short)...) {
		if r.Code != 200 || r.Error != "" {
			t.Fatalf("got %+v", r)
		}
	}
	if drop.Load() || a.accepted.Load() != 2 {
		t.Errorf("%d connections, want 2", a.accepted.Load())
	}
}

func TestAServerThatDies(t *testing.T) {
	onEveryWay(t, func(t *testing.T, w way) {
		var a *arm
		a = serve(t, w, func(http.ResponseWriter, *http.Request) {
			if a.seen.Load() == 50 {
				go a.http.Close()
			}
		})
		c := a.client(t)
		var rs []*vegeta.Result
		for a.seen.Load() < 50 {
			rs = append(rs, stretch(t, c, short)...)
		}
		rs = append(rs, stretch(t, c, short)...)
		first, last := rs[0], rs[len(rs)-1]
		if first.Code != 200 || first.Error != "" {
			t.Errorf("before: %+v", first)
		}
		if last.Code != 0 || !strings.Contains(last.Error, "dial "+w.network) {
			t.Errorf("after: %+v", last)
		}
		if len(rs) != c.Sent() {
			t.Errorf("%d results of %d requests", len(rs), c.Sent())
		}
	})
}

// TestABodyIsNotGathered has a server send as much as both sides may allocate;
// gathered in memory, it would take several times as much.
func TestABodyIsNotGathered(t *testing.T) {
	const sent, bound = 64 << 20, 64 << 20
	onEveryWay(t, func(t *testing.T, w way) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		buf := make([]byte, 1<<16)
		a := serve(t, w, func(rw http.ResponseWriter, r *http.Request) {
			for n := 0; r.Context().Err() == nil; n += len(buf) {
				rw.Write(buf)
				if n == sent {
					cancel()
				}
			}
		})
		a.config.Timeout = time.Hour
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		rs := stretchUntil(t, ctx, a.client(t), time.Hour)
		runtime.ReadMemStats(&after)
		if r := rs[0]; r.Code != 0 || r.Error == "" || r.BytesIn != 0 {
			t.Errorf("got %+v", r)
		}
		if allocated := after.TotalAlloc - before.TotalAlloc; allocated > bound {
			t.Errorf("%d MiB were allocated for a body of %d MiB", allocated>>20, sent>>20)
		}
	})
}

func TestATargetThatCannotBeSent(t *testing.T) {
	a := serve(t, ways[0], nothing)
	bad := targets.Target{Method: "GET", URL: "http://router/%zz"}
	a.config.Targets = []targets.Target{bad}
	c := a.client(t)
	for _, r := range stretch(t, c, time.Microsecond) {
		if r.Code != 0 || !strings.Contains(r.Error, "invalid URL escape") {
			t.Fatalf("got %+v", r)
		}
	}
	if got := c.Ask(t.Context(), bad); got.Status != 0 || !strings.Contains(got.Error, "invalid URL escape") {
		t.Errorf("asked: %+v", got)
	}
}
