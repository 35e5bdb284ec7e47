package load

import (
	"runtime"
	"runtime/debug"
)

// QuietGC keeps the garbage collector from running within a stretch, unless
// memory gets short: whoever calls Stretch collects in between. The returned
// function undoes it.
func QuietGC() (restore func()) {
	var now runtime.MemStats
	runtime.ReadMemStats(&now)
	percent := debug.SetGCPercent(-1)
	limit := debug.SetMemoryLimit(int64(now.HeapAlloc) + 96<<20)
	return func() {
		debug.SetGCPercent(percent)
		debug.SetMemoryLimit(limit)
	}
}
