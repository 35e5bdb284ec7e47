//go:build !linux

package router

import "time"

// Memory is not measured on this system.
func (p *Process) Memory() int64 { return 0 }

// CPU is not measured on this system.
func (p *Process) CPU() time.Duration { return 0 }
