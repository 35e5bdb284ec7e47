package gates

import (
	"fmt"
	"math"
	"strings"
	"time"

	"plumbline/gates/stats"
	"plumbline/record"
)

// implausible is the largest improvement that is believed: twice as fast.
const implausible = 0.5

// latencies judges one latency metric on every route. Its claims form one
// family: routes, and for the distribution routes × percentiles.
func (p *pairing) latencies(metric record.Metric, rule record.Rule, judged bool, out map[string][]string) []Comparison {
	if p.routes == nil {
		p.routes = make([]*measured, len(p.session.Routes))
		each(len(p.routes), func(i int) { p.routes[i] = putTogether(p.effects[i], p.speeds[i].keeps) })
	}
	repeats := make([][]Repeat, len(p.session.Routes))
	if p.unsliced() || !p.past { // elsewhere they are only shown
		each(len(repeats), func(i int) { repeats[i] = p.repeat(i, metric, rule.Zone) })
	}
	rows := make([]*row, len(repeats))
	for i, route := range p.session.Routes {
		r := &row{Comparison: p.row(route.Name, metric, "s", rule, judged)}
		r.ruledOut = len(out[route.Name]) > 0
		r.Reasons = append(r.Reasons, out[route.Name]...)
		p.fill(r, p.routes[i], rule)
		if len(r.claims) > 0 && !r.ruledOut {
			r.Reasons = append(r.Reasons, p.speeds[i].named...)
			if p.speeds[i].apart != "" {
				r.Speeds = p.speeds[i].groups
			}
			r.disagree, r.NeedsRepeats = p.disagree(i, repeats[i]), p.needsRepeats(i, repeats[i])
			p.repeats = append(p.repeats, repeats[i]...)
		}
		rows[i] = r
	}
	p.decideFamily(rows)
	comparisons := make([]Comparison, len(rows))
	for i, r := range rows {
		r.show()
		comparisons[i] = r.Comparison
	}
	return comparisons
}

// fill gives the row its claims, or the reason why it has none.
func (p *pairing) fill(r *row, m *measured, rule record.Rule) {
	r.Requests = m.requests
	points := m.of(r.Metric)
	if middle := points[len(points)/2]; min(m.requests[0], m.requests[1]) > 0 {
		r.Values = &[2]float64{seconds(middle.values[0]), seconds(middle.values[1])}
	}
	if m.blocks < minBlocks {
		r.Blocks = m.blocks
		r.Reasons = append(r.Reasons, needsBlocks(m.blocks))
		return
	}
	if r.Metric == record.LatencyDistribution {
		// Fewer requests take the outer percentiles first, the same on both sides.
		for points[0].p <= 25 && len(points[0].effects) < minBlocks {
			points = points[1 : len(points)-1]
		}
		if points[0].p > 25 {
			p.tooFew(r, m.at(25))
			return
		}
		if points[0].p > 5 {
			r.Reasons = append(r.Reasons, fmt.Sprintf("judged from P%d to P%d: too few requests beyond", points[0].p, 100-points[0].p))
		}
	} else if len(points[0].effects) < minBlocks {
		p.tooFew(r, points[0])
		return
	}
	if n := len(points[0].effects); n < m.blocks {
		r.Reasons = append(r.Reasons, fmt.Sprintf("%d of %d blocks had enough requests beyond P%d", n, m.blocks, points[0].p))
	}
	if drift := p.drift(points[len(points)/2]); drift > smallBetween*math.Log1p(rule.Zone) {
		r.Reasons = append(r.Reasons, fmt.Sprintf("the candidate was measured last: what changes from run to run may make ±%.1f %% of the difference at P%d", 100*math.Expm1(drift), points[len(points)/2].p))
	}
	for _, pt := range points {
		zone := p.zoneAt(rule, pt)
		c := pt.claim(m, zone, p.levels.percentile, len(p.blocks), p.drift(pt))
		r.claims = append(r.claims, c)
		r.Percentiles = append(r.Percentiles, Percentile{
			P:      pt.p,
			Values: [2]float64{seconds(pt.values[0]), seconds(pt.values[1])},
			Effect: digits(6, math.Expm1(c.estimate)), Low: digits(6, math.Expm1(c.low)), High: digits(6, math.Expm1(c.high)),
			Zone: digits(6, zone), Blocks: len(pt.effects),
		})
	}
	r.Blocks = len(points[0].effects)
}

// zoneAt is the zone in force at a percentile: the rule's, or the floor's in time.
func (p *pairing) zoneAt(rule record.Rule, pt point) float64 {
	if pt.values[0] <= 0 {
		return rule.Zone
	}
	return max(rule.Zone, float64(p.session.Rules.FloorS)/seconds(pt.values[0]))
}

// drift is by how much an effect may be off because the arms did not take
// turns: the candidate's runs came after all of the baseline's, and what changes
// from run to run within each arm has gone on changing between them.
func (p *pairing) drift(pt point) float64 {
	if p.inTurns() {
		return 0
	}
	n := len(pt.effects)
	return float64(n) * stats.CommonTrend(pt.levels[0], pt.levels[1]).Farthest(p.levels.percentile(len(p.blocks)))
}

// claim turns the effects of the blocks into limits and p-values. The clock's
// tick and a drift between the arms widen all of them: a percentile may be off
// by that much.
func (pt point) claim(m *measured, zone float64, level func(blocks int) float64, blocks int, drift float64) claim {
	s := stats.Describe(pt.effects)
	edge := math.Log1p(zone)
	widen, barred := 0.0, ""
	switch base := float64(pt.values[0]); {
	case m.flat || base <= 0:
		barred = fmt.Sprintf("resolution: the clock shows nothing but %v", time.Duration(pt.values[0]))
	case float64(m.tick) > zone/4*base:
		widen = float64(m.tick) / base
		barred = fmt.Sprintf("resolution: the clock's tick of %v is more than a quarter of the zone at P%d (%v)",
			time.Duration(m.tick), pt.p, time.Duration(zone*base))
	default:
		widen = float64(m.tick) / base
	}
	if s.Mean < math.Log(implausible) && barred == "" {
		barred = "implausible: more than twice as fast"
	}
	widen += drift
	c := claim{
		estimate: s.Mean, lower: -edge, upper: edge,
		second: stats.Describe(pt.pooled).Mean,
		slower: s.Above(edge + widen), faster: s.Below(-edge - widen),
		noise:  s.SD / math.Sqrt(float64(s.N)),
		barred: barred, level: level,
	}
	c.project = func(blocks int, level float64) (low, high float64) {
		more := s
		more.N = blocks
		half := more.HalfWidth(level) + widen
		return s.Mean - half, s.Mean + half
	}
	c.low, c.high = c.project(s.N, level(blocks))
	return c
}

// show copies the deciding percentile to the row's own fields.
func (r *row) show() {
	if len(r.claims) == 0 {
		return
	}
	at := r.Percentiles[r.deciding]
	r.Values, r.Effect, r.Low, r.High, r.Zone, r.Blocks = &at.Values, &at.Effect, &at.Low, &at.High, at.Zone, at.Blocks
	if r.Metric == record.LatencyDistribution {
		r.Percentile = at.P
	} else {
		r.Percentiles = nil
	}
}

func (p *pairing) tooFew(r *row, pt point) {
	need := minBeyond
	if pt.p == 99 {
		need = minBeyondP99
	}
	remedy := "lengthen block, or raise the number of blocks"
	if len(pt.effects) == 0 {
		remedy = "lengthen block (and slice, where it holds few requests of each route: the first does not count)"
	}
	if p.session.Loose {
		remedy = "longer attacks have more"
	}
	r.Blocks = len(pt.effects)
	r.Reasons = append(r.Reasons, fmt.Sprintf("too few requests: %d of %d blocks had %d beyond P%d in each arm, %d must; %s",
		len(pt.effects), len(p.blocks), need, pt.p, minBlocks, remedy))
}

// of are the points that a metric is about.
func (m *measured) of(metric record.Metric) []point {
	switch metric {
	case record.LatencyP50:
		return []point{m.at(50)}
	case record.LatencyP99:
		return []point{m.at(99)}
	}
	return m.points[:len(m.points)-1] // P5 to P95
}

func (m *measured) at(percent int) point {
	for _, pt := range m.points {
		if pt.p == percent {
			return pt
		}
	}
	return point{p: percent}
}

func needsBlocks(have int) string {
	return fmt.Sprintf("needs at least %d blocks, has %d", minBlocks, have)
}

func seconds(ns int64) float64 { return float64(ns) / 1e9 }

// digits rounds what is shown, after everything is decided: the last bits of
// a logarithm differ from one kind of processor to the next, a verdict.json must not.
func digits(n int, x float64) float64 {
	scale := math.Pow10(n)
	return math.Round(x*scale) / scale
}

func percent(share float64) string {
	return strings.ReplaceAll(fmt.Sprintf("%+.1f %%", 100*share), "-", "−")
}
