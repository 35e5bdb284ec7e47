//go:build !linux

package router

// ownsAddress is checked on Linux only.
func (p *Process) ownsAddress() error { return nil }
