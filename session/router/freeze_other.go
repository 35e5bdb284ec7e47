//go:build !linux

package router

import "os/exec"

// startFrozen starts cmd so that signals can freeze it.
func startFrozen(newCmd func() *exec.Cmd, cpus []int) (*exec.Cmd, freezer, error) {
	cmd := newCmd()
	if err := Spawn(cmd, cpus); err != nil {
		return nil, nil, err
	}
	return cmd, signals{group: cmd.Process.Pid}, nil
}

// groupMembers and waitStopped need /proc.
func groupMembers(group int) []int { return []int{group} }
func waitStopped(int) error        { return nil }
