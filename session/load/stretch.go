package load

import (
	"context"
	"time"

	vegeta "github.com/tsenart/vegeta/v12/lib"
)

// pending is how many results are held back while requests are under way.
// Encoding costs the generator time between two requests, so a short stretch
// is written only after its end; a long one in pieces, to bound memory.
const pending = 1 << 14

// Stretch keeps cfg.Workers requests under way for d, waits for the last
// answers and hands all results to sink, in pieces, without bodies and headers.
//
// When ctx ends, requests under way are cut off and the client is of no
// further use. An error is sink's.
func (c *Client) Stretch(ctx context.Context, d time.Duration, sink func([]*vegeta.Result) error) (start, end time.Time, err error) {
	workers := uint64(c.cfg.Workers)
	// An Attacker serves one attack only; a new one on the shared client costs
	// some 10 µs and no connection.
	attacker := vegeta.NewAttacker(vegeta.Client(c.http), vegeta.Workers(workers), vegeta.MaxWorkers(workers))
	stop := context.AfterFunc(ctx, func() {
		attacker.Stop()
		c.Close()
	})
	defer stop()

	start = time.Now()
	held := make([]*vegeta.Result, 0, 1024)
	for r := range attacker.Attack(c.target, vegeta.ConstantPacer{}, d, "") {
		r.Body, r.Headers = nil, nil
		held = append(held, r)
		if len(held) == pending && err == nil {
			err = sink(held)
			held = held[:0]
			if err != nil {
				attacker.Stop()
			}
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
