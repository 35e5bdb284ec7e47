package gates

import (
	"fmt"

	"plumbline/record"
)

// mostIdleCPU is the share of one CPU that an arm may use while others have the load.
const mostIdleCPU = 0.01

// carryOver says why no latency of the comparison can be trusted: an arm that
// was not frozen worked while the other one was measured. What it puts off
// would be paid by the other one, and a slower build could look the same.
func (p *pairing) carryOver() string {
	if p.session.Schedule.Mode != record.Sliced || p.session.Schedule.Freeze {
		return ""
	}
	for side, arm := range p.arms {
		sum := 0.0
		for _, block := range p.blocks {
			sum += block[side].IdleCPU
		}
		if mean := sum / float64(max(1, len(p.blocks))); mean > mostIdleCPU {
			return fmt.Sprintf("carry-over: %s used %.1f %% of a CPU while the other arm had the load; use freeze: true or mode: interleaved", arm, 100*mean)
		}
	}
	return ""
}
