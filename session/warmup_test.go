package session

import (
	"testing"
	"time"
)

func TestSettled(t *testing.T) {
	w := func(us ...int) (ws []window) {
		for _, u := range us {
			ws = append(ws, window{median: time.Duration(u) * time.Microsecond, memory: 100 << 20})
		}
		return ws
	}
	grows := w(100, 100, 100, 100, 100)
	for i := range grows {
		grows[i].memory += int64(i) * 3 << 20
	}
	for _, c := range []struct {
		name string
		ws   []window
		want bool
	}{
		{"too few to tell", w(100, 100, 100), false},
		{"steady", w(100, 101, 99, 100), true},
		{"a compiler is at work", w(900, 500, 300, 200, 150), false},
		{"it has finished", w(900, 500, 300, 200, 150, 150, 151, 149), true},
		{"a noisy neighbour comes", w(100, 100, 180, 250), true},
		{"no answers", w(0, 0, 0, 0, 0), false},
		{"answers only lately", w(0, 100, 100, 100), false},
		{"memory grows by 3 % a window", grows, false},
	} {
		if got := settled(c.ws); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}
