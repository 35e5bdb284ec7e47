package load

import (
	"context"
	"encoding/binary"
	"net/http"
	"strconv"
	"time"

	vegeta "github.com/tsenart/vegeta/v12/lib"
)

// Delay is a change whose size is known: after each answer the client spins.
// It would not be known if the client slept, which takes longer than asked, or
// if one side did without: a server under less load is another server.
type Delay struct {
	Share float64 // of the time that the request has taken so far, such as 0.075; above 0
	// Counts is whether the latency holds the time that was spun. Otherwise
	// just that, as measured, is taken off it again.
	Counts bool
}

// Delayed is Stretch with a delay, which is part of the request: the next one
// is sent after it. It is always a closed loop of one worker. Several wait for
// each other while one spins, and that is part of what the next one's delay is
// a share of; at a fixed rate, too, a stall would make itself longer.
func (c *Client) Delayed(ctx context.Context, d time.Duration, delay Delay, sink func([]*vegeta.Result) error) (Offered, error) {
	return c.stretch(ctx, d, &spinner{Delay: delay}, sink)
}

// startHeader tells the transport when a request was begun; the arm does not
// get it. Vegeta itself keeps that moment until the result.
const startHeader = "X-Plumbline-Start"

// spinner delays the answers of a stretch.
type spinner struct {
	Delay
	began time.Time
}

// target wraps a vegeta.Targeter, which is called as the time stamp is taken.
func (s *spinner) target(next vegeta.Targeter) vegeta.Targeter {
	return func(t *vegeta.Target) error {
		at := time.Since(s.began)
		err := next(t)
		h := make(http.Header, len(t.Header)+1)
		for k, v := range t.Header {
			h[k] = v
		}
		h[startHeader] = []string{strconv.FormatInt(int64(at), 10)}
		t.Header = h
		return err
	}
}

// start is the moment from which the request's latency counts. It takes out of
// the header what is only for us.
func (s *spinner) start(h http.Header) time.Time {
	at, _ := strconv.ParseInt(h[startHeader][0], 10, 64) // target wrote it
	delete(h, startHeader)
	return s.began.Add(time.Duration(at))
}

// spin keeps the CPU busy for the share of the time since start, and returns
// how long that was.
func (s *spinner) spin(start time.Time) time.Duration {
	from := time.Now()
	length := time.Duration(s.Share * float64(from.Sub(start)))
	for {
		if spun := time.Since(from); spun >= length {
			return spun
		}
	}
}

// spun is what the body of a delayed answer says; of any other: 0.
func spun(body []byte) time.Duration {
	if len(body) != 16 {
		return 0
	}
	return time.Duration(binary.NativeEndian.Uint64(body[8:]))
}
