package session

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	vegeta "github.com/tsenart/vegeta/v12/lib"

	"plumbline/record"
)

func schedule(block, slice record.Seconds) record.Schedule {
	return record.Schedule{Mode: record.Sliced, Blocks: 6, BlockS: block, SliceS: slice, Freeze: true, CountFromS: countFrom}
}

func TestControlsOfASchedule(t *testing.T) {
	for _, tc := range []struct {
		name         string
		block, slice record.Seconds
		arms         int
		want         *record.Controls
		side         record.Seconds
	}{
		{"the default", 10, 0.2, 2, &record.Controls{ResponderS: 0.01, Pairs: 4, Delay: 0.075, Zone: 0.05}, 0.2},
		{"three arms", 10, 0.2, 3, &record.Controls{ResponderS: 0.01, Pairs: 3, Delay: 0.075, Zone: 0.05}, 0.2},
		{"ten rounds, just a fifth", 4, 0.2, 2, &record.Controls{ResponderS: 0.01, Pairs: 2, Delay: 0.075, Zone: 0.05}, 0.2},
		{"nine rounds, a pair less", 3.6, 0.2, 2, &record.Controls{ResponderS: 0.01, Pairs: 1, Delay: 0.075, Zone: 0.05}, 0.2},
		{"four rounds, shorter sides", 1.6, 0.2, 2, &record.Controls{ResponderS: 0.01, Pairs: 1, Delay: 0.075, Zone: 0.05}, 0.16},
		{"short slices", 4, 0.05, 2, &record.Controls{ResponderS: 0.004, Pairs: 6, Delay: 0.075, Zone: 0.05}, 0.05},
		{"a long block", 60, 0.2, 2, &record.Controls{ResponderS: 0.01, Pairs: 25, Delay: 0.075, Zone: 0.05}, 0.2},
		{"slices of which connections get idle", 20, 0.5, 2, &record.Controls{ResponderS: 0.025, Pairs: 3, Delay: 0.075, Zone: 0.05}, 0.4275},
		{"slices of which they are idle anyway", 40, 1, 2, &record.Controls{ResponderS: 0.05, Pairs: 3, Delay: 0.075, Zone: 0.05}, 1},
		{"a side too short to be of use", 0.4, 0.02, 2, nil, 0},
		{"no room", 0.2, 0.025, 2, nil, 0},
		{"one arm", 10, 0.2, 1, nil, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := schedule(tc.block, tc.slice)
			c, warning := controlsOf(s, tc.arms, 0.05)
			if diff := cmp.Diff(tc.want, c); diff != "" {
				t.Fatal(diff)
			}
			if (warning != "") != (c == nil && tc.arms > 1) {
				t.Errorf("warning %q", warning)
			}
			without := lengthOf(s, tc.arms, s.Blocks)
			if s.Controls = c; c == nil {
				return
			}
			if side := controlSide(s, tc.arms); side.Duration().Round(time.Microsecond) != tc.side.Duration().Round(time.Microsecond) {
				t.Errorf("a side has %s, want %s", side.Duration(), tc.side.Duration())
			}
			with := lengthOf(s, tc.arms, s.Blocks)
			if cost := float64(with-without) / float64(with); cost <= 0 || cost > 0.2+1e-9 {
				t.Errorf("the controls take %.2f %% of %s", 100*cost, with)
			}
		})
	}
	if c, warning := controlsOf(record.Schedule{Mode: record.Interleaved, BlockS: 10}, 2, 0.05); c != nil || warning != "" {
		t.Errorf("interleaved: %v, %q", c, warning)
	}
}

func TestPairsAreSpread(t *testing.T) {
	for _, tc := range []struct {
		rounds, pairs int
		want          []int
	}{{25, 4, []int{3, 9, 15, 21}}, {4, 1, []int{2}}, {1, 1, []int{1}}, {6, 1, []int{3}}, {12, 2, []int{3, 9}}} {
		if got := pairsAfter(tc.rounds, tc.pairs); !slices.Equal(got, tc.want) {
			t.Errorf("%d pairs in %d rounds come after %v, want %v", tc.pairs, tc.rounds, got, tc.want)
		}
	}
}

// Of the pairs of any two blocks, and of an even number of a block's own, each
// side goes first in half.
func TestSidesAreBalancedAndFromTheSeed(t *testing.T) {
	draw := func(seed uint64, pairs int) (all []record.ControlKind) {
		for block := 1; block <= 20; block++ {
			for p := 1; p <= pairs; p++ {
				both := sides(seed, block, pairs, p)
				if both[0] == both[1] {
					t.Fatalf("both sides are %s", both[0])
				}
				all = append(all, both[0])
			}
		}
		return all
	}
	different := false
	for _, pairs := range []int{1, 3, 4} {
		for seed := range uint64(20) {
			all := draw(seed, pairs)
			if !slices.Equal(all, draw(seed, pairs)) {
				t.Fatal("the same seed gives other sides")
			}
			for i := 0; i < len(all); i += 2 {
				if all[i] == all[i+1] {
					t.Errorf("%d pairs a block, seed %d: pairs %d and %d both begin with %s", pairs, seed, i+1, i+2, all[i])
				}
			}
			different = different || !slices.Equal(all, draw(seed+1, pairs))
		}
	}
	if !different {
		t.Error("every seed gives the same sides")
	}
}

// What is kept of the controls, and that nothing of them is kept elsewhere.
func TestControlsAreKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stage := &fakeStage{}
		c := newConductor(t, controlled, stage)
		if err := c.run(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, r := range ended(t, c, stage, record.Complete).Runs {
			var kinds []string
			for _, k := range r.Controls {
				n := 0
				for _, latency := range k.Latency {
					n += len(latency)
				}
				kinds = append(kinds, fmt.Sprint(k.Kind, k.N, " ", n))
				for route, latency := range k.Latency {
					want := map[record.ControlKind]time.Duration{record.Responder: 2 * time.Millisecond, record.Undelayed: 10 * time.Millisecond, record.Delayed: 10750 * time.Microsecond}[k.Kind]
					if i := slices.IndexFunc(latency, func(ns int64) bool { return ns != int64(want) }); i >= 0 {
						t.Errorf("%s %s %d, route %d: %d ns, want %s", r.ID, k.Kind, k.N, route, latency[i], want)
					}
				}
			}
			slices.Sort(kinds)
			// Of 5 requests of a responder the first is cold, of 12 of a pair's side the first of each route.
			want := []string{"responder1 4", "responder2 4", "responder3 4"}
			if r.Arm == "baseline" {
				want = append([]string{"delayed1 10"}, append(want, "undelayed1 10")...)
			}
			if !slices.Equal(kinds, want) {
				t.Errorf("%s has the controls %v, want %v", r.ID, kinds, want)
			}
			if len(r.Slices) != 3 || r.Sent != 3*20 {
				t.Errorf("%s has %d slices and %d requests, want 3 and 60: none of the controls'", r.ID, len(r.Slices), r.Sent)
			}
		}
	})
}

func TestNoControlsNoFile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stage := &fakeStage{}
		c := newConductor(t, sliced, stage)
		if err := c.run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(filepath.Join(c.folder.Dir(), "runs", "001-baseline", "controls.csv")); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("a session without controls has a file of them: %v", err)
		}
	})
}

// A router that ends in a control, its own pair's or the responder's time,
// loses its run as in any other slice.
func TestDeathWithinAControl(t *testing.T) {
	for what, tc := range map[string]struct {
		at    time.Duration // in block 1, as testdata/controls.order has it
		after string        // what was noted last
	}{
		"delayed":   {2650 * time.Millisecond, "load 001-baseline 120ms, delayed by 7.5 %, which counts: true"},
		"undelayed": {2800 * time.Millisecond, "load 001-baseline 120ms, delayed by 7.5 %, which counts: false"},
		"responder": {3275 * time.Millisecond, "responder 10ms"},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				stage := &fakeStage{dieAfter: map[string]time.Duration{"001-baseline": tc.at}}
				c := newConductor(t, controlled, stage)
				if err := c.run(t.Context()); err != nil {
					t.Fatal(err)
				}
				died := slices.IndexFunc(stage.log, func(l string) bool { return strings.Contains(l, "dies 001-baseline") })
				if before := stage.log[died-1]; !strings.HasSuffix(before, tc.after) {
					t.Fatalf("it does not die in the control but after %q", before)
				}
				if next := stage.log[died+1]; !strings.Contains(next, "stop 002-candidate") {
					t.Errorf("after its death: %q", next)
				}
				s := ended(t, c, stage, record.Complete)
				if r := s.Runs[0]; r.State != record.Died || !strings.HasPrefix(r.Reason, "the router ended under load") {
					t.Errorf("the run is %s: %s", r.State, r.Reason)
				}
			})
		})
	}
}

func TestHangWithinAControlLosesTheRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stage := &fakeStage{hangDelayed: "001-baseline"}
		c := newConductor(t, controlled, stage)
		if err := c.run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if r := ended(t, c, stage, record.Complete).Runs[0]; r.State != record.Died || r.Reason != "GET /b gave no answer within 30s" {
			t.Errorf("the run is %s: %s", r.State, r.Reason)
		}
	})
}

func TestInterruptWithControlsAtAnyMoment(t *testing.T) {
	interrupted := errors.New("interrupted")
	for at := 2 * time.Second; at < 4*time.Second; at += 31 * time.Millisecond {
		synctest.Test(t, func(t *testing.T) {
			stage := &fakeStage{}
			c := newConductor(t, controlled, stage)
			ctx, cancel := context.WithCancelCause(t.Context())
			time.AfterFunc(at, func() { cancel(interrupted) })
			if err := c.run(ctx); !errors.Is(err, interrupted) {
				t.Errorf("after %s: %v", at, err)
			}
			ended(t, c, stage, record.Interrupted)
		})
	}
}

func TestWhatCountsInAControl(t *testing.T) {
	start := time.Unix(1000, 0)
	s := newControlSlice([]record.Route{{Name: "GET /a", Status: []int{200}}, {Name: "GET /b", Status: []int{401, 403}}})
	result := func(ms float64, seq uint64, path string, code uint16, latency time.Duration) *vegeta.Result {
		return &vegeta.Result{Timestamp: start.Add(time.Duration(ms * 1e6)), Seq: seq, Method: "GET", URL: "http://router" + path, Code: code, Latency: latency}
	}
	for _, rs := range [][]*vegeta.Result{
		{result(9, 5, "/a", 200, 3), result(7, 3, "/b", 401, 5)},      // not in the order of sending
		{result(0, 0, "/a", 200, 90), result(1, 1, "/a", 200, 91)},    // a slice's first moments
		{result(6, 2, "/b", 200, 92), result(8, 4, "/a", 500, 93)},    // a route's first, not an expected answer
		{result(9, 6, "/a", 200, 4), result(10, 7, "/a", 0, 94)},      // at the same time; no answer
		{result(11, 8, "/b", 403, 6), {Error: "there is no request"}}, // a failed target
	} {
		if err := s.sink(rs); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([][]int64{{3, 4}, {5, 6}}, s.counted(start.Add(5*time.Millisecond))); diff != "" {
		t.Error(diff)
	}
}

// The real responder and its client.
func TestResponder(t *testing.T) {
	client, end := newResponder()
	defer end()
	c := &conductor{responder: client, session: &record.Session{Meta: record.Meta{Schedule: controlled}}}
	n := 0
	for k := 1; k <= 3 || n == 0 && k < 100; k++ { // a machine under load may give it little of its 10 ms
		got, err := c.respond(t.Context(), k)
		if err != nil || got.Kind != record.Responder || got.N != k || len(got.Latency) != 1 {
			t.Fatalf("%+v, %v", got, err)
		}
		n += len(got.Latency[0])
	}
	if n == 0 {
		t.Error("no request counted")
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("interrupted")
	cancel(why)
	if _, err := c.respond(ctx, 1); !errors.Is(err, why) {
		t.Errorf("after an interruption: %v", err)
	}
}

// TestFinerPairs: sides are split as far as each route still has requests that count.
func TestFinerPairs(t *testing.T) {
	routes := make([]record.Route, 3)
	for _, tc := range []struct {
		name         string
		sent         int // in a warm-up of 2 s
		block, slice record.Seconds
		want         int
	}{
		{"fast", 4000, 10, 0.2, 4},
		{"slower", 700, 10, 0.2, 3},
		{"slow", 200, 10, 0.2, 1},
		{"nothing is known", 0, 10, 0.2, 1},
		{"short sides", 1e6, 10, 0.05, 2},
	} {
		s := schedule(tc.block, tc.slice)
		s.Controls, _ = controlsOf(s, 2, 0.05)
		c := &conductor{session: &record.Session{Meta: record.Meta{Schedule: s, Routes: routes, Arms: make([]record.Arm, 2)}}}
		m := &member{}
		if m.run.Warmup.Sent = tc.sent; tc.sent > 0 {
			m.run.Warmup.TookS = 2
		}
		if got := c.finer(m); got != tc.want {
			t.Errorf("%s: %d parts, want %d", tc.name, got, tc.want)
		}
	}
}
