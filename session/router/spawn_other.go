//go:build !linux

package router

import (
	"os/exec"
	"syscall"
)

func processAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// Spawn starts cmd in a process group of its own; only Linux can pin it.
func Spawn(cmd *exec.Cmd, _ []int) error {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = processAttributes()
	}
	return cmd.Start()
}
