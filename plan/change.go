package plan

import (
	"errors"
	"fmt"
	"time"
)

// Changes are what a command line says in place of the plan's; a zero field
// changes nothing.
type Changes struct {
	Rate     *float64 // as Load.Rate; 0 is a closed loop
	Workers  int
	Duration time.Duration // load of the whole session, shared by its blocks
	Blocks   int           // a session of fixed length
	Seed     *uint64
	Only     []string // as Plan.Only
}

// With returns a copy of the plan with the changes, checked as the file was.
func (p *Plan) With(c Changes) (*Plan, error) {
	q := *p
	if c.Rate != nil {
		q.Load.Rate = *c.Rate
	}
	switch {
	case c.Workers < 0 || c.Workers > maxWorkers:
		return nil, fmt.Errorf("--workers %d: wants a number from 1 to %d", c.Workers, maxWorkers)
	case c.Workers > 0:
		q.Load.Workers, q.chosen.workers = c.Workers, true
	}
	switch {
	case c.Blocks < 0 || c.Blocks > maxBlocks:
		return nil, fmt.Errorf("--blocks %d: wants a number from 1 to %d", c.Blocks, maxBlocks)
	case c.Blocks > 0:
		q.Schedule.Blocks, q.Schedule.MaxBlocks = c.Blocks, 0
	}
	switch {
	case c.Duration < 0:
		return nil, fmt.Errorf("--duration %s: is negative", c.Duration)
	case c.Duration > 0:
		q.Schedule.Block = c.Duration / time.Duration(q.Schedule.Blocks)
		if q.Schedule.MaxBlocks > 0 {
			q.Schedule.MaxBlocks = 0 // the length is fixed now
		}
	}
	if c.Seed != nil {
		q.Seed = *c.Seed
	}
	q.Only = c.Only
	q.fillIn()
	if err := q.Schedule.check(); err != nil {
		return nil, errors.New("the changes on the command line: " + err.Error())
	}
	return &q, nil
}
