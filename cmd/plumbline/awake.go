package main

import (
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"plumbline/session"
)

// newAwake is how a session keeps CPUs awake: it starts this program once per CPU.
func newAwake() *cobra.Command {
	return &cobra.Command{
		Use:    "awake CPU",
		Short:  "Keep a CPU from going to sleep, until killed",
		Hidden: true,
		Args:   args(cobra.ExactArgs(1)),
		RunE: func(_ *cobra.Command, a []string) error {
			cpu, err := strconv.Atoi(a[0])
			if err != nil {
				return usage(fmt.Errorf("CPU %q is no number", a[0]))
			}
			return session.KeepAwake(cpu)
		},
	}
}
