package session

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// TestTheCertificateServes lets a strict client ask a server with it, by every
// name, in HTTP/1.1 and HTTP/2.
func TestTheCertificateServes(t *testing.T) {
	mask := unix.Umask(0o077)
	c, err := newCertificate(t.TempDir(), "router", "api.example.com", "10.1.2.3", "localhost", "::1")
	unix.Umask(mask)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{c.cert, c.key} {
		if st, err := os.Stat(path); err != nil || st.Mode() != 0o644 {
			t.Errorf("%s: %v, %v; want a file that all may read", path, st.Mode(), err)
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Protocols: new(http.Protocols), Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Spoken", r.Proto)
	})}
	server.Protocols.SetHTTP1(true)
	server.Protocols.SetHTTP2(true)
	go server.ServeTLS(l, c.cert, c.key)
	defer server.Close()

	text, err := os.ReadFile(c.cert)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(text) {
		t.Fatalf("no certificate in %q", text)
	}
	for _, host := range []string{"localhost", "127.0.0.1", "::1", "router", "api.example.com", "10.1.2.3"} {
		for _, http2 := range []bool{false, true} {
			transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, ServerName: host}, ForceAttemptHTTP2: http2}
			res, err := (&http.Client{Transport: transport}).Get("https://" + l.Addr().String())
			if err != nil {
				t.Errorf("%s: %v", host, err)
				continue
			}
			res.Body.Close()
			transport.CloseIdleConnections()
			if want := map[bool]string{false: "HTTP/1.1", true: "HTTP/2.0"}[http2]; res.Header.Get("Spoken") != want {
				t.Errorf("%s: spoken is %s, want %s", host, res.Header.Get("Spoken"), want)
			}
		}
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, ServerName: "elsewhere"}}
	if _, err := (&http.Client{Transport: transport}).Get("https://" + l.Addr().String()); err == nil {
		t.Error("it is good for elsewhere, too")
	}
}

func TestACertificateThatCannotBeWritten(t *testing.T) {
	c, err := newCertificate(filepath.Join(t.TempDir(), "missing"))
	if !errors.Is(err, fs.ErrNotExist) || c != (certificate{}) {
		t.Errorf("got %v, %v", c, err)
	}
}
