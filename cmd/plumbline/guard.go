package main

import (
	"github.com/spf13/cobra"

	"plumbline/session"
)

// newGuard is what puts a session away that was killed.
func newGuard() *cobra.Command {
	return &cobra.Command{
		Use:    "guard SESSION DIR",
		Short:  "Put away what a session leaves when it is killed",
		Hidden: true,
		Args:   args(cobra.ExactArgs(2)),
		RunE: func(c *cobra.Command, a []string) error {
			return session.Guard(a[0], a[1], c.InOrStdin(), c.OutOrStdout())
		},
	}
}
