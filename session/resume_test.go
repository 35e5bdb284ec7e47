package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"plumbline/record"
)

// states lists block and state of every run.
func states(s *record.Session) (out []string) {
	for _, r := range s.Runs {
		out = append(out, fmt.Sprint(r.Block, r.State))
	}
	return out
}

// A block that lost a run is measured again at the end, under a number of its
// own; the lost run stays in the record.
func TestLostBlockIsMeasuredAgain(t *testing.T) {
	for mode, want := range map[record.Mode][]string{
		record.Sliced:      {"1complete", "1complete", "2died", "2stopped", "3complete", "3complete", "4complete", "4complete"},
		record.Interleaved: {"1complete", "1complete", "2died", "2complete", "3complete", "3complete", "4complete", "4complete"},
	} {
		synctest.Test(t, func(t *testing.T) {
			schedule := sliced
			schedule.Mode, schedule.Blocks, schedule.Retries = mode, 3, 1
			if mode != record.Sliced {
				schedule.Freeze = false
			}
			stage := &fakeStage{dieAfter: map[string]time.Duration{"003-candidate": 3200 * time.Millisecond}}
			c := newConductor(t, schedule, stage)
			if err := c.run(t.Context()); err != nil {
				t.Fatal(err)
			}
			s := ended(t, c, stage, record.Complete)
			if got := states(s); !slices.Equal(got, want) {
				t.Errorf("%s: got %v, want %v", mode, got, want)
			}
			if len(s.Order) != len(s.Runs) {
				t.Errorf("%s: %d runs were planned, %d are there", mode, len(s.Order), len(s.Runs))
			}
		})
	}
}

// The last block's number is right, also of a session that was gone on with, or
// in which a block is measured again.
func TestTheLastBlockIsCounted(t *testing.T) {
	watch := func(c *conductor) *[]string {
		seen := new([]string)
		c.hooks.Progress = func(e Event) {
			if e.Done {
				*seen = append(*seen, fmt.Sprintf("%d of %d", e.Block, e.Blocks))
			}
		}
		return seen
	}
	schedule := sliced
	schedule.Blocks = 3
	synctest.Test(t, func(t *testing.T) {
		stage := &fakeStage{}
		c := newConductor(t, schedule, stage)
		seen := watch(c)
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(8*time.Second, func() { cancel(errors.New("interrupted")) }) // in the second block
		if err := c.run(ctx); err == nil {
			t.Fatal("it was over before")
		}
		if err := c.folder.Close(); err != nil {
			t.Fatal(err)
		}
		folder, s, err := record.Reopen(c.folder.Dir())
		if err != nil {
			t.Fatal(err)
		}
		stage = &fakeStage{t: t, alive: map[string]bool{}, begin: time.Now()}
		again := &conductor{folder: folder, session: s, stage: stage, probes: c.probes, deaths: map[string]int{}, started: map[string]bool{}}
		more := watch(again)
		if err := again.run(t.Context()); err != nil {
			t.Fatal(err)
		}
		ended(t, again, stage, record.Complete)
		if got, want := slices.Concat(*seen, *more), []string{"1 of 3", "3 of 4", "4 of 4"}; !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		schedule := schedule
		schedule.Retries = 1
		stage := &fakeStage{dieAfter: map[string]time.Duration{"003-candidate": 3200 * time.Millisecond}}
		c := newConductor(t, schedule, stage)
		seen := watch(c)
		if err := c.run(t.Context()); err != nil {
			t.Fatal(err)
		}
		ended(t, c, stage, record.Complete)
		if want := []string{"1 of 3", "2 of 3", "3 of 3", "4 of 4"}; !slices.Equal(*seen, want) {
			t.Errorf("got %q, want %q", *seen, want)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		schedule := schedule
		schedule.MaxBlocks = 5
		stage := &fakeStage{}
		c := newConductor(t, schedule, stage)
		seen := watch(c)
		c.hooks.Interim = func(s *record.Session) Standing { return Standing{Decided: len(s.Runs) >= 8} }
		if err := c.run(t.Context()); err != nil {
			t.Fatal(err)
		}
		ended(t, c, stage, record.Complete)
		if want := []string{"1 of 5", "2 of 5", "3 of 5", "4 of 5"}; !slices.Equal(*seen, want) {
			t.Errorf("got %q, want %q", *seen, want)
		}
	})
}

// Blocks are added one by one until the verdict is decided, or the maximum.
func TestBlocksAreAdded(t *testing.T) {
	for _, decidedAt := range []int{1, 2, 3, 5, 9} {
		synctest.Test(t, func(t *testing.T) {
			schedule := sliced
			schedule.Blocks, schedule.MaxBlocks = 2, 6
			stage := &fakeStage{}
			c := newConductor(t, schedule, stage)
			c.hooks.Interim = func(s *record.Session) Standing { return Standing{Decided: len(s.Runs) >= 2*decidedAt} }
			if err := c.run(t.Context()); err != nil {
				t.Fatal(err)
			}
			s := ended(t, c, stage, record.Complete)
			if want := 2 * min(6, max(2, decidedAt)); len(s.Runs) != want || len(s.Order) != want {
				t.Errorf("decided after %d blocks: %d runs of %d planned, want %d", decidedAt, len(s.Runs), len(s.Order), want)
			}
		})
	}
}

// Whenever a session is interrupted, what is measured after it was taken up
// again is what was missing: the same runs in the same order, and every block
// that counts was measured in one piece.
func TestResumeAtAnyMoment(t *testing.T) {
	interrupted := errors.New("interrupted")
	for _, mode := range []record.Mode{record.Sliced, record.Interleaved} {
		schedule := sliced
		schedule.Mode, schedule.Blocks = mode, 3
		schedule.Freeze = mode == record.Sliced
		for at := time.Duration(0); at < 30*time.Second; at += 1930 * time.Millisecond {
			synctest.Test(t, func(t *testing.T) {
				stage := &fakeStage{}
				c := newConductor(t, schedule, stage)
				ctx, cancel := context.WithCancelCause(t.Context())
				time.AfterFunc(at, func() { cancel(interrupted) })
				if err := c.run(ctx); err == nil {
					return // it was over before
				}
				if err := c.folder.Close(); err != nil {
					t.Fatal(err)
				}

				folder, s, err := record.Reopen(c.folder.Dir())
				if err != nil {
					t.Fatal(err)
				}
				before := len(s.Runs)
				stage = &fakeStage{t: t, alive: map[string]bool{}, begin: time.Now()}
				again := &conductor{folder: folder, session: s, stage: stage, probes: c.probes, deaths: map[string]int{}, started: map[string]bool{}}
				if err := again.run(t.Context()); err != nil {
					t.Fatal(err)
				}
				s = ended(t, again, stage, record.Complete)
				if len(s.Order) != len(s.Runs) {
					t.Errorf("%s, after %s: %d runs are planned, %d were begun", mode, at, len(s.Order), len(s.Runs))
				}
				if n := len(again.completeBlocks()); n != schedule.Blocks {
					t.Errorf("%s, after %s: %d complete blocks, want %d: %v", mode, at, n, schedule.Blocks, states(s))
				}
				for _, r := range s.Runs[:before] { // in the record's order, which is that of the plan
					for _, later := range s.Runs[before:] {
						if later.Block == r.Block {
							t.Errorf("%s, after %s: block %d was measured in two pieces", mode, at, r.Block)
						}
					}
				}
			})
		}
	}
}

func TestMayResume(t *testing.T) {
	host := record.Host{Hostname: "a", OS: "linux", Kernel: "6", BootID: "1", CPU: "fast", CPUs: 2}
	good := record.Meta{State: record.Interrupted, Host: host, Asked: record.Asked{Plan: "/p"}, Schedule: record.Schedule{Mode: record.Sliced}}
	if err := mayResume(good, host); err != nil {
		t.Error(err)
	}
	for want, change := range map[string]func(*record.Meta){
		"nothing is left":            func(m *record.Meta) { m.State = record.Complete },
		"it is sequential":           func(m *record.Meta) { m.Schedule.Mode = record.Sequential },
		"which plan":                 func(m *record.Meta) { m.Asked.Plan = "" },
		"another host (b, now a)":    func(m *record.Meta) { m.Host.Hostname = "b" },
		"another boot (0, now 1)":    func(m *record.Meta) { m.Host.BootID = "0" },
		"another kernel":             func(m *record.Meta) { m.Host.Kernel = "5" },
		"another CPU (4 × fast, now": func(m *record.Meta) { m.Host.CPUs = 4 },
	} {
		m := good
		change(&m)
		if err := mayResume(m, host); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	arm := record.Arm{Name: "a", Label: "main", Tree: "t", BinarySHA256: "b", Run: []string{"x"}}
	for want, change := range map[string]func(*record.Arm){
		"":                   func(a *record.Arm) { a.BinarySHA256 = "another path in it" },
		"not the build":      func(a *record.Arm) { a.Tree, a.BinarySHA256 = "", "" },
		"not the build any ": func(a *record.Arm) { a.Tree, a.BinarySHA256 = "u", "c" },
		"not started as":     func(a *record.Arm) { a.Run = []string{"x", "-v"} },
		"is not started as ": func(a *record.Arm) { a.Env = map[string]string{"A": "1"} },
	} {
		b := arm
		change(&b)
		if err := sameArms([]record.Arm{arm}, []record.Arm{b}); want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}
