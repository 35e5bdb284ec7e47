package session

import (
	"context"
	"slices"
	"time"

	vegeta "github.com/tsenart/vegeta/v12/lib"

	"plumbline/record"
)

// warmUp gives a member load before anything of it counts: for the time that
// the plan says, or until it has settled.
func (c *conductor) warmUp(ctx context.Context, m *member, freeze bool) error {
	s := c.session.Schedule
	limit := s.WarmupS.Duration()
	if limit == 0 {
		return nil
	}
	c.tell(Event{Phase: "warming up", Block: m.run.Block, Arm: m.arm.Label})
	began := time.Now()
	defer func() { m.run.Warmup.TookS = record.Seconds(time.Since(began).Seconds()) }()
	if !s.WarmupAuto {
		_, err := c.warm(ctx, m, limit, freeze)
		return err
	}
	var windows []window
	done := false
	for !done && time.Since(began) < limit {
		w, err := c.warm(ctx, m, settleWindow, freeze)
		if err != nil {
			return err
		}
		windows = append(windows, w)
		done = settled(windows)
	}
	m.run.Warmup.Settled = &done
	return nil
}

// warm is one stretch of warm-up. Its requests are counted and not kept.
func (c *conductor) warm(ctx context.Context, m *member, d time.Duration, freeze bool) (w window, err error) {
	var latencies []time.Duration
	_, err = c.stretch(ctx, m, stint{length: d, freeze: freeze, when: "while it was warmed up", sink: func(rs []*vegeta.Result) error {
		for _, r := range rs {
			m.run.Warmup.Sent++
			if r.Code == 0 || r.Code >= 500 {
				m.run.Warmup.Failed++
			}
			latencies = append(latencies, r.Latency)
		}
		return nil
	}})
	if n := len(latencies); n > 0 {
		slices.Sort(latencies)
		w.median = latencies[n/2]
	}
	w.memory = m.proc.Memory()
	return w, err
}

// window is what a stretch of warm-up shows.
type window struct {
	median time.Duration // of the latencies; 0: no request was answered
	memory int64         // at its end, in bytes; 0: not known
}

const (
	settleWindow = 500 * time.Millisecond
	settleOver   = 3    // windows that must bring nothing new
	settleFaster = 0.03 // a share of the latency
	settleBigger = 0.02 // a share of the memory
)

// settled says whether the last few windows were no longer faster than the
// best before them, and no bigger. Getting slower does not count: on a shared
// machine that is the machine.
func settled(ws []window) bool {
	if len(ws) <= settleOver {
		return false
	}
	before, last := ws[:len(ws)-settleOver], ws[len(ws)-settleOver:]
	fastest := func(ws []window) time.Duration {
		return slices.MinFunc(ws, func(a, b window) int { return int(a.median - b.median) }).median
	}
	biggest := func(ws []window) int64 {
		return slices.MaxFunc(ws, func(a, b window) int { return int(a.memory - b.memory) }).memory
	}
	return fastest(last) > 0 && fastest(before) > 0 &&
		float64(fastest(last)) >= (1-settleFaster)*float64(fastest(before)) &&
		float64(biggest(last)) <= (1+settleBigger)*float64(biggest(before))
}
