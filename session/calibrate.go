package session

import (
	"crypto/sha256"
	"time"

	"plumbline/record"
)

// calibrationTolerance is how much faster or slower the machine may be when a
// session is gone on with, as a share (docs/METHOD.md, "Gate 1").
const calibrationTolerance = 0.20

// calibrate notes how fast the machine is; of a session that is gone on with,
// it refuses another speed than it began with.
func (p *Prepared) calibrate() error {
	took := record.Seconds(fixedWork().Seconds())
	was := p.session.CalibrationS
	if was == 0 {
		p.session.CalibrationS = took
		return nil
	}
	if change := float64(took/was) - 1; change > calibrationTolerance || change < -calibrationTolerance {
		return p.refuse("the machine has another speed than when it began: a fixed piece of work takes %+.0f %%", 100*change)
	}
	return nil
}

// fixedWork is the best of several tries of some milliseconds each: what else
// runs on the machine can make a try longer, never shorter.
func fixedWork() (best time.Duration) {
	data := make([]byte, 1<<20)
	for range 10 {
		began := time.Now()
		for range 4 {
			sum := sha256.Sum256(data)
			copy(data, sum[:])
		}
		if took := time.Since(began); best == 0 || took < best {
			best = took
		}
	}
	return best
}
