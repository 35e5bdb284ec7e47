//go:build !linux

package router

import "errors"

var errNoClock = errors.New("moving a router's own clock needs Linux; leave clock out")

// CanMoveClocks says why this system cannot move a process's clock.
func CanMoveClocks() error { return errNoClock }

// FindClockLibrary needs Linux.
func FindClockLibrary(string, string) (string, error) { return "", errNoClock }

// CheckClock needs Linux.
func CheckClock(string, string) error { return errNoClock }

func (p *Process) checkClock(int) error { return nil }
func removeClockFiles([]int)            {}
