//go:build !linux

package router

import (
	"os/exec"
	"syscall"
)

func processAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// spawn starts cmd; only Linux can pin it.
func spawn(cmd *exec.Cmd, _ []int) error { return cmd.Start() }
