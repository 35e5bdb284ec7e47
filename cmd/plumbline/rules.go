package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"plumbline/plan"
	"plumbline/record"
)

// ruleFlags are rules for judging again, in place of the record's.
type ruleFlags struct {
	changes []func(*record.Rules)
	seen    map[string]bool // "zone latency_p50", "role latency_p50"
}

func (f *ruleFlags) add(c *cobra.Command) {
	f.seen = map[string]bool{}
	c.Flags().Func("zone", "judge with another zone, as `METRIC=ZONE`, such as latency_p50=2.5% or \"error_rate=0.2 points\"; may be given several times", func(s string) error {
		name, text, ok := strings.Cut(s, "=")
		if !ok {
			return errors.New("want METRIC=ZONE, such as latency_p50=2.5%")
		}
		metric, err := metricOf(name)
		if err != nil {
			return err
		}
		zone, err := plan.ParseZone(metric, text)
		if err != nil {
			return err
		}
		return f.change("zone", metric, func(r *record.Rule) { r.Zone = zone })
	})
	for name, watch := range map[string]bool{"watch": true, "judge": false} {
		usage := "only watch this `METRIC`: of it only a regression counts; may be given several times"
		if !watch {
			usage = "let this `METRIC` decide; may be given several times"
		}
		c.Flags().Func(name, usage, func(s string) error {
			metric, err := metricOf(s)
			if err != nil {
				return err
			}
			return f.change("role", metric, func(r *record.Rule) { r.Watch = watch })
		})
		_ = c.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(metricNames(), cobra.ShellCompDirectiveNoFileComp))
	}
	c.Flags().Func("floor", "judge with another floor: differences of latencies below this `time`, such as 2us, never count; 0s is none", func(s string) error {
		floor, err := time.ParseDuration(s)
		if err != nil || floor < 0 {
			return fmt.Errorf("%q is no time from 0 on; write one such as 2us", s)
		}
		f.changes = append(f.changes, func(r *record.Rules) { r.FloorS = record.Seconds(floor.Seconds()) })
		return nil
	})
}

// change notes what is to be done to one metric's rule, once for each of its
// fields. What a record does not judge starts from the default.
func (f *ruleFlags) change(field string, metric record.Metric, change func(*record.Rule)) error {
	key := field + " " + string(metric)
	if f.seen[key] {
		return fmt.Errorf("the %s of %s is given twice; keep one", field, metric)
	}
	f.seen[key] = true
	f.changes = append(f.changes, func(rules *record.Rules) {
		rule, ok := rules.Metrics[metric]
		if !ok {
			rule = record.DefaultRules().Metrics[metric]
		}
		change(&rule)
		rules.Metrics[metric] = rule
	})
	return nil
}

// over are the record's rules with those of the command line over them.
func (f *ruleFlags) over(was record.Rules) record.Rules {
	rules := was
	rules.Metrics = maps.Clone(was.Metrics)
	if rules.Metrics == nil {
		rules.Metrics = map[record.Metric]record.Rule{}
	}
	for _, change := range f.changes {
		change(&rules)
	}
	return rules
}

func metricOf(name string) (record.Metric, error) {
	if metric := record.Metric(name); slices.Contains(record.Metrics[:], metric) {
		return metric, nil
	}
	return "", fmt.Errorf("no metric is called %q; they are %s", name, strings.Join(metricNames(), ", "))
}

func metricNames() (names []string) {
	for _, m := range record.Metrics {
		names = append(names, string(m))
	}
	return names
}
