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

	"plumbline/record"
	"plumbline/targets"
)

// Config says how one arm is asked.
type Config struct {
	Dial     func(context.Context) (net.Conn, error)
	Protocol string           // h1 or h2c
	Workers  int              // requests under way at once
	Targets  []targets.Target // request k of the client is Targets[k % len]
	Timeout  time.Duration    // of one request; 0: 30 s
}

// Client asks one arm. Its methods are not to be called at the same time.
type Client struct {
	cfg  Config
	http *http.Client

	mu    sync.Mutex
	next  int // number of the next request, over all stretches
	conns map[net.Conn]struct{}
	cut   bool // connections are closed, no new ones are made
}

// New makes a client; Close ends its connections.
func New(cfg Config) *Client {
	if cfg.Timeout == 0 {
		cfg.Timeout = 30 * time.Second
	}
	c := &Client{cfg: cfg, conns: map[net.Conn]struct{}{}}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(cfg.Protocol != "h2c")
	protocols.SetUnencryptedHTTP2(cfg.Protocol == "h2c")
	c.http = &http.Client{
		Timeout: cfg.Timeout,
		Transport: &http.Transport{
			DialContext:         c.dial,
			Protocols:           protocols,
			MaxIdleConnsPerHost: cfg.Workers,
			DisableCompression:  true,
			TLSNextProto:        map[string]func(string, *tls.Conn) http.RoundTripper{},
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return c
}

func (c *Client) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	conn, err := c.cfg.Dial(ctx)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cut {
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

// Close cuts every connection, also under a request, which then fails.
func (c *Client) Close() {
	c.mu.Lock()
	c.cut = true
	open := make([]net.Conn, 0, len(c.conns))
	for conn := range c.conns {
		open = append(open, conn)
	}
	c.mu.Unlock()
	for _, conn := range open {
		conn.Close()
	}
}

// excerpt is how much of an answer is kept to be shown.
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
	res, err := c.http.Do(req.WithContext(ctx))
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
	if err != nil {
		a.Error = fmt.Sprintf("reading the body: %v", err)
		return a
	}
	a.Status, a.BodyBytes, a.Excerpt = res.StatusCode, n, head.String()
	return a
}

// Sent is the number of load requests that were sent so far.
func (c *Client) Sent() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.next
}
