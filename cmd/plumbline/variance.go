package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"plumbline/gates"
	"plumbline/plan"
	"plumbline/record"
	"plumbline/report"
	"plumbline/session"
)

const (
	varianceFile   = "variance.json"
	varianceReport = "variance.md"
	// enoughBlocks tell a spread; with fewer there is none.
	enoughBlocks = 3
	// usualBlocks are those of each mode, whatever the plan has: with blocks
	// of 10 s all three modes have three minutes of load.
	usualBlocks = 6
)

// varianceModes are all modes, in the order in which they are measured and shown.
func varianceModes() []record.Mode {
	return []record.Mode{record.Sliced, record.Interleaved, record.Sequential}
}

func newVariance() *cobra.Command {
	var f weighFlags
	var from string
	c := &cobra.Command{
		Use:   "variance [REF]",
		Short: "See what this machine can tell apart, by weighing one build against itself",
		Long: `Weighs one build against itself and shows, per route, the noise floor, the
smallest change that 6, 12 and 24 blocks would find, how often the rules would
have called a regression that is not there, and whether more blocks or longer
ones would lower the noise. The build is that of REF, else of the working tree,
or where the plan builds nothing, its router or first arm.

It measures three sessions one after the other, with the same load: sliced,
interleaved and sequential, each of 6 blocks (--blocks) as long as the plan's.
With blocks of 10 s that is three minutes of load, and a fifth more in all for
warm-ups and starts. --duration is the load of each of the three. Each is an
ordinary session below the folder, for "plumbline gate" and "plumbline report".

It ends with 0 when it worked: it demonstrates, it does not judge.`,
		Example: `  plumbline variance
  plumbline variance main --duration 30s
  plumbline variance --only "GET /search" --blocks 12
  plumbline variance --from .plumbline/2026-01-31T10.00.00-variance`,
		Args: args(cobra.MaximumNArgs(1)),
		RunE: func(c *cobra.Command, refs []string) error {
			if c.Flags().Changed("from") {
				return f.varianceFrom(c, from, refs)
			}
			if slices.Contains(refs, "") {
				return usage(errors.New("REF is empty; is a variable not set?"))
			}
			p, err := readPlan(f.plan)
			if err != nil {
				return err
			}
			return f.variance(c, session.Job{Plan: p, Refs: refs, Itself: true})
		},
		ValidArgsFunction: completeRefs,
	}
	f.add(c)
	f.addPlan(c)
	f.addKind(c)
	f.addLoad(c)
	c.Flags().Lookup("out").Usage = "folder to create for the sessions (default: a new one in .plumbline beside the plan)"
	c.Flags().Lookup("json").Usage = "print variance.json instead of the report"
	c.Flags().Lookup("duration").Usage = "load of each mode, shared by its blocks, such as 60s"
	c.Flags().Lookup("blocks").Usage = "number of blocks of each mode, at least 3 (default 6)"
	c.Flags().StringVar(&from, "from", "", "show what the sessions in this `folder` say, and measure nothing")
	_ = c.MarkFlagDirname("from")
	return c
}

// variance measures one session for each mode and shows what they say. What
// was measured before an error is kept and shown, too.
func (f *weighFlags) variance(c *cobra.Command, job session.Job) error {
	jobs, err := f.varianceJobs(c, job)
	if err != nil {
		return err
	}
	out, err := f.varianceDir(job.Plan, c.Name())
	if err != nil {
		return err
	}
	talk := newProgress(c.ErrOrStderr())
	defer talk.close()
	sessions, err := measureModes(c.Context(), jobs, out, talk)
	talk.close()
	if len(sessions) == 0 {
		_ = os.Remove(out) // goes only if it is empty: of what was refused nothing should stay
		return err
	}
	v := gates.Vary(sessions)
	if err2 := f.publishVariance(c.OutOrStdout(), out, sessions, v); err2 != nil {
		return errors.Join(err, err2)
	}
	var stop *session.StopError
	switch {
	case errors.As(err, &stop):
		return errors.New(strings.TrimSpace(stop.Error() + "\n" + sessions[len(sessions)-1].Detail))
	case err != nil:
		return fmt.Errorf("%w; %d of %d modes were measured: `plumbline variance --from %s` shows them", err, finished(sessions), len(jobs), shellQuote(relative(out)))
	case v.Empty():
		return errors.New("nothing can be said of this machine; the report names the reasons")
	}
	return nil
}

// varianceJobs is a job for each mode, in a plan of fixed length.
func (f *weighFlags) varianceJobs(c *cobra.Command, job session.Job) (jobs []session.Job, err error) {
	if err := f.positive(c); err != nil {
		return nil, err
	}
	if f.changes.Blocks == 0 {
		f.changes.Blocks = usualBlocks
	}
	if f.changes.Blocks < enoughBlocks {
		return nil, usage(fmt.Errorf("--blocks %d: the spread over blocks needs at least %d", f.changes.Blocks, enoughBlocks))
	}
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	job.Self, job.Kind = exe, f.kind
	job.Tool, job.Command = "plumbline "+version(), os.Args[1:]
	perBlock := slices.ContainsFunc(job.Plan.Services, func(s plan.Service) bool { return s.Per == plan.PerBlock })
	for _, mode := range varianceModes() {
		if mode == record.Sequential && perBlock {
			continue // a block's runs would be far apart, and the plan is refused
		}
		one := job
		f.changes.Mode = mode
		if one.Plan, err = job.Plan.With(f.changes); err != nil {
			return nil, usage(err)
		}
		jobs = append(jobs, one)
	}
	return jobs, nil
}

// varianceDir is the folder that the sessions' folders go into: new, or empty.
func (f *weighFlags) varianceDir(p *plan.Plan, command string) (string, error) {
	out, err := f.sessionDir(p, command)
	if err != nil {
		return "", err
	}
	if entries, err := os.ReadDir(out); err == nil && len(entries) > 0 {
		return "", fmt.Errorf("creating the folder of the sessions: %s is not empty; name another folder, or remove this one", out)
	}
	return out, nil
}

// measureModes runs the jobs one after the other. The first builds, the others
// use its builds. A session that was begun is among the results, also where it
// ended with the error.
func measureModes(ctx context.Context, jobs []session.Job, out string, talk *progress) (sessions []*record.Session, err error) {
	var first *session.Prepared
	defer func() {
		if first != nil {
			err = errors.Join(err, first.Close())
		}
	}()
	for i, job := range jobs {
		schedule := job.Plan.Schedule
		talk.printf("mode %d of %d: %s, %d blocks of %s of load", i+1, len(jobs), schedule.Mode, schedule.Blocks, schedule.Block)
		job.Dir, job.Builds, job.Talk = filepath.Join(out, string(schedule.Mode)), first, talk.printf
		prepared, err := session.Prepare(ctx, job)
		if err != nil {
			_ = os.Remove(job.Dir) // goes only if it is empty
			return sessions, interruptedBy(ctx, err)
		}
		s, err := prepared.Run(ctx, hooksOf(talk))
		sessions = append(sessions, s)
		if first == nil {
			first = prepared
		} else {
			err = errors.Join(err, prepared.Close())
		}
		if err = errors.Join(err, keep(s, gates.Judge(s))); err != nil {
			return sessions, err
		}
	}
	return sessions, nil
}

func finished(sessions []*record.Session) (n int) {
	for _, s := range sessions {
		if s.State == record.Complete {
			n++
		}
	}
	return n
}

// varianceFrom shows what an earlier command measured.
func (f *weighFlags) varianceFrom(c *cobra.Command, dir string, args []string) error {
	if others := besides(c, args, "from", "json"); others != "" {
		return usage(fmt.Errorf("--from measures nothing; leave out %s", others))
	}
	var sessions []*record.Session
	for _, mode := range varianceModes() {
		path := filepath.Join(dir, string(mode))
		if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
			continue
		}
		s, err := record.Open(path)
		if err != nil {
			return err
		}
		sessions = append(sessions, s)
	}
	if len(sessions) == 0 {
		return usage(fmt.Errorf("--from %s: it holds no session called sliced, interleaved or sequential, as `plumbline variance` writes them", dir))
	}
	return f.showVariance(c.OutOrStdout(), sessions, gates.Vary(sessions))
}

// publishVariance writes variance.json and variance.md and the result to w.
func (f *weighFlags) publishVariance(w io.Writer, out string, sessions []*record.Session, v *gates.Variance) error {
	if err := writeShown(filepath.Join(out, varianceFile), "", func(w io.Writer, _ string) error { return writeJSON(w, v) }); err != nil {
		return err
	}
	path := filepath.Join(out, varianceReport)
	if err := writeShown(path, "", func(w io.Writer, _ string) error { return report.VarianceMarkdown(w, sessions, v) }); err != nil {
		return err
	}
	if err := f.showVariance(w, sessions, v); err != nil || f.json {
		return err
	}
	_, err := fmt.Fprintf(w, "\nreport: %s\n", relative(path))
	return err
}

func (f *weighFlags) showVariance(w io.Writer, sessions []*record.Session, v *gates.Variance) error {
	if f.json {
		return writeJSON(w, v)
	}
	return report.Variance(w, sessions, v, textOptions(w))
}
