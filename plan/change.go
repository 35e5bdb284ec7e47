package plan

import (
	"errors"
	"fmt"
	"time"

	"plumbline/record"
)

// Changes are what a command line says in place of the plan's; a zero field
// changes nothing.
type Changes struct {
	Rate     *float64 // as Load.Rate; 0 is a closed loop
	Workers  int
	Mode     record.Mode   // as Schedule.Mode, whatever the rate is
	Duration time.Duration // load of the whole session, shared by its blocks
	Blocks   int           // a session of fixed length
	Budget   time.Duration // as Schedule.Budget, in place of the plan's blocks
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
	if c.Mode != "" {
		q.Schedule.Mode, q.chosen.mode = c.Mode, true
	}
	switch {
	case c.Blocks < 0 || c.Blocks > maxBlocks:
		return nil, fmt.Errorf("--blocks %d: wants a number from 1 to %d", c.Blocks, maxBlocks)
	case c.Blocks > 0:
		q.Schedule.Blocks, q.Schedule.MaxBlocks, q.Schedule.Budget = c.Blocks, 0, 0
	}
	switch {
	case c.Duration < 0:
		return nil, fmt.Errorf("--duration %s: is negative", c.Duration)
	case c.Duration > 0:
		q.Schedule.Block = c.Duration / time.Duration(q.Schedule.Blocks)
		q.Schedule.MaxBlocks, q.Schedule.Budget = 0, 0 // the length is fixed now
	}
	switch {
	case c.Budget < 0:
		return nil, fmt.Errorf("--budget %s: is negative", c.Budget)
	case c.Budget > 0 && (c.Blocks > 0 || c.Duration > 0):
		other := "--blocks"
		if c.Duration > 0 {
			other = "--duration"
		}
		return nil, fmt.Errorf("--budget and %s: each says how long the session is; leave one out", other)
	case c.Budget > 0:
		q.Schedule.Budget = c.Budget
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
