package load

import (
	"errors"
	"math"
	"math/big"
	"runtime"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// rates are those of plans, and far beyond.
func rates() *rapid.Generator[float64] {
	return rapid.OneOf(rapid.SampledFrom([]float64{0.5, 1, 333.3, 1000, 1.0 / 3}), rapid.Float64Range(1e-3, 1e6))
}

// clockwork paces against a clock of its own, which stands still but for what
// the test adds to it.
func clockwork(p *pacer) (now *time.Duration) {
	now = new(time.Duration)
	p.due = dueWithin(p.rate, p.d)
	p.elapsed = func() time.Duration { return *now }
	p.sleep = func(d time.Duration) error { *now += d; return nil }
	p.idle = func(int) bool { return true }
	return now
}

func TestEveryMomentIsCountedFromTheStart(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rate := rates().Draw(t, "rate")
		k := rapid.IntRange(0, 1e12).Draw(t, "k")
		got := moment(rate, k)
		if next := moment(rate, k+1); next < got {
			t.Fatalf("request %d is due at %d, the next one at %d", k, got, next)
		}
		if got >= 1<<51 { // 26 days: ns are beyond what a float64 can tell
			return
		}
		exact := new(big.Rat).SetInt64(int64(k))
		exact.Mul(exact, big.NewRat(1e9, 1)).Quo(exact, new(big.Rat).SetFloat64(rate))
		off, _ := exact.Sub(exact, big.NewRat(int64(got), 1)).Float64()
		if math.Abs(off) > 0.75 {
			t.Fatalf("request %d is due at %d, %.2f ns off", k, got, off)
		}
	})
}

func TestDueWithinCountsTheMoments(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rate := rates().Draw(t, "rate")
		d := time.Duration(rapid.Int64Range(1, int64(1000*time.Hour)).Draw(t, "d"))
		n := dueWithin(rate, d)
		if n < 1 || moment(rate, n-1) >= d || moment(rate, n) < d {
			t.Fatalf("%d are due within %s at %g/s", n, d, rate)
		}
	})
	for _, tt := range []struct {
		rate float64
		d    time.Duration
		want int
	}{
		{500, 200 * time.Millisecond, 100},
		{0.5, 2 * time.Second, 1}, // the second one is due at the very end
		{0.5, 2*time.Second + 1, 2},
		{333.3, 10 * time.Second, 3333},
		{1000, 0, 0},
		{1e-300, time.Hour, 1},
		{1e300, time.Hour, math.MaxInt},
		{1e-9, math.MaxInt64, 10},
	} {
		if got := dueWithin(tt.rate, tt.d); got != tt.want {
			t.Errorf("%g/s for %s: %d, want %d", tt.rate, tt.d, got, tt.want)
		}
	}
	if n := dueWithin(1e9, math.MaxInt64); n < math.MaxInt64-1024 { // a float64 tells no more
		t.Errorf("%d are due within 292 years at one a ns", n)
	}
}

// TestThePacer has sleeps that take too long and workers that are slow to take a request.
func TestThePacer(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rate := rates().Draw(t, "rate")
		p := &pacer{rate: rate, d: time.Duration(float64(rapid.IntRange(1, 300).Draw(t, "count")) / rate * 1e9)}
		now := clockwork(p)
		late := rapid.Float64Range(0, 0.5).Draw(t, "late") // of an interval
		delay := func(what string) time.Duration {
			return time.Duration(rapid.Float64Range(0, late).Draw(t, what) / rate * 1e9)
		}
		p.sleep = func(d time.Duration) error {
			if d <= 0 {
				t.Fatalf("a sleep of %d", d)
			}
			*now += d + delay("overshoot")
			return nil
		}
		sent := 0
		for ; ; sent++ {
			before := *now
			wait, stop := p.Pace(0, uint64(sent))
			if stop {
				break
			}
			at := moment(rate, sent)
			if wait != 0 || *now < at {
				t.Fatalf("request %d is sent at %s + %s, due at %s", sent, *now, wait, at)
			}
			if before >= at && *now != before {
				t.Fatalf("request %d, overdue at %s, is sent at %s", sent, before, *now)
			}
			// Delays do not add up: no sleep and no handing over takes an interval.
			if worst := time.Duration(2 * late / rate * 1e9); *now-at > worst+2 {
				t.Fatalf("request %d, due at %s, is sent at %s", sent, at, *now)
			}
			*now += delay("handing over")
		}
		if sent != p.due {
			t.Fatalf("%d of %d were sent", sent, p.due)
		}
	})
}

func TestWhatIsOverdueGoesAtOnce(t *testing.T) {
	p := &pacer{rate: 100, d: time.Second}
	now := clockwork(p)
	*now = 500 * time.Millisecond
	for k := range 51 {
		if _, stop := p.Pace(0, uint64(k)); stop || *now != 500*time.Millisecond {
			t.Fatalf("request %d at %s, stop %v", k, *now, stop)
		}
	}
	if p.Pace(0, 51); *now != 510*time.Millisecond {
		t.Errorf("the next one goes at %s", *now)
	}
}

func TestAfterTheEndOnlyALateGeneratorSends(t *testing.T) {
	for _, tt := range []struct {
		name string
		now  time.Duration
		idle bool
		stop bool
	}{
		{"within d, all workers busy", time.Second, false, false},
		{"after d, all workers busy", time.Second + 1, false, true},
		{"after d, a worker is idle", time.Second + 1, true, false},
		{"after twice d, a worker is idle", 2*time.Second + 1, true, true},
	} {
		p := &pacer{rate: 100, d: time.Second}
		now := clockwork(p)
		*now = tt.now
		p.idle = func(sent int) bool {
			if sent != 7 {
				t.Errorf("%d were sent", sent)
			}
			return tt.idle
		}
		if _, stop := p.Pace(0, 7); stop != tt.stop {
			t.Errorf("%s: stop %v", tt.name, stop)
		}
	}
}

func TestASleepThatFailsEndsTheStretch(t *testing.T) {
	p := &pacer{rate: 100, d: time.Second}
	clockwork(p)
	p.sleep = func(time.Duration) error { return errors.New("cancelled") }
	if _, stop := p.Pace(0, 1); !stop {
		t.Error("it goes on")
	}
}

func TestTheAlarm(t *testing.T) {
	a, err := newAlarm()
	if err != nil {
		t.Fatal(err)
	}
	defer a.close()
	for _, d := range []time.Duration{1, time.Microsecond, 300 * time.Microsecond, 3 * time.Millisecond} {
		start := time.Now()
		if err := a.sleep(d); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(start); took < d {
			t.Errorf("a sleep of %s took %s", d, took)
		}
	}
	done := make(chan error)
	go func() { done <- a.sleep(time.Hour) }()
	a.cancel()
	for range 2 { // also one that begins later
		select {
		case err := <-done:
			if err == nil {
				t.Error("an hour has passed")
			}
		case <-time.After(20 * time.Second):
			t.Fatal("it sleeps on")
		}
		go func() { done <- a.sleep(time.Hour) }()
	}
	<-done
}

// TestQuietMemoryIsBounded leaves far more garbage than may lie around.
func TestQuietMemoryIsBounded(t *testing.T) {
	defer QuietGC()()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	var keep [][]byte
	for range 1 << 16 {
		keep = append(keep[:0], slices.Repeat([]byte{1}, 10_000))
	}
	runtime.ReadMemStats(&after)
	runtime.KeepAlive(keep)
	garbage, grown := after.TotalAlloc-before.TotalAlloc, int64(after.HeapSys)-int64(before.HeapSys)
	if garbage < 600e6 || grown > 200e6 {
		t.Errorf("%d MB of garbage made the heap grow by %d MB", garbage/1e6, grown/1e6)
	}
	if after.NumGC == before.NumGC {
		t.Error("nothing was collected")
	}
}

// The rate does not depend on how the time is cut into stretches.
func TestRateOverManyStretches(t *testing.T) {
	for _, rate := range []float64{0.7, 7, 10, 333.3} {
		var over progress
		for range 1000 {
			s := &stretch{most: 1}
			s.atRate(rate, 50*time.Millisecond, over, &alarm{})
			for k := range s.Due {
				if at := s.planned.moment(k); at < 0 || at >= 50*time.Millisecond {
					t.Fatalf("%g/s: a request is due %v after the start of a stretch of 50 ms", rate, at)
				}
			}
			over = progress{over.due + s.Due, over.offered + 50*time.Millisecond}
		}
		if want := 50 * rate; math.Abs(float64(over.due)-want) > 1 {
			t.Errorf("%g/s: %d requests in 50 s, want %g", rate, over.due, want)
		}
	}
}
