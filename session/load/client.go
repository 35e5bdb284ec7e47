package load

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	vegeta "github.com/tsenart/vegeta/v12/lib"
	"golang.org/x/net/http2"

	"plumbline/record"
	"plumbline/targets"
)

// Config says how one arm is asked.
type Config struct {
	Dial func(context.Context) (net.Conn, error)
	// Protocol is h1, h2c (HTTP/2 in plain text, known beforehand) or h2
	// (HTTP/2 over TLS, by ALPN).
	Protocol string
	// TLS makes h1 go over TLS; h2 always does. It decides alone: like the
	// host, the scheme of a target's URL is a name in the record.
	TLS bool
	// Rate is how many requests are due per second, finite and not negative;
	// 0 is a closed loop, in which each worker sends its next request when the
	// last one has been answered.
	Rate    float64
	Workers int              // requests under way at once, at a fixed rate at most; as many connections, with HTTP/2 one
	Targets []targets.Target // request k of the client is Targets[k % len]
	Timeout time.Duration    // of one request, body included; 0: 30 s

	// Once sends no target twice. One whose Until is not later than Clock and a
	// margin is not sent at all, and when none is left the stretches end.
	Once  bool
	Clock func() time.Time // the server's; nil: this machine's
}

// Client asks one arm. Its methods are not to be called at the same time,
// except Close.
type Client struct {
	cfg    Config
	tls    *tls.Config  // nil: plain text
	asking *http.Client // one request at a time, whose body is wanted
	load   *transport   // many, of whose bodies only the size is wanted

	plan progress // at a fixed rate, over all stretches so far

	open context.Context // until Close
	shut context.CancelFunc

	mu      sync.Mutex
	next    int  // number of the next request, over all stretches; with Once of the next target
	skipped int  // targets, with Once
	late    bool // the target before next was skipped
	noted   int  // of them, in the stretches that are over
	empty   bool
	loaded  time.Duration // length of all stretches so far, with Once
	conns   map[net.Conn]struct{}
}

// New makes a client; Close ends its connections.
func New(cfg Config) *Client {
	c := newClient(cfg)
	if cfg.Protocol == "h2c" || cfg.Protocol == "h2" {
		// http.Transport speaks HTTP/2 too, but its own pool of connections on
		// top costs a request some 7 % more.
		c.use(&http2.Transport{
			AllowHTTP: true,
			DialTLSContext: func(ctx context.Context, network, address string, _ *tls.Config) (net.Conn, error) {
				return c.dial(ctx, network, address)
			},
			DisableCompression: true,
		})
		return c
	}
	c.use(&http.Transport{
		DialContext:         c.dial,
		DialTLSContext:      c.dial,
		MaxIdleConnsPerHost: cfg.Workers,
		MaxConnsPerHost:     cfg.Workers, // or workers that start together dial more than they need
		DisableCompression:  true,
		IdleConnTimeout:     IdleFor,
	})
	return c
}

// IdleFor is how long a connection may have been idle and is used again, while
// another arm warms up or has its slices. Servers close idle ones after a while
// (Node after 5 s), a frozen one just as it is thawed: under our request.
const IdleFor = 2 * time.Second

// newClient makes a client without a way to the arm, which use gives it.
func newClient(cfg Config) *Client {
	if cfg.Timeout == 0 {
		cfg.Timeout = 30 * time.Second
	}
	if cfg.Clock == nil {
		cfg.Clock = time.Now
	}
	c := &Client{cfg: cfg, conns: map[net.Conn]struct{}{}}
	if cfg.TLS || cfg.Protocol == "h2" {
		c.tls = tlsConfig(cfg.Protocol, cfg.Targets)
	}
	c.open, c.shut = context.WithCancel(context.Background())
	return c
}

func (c *Client) use(t http.RoundTripper) {
	_, retries := t.(*http.Transport)
	scheme := "http"
	if c.tls != nil {
		scheme = "https"
	}
	t = schemed{t, scheme}
	c.load = &transport{next: t, timeout: c.cfg.Timeout, retries: retries}
	c.asking = &http.Client{Transport: t, CheckRedirect: stay}
}

// stay keeps a client from following a redirect.
func stay(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// dial opens a connection to the arm, whatever address is asked for. It has
// a limit, because http.Transport goes on dialling when the request that
// needed the connection has given up.
func (c *Client) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, c.cfg.Timeout)
	defer cancel()
	defer context.AfterFunc(c.open, cancel)()
	conn, err := c.connect(ctx)
	if err != nil || c.tls == nil {
		return conn, err
	}
	return secure(ctx, conn, c.tls)
}

func (c *Client) connect(ctx context.Context) (net.Conn, error) {
	if c.open.Err() != nil {
		return nil, net.ErrClosed
	}
	conn, err := c.cfg.Dial(ctx)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open.Err() != nil {
		conn.Close()
		return nil, net.ErrClosed
	}
	t := &tracked{Conn: conn, client: c}
	c.conns[t] = struct{}{}
	return t, nil
}

// tracked is a connection that its client can cut.
type tracked struct {
	net.Conn
	client *Client
}

func (t *tracked) Close() error {
	t.client.mu.Lock()
	delete(t.client.conns, t)
	t.client.mu.Unlock()
	return t.Conn.Close()
}

// Close ends a stretch and cuts every connection, also under a request, which
// then fails. It may be called at any time; afterwards no request succeeds.
func (c *Client) Close() {
	c.shut()
	c.mu.Lock()
	conns := make([]net.Conn, 0, len(c.conns))
	for conn := range c.conns {
		conns = append(conns, conn)
	}
	c.mu.Unlock()
	for _, conn := range conns {
		conn.Close()
	}
}

// excerpt is how much of an answer is kept to be shown, in bytes.
const excerpt = 2048

// Ask sends one request, outside any stretch and without advancing the
// sequence of the load, and reads the whole answer.
func (c *Client) Ask(ctx context.Context, t targets.Target) record.Answer {
	a := record.Answer{Route: record.RouteName(t.Method, t.URL)}
	vt := vegeta.Target{Method: t.Method, URL: t.URL, Body: t.Body, Header: t.Header}
	req, err := vt.Request()
	if err != nil {
		a.Error = err.Error()
		return a
	}
	ctx, cancel := context.WithTimeout(ctx, c.cfg.Timeout)
	defer cancel()
	res, err := c.asking.Do(req.WithContext(ctx))
	if err != nil {
		a.Error = err.Error()
		return a
	}
	defer res.Body.Close()
	var head strings.Builder
	n, err := io.Copy(&head, io.LimitReader(res.Body, excerpt))
	if err == nil {
		var rest int64
		rest, err = io.Copy(io.Discard, res.Body)
		n += rest
	}
	if err := unended(ctx, n, err); err != nil {
		a.Error = fmt.Sprintf("reading the body: %v", err)
		return a
	}
	a.Status, a.BodyBytes, a.Excerpt, a.Date = res.StatusCode, n, head.String(), res.Header.Get("Date")
	return a
}

// Sent is the number of load requests that were sent so far.
func (c *Client) Sent() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.next - c.skipped
}
