package session

import (
	"context"
	"errors"
	"slices"

	"plumbline/record"
)

// This file is which blocks the conductor measures: those of the plan, those
// that are measured again because they lost a run, those that are added while
// the verdict is open, and what is left of a session that is gone on with.
// budget.go says how many fit into a budget.

// add plans n further blocks.
func (c *conductor) add(n int) {
	for _, g := range c.order.add(n) {
		c.todo = append(c.todo, g)
		c.session.Order = append(c.session.Order, g.runs...)
	}
	c.spent += n
}

// takeUp plans what is left of a session that was begun before. A block of
// which a run was begun and not all are complete is lost: its runs were to be
// measured back to back. What it has not begun is not planned any more.
func (c *conductor) takeUp() {
	meta := &c.session.Meta
	runs := map[string]*record.Run{}
	touched, lost, faulty := map[int]bool{}, map[int]bool{}, map[int]bool{}
	for _, r := range c.session.Runs {
		runs[r.ID] = r
		touched[r.Block] = true
		if r.State == record.Died {
			c.deaths[r.Arm]++
			faulty[r.Block] = true
		}
		if len(r.Preflight) > 0 {
			c.started[r.Arm] = true
		}
	}
	blocks := 0
	for block := range touched {
		c.before += c.span(block)
	}
	for _, ref := range meta.Order {
		blocks = max(blocks, ref.Block)
		if r := runs[ref.ID]; touched[ref.Block] && (r == nil || r.State != record.Complete) {
			lost[ref.Block] = true
		}
	}
	for _, g := range c.order.add(blocks) {
		if !touched[g.block] {
			c.todo = append(c.todo, g)
		}
	}
	for b := 1; b <= blocks; b++ {
		if !lost[b] || faulty[b] {
			c.spent++
		}
	}
	meta.Order = slices.DeleteFunc(meta.Order, func(ref record.RunRef) bool {
		return lost[ref.Block] && runs[ref.ID] == nil
	})
}

// wanted is how many complete blocks the session goes for, as things stand.
func (c *conductor) wanted() int {
	s := c.session.Schedule
	if s.MaxBlocks > 0 && !c.standing.Decided && c.standing.Hopeless == "" {
		return s.MaxBlocks
	}
	return s.Blocks
}

// completeBlocks are those of which every arm has a complete run, in order.
func (c *conductor) completeBlocks() (blocks []int) {
	arms := map[int]map[string]bool{}
	for _, r := range c.session.Runs {
		if r.State != record.Complete {
			continue
		}
		if arms[r.Block] == nil {
			arms[r.Block] = map[string]bool{}
		}
		arms[r.Block][r.Arm] = true
	}
	for block, have := range arms {
		if len(have) == len(c.session.Arms) {
			blocks = append(blocks, block)
		}
	}
	slices.Sort(blocks)
	return blocks
}

// groups measures until nothing is left to do. Then, while too few blocks are
// complete, because some lost a run or the verdict is open, it adds one.
func (c *conductor) groups(ctx context.Context) error {
	for {
		if len(c.todo) == 0 {
			if len(c.completeBlocks()) >= c.wanted() || c.spent >= c.wanted()+c.session.Schedule.Retries {
				return nil
			}
			if c.outOfTime = !c.fits(); c.outOfTime {
				return nil
			}
			c.add(1)
		}
		g := c.todo[0]
		c.todo = c.todo[1:]
		err := c.group(ctx, g)
		c.done++
		for _, ref := range g.runs {
			switch r, err2 := c.session.ReadRun(ref.ID); {
			case err2 == nil:
				c.session.Runs = append(c.session.Runs, r)
				if t := c.session.Targets; t != nil { // session.json is saved at the end
					t.Skipped = max(t.Skipped, r.Skipped)
				}
				if c.clock.IsZero() {
					c.clock = r.Started
				}
			case !errors.Is(err2, record.ErrNoRun):
				err = errors.Join(err, err2)
			}
		}
		if err != nil {
			return err
		}
		if last := len(c.todo) == 0 || c.todo[0].block != g.block; last {
			if err := c.fixLength(); err != nil {
				return err
			}
			if c.hooks.Interim != nil {
				c.standing = c.hooks.Interim(c.session)
			}
			c.tell(Event{Phase: "done", Block: g.block, Done: true, Lost: c.lost})
			c.lost = ""
		}
	}
}

// left is how many groups are still to be measured, if no verdict comes sooner.
func (c *conductor) left() int {
	perBlock := 1
	if c.session.Schedule.Mode != record.Sliced {
		perBlock = len(c.session.Arms)
	}
	return len(c.todo) + perBlock*max(0, c.wanted()-c.spent)
}
