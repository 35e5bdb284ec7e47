package gates

import (
	"fmt"
	"strings"

	"plumbline/record"
)

// Explore judges a session by rules of the caller's. A verdict by other rules
// than the record's is exploratory and says what differs: rules that are chosen
// once the result is known prove nothing. Loose files hold no rules to differ
// from. The session that it returns has the rules that were used, for the report.
func Explore(s *record.Session, rules record.Rules) (*record.Session, *Verdict) {
	other := *s
	other.Rules = rules
	v := Judge(&other)
	if changes := ruleChanges(s.Rules, rules); len(changes) > 0 && !s.Loose {
		v.Exploratory = true
		if c, zone := v.control("positive"), rules.Metrics[record.LatencyP50].Zone; c != nil && zone > 0 && zone < c.Zone {
			v.Reasons = append(v.Reasons, fmt.Sprintf("The positive control was for a zone of ±%s: that the session would have seen a change just beyond ±%s was not shown.", amount(record.LatencyP50, c.Zone), amount(record.LatencyP50, zone)))
		}
		v.Reasons = append(v.Reasons, "Exploratory: judged by other rules than the session was measured with: "+strings.Join(changes, "; ")+".")
	}
	return &other, v
}

// ruleChanges says how rules differ, metric by metric.
func ruleChanges(was, is record.Rules) (changes []string) {
	for _, m := range record.Metrics {
		before, had := was.Metrics[m]
		now, has := is.Metrics[m]
		switch {
		case had == has && before == now:
			continue
		case !has:
			changes = append(changes, metricName(m)+" left out (before: "+role(before)+")")
			continue
		case !had:
			changes = append(changes, fmt.Sprintf("%s %s, zone ±%s (before: left out)", metricName(m), role(now), amount(m, now.Zone)))
			continue
		}
		if before.Zone != now.Zone {
			changes = append(changes, fmt.Sprintf("zone of %s ±%s (before: ±%s)", metricName(m), amount(m, now.Zone), amount(m, before.Zone)))
		}
		if before.Watch != now.Watch {
			changes = append(changes, fmt.Sprintf("%s %s (before: %s)", metricName(m), role(now), role(before)))
		}
	}
	if was.FloorS != is.FloorS {
		changes = append(changes, fmt.Sprintf("floor %v (before: %v)", is.FloorS.Duration(), was.FloorS.Duration()))
	}
	return changes
}

func role(r record.Rule) string {
	if r.Watch {
		return "watched"
	}
	return "judged"
}
