package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"plumbline/gates"
	"plumbline/mocks/demo"
	"plumbline/plan"
	"plumbline/record"
	"plumbline/session"
)

func newTry() *cobra.Command {
	var f weighFlags
	slow := demo.Slow{}
	var slowFlag string
	c := &cobra.Command{
		Use:   "try",
		Short: "See plumbline find a planted slowdown, in a minute or two",
		Long: `Weighs the demo router against a copy of itself in which one route does more
work, and shows the report that "plumbline against" would have made. Blocks are
added while a row is undecided, which on a busy machine may take four minutes.
Ends with 0 if it found exactly what was planted, else with 1.`,
		Args: args(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			var err error
			if slow, err = demo.ParseSlow(slowFlag); err != nil {
				return usage(err)
			}
			if slow.Share < 0.2 {
				return usage(fmt.Errorf("--slow %q: plant at least 20 %%; with less, half a minute of load may not tell it from the zone of 5 %%", slowFlag))
			}
			dir, err := os.MkdirTemp("", "plumbline-try-")
			if err != nil {
				return err
			}
			defer os.RemoveAll(dir)
			p, err := tryPlan(dir, slowFlag)
			if err != nil {
				return err
			}
			if f.out == "" { // beside the reader, not in the plan's temporary folder
				here := *p
				if here.Dir, err = os.Getwd(); err != nil {
					return err
				}
				if f.out, err = f.sessionDir(&here, c.Name()); err != nil {
					return err
				}
			}
			v, err := f.weigh(c, session.Job{Plan: p, Scratch: dir})
			var exit *exitError
			if v == nil || err != nil && !(errors.As(err, &exit) && exit.err == nil) {
				return err
			}
			return tell(c, v, slow)
		},
	}
	f.add(c)
	c.Flags().StringVar(&slowFlag, "slow", "GET /search=30%", "the planted slowdown, as ROUTE=SHARE% of the route's own work")
	return c
}

// tryPlan writes the demo's plan and targets to dir: a plan like any other.
func tryPlan(dir, slow string) (*plan.Plan, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	exe = strings.ReplaceAll(exe, "{", "{{")
	run := []string{exe, "mock", "demo", "--listen", "{socket}"}
	type m = map[string]any
	source, err := json.MarshalIndent(m{
		"router": m{"run": run, "ready": m{"http": "/health", "within": "30s"}},
		"arms":   m{"baseline": m{}, "candidate": m{"run": append(run[:len(run):len(run)], "--slow", slow)}},
		"kinds":  m{"demo": m{"targets": "targets.http"}},
		"expect": m{"GET /nothing": m{"status": []int{404}}},
		"warmup": m{"load": "1s"},
	}, "", "  ")
	if err != nil {
		return nil, err
	}
	for name, data := range map[string]string{"plan.json": string(source) + "\n", "targets.http": demo.Targets, "film.json": demo.Film} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(data), 0o644); err != nil {
			return nil, err
		}
	}
	return plan.Read(filepath.Join(dir, "plan.json"))
}

// tell says whether the verdict is what was planted: the slowed route a
// regression, every other judged row equivalent.
func tell(c *cobra.Command, v *gates.Verdict, slow demo.Slow) error {
	var wrong []string
	found := gates.RowNotComparable
	for _, r := range v.Comparisons {
		route, _, _ := strings.Cut(r.Route, "?")
		switch {
		case !r.Judged:
		case route == slow.Route && r.Metric == record.LatencyP50:
			found = r.Verdict
		case route == slow.Route:
		case r.Verdict != gates.RowEquivalent:
			wrong = append(wrong, fmt.Sprintf("%s %s is %s", r.Route, r.Metric, r.Verdict))
		}
	}
	if found != gates.RowRegression {
		wrong = append([]string{fmt.Sprintf("%s was not found to be slower, its P50 is %s", slow.Route, found)}, wrong...)
	}
	if len(wrong) > 0 {
		return fmt.Errorf("the planted slowdown (%s does %.3g %% more work) was not all that was found: %s; is the machine very busy?", slow.Route, slow.Share*100, strings.Join(wrong, "; "))
	}
	fmt.Fprintf(c.ErrOrStderr(), "found exactly what was planted: %s does %.3g %% more work in the candidate; `plumbline against` would have exited with %d\n", slow.Route, slow.Share*100, v.ExitCode)
	return nil
}
