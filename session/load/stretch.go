package load

import (
	"context"
	"net/http"
	"sync/atomic"
	"time"

	vegeta "github.com/tsenart/vegeta/v12/lib"
)

// pending is how many results of a closed loop are held back while requests
// are under way. Encoding costs the generator time between two requests, so a
// short stretch is written only after its end; a long one in pieces, to bound
// memory.
const pending = 1 << 14

// firstWorkers is how many workers a stretch at a fixed rate begins with. The
// others are added when all of these are busy.
const firstWorkers = 10

// Offered is what a stretch was to be.
type Offered struct {
	Start, End time.Time // from before the first request to after the last answer
	// Due is how many requests were due at a fixed rate; as many results as
	// are missing from it could not be sent. 0 in a closed loop.
	Due int
	// Skipped is how many targets were not sent, with Config.Once, as their
	// Until had come or was about to.
	Skipped int
}

// Stretch offers load for d, waits for the last answers and hands all results
// to sink, in pieces, without bodies and headers; sink must not keep a piece's
// slice.
//
// In a closed loop it keeps cfg.Workers requests under way. Where an answer
// takes longer than d, one more request may be sent after d.
//
// At a fixed rate request k of the client is due k/cfg.Rate after the start of
// its first stretch, where the time between stretches does not count. That moment is its
// time stamp, and its latency counts from there: whatever keeps it from being
// sent in time (the arm is stalled and all workers wait for it, or the
// generator is late) is time in which the caller of a real server would wait
// as well. What is still not sent after d is not sent any more.
//
// When ctx ends or sink fails, the client is closed. An error is sink's, a
// *UsedUpError where cfg.Once has no target left, or there is no timer to be had.
func (c *Client) Stretch(ctx context.Context, d time.Duration, sink func([]*vegeta.Result) error) (Offered, error) {
	return c.stretch(ctx, d, nil, sink)
}

// stretch delays the answers, if spin is not nil.
func (c *Client) stretch(ctx context.Context, d time.Duration, spin *spinner, sink func([]*vegeta.Result) error) (Offered, error) {
	most, rate, target := c.cfg.Workers, c.cfg.Rate, c.target
	if c.cfg.Once {
		target = c.once
	}
	if spin != nil {
		most, rate, target = 1, 0, spin.target(target)
	}
	s := &stretch{most: most, workers: most, limit: d, piece: pending, pacer: vegeta.ConstantPacer{}, spin: spin, sink: sink}
	if rate > 0 {
		alarm, err := newAlarm()
		if err != nil {
			return Offered{}, err
		}
		defer alarm.close()
		defer context.AfterFunc(c.open, alarm.cancel)()
		s.atRate(rate, d, c.plan, alarm)
		c.plan = progress{c.plan.due + s.Due, c.plan.offered + d}
	}
	// No timeout here: for a transport that is not its own, http.Client starts
	// a goroutine per request to watch over it.
	client := &http.Client{Transport: c.load, CheckRedirect: stay}
	// An Attacker serves one attack only; a new one on the shared transport
	// costs some 10 µs and no connection.
	attacker := vegeta.NewAttacker(vegeta.Client(client), vegeta.Workers(uint64(s.workers)), vegeta.MaxWorkers(uint64(s.most)))
	defer context.AfterFunc(ctx, c.Close)()
	defer context.AfterFunc(c.open, func() { attacker.Stop() })()

	s.Start = time.Now()
	c.load.began, c.load.spin = s.Start, spin
	if spin != nil {
		spin.began = s.Start
	}
	err := s.collect(attacker.Attack(target, s.pacer, s.limit, ""), c.Close)
	if err == nil {
		err = c.usedUp(&s.Offered)
	}
	return s.Offered, err
}

// stretch is one that is under way.
type stretch struct {
	Offered
	planned *pacer   // nil: closed loop
	spin    *spinner // nil: no answer is delayed
	workers int      // to begin with
	most    int      // workers
	limit   time.Duration
	pacer   vegeta.Pacer
	piece   int // results that are handed on together
	sink    func([]*vegeta.Result) error

	ended atomic.Int64 // requests
}

// progress is how far a plan of moments has come.
type progress struct {
	due     int           // requests so far
	offered time.Duration // length of the stretches so far
}

// atRate makes it one at a fixed rate, whose plan has come as far as over.
func (s *stretch) atRate(rate float64, d time.Duration, over progress, a *alarm) {
	s.Due = dueWithin(rate, over.offered+d) - over.due
	s.workers = min(s.most, firstWorkers)
	s.limit = 0 // the pacer knows better when it is over
	s.planned = &pacer{
		rate: rate, d: d, due: s.Due, first: over.due, from: over.offered,
		elapsed: func() time.Duration { return time.Since(s.Start) },
		sleep:   a.sleep,
		idle:    func(sent int) bool { return sent-int(s.ended.Load()) < s.most },
	}
	s.pacer = s.planned
	// There is time between requests, and a piece of thousands, encoded within
	// a stretch, would hold up what is due meanwhile for some ms.
	s.piece = 1
}

// collect hands on the results until there are no more. After an error of the
// sink it calls giveUp and waits for the end of the attack.
func (s *stretch) collect(results <-chan *vegeta.Result, giveUp func()) (err error) {
	held := make([]*vegeta.Result, 0, min(s.piece, 1024))
	for r := range results {
		s.ended.Add(1)
		if err != nil || r.Error == errNoTarget.Error() { // no request was sent
			continue
		}
		r.BytesIn = size(r.Body)
		if s.spin != nil && !s.spin.Counts {
			r.Latency -= spun(r.Body)
		}
		r.Body, r.Headers = nil, nil
		if s.planned != nil {
			due := s.Start.Add(s.planned.moment(int(r.Seq)))
			r.Latency += r.Timestamp.Sub(due)
			r.Timestamp = due
		}
		held = append(held, r)
		if len(held) == s.piece {
			if err = s.sink(held); err != nil {
				giveUp()
			}
			held = held[:0]
		}
	}
	s.End = time.Now()
	if err == nil {
		err = s.sink(held)
	}
	return err
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
