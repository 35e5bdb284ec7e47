package load_test

import (
	"context"
	"crypto/tls"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"plumbline/session/load"
	"plumbline/targets"
)

func quietServer() *http.Server {
	return &http.Server{Handler: http.HandlerFunc(nothing), ErrorLog: log.New(io.Discard, "", 0)}
}

// TestTheProtocolIsNotNegotiatedAway looks at what a request says when the server will not speak as it is asked to.
func TestTheProtocolIsNotNegotiatedAway(t *testing.T) {
	secure := func(t *testing.T, alpn ...string) func(context.Context) (net.Conn, error) {
		l := tls.NewListener(listen(t, "unix"), &tls.Config{Certificates: []tls.Certificate{certificate()}, NextProtos: alpn})
		t.Cleanup(func() { l.Close() })
		go quietServer().Serve(l)
		return dialer(l)
	}
	plain := func(t *testing.T) func(context.Context) (net.Conn, error) {
		return serve(t, ways[0], nothing).config.Dial
	}
	const switchOn = "switch HTTP/2 on in the server, or use protocol h1 with TLS"
	for _, tt := range []struct {
		name     string
		dial     func(*testing.T) func(context.Context) (net.Conn, error)
		protocol string
		want     []string // of the error; nil: none
	}{
		{"h2 of a server of HTTP/1.1", func(t *testing.T) func(context.Context) (net.Conn, error) { return secure(t, "http/1.1") }, "h2", []string{"HTTP/2 over TLS and refuses it", switchOn}},
		{"h2 of a server without ALPN", func(t *testing.T) func(context.Context) (net.Conn, error) { return secure(t) }, "h2", []string{"HTTP/2 over TLS and chose none", switchOn}},
		{"h2 of a server without TLS", plain, "h2", []string{"does not speak TLS", "switch TLS on in the server"}},
		{"h1 of a server without TLS", plain, "h1", []string{"does not speak TLS", "switch TLS on in the server"}},
		{"h1 of a server of something else", func(t *testing.T) func(context.Context) (net.Conn, error) { return secure(t, "h3") }, "h1", []string{"HTTP/1.1 over TLS and refuses it", "use protocol h2"}},
		{"h1 of a server without ALPN", func(t *testing.T) func(context.Context) (net.Conn, error) { return secure(t) }, "h1", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := load.New(load.Config{Dial: tt.dial(t), Protocol: tt.protocol, TLS: true, Workers: 2, Targets: gets("/")})
			defer c.Close()
			check := func(code int, err string) {
				t.Helper()
				if tt.want == nil {
					if code != 200 || err != "" {
						t.Fatalf("code %d, error %q", code, err)
					}
					return
				}
				for _, part := range tt.want {
					if code != 0 || !strings.Contains(err, part) {
						t.Fatalf("code %d, error %q; want %q", code, err, part)
					}
				}
			}
			answer := c.Ask(t.Context(), gets("/")[0])
			check(answer.Status, answer.Error)
			rs := stretch(t, c, short)
			for _, r := range rs {
				check(int(r.Code), r.Error)
			}
			if len(rs) != c.Sent() || len(rs) == 0 {
				t.Errorf("%d results of %d requests", len(rs), c.Sent())
			}
		})
	}
}

func TestTheServerName(t *testing.T) {
	for url, want := range map[string]string{
		"http://router/":               "router",
		"https://Api.example.com:8443": "Api.example.com",
		"http://127.0.0.1:80/":         "localhost",
		"http://[::1]/":                "localhost",
		"/":                            "localhost",
	} {
		t.Run(url, func(t *testing.T) {
			got := make(chan string, 1)
			l := tls.NewListener(listen(t, "unix"), &tls.Config{GetCertificate: func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
				got <- hello.ServerName
				return nil, io.ErrUnexpectedEOF
			}})
			defer l.Close()
			go quietServer().Serve(l)
			c := load.New(load.Config{Dial: dialer(l), Protocol: "h1", TLS: true, Workers: 1, Targets: []targets.Target{{Method: "GET", URL: url}}})
			defer c.Close()
			c.Ask(t.Context(), gets("/")[0])
			if name := <-got; name != want {
				t.Errorf("asked for %q, want %q", name, want)
			}
		})
	}
}

// TestAHangingHandshakeIsCut has a server that takes connections and says nothing.
func TestAHangingHandshakeIsCut(t *testing.T) {
	for _, protocol := range []string{"h1", "h2"} {
		t.Run(protocol, func(t *testing.T) {
			l := listen(t, "unix")
			defer l.Close()
			config := load.Config{Dial: dialer(l), Protocol: protocol, TLS: true, Workers: 2, Targets: gets("/"), Timeout: short}
			c := load.New(config)
			defer c.Close()
			if a := c.Ask(t.Context(), gets("/")[0]); a.Error == "" {
				t.Errorf("asked: %+v", a)
			}
			for _, r := range stretch(t, c, short) {
				if r.Error == "" {
					t.Fatalf("got %+v", r)
				}
			}
			config.Timeout = time.Hour
			dialled := make(chan struct{}, 10)
			config.Dial = func(ctx context.Context) (net.Conn, error) {
				conn, err := dialer(l)(ctx)
				dialled <- struct{}{}
				return conn, err
			}
			c = load.New(config)
			go func() {
				<-dialled
				c.Close()
			}()
			if rs := stretchUntil(t, t.Context(), c, time.Hour); len(rs) == 0 || rs[0].Error == "" {
				t.Errorf("got %v", rs)
			}
		})
	}
}
