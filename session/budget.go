package session

import (
	"fmt"
	"math"
	"time"

	"plumbline/plan"
	"plumbline/record"
)

// This file is the time that a session with a budget may take: from the first
// start of a router to the end of the last block. How many blocks that allows
// must be known to share out the chance of a false claim over the looks. So it
// is estimated from the schedule, and fixed by how long the first two complete
// blocks took: by the clock, never by what was measured.

// decidable is how many blocks a verdict needs.
const decidable = 3

// usualBlocks is how many complete blocks a session with a budget has before
// it is first looked at, if they fit.
const usualBlocks = 6

// mostBlocks keeps a long budget from taking longer to judge than to measure:
// each block is one more look at all that are there.
const mostBlocks = 500

// fitBudget sets how many blocks a schedule with a budget has, as far as it
// tells by itself. It refuses a budget too short for a verdict.
func fitBudget(s *record.Schedule, arms int) error {
	if s.BudgetS == 0 {
		return nil
	}
	least := leastOf(arms)
	if need := lengthOf(*s, arms, least); need > s.BudgetS.Duration() {
		return fmt.Errorf("schedule.budget: %s is too short: by the schedule %s take %s, and starts and stops come on top; give it %s at least, or make schedule.block or warmup shorter",
			plan.Short(s.BudgetS.Duration()), count(least, "block"), plan.Short(need.Round(100*time.Millisecond)), plan.Short(enough(need)))
	}
	s.Blocks, s.MaxBlocks = blocksWithin(s.BudgetS.Duration(), lengthOf(*s, arms, 1))
	return nil
}

// enough is a budget for what takes so long, in whole seconds.
func enough(d time.Duration) time.Duration {
	return time.Duration(math.Ceil(1.05*d.Seconds())) * time.Second
}

// leastOf is how many blocks a session cannot do without; a single arm is
// measured, not judged.
func leastOf(arms int) int {
	if arms == 1 {
		return 1
	}
	return decidable
}

// blocksWithin is how many blocks fit into a budget: the fewest and the most
// that the session goes for.
func blocksWithin(budget, block time.Duration) (least, most int) {
	most = mostBlocks
	if block > 0 {
		most = min(most, int(budget/block))
	}
	return min(usualBlocks, most), most
}

// span is how long a block took, from the first start of a router to the last
// stop; 0 if it was not measured.
func (c *conductor) span(block int) time.Duration {
	var from, to time.Time
	for _, r := range c.session.Runs {
		if r.Block != block {
			continue
		}
		if from.IsZero() || r.Started.Before(from) {
			from = r.Started
		}
		ended := r.Ended
		if n := len(r.Slices); ended.IsZero() && n > 0 { // plumbline was killed in it
			ended = r.Slices[n-1].End
		}
		if ended.After(to) {
			to = ended
		}
	}
	return max(0, to.Sub(from))
}

// fixLength is called after every block. After the second complete one it fixes
// how many fit, by their mean: the first may have waited for a cold cache, or
// for the machine. Later calls find the same in the record.
func (c *conductor) fixLength() error {
	s, complete := &c.session.Schedule, c.completeBlocks()
	if s.BudgetS == 0 || len(complete) == 0 {
		return nil
	}
	budget, need := s.BudgetS.Duration(), leastOf(len(c.session.Arms))
	took := c.span(complete[0])
	if len(complete) == 1 {
		if took+lengthOf(*s, len(c.session.Arms), need-1) <= budget {
			return nil
		}
	} else {
		took = (took + c.span(complete[1])) / 2
	}
	least, most := blocksWithin(budget, took)
	if most < need {
		return &StopError{fmt.Errorf("a block took %s, so that only %d of the %s that a verdict needs fit into the budget of %s; give it %s at least",
			plan.Short(took.Round(10*time.Millisecond)), most, count(need, "block"), plan.Short(budget), plan.Short(enough(time.Duration(need)*took)))}
	}
	if len(complete) == 1 {
		return nil
	}
	if s.Blocks == least && s.MaxBlocks == most {
		return nil
	}
	s.Blocks, s.MaxBlocks = least, most
	return c.folder.SaveMeta(c.session.Meta)
}

// fits says whether one block more would end within the budget, going by what
// the complete ones took on average.
func (c *conductor) fits() bool {
	limit := c.session.Schedule.BudgetS.Duration()
	if limit == 0 {
		return true
	}
	used := c.before
	if !c.clock.IsZero() { // gaps between blocks count, too
		used += time.Since(c.clock)
	}
	next := lengthOf(c.session.Schedule, len(c.session.Arms), 1)
	if complete := c.completeBlocks(); len(complete) > 0 {
		next = 0
		for _, b := range complete {
			next += c.span(b) / time.Duration(len(complete))
		}
	}
	return used+next <= limit
}

// early says why a session that is over has fewer blocks than it might have
// had and is undecided; empty: it is not so.
func (c *conductor) early() string {
	s := c.session.Schedule
	switch {
	case c.standing.Decided:
		return ""
	case c.standing.Hopeless != "":
		return c.standing.Hopeless
	case c.outOfTime:
		return fmt.Sprintf("The budget of %s ended the session after %d of at most %s.", plan.Short(s.BudgetS.Duration()), len(c.completeBlocks()), count(s.MaxBlocks, "block"))
	}
	return ""
}
