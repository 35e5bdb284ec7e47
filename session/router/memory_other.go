//go:build !linux

package router

// Memory is not measured on this system.
func (p *Process) Memory() int64 { return 0 }
