package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"plumbline/build"
	"plumbline/gates"
	"plumbline/mocks/demo"
	"plumbline/record"
	"plumbline/session"
)

func newAgainst() *cobra.Command {
	var f weighFlags
	c := &cobra.Command{
		Use:   "against REF...",
		Short: "Weigh the working tree against git revisions",
		Long: `Builds every REF and the working tree (with its tracked changes) ahead of time,
as plumbline.yaml says, then measures them back to back in one session. The
first REF decides; further ones are watched.`,
		Example: `  plumbline against main
  plumbline against v1.4.0 HEAD~3
  plumbline against main --json > verdict.json`,
		Args: args(cobra.MinimumNArgs(1)),
		RunE: func(c *cobra.Command, refs []string) error {
			if slices.Contains(refs, "") {
				return usage(errors.New("a REF is empty; is a variable not set?"))
			}
			p, err := readPlan(f.plan)
			if err != nil {
				return err
			}
			_, err = f.weigh(c, session.Job{Plan: p, Refs: refs})
			return err
		},
		ValidArgsFunction: completeRefs,
	}
	f.add(c)
	f.addPlan(c)
	f.addKind(c)
	f.addLoad(c)
	f.addBudget(c)
	return c
}

func completeRefs(c *cobra.Command, _ []string, prefix string) ([]string, cobra.ShellCompDirective) {
	return build.CompleteRefs(c.Context(), ".", prefix), cobra.ShellCompDirectiveNoFileComp
}

func newBetween() *cobra.Command {
	var f weighFlags
	c := &cobra.Command{
		Use:   "between ARM ARM",
		Short: "Weigh two of the arms that a plan names",
		Long: `Weighs the second arm against the first, both under the key "arms" of the
plan. The same arm twice is an A/A: how far two runs of one build are apart.`,
		Example: `  plumbline between v1.4.0 v1.5.0`,
		Args:    args(cobra.ExactArgs(2)),
		RunE: func(c *cobra.Command, arms []string) error {
			p, err := readPlan(f.plan)
			if err != nil {
				return err
			}
			_, err = f.weigh(c, session.Job{Plan: p, Arms: arms})
			return err
		},
		ValidArgsFunction: func(_ *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
			var names []string
			if p, err := readPlan(f.plan); err == nil {
				for _, a := range p.Arms {
					names = append(names, a.Name)
				}
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
	}
	f.add(c)
	f.addPlan(c)
	f.addKind(c)
	f.addLoad(c)
	f.addBudget(c)
	return c
}

func newRun() *cobra.Command {
	var f weighFlags
	var resume string
	c := &cobra.Command{
		Use:   "run [PLAN]",
		Short: "Weigh the arms that a plan names, or measure a single one",
		Long: `Runs one session as the plan says, with the arms under its key "arms". The arm
called "candidate" (else the last) is weighed against the one called
"baseline" (else the first); further ones are watched. A plan with one arm, or
none, is measured and reported without a verdict.

--resume goes on with a session that ended early, also one of "against" or
"between": on the same machine since its last boot, with the same builds, plan
and targets. Finished blocks stay; a block that was cut off is measured again.`,
		Example: `  plumbline run
  plumbline run test/load/plumbline.yaml --kind mixed
  plumbline run --rate 500/s --duration 2m --only "GET /search"
  plumbline run --resume .plumbline/2026-01-31T10.00.00-against`,
		Args: args(cobra.MaximumNArgs(1)),
		RunE: func(c *cobra.Command, a []string) error {
			if c.Flags().Changed("resume") {
				return f.resume(c, resume, a)
			}
			p, err := readPlan(strings.Join(a, ""))
			if err != nil {
				return err
			}
			_, err = f.weigh(c, session.Job{Plan: p})
			return err
		},
	}
	f.add(c)
	f.addKind(c)
	f.addLoad(c)
	f.addBudget(c)
	c.Flags().StringVar(&resume, "resume", "", "go on with the session in this `folder`")
	_ = c.MarkFlagDirname("resume")
	return c
}

func newGate() *cobra.Command {
	var asJSON bool
	var loose sideFlags
	var rules ruleFlags
	c := &cobra.Command{
		Use:   "gate SESSION | --baseline FILE... --candidate FILE...",
		Short: "Judge a session folder again, or result files of vegeta",
		Long: `Computes the verdict again from a session folder and ends with its exit code.
Nothing is written; the same record gives the same bytes. A session that was
interrupted is judged as far as it went, and cannot pass.

--zone, --watch, --judge and --floor judge by other rules than the session was
measured with. Such a verdict is labelled exploratory: rules that are chosen
once the result is known prove nothing. METRIC is one of latency_p50,
latency_distribution, latency_p99 and error_rate.

With --baseline and --candidate it judges result files of vegeta of any origin:
gob (vegeta attack), CSV or JSON (vegeta encode), told apart by content. Each
file is one run, and the k-th of each side form block k, so measure in turns.
Fewer than three files a side cannot be judged (exit code 5): requests of one run
are no independent observations, and an interval over blocks needs three.
A route expects the status that most requests had in the first baseline file
with it, but never 401, 403, 5xx or none.`,
		Example: `  plumbline gate .plumbline/2026-01-31T10.00.00-against
  plumbline gate SESSION --zone latency_p50=2.5% --judge latency_p99
  plumbline gate --baseline old/*.bin --candidate new/*.bin`,
		Args: loose.check(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, a []string) error {
			s, err := openGated(&loose, a)
			if err != nil {
				return err
			}
			s, v := gates.Explore(s, rules.over(s.Rules))
			format := "text"
			if asJSON {
				format = "json"
			}
			err = showVerdict(c.OutOrStdout(), s, v, format)
			if err == nil && v.ExitCode != 0 {
				err = &exitError{code: v.ExitCode}
			}
			return err
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print verdict.json instead of the report")
	rules.add(c)
	loose.add(c)
	return c
}

// openGated reads what gate is to judge.
func openGated(loose *sideFlags, a []string) (*record.Session, error) {
	if loose.given() {
		return loose.read(a)
	}
	if isFile(a[0]) {
		return nil, usage(fmt.Errorf("%s is a file, not a session folder; result files are judged with --baseline FILE... --candidate FILE...", a[0]))
	}
	return record.Open(a[0])
}

func newReport() *cobra.Command {
	var format string
	var loose sideFlags
	var percentiles percentilesFlag
	c := &cobra.Command{
		Use:   "report SESSION | FILE... | --baseline FILE... --candidate FILE...",
		Short: "Show a session's verdict, or tables of percentiles, as text, Markdown or JSON",
		Long: `Shows the verdict that a session folder holds (or, if it was killed before it
had one, the verdict on what it measured). Showing always ends with code 0;
"plumbline gate" is the one that judges.

With -p it shows tables of percentiles instead, without a verdict; so it does
for a session with one arm and for result files of vegeta (gob, CSV or JSON).`,
		Example: `  plumbline report SESSION
  plumbline report SESSION --format md >> "$GITHUB_STEP_SUMMARY"
  plumbline report SESSION -p 0,50,90,99.9
  plumbline report old/*.bin new/*.bin`,
		Args: loose.check(cobra.MinimumNArgs(1)),
		RunE: func(c *cobra.Command, a []string) error {
			if !slices.Contains(formats(), format) {
				return usage(fmt.Errorf("--format %q: want text, md or json", format))
			}
			out := c.OutOrStdout()
			s, v, err := openReported(&loose, a, percentiles != nil)
			switch {
			case err != nil:
				return err
			case v == nil:
				if percentiles == nil {
					percentiles = usualPercentiles()
				}
				return showMeasured(out, s, gates.Measure(s, percentiles), format)
			}
			return showVerdict(out, s, v, format)
		},
	}
	c.Flags().StringVarP(&format, "format", "f", "text", "text, md or json")
	c.Flags().VarP(&percentiles, "percentiles", "p", "tables of these percentiles, such as 0,50,90,99.9, instead of the verdict")
	_ = c.RegisterFlagCompletionFunc("format", cobra.FixedCompletions(formats(), cobra.ShellCompDirectiveNoFileComp))
	loose.add(c)
	return c
}

func newPlan() *cobra.Command {
	c := &cobra.Command{
		Use:   "plan",
		Short: "Look at a plan",
		Args:  args(cobra.NoArgs),
		RunE:  func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	var kind string
	var refs []string
	check := &cobra.Command{
		Use:   "check [PLAN]",
		Short: "Say what a plan will build, start and send, and for how long",
		Example: `  plumbline plan check
  plumbline plan check --against main
  plumbline plan check test/load/plumbline.yaml --kind mixed`,
		Args: args(cobra.MaximumNArgs(1)),
		RunE: func(c *cobra.Command, a []string) error {
			p, err := readPlan(strings.Join(a, ""))
			if err != nil {
				return err
			}
			return session.Explain(c.OutOrStdout(), session.Job{Plan: p, Kind: kind, Refs: refs})
		},
	}
	check.Flags().StringVar(&kind, "kind", "", "kind of load, one of the plan's kinds (default: the first)")
	check.Flags().StringSliceVar(&refs, "against", nil, "revision to weigh against, as `REF` of plumbline against; may be repeated")
	c.AddCommand(check)
	return c
}

func newMock() *cobra.Command {
	c := &cobra.Command{
		Use:   "mock",
		Short: "Start one of the servers that plumbline brings along",
		Args:  args(cobra.NoArgs),
		RunE:  func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	var listen string
	var slow []string
	var later bool
	d := &cobra.Command{
		Use:   "demo",
		Short: "The demo router: a small HTTP API whose work is real",
		Long: "The demo router that `plumbline try` weighs. Its routes:\n\n  " + strings.Join(demo.Routes(), "\n  ") +
			"\n\nand /health. HTTP/1.1 and HTTP/2 without TLS.",
		Example: `  plumbline mock demo --listen 127.0.0.1:8080
  plumbline mock demo --listen /tmp/demo.sock --slow "GET /search=30%"`,
		Args: args(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			var routes []demo.Slow
			for _, s := range slow {
				parsed, err := demo.ParseSlow(s)
				if err != nil {
					return usage(err)
				}
				routes = append(routes, parsed)
			}
			return demo.Serve(c.Context(), listen, later, routes...)
		},
	}
	d.Flags().StringVar(&listen, "listen", "127.0.0.1:8080", "host:port, or the path of a unix socket")
	d.Flags().StringArrayVar(&slow, "slow", nil, `make a route do more of its work, such as "GET /search=30%"; may be repeated`)
	d.Flags().BoolVar(&later, "later", false, "do the additional work once a second, as a flush or a garbage collector does")
	c.AddCommand(d)
	return c
}
