package load

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"testing"
	"time"

	vegeta "github.com/tsenart/vegeta/v12/lib"

	"plumbline/targets"
)

// instant is a transport that answers at once.
type instant struct {
	body []byte
	each func(*http.Request)
}

func (i *instant) RoundTrip(req *http.Request) (*http.Response, error) {
	i.each(req)
	return &http.Response{
		StatusCode: 200, Status: "200 OK", Request: req,
		Header: http.Header{"Content-Type": {"application/json"}, "Date": {"Mon, 02 Jan 2006 15:04:05 GMT"}},
		Body:   io.NopCloser(bytes.NewReader(i.body)),
	}, nil
}

func clientOf(t http.RoundTripper, ts []targets.Target) *Client {
	c := newClient(Config{Workers: 1, Targets: ts})
	c.use(t)
	return c
}

func TestALongStretchComesInPieces(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	seen := 0
	last, done := context.WithCancel(t.Context())
	done()
	c := clientOf(&instant{body: make([]byte, 3), each: func(req *http.Request) {
		if seen++; seen == 2*pending+100 {
			cancel()
		}
		if last.Err() == nil {
			t.Errorf("the timer of request %d is still running", seen-1)
		}
		last = req.Context()
	}}, []targets.Target{{Method: "GET", URL: "http://router/"}})
	var lengths []int
	var seq uint64
	_, err := c.Stretch(ctx, time.Hour, func(rs []*vegeta.Result) error {
		lengths = append(lengths, len(rs))
		for _, r := range rs {
			if r.Seq != seq || r.BytesIn != 3 {
				t.Fatalf("result %d: %+v", seq, r)
			}
			seq++
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if int(seq) != seen || int(seq) != c.Sent() {
		t.Errorf("%d results of %d requests, %d sent", seq, seen, c.Sent())
	}
	if len(lengths) < 3 || lengths[0] != pending || lengths[1] != pending {
		t.Errorf("pieces of %v results", lengths)
	}
}
