package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"plumbline/gates"
	"plumbline/plan"
	"plumbline/record"
	"plumbline/report"
	"plumbline/session"
)

// weighFlags are what every command that runs a session takes.
type weighFlags struct {
	kind    string
	out     string
	json    bool
	plan    string
	changes plan.Changes
}

func (f *weighFlags) add(c *cobra.Command) {
	c.Flags().StringVarP(&f.out, "out", "o", "", "session folder to create (default: a new one in .plumbline beside the plan)")
	c.Flags().BoolVar(&f.json, "json", false, "print verdict.json instead of the report")
	c.Flags().Func("seed", "seed of all chance, a whole `number`, instead of the plan's", func(s string) error {
		var n uint64
		f.changes.Seed = &n
		return whole(&n, 0, anySeed).Set(s)
	})
}

// addLoad adds what changes the plan's load and schedule.
func (f *weighFlags) addLoad(c *cobra.Command) {
	c.Flags().Func("rate", "fixed arrival rate, such as 500/s, instead of the plan's; 0 is a closed loop", func(s string) error {
		rate := 0.0
		if s != "0" {
			var err error
			if rate, err = plan.ParseRate(s); err != nil {
				return err
			}
		}
		f.changes.Rate = &rate
		return nil
	})
	c.Flags().IntVar(&f.changes.Workers, "workers", 0, "requests under way at once (at a fixed rate: at most), instead of the plan's")
	c.Flags().DurationVar(&f.changes.Duration, "duration", 0, "load of the whole session, shared by its blocks, such as 60s")
	c.Flags().IntVar(&f.changes.Blocks, "blocks", 0, "number of blocks, instead of the plan's; fewer than 3 cannot be judged")
	c.Flags().StringArrayVar(&f.changes.Only, "only", nil, "send only this `route`, such as \"GET /search?q=river\"; may be given several times")
}

// addBudget is for sessions that may grow.
func (f *weighFlags) addBudget(c *cobra.Command) {
	c.Flags().DurationVar(&f.changes.Budget, "budget", 0, "time to measure at most, such as 5m, instead of a number of blocks: they are added until every judged row is decided or none fits")
}

func (f *weighFlags) addPlan(c *cobra.Command) {
	c.Flags().StringVar(&f.plan, "plan", "", "plan file (default: plumbline.yaml here or in a parent folder)")
	_ = c.MarkFlagFilename("plan", "yaml", "yml", "json")
}

func (f *weighFlags) addKind(c *cobra.Command) {
	c.Flags().StringVar(&f.kind, "kind", "", "kind of load, one of the plan's kinds (default: the first)")
}

// readPlan reads the plan named on the command line, else the nearest one, else
// that of PLUMBLINE_PLAN. That one is kept elsewhere than the sources it is for,
// as flakes keep theirs, and is read as if it lay in the current folder, also
// where the command line names it.
func readPlan(path string) (*plan.Plan, error) {
	elsewhere := os.Getenv(record.PlanVariable)
	if path != "" && path != elsewhere {
		p, err := plan.Read(path)
		return p, usage(err)
	}
	dir, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	if path == "" {
		found, err := plan.Find(dir)
		if err == nil {
			p, err := plan.Read(found)
			return p, usage(err)
		}
		var none *plan.NotFoundError
		if elsewhere == "" || !errors.As(err, &none) {
			return nil, usage(err)
		}
	}
	p, err := plan.ReadIn(elsewhere, dir)
	if err != nil && path == "" {
		err = fmt.Errorf("%s: %w", record.PlanVariable, err)
	}
	return p, usage(err)
}

// weigh runs a session from a plan to its verdict and prints the report. Of the
// job it wants Plan, Refs, Arms and Scratch. The error carries the exit code.
func (f *weighFlags) weigh(c *cobra.Command, job session.Job) (*gates.Verdict, error) {
	err := f.positive(c)
	if err != nil {
		return nil, err
	}
	if job.Plan, err = job.Plan.With(f.changes); err != nil {
		return nil, usage(err)
	}
	if job.Dir, err = f.sessionDir(job.Plan, c.Name()); err != nil {
		return nil, err
	}
	job.Kind = f.kind
	v, err := f.conduct(c, job, session.Prepare)
	if v == nil && f.out == "" {
		_ = os.Remove(job.Dir) // goes only if it is empty: of what was refused nothing should stay
	}
	return v, err
}

// positive refuses numbers that were given and are 0.
func (f *weighFlags) positive(c *cobra.Command) error {
	for _, name := range []string{"workers", "duration", "blocks", "budget"} {
		if flag := c.Flags().Lookup(name); flag != nil && flag.Changed && strings.Trim(flag.Value.String(), "0s") == "" {
			return usage(fmt.Errorf("--%s %s: want more than 0", name, flag.Value))
		}
	}
	return nil
}

// besides names the flags that were given, but for the allowed ones, and the arguments.
func besides(c *cobra.Command, args []string, allowed ...string) string {
	var others []string
	c.Flags().Visit(func(flag *pflag.Flag) {
		if !slices.Contains(allowed, flag.Name) {
			others = append(others, "--"+flag.Name)
		}
	})
	return strings.Join(append(others, args...), ", ")
}

// resume goes on with a session: nothing else may be asked for.
func (f *weighFlags) resume(c *cobra.Command, dir string, args []string) error {
	if others := besides(c, args, "resume", "json"); others != "" {
		return usage(fmt.Errorf("--resume goes on with the session as it was begun; leave out %s", others))
	}
	if dir == "" {
		return usage(errors.New("--resume is empty; is a variable not set?"))
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	_, err = f.conduct(c, session.Job{Dir: dir}, session.Resume)
	return err
}

// conduct prepares a job, runs it and prints what came of it.
func (f *weighFlags) conduct(c *cobra.Command, job session.Job, prepare func(context.Context, session.Job) (*session.Prepared, error)) (*gates.Verdict, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	talk := newProgress(c.ErrOrStderr())
	defer talk.close()
	job.Self = exe
	job.Tool, job.Command, job.Talk = "plumbline "+version(), os.Args[1:], talk.printf
	v, s, err := measure(c.Context(), job, prepare, talk)
	talk.close()
	if v == nil {
		return nil, err
	}
	if err2 := f.publish(c.OutOrStdout(), s, v); err2 != nil {
		return v, errors.Join(err, err2)
	}
	return v, f.exit(s, v, err)
}

// exit is the error that a session ends the command with; nil after a pass,
// and after a single arm was measured to the end.
func (f *weighFlags) exit(s *record.Session, v *gates.Verdict, err error) error {
	single := len(s.Arms) == 1
	var stop *session.StopError
	switch {
	case errors.As(err, &stop): // an incomplete session never passes
		exit := &exitError{code: v.ExitCode}
		if f.json || single { // otherwise the report has just said it
			exit.err = errors.New(strings.TrimSpace(stop.Error() + "\n" + s.Detail))
		}
		return exit
	case err != nil && single:
		return fmt.Errorf("%w; `plumbline report %s` shows what was measured", err, shellQuote(relative(s.Dir)))
	case err != nil:
		return fmt.Errorf("%w; %d of %d blocks were measured: `plumbline gate %s` judges them", err, v.Blocks, v.Planned, shellQuote(relative(s.Dir)))
	case v.ExitCode != 0 && !single:
		return &exitError{code: v.ExitCode}
	}
	return nil
}

// measure prepares and runs a session and judges what it left. The verdict is
// nil if nothing was started; the error may come with a verdict.
func measure(ctx context.Context, job session.Job, prepare func(context.Context, session.Job) (*session.Prepared, error), talk *progress) (v *gates.Verdict, s *record.Session, err error) {
	prepared, err := prepare(ctx, job)
	if err != nil {
		return nil, nil, interruptedBy(ctx, err)
	}
	defer func() { err = errors.Join(err, prepared.Close()) }()
	s, err = prepared.Run(ctx, hooksOf(talk))
	return gates.Judge(s), s, err
}

// hooksOf tell how a session goes and when nothing is open any more.
func hooksOf(talk *progress) session.Hooks {
	return session.Hooks{
		Progress: talk.event,
		Interim: func(s *record.Session) (standing session.Standing) {
			v := gates.Judge(s)
			standing.Decided, standing.Hopeless = v.Decided(), v.Hopeless()
			if worst, ok := v.Worst(); ok {
				standing.Worst = report.WorstLine(s, worst)
			}
			return standing
		},
	}
}

// interruptedBy names the signal as the cause of an error that it led to.
func interruptedBy(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

// publish writes verdict and report into the session folder and the result to
// out; of a single arm a table without a verdict.
func (f *weighFlags) publish(out io.Writer, s *record.Session, v *gates.Verdict) error {
	show := func(w io.Writer, format string) error { return showVerdict(w, s, v, format) }
	if len(s.Arms) == 1 {
		m := gates.Measure(s, usualPercentiles())
		show = func(w io.Writer, format string) error { return showMeasured(w, s, m, format) }
		if err := writeShown(filepath.Join(s.Dir, record.ReportFile), "md", show); err != nil {
			return err
		}
	} else if err := keep(s, v); err != nil {
		return err
	}
	if f.json {
		return show(out, "json")
	}
	if err := show(out, "text"); err != nil {
		return err
	}
	_, err := fmt.Fprintf(out, "\nreport: %s\n", relative(filepath.Join(s.Dir, record.ReportFile)))
	return err
}

// keep writes verdict and report into the session folder.
func keep(s *record.Session, v *gates.Verdict) error {
	show := func(w io.Writer, format string) error { return showVerdict(w, s, v, format) }
	return errors.Join(
		writeShown(filepath.Join(s.Dir, record.VerdictFile), "json", show),
		writeShown(filepath.Join(s.Dir, record.ReportFile), "md", show),
	)
}

// writeShown writes a file, whole or not at all.
func writeShown(path, format string, show func(w io.Writer, format string) error) error {
	var b bytes.Buffer
	if err := show(&b, format); err != nil {
		return err
	}
	return record.WriteFile(path, b.Bytes())
}

// sessionDir is --out, or a new name in .plumbline beside the plan, a folder
// that git is told to ignore.
func (f *weighFlags) sessionDir(p *plan.Plan, command string) (string, error) {
	if f.out != "" {
		return filepath.Abs(f.out)
	}
	base := filepath.Join(p.Dir, ".plumbline")
	if err := os.MkdirAll(base, 0o755); err != nil {
		return "", fmt.Errorf("making the sessions' folder: %w; name another place with --out", err)
	}
	ignore := filepath.Join(base, ".gitignore")
	if _, err := os.Stat(ignore); err != nil {
		if err := os.WriteFile(ignore, []byte("*\n"), 0o644); err != nil {
			return "", fmt.Errorf("making the sessions' folder: %w; name another place with --out", err)
		}
	}
	name := time.Now().Format("2006-01-02T15.04.05") + "-" + command
	for i := 1; ; i++ {
		dir := filepath.Join(base, name)
		if i > 1 {
			dir = fmt.Sprintf("%s-%d", dir, i)
		}
		// Mkdir decides between two sessions that start in the same second.
		err := os.Mkdir(dir, 0o755)
		if err == nil {
			return dir, nil
		}
		if !errors.Is(err, os.ErrExist) {
			return "", fmt.Errorf("making the session's folder: %w; name another place with --out", err)
		}
	}
}

// relative shortens a path for people, if it lies below the current folder.
func relative(path string) string {
	dir, err := os.Getwd()
	if err != nil {
		return path
	}
	rel, err := filepath.Rel(dir, path)
	if err != nil || !filepath.IsLocal(rel) {
		return path
	}
	return rel
}
