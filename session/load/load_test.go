package load_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	vegeta "github.com/tsenart/vegeta/v12/lib"

	"plumbline/session/load"
	"plumbline/targets"
)

// way is how a server is reached.
type way struct {
	network, protocol string
	tls               bool
}

func (w way) String() string {
	if w.tls {
		return w.network + " " + w.protocol + " tls"
	}
	return w.network + " " + w.protocol
}

func (w way) http2() bool { return w.protocol != "h1" }

var ways = []way{
	{"unix", "h1", false}, {"tcp", "h1", false}, {"unix", "h2c", false}, {"tcp", "h2c", false},
	{"unix", "h1", true}, {"unix", "h2", true}, {"tcp", "h2", true},
}

// certificate is the one that net/http/httptest has for its own servers.
var certificate = sync.OnceValue(func() tls.Certificate {
	s := httptest.NewTLSServer(nil)
	defer s.Close()
	return s.TLS.Certificates[0]
})

func onEveryWay(t *testing.T, test func(*testing.T, way)) {
	for _, w := range ways {
		t.Run(w.String(), func(t *testing.T) { test(t, w) })
	}
}

// arm is a server under load.
type arm struct {
	config   load.Config // Dial and Protocol are set, one worker
	http     *http.Server
	accepted atomic.Int64 // connections
	seen     atomic.Int64 // requests
}

func listen(t *testing.T, network string) net.Listener {
	t.Helper()
	address := "127.0.0.1:0"
	if network == "unix" {
		address = filepath.Join(t.TempDir(), "s")
	}
	l, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func dialer(l net.Listener) func(context.Context) (net.Conn, error) {
	return func(ctx context.Context) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, l.Addr().Network(), l.Addr().String())
	}
}

func serve(t *testing.T, w way, handler http.HandlerFunc) *arm {
	t.Helper()
	l := listen(t, w.network)
	a := &arm{config: load.Config{Dial: dialer(l), Protocol: w.protocol, TLS: w.tls, Workers: 1, Targets: gets("/")}}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(w.protocol == "h1")
	protocols.SetHTTP2(w.protocol == "h2")
	protocols.SetUnencryptedHTTP2(w.protocol == "h2c")
	a.http = &http.Server{
		Protocols: protocols,
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{certificate()}},
		ErrorLog:  log.New(io.Discard, "", 0), // of handshakes that are cut
		Handler: http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			a.seen.Add(1)
			handler(rw, r)
		}),
		ConnState: func(_ net.Conn, s http.ConnState) {
			if s == http.StateNew {
				a.accepted.Add(1)
			}
		},
	}
	if w.tls {
		go a.http.ServeTLS(l, "", "")
	} else {
		go a.http.Serve(l)
	}
	t.Cleanup(func() { a.http.Close() })
	return a
}

func (a *arm) client(t *testing.T) *load.Client {
	c := load.New(a.config)
	t.Cleanup(c.Close)
	return c
}

func gets(paths ...string) []targets.Target {
	var ts []targets.Target
	for _, p := range paths {
		ts = append(ts, targets.Target{Method: "GET", URL: "http://router" + p, Header: http.Header{}})
	}
	return ts
}

func nothing(http.ResponseWriter, *http.Request) {}

const short = 20 * time.Millisecond

// stretch collects the results of one stretch, which must end by itself.
func stretch(t *testing.T, c *load.Client, d time.Duration) []*vegeta.Result {
	t.Helper()
	return stretchUntil(t, t.Context(), c, d)
}

// patience is how long a test waits for what should come at once; far less
// than the timeout of a request.
const patience = 20 * time.Second

func stretchUntil(t *testing.T, ctx context.Context, c *load.Client, d time.Duration) []*vegeta.Result {
	t.Helper()
	_, all := offer(t, ctx, c, d)
	return all
}

// offer is a stretch with what it was to be.
func offer(t *testing.T, ctx context.Context, c *load.Client, d time.Duration) (o load.Offered, all []*vegeta.Result) {
	t.Helper()
	return offerWith(t, c, d, func(sink func([]*vegeta.Result) error) (load.Offered, error) { return c.Stretch(ctx, d, sink) })
}

// offerDelayed is offer with a delay after each answer.
func offerDelayed(t *testing.T, c *load.Client, d time.Duration, delay load.Delay) (o load.Offered, all []*vegeta.Result) {
	t.Helper()
	return offerWith(t, c, d, func(sink func([]*vegeta.Result) error) (load.Offered, error) {
		return c.Delayed(t.Context(), d, delay, sink)
	})
}

func offerWith(t *testing.T, c *load.Client, d time.Duration, send func(func([]*vegeta.Result) error) (load.Offered, error)) (o load.Offered, all []*vegeta.Result) {
	t.Helper()
	done := make(chan error, 1)
	go func() {
		before := time.Now()
		var err error
		o, err = send(func(rs []*vegeta.Result) error {
			all = append(all, rs...)
			return nil
		})
		if err == nil && (o.Start.Before(before) || o.End.Before(o.Start) || o.End.After(time.Now())) {
			err = fmt.Errorf("stretch from %v to %v, called at %v", o.Start, o.End, before)
		}
		done <- err
	}()
	select {
	case err := <-done:
		if err != nil {
			t.Fatal(err)
		}
	case <-time.After(d + patience):
		c.Close()
		t.Fatal("the stretch does not end")
	}
	for _, r := range all {
		if r.Body != nil || r.Headers != nil || r.Attack != "" {
			t.Fatalf("result with body, headers or attack: %+v", r)
		}
	}
	return o, all
}

func paths(rs []*vegeta.Result) []string {
	var all []string
	for _, r := range rs {
		all = append(all, strings.TrimPrefix(r.URL, "http://router"))
	}
	return all
}

func TestTheSequenceGoesOnOverStretches(t *testing.T) {
	onEveryWay(t, func(t *testing.T, w way) {
		var mu sync.Mutex
		var seen []string
		a := serve(t, w, func(_ http.ResponseWriter, r *http.Request) {
			mu.Lock()
			defer mu.Unlock()
			if r.URL.Path != "/asked" {
				seen = append(seen, r.URL.Path)
			}
		})
		a.config.Targets = gets("/0", "/1", "/2", "/3", "/4")
		c := a.client(t)
		var sent []string
		for range 4 {
			c.Ask(t.Context(), gets("/asked")[0])
			sent = append(sent, paths(stretch(t, c, short))...)
		}
		want := make([]string, c.Sent())
		for k := range want {
			want[k] = fmt.Sprintf("/%d", k%5)
		}
		if len(want) < 6 {
			t.Fatalf("only %d requests", len(want))
		}
		if diff := cmp.Diff(want, sent); diff != "" {
			t.Errorf("results: %s", diff)
		}
		if diff := cmp.Diff(want, seen); diff != "" {
			t.Errorf("the server: %s", diff)
		}
	})
}

func TestWorkersShareTheSequence(t *testing.T) {
	a := serve(t, ways[0], nothing)
	a.config.Workers, a.config.Targets = 8, gets("/0", "/1", "/2")
	c := a.client(t)
	sent := append(paths(stretch(t, c, short)), paths(stretch(t, c, short))...)
	var want []string
	for k := range c.Sent() {
		want = append(want, fmt.Sprintf("/%d", k%3))
	}
	slices.Sort(sent)
	slices.Sort(want)
	if !slices.Equal(sent, want) {
		t.Errorf("%d requests are not %d turns over the targets", len(sent), len(want))
	}
}

func TestConnectionsLiveOn(t *testing.T) {
	onEveryWay(t, func(t *testing.T, w way) {
		for _, workers := range []int{1, 8} {
			t.Run(fmt.Sprint(workers), func(t *testing.T) {
				var waiting atomic.Int64
				together := make(chan struct{})
				a := serve(t, w, func(_ http.ResponseWriter, r *http.Request) {
					if r.URL.Path != "/" {
						return
					}
					if waiting.Add(1) == int64(workers) {
						close(together)
					}
					select { // all workers have a request under way before one is answered
					case <-together:
					case <-r.Context().Done():
					}
				})
				a.config.Workers = workers
				c := a.client(t)
				c.Ask(t.Context(), gets("/asked")[0])
				for range 4 {
					stretch(t, c, short)
					c.Ask(t.Context(), gets("/asked")[0])
				}
				want := workers
				if w.http2() {
					want = 1
				}
				if got := int(a.accepted.Load()); got != want {
					t.Errorf("%d connections, want %d", got, want)
				}
			})
		}
	})
}

// TestSlowDialsAddNoConnections: a worker that waits for a new connection may
// get one that another has left, and must not go on to open more.
func TestSlowDialsAddNoConnections(t *testing.T) {
	onEveryWay(t, func(t *testing.T, w way) {
		a := serve(t, w, nothing)
		a.config.Workers = 4
		dial := a.config.Dial
		var dials atomic.Int64
		a.config.Dial = func(ctx context.Context) (net.Conn, error) {
			if dials.Add(1) > 1 {
				time.Sleep(short / 2)
			}
			return dial(ctx)
		}
		c := a.client(t)
		stretch(t, c, short)
		stretch(t, c, short)
		if n := dials.Load(); n > 4 {
			t.Errorf("4 workers dialled %d times", n)
		}
	})
}

// TestWhatIsOnTheWire compares whole requests, of the load and of Ask: what the target
// says and nothing else, so no X-Vegeta-Attack, X-Vegeta-Seq, Accept-Encoding or form for a proxy.
// TLS and the scheme of a URL change nothing.
func TestWhatIsOnTheWire(t *testing.T) {
	for _, scheme := range []string{"http", "https"} {
		for _, secure := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s tls=%v", scheme, secure), func(t *testing.T) { onTheWire(t, scheme, secure) })
		}
	}
}

func onTheWire(t *testing.T, scheme string, secure bool) {
	sent := []targets.Target{
		{Method: "GET", URL: "http://somewhere.example:8080/a?b=c|d", Header: http.Header{}},
		{Method: "POST", URL: "http://somewhere.example:8080/", Header: http.Header{"Host": {"wins:1"}, "X-a": {"1", "2"}}, Body: []byte("abc")},
		{Method: "GET", URL: "http://somewhere.example:8080/", Header: http.Header{"Accept-Encoding": {"br"}, "User-Agent": {"me"}}},
	}
	want := []string{
		"GET /a?b=c|d HTTP/1.1\r\nHost: somewhere.example:8080\r\nUser-Agent: Go-http-client/1.1\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: wins:1\r\nUser-Agent: Go-http-client/1.1\r\nContent-Length: 3\r\nX-a: 1\r\nX-a: 2\r\n\r\nabc",
		"GET / HTTP/1.1\r\nHost: somewhere.example:8080\r\nUser-Agent: me\r\nAccept-Encoding: br\r\n\r\n",
	}
	for i, target := range sent {
		sent[i].URL = scheme + strings.TrimPrefix(target.URL, "http")
	}
	l := listen(t, "unix")
	if secure {
		l = tls.NewListener(l, &tls.Config{Certificates: []tls.Certificate{certificate()}})
	}
	defer l.Close()
	got := make(chan string, 100_000)
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go answerRaw(conn, got)
		}
	}()
	c := load.New(load.Config{Dial: dialer(l), Protocol: "h1", TLS: secure, Workers: 1, Targets: sent})
	defer c.Close()
	for i, target := range sent {
		if a := c.Ask(t.Context(), target); a.Status != 204 {
			t.Fatalf("asking: %+v", a)
		}
		if text := <-got; text != want[i] {
			t.Errorf("Ask sent\n%q\nwant\n%q", text, want[i])
		}
	}
	for i, r := range stretch(t, c, short) {
		if text := <-got; text != want[i%len(want)] {
			t.Fatalf("request %d is\n%q\nwant\n%q", i, text, want[i%len(want)])
		}
		if r.URL != sent[i%len(sent)].URL {
			t.Fatalf("request %d is recorded as %s", i, r.URL)
		}
	}
	if c.Sent() < len(sent) {
		t.Errorf("only %d requests", c.Sent())
	}
}

// TestNoProxyIsUsed repeats that in a process of its own: net/http reads the environment once.
func TestNoProxyIsUsed(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, "-test.run=^TestWhatIsOnTheWire$", "-test.v")
	cmd.Env = append(os.Environ(), "HTTP_PROXY=http://127.0.0.1:1", "http_proxy=http://127.0.0.1:1")
	out, err := cmd.CombinedOutput()
	if err != nil || !bytes.Contains(out, []byte("--- PASS: TestWhatIsOnTheWire")) {
		t.Errorf("with HTTP_PROXY: %v\n%s", err, out)
	}
}

// answerRaw tells the exact bytes of each request.
func answerRaw(conn net.Conn, got chan<- string) {
	defer conn.Close()
	var text bytes.Buffer
	in := bufio.NewReader(io.TeeReader(conn, &text))
	for {
		req, err := http.ReadRequest(in)
		if err != nil {
			return
		}
		io.Copy(io.Discard, req.Body)
		got <- text.String()
		text.Reset()
		io.WriteString(conn, "HTTP/1.1 204 No Content\r\n\r\n")
	}
}

func TestHeadersOverHTTP2(t *testing.T) {
	onEveryWay(t, func(t *testing.T, w way) {
		if !w.http2() {
			t.Skip("HTTP/2 only")
		}
		got := make(chan *http.Request, 1)
		a := serve(t, w, func(_ http.ResponseWriter, r *http.Request) {
			select {
			case got <- r:
			default:
			}
		})
		a.config.Targets = []targets.Target{{Method: "GET", URL: "http://somewhere.example/a?b", Header: http.Header{"Host": {"wins:1"}, "X-A": {"1"}}}}
		stretch(t, a.client(t), short)
		r := <-got
		if r.Proto != "HTTP/2.0" || r.Host != "wins:1" || r.RequestURI != "/a?b" || (r.TLS != nil) != w.tls {
			t.Errorf("got %s %s %s", r.Proto, r.Host, r.RequestURI)
		}
		if w.tls && r.TLS.ServerName != "somewhere.example" {
			t.Errorf("asked for %q", r.TLS.ServerName)
		}
		if diff := cmp.Diff(http.Header{"X-A": {"1"}, "User-Agent": {"Go-http-client/2.0"}}, r.Header); diff != "" {
			t.Error(diff)
		}
	})
}

func TestNoRedirectIsFollowed(t *testing.T) {
	a := serve(t, ways[0], func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/" {
			t.Errorf("a request for %s", r.URL.Path)
		}
		w.Header().Set("Location", "/elsewhere")
		w.WriteHeader(302)
		io.WriteString(w, "moved")
	})
	c := a.client(t)
	if got := c.Ask(t.Context(), a.config.Targets[0]); got.Status != 302 || got.BodyBytes != 5 {
		t.Errorf("asked: %+v", got)
	}
	for _, r := range stretch(t, c, short) {
		if r.Code != 302 || r.BytesIn != 5 || r.Error != "" {
			t.Fatalf("got %+v", r)
		}
	}
}

func TestBytesStayWithoutTheBodies(t *testing.T) {
	const large = 300_000
	onEveryWay(t, func(t *testing.T, w way) {
		a := serve(t, w, func(rw http.ResponseWriter, r *http.Request) {
			switch r.URL.Path {
			case "/large": // without a Content-Length
				for range large / 1000 {
					rw.Write(make([]byte, 1000))
					rw.(http.Flusher).Flush()
				}
			case "/small":
				rw.Write(make([]byte, 9))
			case "/empty":
				rw.WriteHeader(204)
			}
		})
		a.config.Targets = gets("/large", "/small", "/empty", "/small")
		a.config.Targets[1].Method, a.config.Targets[1].Body = "POST", make([]byte, 70_000)
		a.config.Targets[3].Method = "HEAD"
		c := a.client(t)
		var rs []*vegeta.Result
		for len(rs) < 4 {
			rs = append(rs, stretch(t, c, short)...)
		}
		for k, r := range rs {
			in := [...]uint64{large, 9, 0, 0}[k%4]
			out := [...]uint64{0, 70_000, 0, 0}[k%4]
			if r.BytesIn != in || r.BytesOut != out || r.Error != "" || r.Method != a.config.Targets[k%4].Method {
				t.Fatalf("request %d: %+v, want %d bytes in and %d out", k, r, in, out)
			}
		}
	})
}

func TestResultsAreComplete(t *testing.T) {
	onEveryWay(t, func(t *testing.T, w way) {
		a := serve(t, w, nothing)
		a.config.Workers = 3
		c := a.client(t)
		n := 0
		for range 4 {
			rs := stretch(t, c, short)
			n += len(rs)
			seen := map[uint64]bool{}
			for _, r := range rs {
				seen[r.Seq] = true
				if r.Code != 200 || r.Error != "" || r.Latency <= 0 || r.Timestamp.IsZero() {
					t.Fatalf("got %+v", r)
				}
			}
			if len(seen) != len(rs) {
				t.Errorf("%d results have %d numbers", len(rs), len(seen))
			}
		}
		if seen := int(a.seen.Load()); n == 0 || n != seen || n != c.Sent() {
			t.Errorf("%d results, %d requests seen, %d sent", n, seen, c.Sent())
		}
	})
}

func TestAsk(t *testing.T) {
	onEveryWay(t, func(t *testing.T, w way) {
		a := serve(t, w, func(rw http.ResponseWriter, r *http.Request) {
			switch r.URL.Path {
			case "/long":
				io.WriteString(rw, strings.Repeat("long ", 20_000))
			case "/missing":
				http.Error(rw, "no such thing", 404)
			}
		})
		c := a.client(t)
		long := c.Ask(t.Context(), gets("/long?x")[0])
		if long.Route != "GET /long?x" || long.Status != 200 || long.BodyBytes != 100_000 || long.Error != "" {
			t.Errorf("got %d %d bytes, %q, of %s", long.Status, long.BodyBytes, long.Error, long.Route)
		}
		if want := strings.Repeat("long ", 410)[:2048]; long.Excerpt != want {
			t.Errorf("excerpt of %d bytes: %q", len(long.Excerpt), long.Excerpt)
		}
		missing := c.Ask(t.Context(), gets("/missing")[0])
		if missing.Status != 404 || missing.Excerpt != "no such thing\n" || missing.BodyBytes != 14 {
			t.Errorf("got %+v", missing)
		}
		if c.Sent() != 0 || a.accepted.Load() != 1 {
			t.Errorf("%d load requests, %d connections; want 0 and 1", c.Sent(), a.accepted.Load())
		}
	})
}
