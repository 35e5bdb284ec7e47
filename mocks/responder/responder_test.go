package responder

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
)

func TestAnswersOnEveryConnection(t *testing.T) {
	var r Responder
	defer r.Close()
	c := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return r.Dial(ctx) }}}
	defer c.CloseIdleConnections()
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 50 {
				res, err := c.Get("http://responder/")
				if err != nil {
					t.Error(err)
					return
				}
				body, err := io.ReadAll(res.Body)
				res.Body.Close()
				if err != nil || res.StatusCode != 200 || string(body) != "ok" {
					t.Errorf("%d %q %v", res.StatusCode, body, err)
				}
			}
		})
	}
	all.Wait()
}

// Requests may come in pieces, or several at once.
func TestARequestEndsWithAnEmptyLine(t *testing.T) {
	var r Responder
	defer r.Close()
	c, err := r.Dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	in := bufio.NewReader(c)
	for _, piece := range []string{"GET / HTTP/1.1\r\nHo", "st: a\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r", "\n"} {
		if _, err := io.WriteString(c, piece); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		res, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatal(err)
		}
		if body, err := io.ReadAll(res.Body); err != nil || string(body) != "ok" {
			t.Errorf("%q, %v", body, err)
		}
	}
}

func TestCloseEndsAllOfIt(t *testing.T) {
	var r Responder
	c, err := r.Dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	left, err := r.Dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	left.Close() // by the client
	r.Close()
	if _, err := c.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("a connection after Close gives %v", err)
	}
	if _, err := r.Dial(t.Context()); !errors.Is(err, net.ErrClosed) {
		t.Errorf("dialling after Close gives %v", err)
	}
	r.Close() // once more does no harm
}
