package gates

import (
	"math"

	"plumbline/gates/stats"
	"plumbline/record"
)

// This file is how often the rules would call a regression that is not there:
// of one build against itself, each block's sides could as well have had each
// other's name.

// flipClaim is what the blocks say of one claim, and of which metric it is.
type flipClaim struct {
	metric  record.Metric
	values  []float64 // by block; 0 where it has too few requests, or is set aside
	present []float64 // the others
	edge    float64   // of the zone, ln, widened
	widen   float64
}

// claims are those of a route that the gates would test.
func (r varyingRoute) claims() (all []flipClaim) {
	if r.measured.flat {
		return nil
	}
	for _, metric := range []record.Metric{record.LatencyP50, record.LatencyDistribution, record.LatencyP99} {
		rule, ok := r.session.Rules.Metrics[metric]
		if !ok {
			continue
		}
		for _, pt := range r.measured.of(metric) {
			if len(pt.effects) < minBlocks {
				continue
			}
			c := flipClaim{metric: metric, present: pt.effects, widen: r.widen(pt)}
			c.edge = math.Log1p(r.zoneAt(rule, pt)) + c.widen
			i := placeOf(pt.p)
			for at, b := range r.blocks {
				x := 0.0
				if b.effects[i].enough && r.speeds.keeps(at) {
					x = b.effects[i].median
				}
				c.values = append(c.values, x)
			}
			all = append(all, c)
		}
	}
	return all
}

// relabel counts false alarms; nil where there is no claim.
func relabel(claims []flipClaim, p *pairing) *FalseAlarms {
	if len(claims) == 0 {
		return nil
	}
	out := &FalseAlarms{}
	alarms := func(some []flipClaim) (a Alarm) {
		a.Zone, out.Labellings = p.flips(claims, some, func(c flipClaim) float64 { return c.edge })
		a.Noise, _ = p.flips(claims, some, func(c flipClaim) float64 { return c.widen })
		return a
	}
	for _, metric := range record.Metrics {
		some := ofMetric(claims, metric)
		if len(some) == 0 {
			continue
		}
		out.Metrics = append(out.Metrics, MetricAlarm{
			Metric: metric, Claims: len(some), Level: p.levels.family(len(p.blocks), len(some)), Alarm: alarms(some),
		})
	}
	out.Any = alarms(claims)
	out.Exact = out.Labellings == 1<<len(p.blocks)
	return out
}

// flips is the share of labellings in which one of some claims is called a
// regression. Holm's smallest p-value is the smallest p-value times the number
// of claims in the family, so any is, just where one is at its part of the level.
func (p *pairing) flips(all, some []flipClaim, edge func(flipClaim) float64) (float64, int) {
	var values [][]float64
	var limits []float64
	for _, c := range some {
		family := len(ofMetric(all, c.metric))
		level := p.levels.family(len(p.blocks), family) / float64(family)
		values = append(values, c.values)
		limits = append(limits, stats.FlipLimit(c.present, edge(c), level))
	}
	found, n := stats.SignFlips(values, limits, p.session.Seed)
	return digits(6, found), n
}

func ofMetric(claims []flipClaim, metric record.Metric) (some []flipClaim) {
	for _, c := range claims {
		if c.metric == metric {
			some = append(some, c)
		}
	}
	return some
}
