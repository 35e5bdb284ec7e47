//go:build !linux

package session

import "errors"

// canKeepAwake tells whether this system has what KeepAwake needs.
const canKeepAwake = false

// KeepAwake needs the scheduling classes of Linux.
func KeepAwake(int) error { return errors.New("keeping a CPU awake works on Linux only") }

func keepAwake(string, []int, func(error)) (sleep func(), err error) { return func() {}, nil }
