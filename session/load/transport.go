package load

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"time"
)

// transport is how the load is sent. It differs from the one below it in what
// a measurement needs:
//
// It sends what the target says and nothing else. Vegeta numbers the requests
// of a stretch in a header, which would differ from arm to arm.
//
// It reads every body to its end and shows vegeta only how long it was, as 8
// bytes (and 8 more where the answer is delayed). Vegeta would gather the body in memory, without a bound, while the
// clock runs; vegeta.MaxBody bounds it, but then cuts BytesIn as well.
//
// It does not try again. http.Transport sends a GET once more when a
// connection that was used before is closed under it: a server that drops
// every tenth request would show no error.
type transport struct {
	next    http.RoundTripper
	timeout time.Duration
	retries bool      // next is one that may send a request twice
	began   time.Time // the stretch under way
	spin    *spinner  // of that stretch; nil: no answer is delayed
}

// seqHeader is where vegeta numbers the requests of a stretch.
const seqHeader = "X-Vegeta-Seq"

var errDropped = errors.New("the server closed the connection without an answer")

func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	body := &sized{spin: t.spin}
	if t.spin != nil {
		body.start = t.spin.start(req.Header)
	}
	delete(req.Header, seqHeader) // the map is this request's own
	ctx, cancel := context.WithTimeout(req.Context(), t.timeout)
	tries, idle := 0, false
	if t.retries {
		ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(got httptrace.GotConnInfo) {
			if tries++; tries == 1 {
				// Idle since before the stretch: it may be closed for that,
				// just when it is used again.
				idle = got.IdleTime > time.Since(t.began)
			}
		}})
	}
	res, err := t.next.RoundTrip(req.WithContext(ctx))
	if err != nil {
		cancel()
		return nil, err
	}
	body.body, body.ctx, body.cancel = res.Body, ctx, cancel
	res.Body = body
	if tries > 1 && !idle {
		res.Body.Close()
		return nil, errDropped
	}
	return res, nil
}

// sized is a body that reads as the size of the real one, and, where the
// answer is delayed, for how long it was.
type sized struct {
	body   io.ReadCloser
	ctx    context.Context // of the request
	cancel context.CancelFunc
	done   bool
	closed bool

	spin  *spinner // nil: the answer is not delayed
	start time.Time
}

// Read needs room for 16 bytes; io.ReadAll offers 512.
func (s *sized) Read(p []byte) (int, error) {
	if s.done {
		return 0, io.EOF
	}
	if len(p) < 16 {
		return 0, io.ErrShortBuffer
	}
	n, err := io.Copy(io.Discard, s.body)
	if err := unended(s.ctx, n, err); err != nil {
		return 0, err
	}
	s.done = true
	binary.NativeEndian.PutUint64(p, uint64(n))
	if s.spin == nil {
		return 8, io.EOF
	}
	s.Close() // it is part of the request, so it comes before the delay
	binary.NativeEndian.PutUint64(p[8:], uint64(s.spin.spin(s.start)))
	return 16, io.EOF
}

func (s *sized) Close() error {
	if s.closed {
		return nil
	}
	s.closed = true
	defer s.cancel()
	return s.body.Close()
}

// Unended begins the error of a request whose answer came, but not to its end in time.
const Unended = "the body had not ended"

// unended says so of a body that was too slow, or endless, after n bytes. One
// that reads to its end when its time is over is not whole either: as our side
// of the connection is being closed, a server may break off and end it in good order.
func unended(ctx context.Context, n int64, err error) error {
	over := err == nil && errors.Is(ctx.Err(), context.DeadlineExceeded)
	if !over && !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return fmt.Errorf("%s after %d MB: %w", Unended, n/1e6, context.DeadlineExceeded)
}

// size is what a result's body says; a request that failed has none.
func size(body []byte) uint64 {
	if len(body) < 8 {
		return 0
	}
	return binary.NativeEndian.Uint64(body)
}
