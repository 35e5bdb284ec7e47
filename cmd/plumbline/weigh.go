package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"plumbline/gates"
	"plumbline/plan"
	"plumbline/record"
	"plumbline/report"
	"plumbline/session"
)

// weighFlags are what every command that runs a session takes.
type weighFlags struct {
	kind string
	out  string
	json bool
	seed uint64
	plan string
}

func (f *weighFlags) add(c *cobra.Command) {
	c.Flags().StringVarP(&f.out, "out", "o", "", "session folder to create (default: a new one in .plumbline beside the plan)")
	c.Flags().BoolVar(&f.json, "json", false, "print verdict.json instead of the report")
	c.Flags().Uint64Var(&f.seed, "seed", 0, "seed of all chance, instead of the plan's")
}

func (f *weighFlags) addPlan(c *cobra.Command) {
	c.Flags().StringVar(&f.plan, "plan", "", "plan file (default: plumbline.yaml here or in a parent folder)")
	_ = c.MarkFlagFilename("plan", "yaml", "yml", "json")
}

func (f *weighFlags) addKind(c *cobra.Command) {
	c.Flags().StringVar(&f.kind, "kind", "", "kind of load, one of the plan's kinds (default: the first)")
}

// readPlan reads the plan named on the command line, or the nearest one.
func readPlan(path string) (*plan.Plan, error) {
	if path == "" {
		dir, err := os.Getwd()
		if err != nil {
			return nil, err
		}
		if path, err = plan.Find(dir); err != nil {
			return nil, usage(err)
		}
	}
	p, err := plan.Read(path)
	return p, usage(err)
}

// weigh runs a session from a plan to its verdict and prints the report. The
// error carries the exit code.
func (f *weighFlags) weigh(c *cobra.Command, p *plan.Plan, refs []string) (*gates.Verdict, error) {
	if c.Flags().Changed("seed") {
		p.Seed = f.seed
	}
	dir, err := f.sessionDir(p, c.Name())
	if err != nil {
		return nil, err
	}
	talk := newProgress(c.ErrOrStderr())
	defer talk.close()
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	job := session.Job{
		Plan: p, Kind: f.kind, Refs: refs, Dir: dir, Awake: []string{exe, "awake"},
		Tool: "plumbline " + version(), Command: os.Args[1:], Talk: talk.printf,
	}
	v, s, err := conduct(c.Context(), job, talk)
	talk.close()
	if v == nil {
		if f.out == "" {
			_ = os.Remove(dir) // goes only if it is empty: of what was refused nothing should stay
		}
		return nil, err
	}
	if err2 := f.publish(c.OutOrStdout(), s, v); err2 != nil {
		return v, errors.Join(err, err2)
	}
	var stop *session.StopError
	switch {
	case errors.As(err, &stop): // an incomplete session never passes
		exit := &exitError{code: v.ExitCode}
		if f.json { // otherwise the report has just said it
			exit.err = errors.New(strings.TrimSpace(stop.Error() + "\n" + s.Detail))
		}
		return v, exit
	case err != nil:
		return v, fmt.Errorf("%w; %d of %d blocks were measured: `plumbline gate %s` judges them", err, v.Blocks, v.Planned, shellQuote(relative(dir)))
	case v.ExitCode != 0:
		return v, &exitError{code: v.ExitCode}
	}
	return v, nil
}

// conduct prepares and runs a session and judges what it left. The verdict is
// nil if nothing was started; the error may come with a verdict.
func conduct(ctx context.Context, job session.Job, talk *progress) (v *gates.Verdict, s *record.Session, err error) {
	prepared, err := session.Prepare(ctx, job)
	if err != nil {
		return nil, nil, interruptedBy(ctx, err)
	}
	defer func() { err = errors.Join(err, prepared.Close()) }()
	hooks := session.Hooks{
		Progress: talk.event,
		Interim: func(s *record.Session) string {
			worst, ok := gates.Judge(s).Worst()
			if !ok {
				return ""
			}
			return report.WorstLine(s, worst)
		},
	}
	s, err = prepared.Run(ctx, hooks)
	return gates.Judge(s), s, err
}

// interruptedBy names the signal as the cause of an error that it led to.
func interruptedBy(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

// publish writes verdict and report into the session folder and the result to out.
func (f *weighFlags) publish(out io.Writer, s *record.Session, v *gates.Verdict) error {
	data, err := v.JSON()
	if err != nil {
		return err
	}
	if err := record.WriteFile(filepath.Join(s.Dir, record.VerdictFile), data); err != nil {
		return err
	}
	path := filepath.Join(s.Dir, record.ReportFile)
	if err := writeMarkdown(path, s, v); err != nil {
		return err
	}
	if f.json {
		_, err := out.Write(data)
		return err
	}
	if err := report.Text(out, s, v, textOptions(out)); err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "\nreport: %s\n", relative(path))
	return err
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
