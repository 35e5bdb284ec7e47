package gates

import (
	"fmt"
	"math"

	"plumbline/gates/stats"
	"plumbline/record"
)

const (
	// A control of nothing must come out within this, and has failed if it
	// shows more than failedBy of that where it should show nothing.
	nothingWithin = 0.025
	failedBy      = 0.4
	// A failed control costs the whole session, so it must be surer than a limit.
	failedLevel = 0.25 // of the level of limits
)

// controls are what the session makes of what is known, after the blocks of
// the comparison; nil if it has none. That a session may grow is as for rows:
// each look has its share of the level, and what has held once has held.
func (p *pairing) controls() []Control {
	c := p.session.Schedule.Controls
	if c == nil {
		return nil
	}
	negative := Control{Kind: "negative", Zone: nothingWithin, Verdict: ControlOpen}
	positive := Control{Kind: "positive", Want: c.Delay, Zone: c.Zone, Verdict: ControlOpen}
	var nothing, delay []float64
	for _, block := range p.blocks {
		if e, ok := p.responderEffect(block); ok {
			nothing = append(nothing, e)
		}
		if e, ok := p.delayEffect(block[0]); ok {
			delay = append(delay, e)
		}
	}
	if s := stats.Describe(nothing); s.N >= minBlocks {
		negative.Zone = max(nothingWithin, digits(6, float64(p.session.Rules.FloorS)/p.responderTime())) // as every latency's
		level := p.levels.percentile(len(p.blocks))
		low, high := negative.show(s, level)
		edge, surely := math.Log1p(negative.Zone), s.HalfWidth(failedLevel*level)
		switch {
		case math.Abs(s.Mean) > max(surely, math.Log1p(failedBy*negative.Zone)):
			negative.Verdict = ControlFailed
		case low > -edge && high < edge:
			negative.Verdict = ControlHeld
		}
	}
	for _, n := range p.levels.looks(len(delay)) {
		s := stats.Describe(delay[:n])
		if s.N < minBlocks {
			continue
		}
		low, _ := positive.show(s, p.levels.percentile(n))
		if low > math.Log1p(c.Zone) {
			positive.Verdict = ControlHeld
			break // its numbers stay those that showed it
		}
	}
	if p.session.State == record.Complete && positive.Verdict == ControlOpen {
		positive.Verdict = ControlBlind
	}
	return []Control{negative, positive}
}

// show sets the numbers of a control.
func (c *Control) show(s stats.Sample, level float64) (low, high float64) {
	half := s.HalfWidth(level)
	low, high = s.Mean-half, s.Mean+half
	shown := [3]float64{}
	for i, x := range []float64{s.Mean, low, high} {
		shown[i] = digits(6, math.Expm1(x))
	}
	c.Effect, c.Low, c.High, c.Blocks = &shown[0], &shown[1], &shown[2], s.N
	return low, high
}

// responderEffect is what a block says of the responder, which no arm can
// touch, after slices of the candidate against after slices of the baseline.
func (p *pairing) responderEffect(block [2]*record.Run) (float64, bool) {
	var sides [2]map[int][]int64
	for side, run := range block {
		sides[side] = map[int][]int64{}
		for _, c := range run.Controls {
			if c.Kind == record.Responder && len(c.Latency) > 0 {
				sides[side][c.N] = c.Latency[0]
			}
		}
	}
	return matched(sides).middle()
}

// fewest requests of a route, on each side and in a block, have a median at all.
const fewest = 5

// responderTime is the responder's P50 beside the baseline, in seconds.
func (p *pairing) responderTime() float64 {
	var all []int64
	for _, block := range p.blocks {
		for _, c := range block[0].Controls {
			if c.Kind == record.Responder && len(c.Latency) > 0 {
				all = append(all, c.Latency[0]...)
			}
		}
	}
	if len(all) == 0 {
		return math.Inf(1)
	}
	stats.Sort(all)
	return max(1e-9, seconds(stats.NearestRank(50, all)))
}

// delayEffect is what a block says of the delay: the mean over the routes, each
// weighed by its requests, if they have enough together. A control has a sixth
// of the load, and is not judged route by route.
func (p *pairing) delayEffect(baseline *record.Run) (float64, bool) {
	sum, n := 0.0, 0
	for route := range p.session.Routes {
		sides := [2]map[int][]int64{{}, {}}
		for _, c := range baseline.Controls {
			if route >= len(c.Latency) {
				continue
			}
			switch c.Kind {
			case record.Undelayed:
				sides[0][c.N] = c.Latency[route]
			case record.Delayed:
				sides[1][c.N] = c.Latency[route]
			}
		}
		s := matched(sides)
		if have := min(s.n[0], s.n[1]); have >= fewest {
			sum += float64(have) * s.effect(50, s.pooled(50))
			n += have
		}
	}
	return sum / float64(max(1, n)), samples{n: [2]int{n, n}}.enough(50)
}

// middle is the effect at P50, if there are enough samples.
func (s samples) middle() (float64, bool) {
	if !s.enough(50) {
		return 0, false
	}
	return s.effect(50, s.pooled(50)), true
}

// pooled is the ratio without regard to slices.
func (s samples) pooled(percent int) float64 { return logRatio(percent, s.parts[0], s.parts[1]) }

// control is the one of a kind; nil if the session has none.
func (v *Verdict) control(kind string) *Control {
	for i := range v.Controls {
		if v.Controls[i].Kind == kind {
			return &v.Controls[i]
		}
	}
	return nil
}

// unseen is the reason of rows that would be equivalent but for the control.
const unseen = "the session did not see the control's delay, so it cannot exclude a change"

// heedControls takes away what a session may not say whose controls did not
// hold: one that did not see a change that was there cannot exclude others.
func (v *Verdict) heedControls() {
	c := v.control("positive")
	if c == nil || c.Verdict == ControlHeld {
		return
	}
	for i := range v.Comparisons {
		row := &v.Comparisons[i]
		if row.Metric != record.ErrorRate && (row.Verdict == RowEquivalent || row.NotSlower) {
			row.Verdict, row.NotSlower = RowInconclusive, false
			row.Reasons = append(row.Reasons, unseen)
		}
	}
}

// failed says that the negative control did.
func (v *Verdict) failed() bool {
	c := v.control("negative")
	return c != nil && c.Verdict == ControlFailed
}

// controlLimits are sentences on controls that keep the session from passing.
func (v *Verdict) controlLimits() (limits []string) {
	if c := v.control("negative"); c != nil && c.Verdict == ControlOpen {
		text := "The negative control was not measured in three blocks."
		if c.Effect != nil {
			text = fmt.Sprintf("The negative control is undecided: where nothing differs it may be anything from %s to %s, and must lie within ±%.1f %%.", percent(*c.Low), percent(*c.High), 100*c.Zone)
		}
		limits = append(limits, text)
	}
	if c := v.control("positive"); c != nil && c.Verdict != ControlHeld {
		text := "The positive control was not measured in three blocks: what the session would see is not known."
		if c.Effect != nil {
			said := "The session is blind"
			if c.Verdict == ControlOpen {
				said = "The positive control is undecided"
			}
			text = fmt.Sprintf(said+": a delay of %s that was there came out as anything from %s to %s, and must come out beyond %s.", percent(c.Want), percent(*c.Low), percent(*c.High), percent(c.Zone))
		}
		limits = append(limits, text)
	}
	return limits
}

// slowerOrFaster: "3.1 % slower".
func slowerOrFaster(effect float64) string {
	if effect < 0 {
		return fmt.Sprintf("%.1f %% faster", -100*effect)
	}
	return fmt.Sprintf("%.1f %% slower", 100*effect)
}
