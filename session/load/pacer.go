package load

import (
	"math"
	"sort"
	"time"
)

// moment is when request k (from 0) is due, counted from the start of the
// plan: k / rate, to the nearest ns. It is always worked out from the
// start, so nothing adds up over a long stretch.
func moment(rate float64, k int) time.Duration {
	// The product first: it is exact up to 9 million requests, 1/rate hardly ever.
	ns := math.Round(float64(k) * 1e9 / rate)
	if ns >= math.MaxInt64 {
		return math.MaxInt64
	}
	return time.Duration(ns)
}

// dueWithin is how many requests are due before d has passed.
func dueWithin(rate float64, d time.Duration) int {
	return sort.Search(math.MaxInt, func(k int) bool { return moment(rate, k) >= d })
}

// pacer is a vegeta.Pacer that lets each request go at its planned moment.
// It waits itself, where vegeta would sleep; vegeta's own ConstantPacer also
// sends the first request one interval late. What is overdue goes at once.
type pacer struct {
	rate float64 // requests per second
	d    time.Duration
	due  int // of the stretch

	// The plan of moments goes on from stretch to stretch, so that their number
	// and length do not change the rate: this one begins with request first,
	// from after the plan's start.
	first int
	from  time.Duration

	elapsed func() time.Duration      // since the start of the stretch
	sleep   func(time.Duration) error // an error: the stretch is to end
	idle    func(sent int) bool       // a worker has nothing to do
}

// Pace returns when the next request is to be sent.
//
// After d a request is sent only if it is the generator that was late, so if
// a worker has nothing to do, and not beyond twice d. Otherwise the rest was
// due but cannot be sent: a server that has fallen behind would get load for
// as long as it takes to work off the backlog.
func (p *pacer) Pace(_ time.Duration, hits uint64) (wait time.Duration, stop bool) {
	sent := int(hits)
	if sent >= p.due {
		return 0, true
	}
	at := p.moment(sent)
	now := p.elapsed()
	for ; now < at; now = p.elapsed() {
		if err := p.sleep(at - now); err != nil {
			return 0, true
		}
	}
	over := now - p.d
	return 0, over > p.d || over > 0 && !p.idle(sent)
}

// moment is when the stretch's request k is due, counted from its start.
func (p *pacer) moment(k int) time.Duration { return moment(p.rate, p.first+k) - p.from }

// Rate is vegeta's to call; it does not use it.
func (p *pacer) Rate(time.Duration) float64 { return p.rate }
