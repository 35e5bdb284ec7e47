package load

import (
	"context"
	"net/http"
	"time"

	vegeta "github.com/tsenart/vegeta/v12/lib"
)

// pending is how many results are held back while requests are under way.
// Encoding costs the generator time between two requests, so a short stretch
// is written only after its end; a long one in pieces, to bound memory.
const pending = 1 << 14

// Stretch keeps cfg.Workers requests under way for d, waits for the last
// answers and hands all results to sink, in pieces, without bodies and
// headers; sink must not keep a piece's slice. Where an answer takes longer
// than d, one more request may be sent after d.
//
// When ctx ends or sink fails, the client is closed. An error is sink's.
func (c *Client) Stretch(ctx context.Context, d time.Duration, sink func([]*vegeta.Result) error) (start, end time.Time, err error) {
	workers := uint64(c.cfg.Workers)
	// No timeout here: for a transport that is not its own, http.Client starts
	// a goroutine per request to watch over it.
	client := &http.Client{Transport: c.load, CheckRedirect: stay}
	// An Attacker serves one attack only; a new one on the shared transport
	// costs some 10 µs and no connection.
	attacker := vegeta.NewAttacker(vegeta.Client(client), vegeta.Workers(workers), vegeta.MaxWorkers(workers))
	defer context.AfterFunc(ctx, c.Close)()
	defer context.AfterFunc(c.open, func() { attacker.Stop() })()

	start = time.Now()
	c.load.began = start
	held := make([]*vegeta.Result, 0, 1024)
	for r := range attacker.Attack(c.target, vegeta.ConstantPacer{}, d, "") {
		if err != nil {
			continue // the attack is ending
		}
		r.BytesIn = size(r.Body)
		r.Body, r.Headers = nil, nil
		held = append(held, r)
		if len(held) == pending {
			if err = sink(held); err != nil {
				c.Close()
			}
			held = held[:0]
		}
	}
	end = time.Now()
	if err == nil {
		err = sink(held)
	}
	return start, end, err
}

// target is a vegeta.Targeter: the next request of the sequence.
func (c *Client) target(t *vegeta.Target) error {
	c.mu.Lock()
	n := c.next
	c.next++
	c.mu.Unlock()
	next := &c.cfg.Targets[n%len(c.cfg.Targets)]
	t.Method, t.URL, t.Body, t.Header = next.Method, next.URL, next.Body, next.Header
	return nil
}
