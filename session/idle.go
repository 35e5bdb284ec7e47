package session

import "time"

// idleCPU adds up what arms that are not frozen use while another one has the
// load: work that they have put off and that the other one pays for.
type idleCPU struct {
	since map[*member]reading
	used  map[*member]usage
}

type reading struct {
	cpu time.Duration
	at  time.Time
}

type usage struct{ cpu, wall time.Duration }

func newIdleCPU(members []*member) *idleCPU {
	c := &idleCPU{since: map[*member]reading{}, used: map[*member]usage{}}
	for _, m := range members {
		c.resume(m)
	}
	return c
}

func read(m *member) reading { return reading{m.proc.CPU(), time.Now()} }

// pause ends a member's idle time: it is about to get the load.
func (c *idleCPU) pause(m *member) {
	if c == nil {
		return
	}
	now, was, u := read(m), c.since[m], c.used[m]
	c.used[m] = usage{u.cpu + now.cpu - was.cpu, u.wall + now.at.Sub(was.at)}
}

// resume begins it again.
func (c *idleCPU) resume(m *member) {
	if c != nil {
		c.since[m] = read(m)
	}
}

// note writes the shares of one CPU into the runs.
func (c *idleCPU) note() {
	if c == nil {
		return
	}
	for m := range c.since {
		c.pause(m)
		if u := c.used[m]; u.wall > 0 {
			m.run.IdleCPU = float64(u.cpu) / float64(u.wall)
		}
	}
}
