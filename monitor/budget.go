package monitor

import "time"

// budget keeps a reading that can be dear (the kernel walks all pages for the
// proportional memory, all threads for context switches) below a thousandth of
// one CPU: the dearer it was, the later it is done again.
type budget struct{ next time.Duration }

const budgetShare = 1000

// spend does the reading if it is due at a moment of clock, and says whether it was.
func (b *budget) spend(now time.Duration, read func()) bool {
	if now < b.next {
		return false
	}
	before := ownCPU()
	read()
	b.next = now + budgetShare*(ownCPU()-before)
	return true
}
