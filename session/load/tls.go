package load

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"plumbline/targets"
)

// tlsConfig is how the arm is met. Only the protocol asked for is offered, so
// that a server cannot choose another one.
func tlsConfig(protocol string, ts []targets.Target) *tls.Config {
	offer := "http/1.1"
	if protocol == "h2" {
		offer = "h2"
	}
	return &tls.Config{
		ServerName: serverName(ts),
		NextProtos: []string{offer},
		// The arm is known by its socket: plumbline started it, and its
		// certificate may be of any origin.
		InsecureSkipVerify: true,
	}
}

// serverName is what the client asks for in its first message (SNI): the host
// that the targets name. An address cannot be asked for (RFC 6066, section 3).
func serverName(ts []targets.Target) string {
	if len(ts) > 0 {
		if u, err := url.Parse(ts[0].URL); err == nil {
			if _, err := netip.ParseAddr(u.Hostname()); err != nil && u.Hostname() != "" {
				return u.Hostname()
			}
		}
	}
	return "localhost"
}

// noProtocol is the text of TLS's no_application_protocol (RFC 7301, section
// 3.2). Over a connection crypto/tls reports an alert in a type of its own.
var noProtocol = tls.AlertError(120).Error()

// secure speaks TLS on conn, which it closes if it fails.
func secure(ctx context.Context, conn net.Conn, cfg *tls.Config) (net.Conn, error) {
	t := tls.Client(conn, cfg)
	if err := t.HandshakeContext(ctx); err != nil {
		conn.Close()
		var plain tls.RecordHeaderError
		switch {
		case errors.As(err, &plain):
			return nil, fmt.Errorf("the server does not speak TLS: %w; switch TLS on in the server, or ask it with h1 or h2c without TLS", err)
		case strings.HasSuffix(err.Error(), noProtocol):
			return nil, refused(cfg.NextProtos[0], "refuses it")
		}
		return nil, fmt.Errorf("TLS handshake: %w", err)
	}
	// A server that knows nothing of ALPN means HTTP/1.1.
	if got := t.ConnectionState().NegotiatedProtocol; got != "h2" && cfg.NextProtos[0] == "h2" {
		conn.Close()
		return nil, refused("h2", "chose none")
	}
	return t, nil
}

func refused(protocol, how string) error {
	if protocol == "h2" {
		return fmt.Errorf("the server was offered HTTP/2 over TLS and %s (ALPN); switch HTTP/2 on in the server, or use protocol h1 with TLS", how)
	}
	return fmt.Errorf("the server was offered HTTP/1.1 over TLS and %s (ALPN); switch HTTP/1.1 on in the server, or use protocol h2", how)
}

// schemed sends every request in one scheme, that of the connection, whatever
// its URL says. Nobody above sees the difference.
type schemed struct {
	next   http.RoundTripper
	scheme string
}

func (s schemed) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.URL.Scheme != s.scheme {
		u := *req.URL
		u.Scheme = s.scheme
		req = req.WithContext(req.Context()) // a copy
		req.URL = &u
	}
	return s.next.RoundTrip(req)
}
