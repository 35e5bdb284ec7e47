package session

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"time"

	vegeta "github.com/tsenart/vegeta/v12/lib"

	"plumbline/mocks/responder"
	"plumbline/record"
	"plumbline/session/load"
	"plumbline/targets"
)

// This file is the controls of a sliced session (METHOD.md): how many there
// are and how long they take, and how they are measured.

const (
	mostControl                   = 0.2   // of a session's load, theirs included
	responderShare                = 0.05  // of a slice
	leastResponder record.Seconds = 0.004 // enough for some 50 requests
	responderCold                 = time.Millisecond
	leastSide                     = 4 * countFrom // of a control pair
	roundsPerPair                 = 6
	delayZones                    = 1.5 // the delay, in zones of P50
	mostParts                     = 4   // into which a pair is split
)

// controlsOf plans the controls of a schedule that has none yet. Where slices
// or blocks are too short for them there are none, and a warning.
func controlsOf(s record.Schedule, arms int, zone float64) (c *record.Controls, warning string) {
	if s.Mode != record.Sliced || arms < 2 {
		return nil, ""
	}
	s.Controls = &record.Controls{
		ResponderS: max(leastResponder, micros(responderShare*s.SliceS)),
		Pairs:      max(1, int(math.Round(float64(roundCount(s, arms))/roundsPerPair))),
		Delay:      math.Round(delayZones*zone*1e9) / 1e9,
		Zone:       zone,
	}
	for s.Controls.Pairs > 1 && controlRoom(s, arms) < s.SliceS {
		s.Controls.Pairs--
	}
	if controlSide(s, arms) < leastSide {
		return nil, fmt.Sprintf("the session has no controls: in blocks of %s with slices of %s they would take more than a fifth of the load; make block or slice longer",
			s.BlockS.Duration(), s.SliceS.Duration())
	}
	return s.Controls, ""
}

// controlRoom is how long a side of a control pair may be for all of them
// to take no more than their share, in seconds.
func controlRoom(s record.Schedule, arms int) record.Seconds {
	n := record.Seconds(roundCount(s, arms) * arms)
	room := mostControl/(1-mostControl)*n*s.SliceS - n*s.Controls.ResponderS
	return micros(room / record.Seconds(2*s.Controls.Pairs))
}

// micros rounds to whole µs, so that 0.2 is 0.2, however it came about.
func micros(s record.Seconds) record.Seconds {
	return record.Seconds(math.Round(float64(s)*1e6) / 1e6)
}

// controlSide is the length of a side of a control pair, in seconds: a slice,
// if there is room for so much, and if no arm's connections are idle for too
// long only because of it.
func controlSide(s record.Schedule, arms int) record.Seconds {
	side := min(s.SliceS, controlRoom(s, arms))
	// An arm that comes first in one round and last in the next.
	between := record.Seconds(2*arms-2) * (s.SliceS + s.Controls.ResponderS)
	if left := 0.9 * (record.Seconds(load.IdleFor.Seconds()) - between) / 2; left >= leastSide {
		side = min(side, left)
	}
	return side
}

// controlTime is what the controls of a block take, in seconds.
func controlTime(s record.Schedule, arms int) record.Seconds {
	if s.Controls == nil {
		return 0
	}
	return record.Seconds(roundCount(s, arms)*arms)*s.Controls.ResponderS + record.Seconds(2*s.Controls.Pairs)*controlSide(s, arms)
}

// pairsAfter says after which of a block's n rounds (from 1) a control pair
// is measured, spread evenly.
func pairsAfter(n, pairs int) (after []int) {
	for p := range pairs {
		after = append(after, max(1, (2*p+1)*n/(2*pairs)))
	}
	return after
}

// sides draws which side of a control pair (from 1) of a block goes first.
// Of two pairs that follow each other, each side is first in one.
func sides(seed uint64, block, pairs, pair int) [2]record.ControlKind {
	n := uint64((block-1)*pairs + pair - 1)
	// The streams of small numbers are those of the order and the rounds.
	rng := rand.New(rand.NewPCG(seed, 1<<63|n/2))
	if (rng.Uint64()^n)&1 == 0 {
		return [2]record.ControlKind{record.Delayed, record.Undelayed}
	}
	return [2]record.ControlKind{record.Undelayed, record.Delayed}
}

// newResponder starts the server of the negative control and a client of it.
// It has one worker in a closed loop, however the arms are asked: at a low
// rate there would hardly be a request in its few milliseconds.
func newResponder() (c *load.Client, end func()) {
	var r responder.Responder
	c = load.New(load.Config{
		Dial: r.Dial, Protocol: "h1", Workers: 1,
		Targets: []targets.Target{{Method: "GET", URL: responderURL}},
	})
	return c, func() {
		c.Close()
		r.Close()
	}
}

const responderURL = "http://responder/"

// respond gives the responder its load after slice n of an arm.
func (c *conductor) respond(ctx context.Context, n int) (record.ControlSlice, error) {
	seen := newControlSlice([]record.Route{{Name: record.RouteName("GET", responderURL), Status: []int{200}}})
	runtime.GC() // of a faster arm there is more garbage
	o, err := c.responder.Stretch(ctx, c.session.Schedule.Controls.ResponderS.Duration(), seen.sink)
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return record.ControlSlice{Kind: record.Responder, N: n, Latency: seen.counted(o.Start.Add(responderCold))}, err
}

// finer is into how many pairs, of as much shorter sides, a planned control
// pair is split: the nearer two sides are in time, the less the machine's mood
// differs between them. A side still has to hold some requests of each route
// that count; how many there will be, the warm-up tells.
func (c *conductor) finer(m *member) int {
	const perRoute = 6
	side := controlSide(c.session.Schedule, len(c.session.Arms))
	w := m.run.Warmup
	workers := 1.0
	if c.session.Load.Rate == 0 { // a side has one, whose answers come no slower than beside others
		workers = float64(max(1, c.session.Load.Workers))
	}
	for parts := mostParts; parts > 1; parts-- {
		expected := float64(side-countFrom*record.Seconds(parts)) / float64(parts) * float64(w.Sent) / float64(w.TookS) / workers
		if side >= leastSide*record.Seconds(parts) && w.TookS > 0 && expected >= float64(perRoute*len(c.session.Routes)) {
			return parts
		}
	}
	return 1
}

// pair measures the n-th planned control pair: the same process, the first
// baseline's, twice, or twice in turns.
func (c *conductor) pair(ctx context.Context, b *block, n int) error {
	s := c.session.Schedule
	m := b.baseline
	parts := c.finer(m)
	length := controlSide(s, len(c.session.Arms)).Duration() / time.Duration(parts)
	for part := range parts {
		number := (n-1)*mostParts + part + 1
		for _, kind := range sides(c.session.Seed, m.run.Block, s.Controls.Pairs*mostParts, number) {
			if err := c.side(ctx, b, kind, number, length); err != nil {
				return err
			}
		}
	}
	return nil
}

// side is one side of a control pair.
func (c *conductor) side(ctx context.Context, b *block, kind record.ControlKind, n int, length time.Duration) error {
	s := c.session.Schedule
	m := b.baseline
	seen := newControlSlice(c.session.Routes)
	runtime.GC() // as before any slice
	b.idle.pause(m)
	o, err := c.stretch(ctx, m, stint{
		length: length, freeze: b.freeze, sink: seen.sink, when: "under load",
		delay: &load.Delay{Share: s.Controls.Delay, Counts: kind == record.Delayed},
	})
	if err != nil {
		return err
	}
	b.idle.resume(m)
	latency := seen.counted(o.Start.Add(s.CountFromS.Duration()))
	return m.w.Control(record.ControlSlice{Kind: kind, N: n, Latency: latency})
}

// controlSlice gathers the requests of one.
type controlSlice struct {
	routes []record.Route
	index  map[[2]string]int // of a route by method and URL
	all    []controlRequest
}

type controlRequest struct {
	at      time.Time
	seq     uint64
	latency time.Duration
	route   int
	good    bool // its status is an expected one
}

func newControlSlice(routes []record.Route) *controlSlice {
	return &controlSlice{routes: routes, index: map[[2]string]int{}}
}

func (s *controlSlice) sink(rs []*vegeta.Result) error {
	for _, r := range rs {
		key := [2]string{r.Method, r.URL}
		i, ok := s.index[key]
		if !ok {
			name := record.RouteName(r.Method, r.URL)
			i = slices.IndexFunc(s.routes, func(rt record.Route) bool { return rt.Name == name })
			s.index[key] = i
		}
		if i < 0 { // vegeta could not make a request of the target
			continue
		}
		good := slices.Contains(s.routes[i].Status, int(r.Code))
		s.all = append(s.all, controlRequest{r.Timestamp, r.Seq, r.Latency, i, good})
	}
	return nil
}

// counted are the latencies that count, by route and as they were sent: what
// record does with an arm's own slices, without the cold starts and the
// answers that were not expected.
func (s *controlSlice) counted(from time.Time) [][]int64 {
	slices.SortFunc(s.all, func(a, b controlRequest) int { return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.seq, b.seq)) })
	latency, seen := make([][]int64, len(s.routes)), make([]bool, len(s.routes))
	for _, r := range s.all {
		if seen[r.route] && r.good && !r.at.Before(from) {
			latency[r.route] = append(latency[r.route], int64(r.latency))
		}
		seen[r.route] = true
	}
	return latency
}
