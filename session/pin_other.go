//go:build !linux

package session

// allowedCPUs is known on Linux only, and only Linux can pin.
func allowedCPUs() []int { return nil }

func pin([]int) (restore func(), err error) { return func() {}, nil }
