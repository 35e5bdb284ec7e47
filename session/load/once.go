package load

import (
	"errors"
	"fmt"
	"time"

	vegeta "github.com/tsenart/vegeta/v12/lib"
)

// UsedUpError says that each target of a client with Config.Once has been sent
// or skipped, and that a stretch wanted one more.
type UsedUpError struct {
	Sent    int           // targets that were sent
	Skipped int           // targets that were not, as their Until had come
	Late    bool          // the last target was skipped: so would have been any further one
	Load    time.Duration // length of all stretches, from the first request to the last answer
}

func (e *UsedUpError) Error() string {
	return fmt.Sprintf("the targets are used up: %d were sent and %d had expired before their turn, in %s of load", e.Sent, e.Skipped, e.Load.Round(time.Millisecond))
}

// UntilMargin is how long before its Until a target is not sent any more. A
// request may be under way while its arm stalls, and an answer that its token
// has expired would look like an error of the server.
const UntilMargin = 2 * time.Second

// errNoTarget ends vegeta's attack, which gives a result with this text for it.
var errNoTarget = errors.New("no target left")

// once is a vegeta.Targeter: the next target that has not been sent and can
// still be.
func (c *Client) once(t *vegeta.Target) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	// Read once: after another arm's turn thousands may be skipped, and all of
	// this counts as latency.
	earliest := c.cfg.Clock().Add(UntilMargin)
	for ; c.next < len(c.cfg.Targets); c.skipped++ {
		next := &c.cfg.Targets[c.next]
		c.next++
		c.late = true
		if next.Until.IsZero() || next.Until.After(earliest) {
			t.Method, t.URL, t.Body, t.Header = next.Method, next.URL, next.Body, next.Header
			c.late = false
			return nil
		}
	}
	c.empty = true
	return errNoTarget
}

// usedUp notes what a stretch that is over has skipped. Its error is a
// *UsedUpError if the stretch found no target for a request.
func (c *Client) usedUp(o *Offered) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	o.Skipped, c.noted = c.skipped-c.noted, c.skipped
	c.loaded += o.End.Sub(o.Start)
	if !c.empty {
		return nil
	}
	return &UsedUpError{Sent: c.next - c.skipped, Skipped: c.skipped, Late: c.late, Load: c.loaded}
}
