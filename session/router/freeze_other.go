//go:build !linux

package router

import "os/exec"

// startFrozen starts cmd so that signals can freeze it.
func startFrozen(newCmd func() *exec.Cmd, cpus []int, mark string) (*exec.Cmd, freezer, error) {
	cmd := newCmd()
	if err := Spawn(cmd, cpus); err != nil {
		return nil, nil, err
	}
	return cmd, signals{group: cmd.Process.Pid, mark: mark}, nil
}

// groupMembers and waitStopped need /proc.
func groupMembers(group int) []int { return []int{group} }
func waitStopped(int) error        { return nil }

// SweepCgroups has nothing to sweep: only Linux has them.
func SweepCgroups() {}
