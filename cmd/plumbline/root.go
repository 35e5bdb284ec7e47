package main

import (
	"fmt"

	"github.com/spf13/cobra"
)

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "plumbline",
		Short: "Is this build of an HTTP router slower than that one?",
		Long: `plumbline weighs two builds of an HTTP router or API server against each
other on one machine, and answers with a verdict per route, or says honestly
that it cannot.

  plumbline try              see it find a planted slowdown, in a minute or two
  plumbline against main     weigh the working tree against a revision,
                             as plumbline.yaml says
  plumbline plan check       what a plan will build, start, send
  plumbline variance         what this machine can tell apart

Exit codes: 0 pass, 3 regression, 4 inconclusive, 5 invalid (nothing could be
judged), 2 usage or plan wrong, 1 plumbline failed, 130 interrupted.`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Version:       version(),
		Args: func(c *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usage(fmt.Errorf("unknown command %q%s; `plumbline --help` lists them", args[0], suggestions(c, args[0])))
			}
			return nil
		},
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return usage(fmt.Errorf("%w; see `%s --help`", err, c.CommandPath()))
	})
	root.AddCommand(newTry(), newAgainst(), newBetween(), newRun(), newVariance(), newGate(), newReport(), newPlan(), newTargets(), newMonitor(), newMerge(), newMock(), newMan(), newAwake(), newGuard())
	return root
}

func suggestions(c *cobra.Command, word string) string {
	c.SuggestionsMinimumDistance = 2
	if s := c.SuggestionsFor(word); len(s) > 0 {
		return fmt.Sprintf(", did you mean %q?", s[0])
	}
	return ""
}

// args checks the number of arguments, with a message that shows the use.
func args(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(c *cobra.Command, a []string) error {
		if err := check(c, a); err != nil {
			return usage(fmt.Errorf("%w; use: %s", err, c.UseLine()))
		}
		return nil
	}
}
