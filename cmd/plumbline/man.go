package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

// newMan is for those who package plumbline.
func newMan() *cobra.Command {
	return &cobra.Command{
		Use:   "man DIR",
		Short: "Write a manual page of every command",
		Long: `Writes plumbline.1, plumbline-against.1 and so on to the folder DIR. They are of
the day that SOURCE_DATE_EPOCH says, if it is set.`,
		Hidden: true,
		Args:   args(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, a []string) error {
			if err := os.MkdirAll(a[0], 0o755); err != nil {
				return fmt.Errorf("writing the manual: %w", err)
			}
			c.Root().DisableAutoGenTag = true // its date is in the page's foot already
			head := doc.GenManHeader{Title: "PLUMBLINE", Section: "1", Source: "plumbline", Manual: "plumbline"}
			if err := doc.GenManTree(c.Root(), &head, a[0]); err != nil {
				return fmt.Errorf("writing the manual: %w", err)
			}
			return nil
		},
	}
}
