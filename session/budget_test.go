package session

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"plumbline/record"
)

// budgeted is a schedule of 4.8 s a block; with the fake stage's two starts it takes 5 s.
func budgeted(t *testing.T, mode record.Mode, budget record.Seconds) record.Schedule {
	t.Helper()
	s := sliced
	s.BudgetS, s.Mode, s.Freeze = budget, mode, mode == record.Sliced
	if mode == record.Interleaved {
		s.IdleS /= 2 // each run idles by itself
	}
	if err := fitBudget(&s, 2); err != nil {
		t.Fatal(err)
	}
	return s
}

// A session with a budget measures as many blocks as fit, by what the first
// one took, and says why it ended.
func TestBudget(t *testing.T) {
	for _, tt := range []struct {
		budget            record.Seconds
		estimate          [2]int // before the first block: fewest and most
		fixed             [2]int // and after it
		blocks            int
		decidedAt, hopeAt int // complete blocks; 0: never
		loses             string
		reason            string
	}{
		{budget: 48, estimate: [2]int{6, 10}, fixed: [2]int{6, 9}, blocks: 9},
		{budget: 21, estimate: [2]int{4, 4}, fixed: [2]int{4, 4}, blocks: 4},
		{budget: 48, estimate: [2]int{6, 10}, fixed: [2]int{6, 9}, blocks: 7, decidedAt: 7},
		{budget: 48, estimate: [2]int{6, 10}, fixed: [2]int{6, 9}, blocks: 6, hopeAt: 6, reason: "No hope."},
		{budget: 48, estimate: [2]int{6, 10}, fixed: [2]int{6, 9}, blocks: 8, loses: "003-candidate", reason: "The budget of 48s ended the session after 8 of at most 9 blocks."},
	} {
		for _, mode := range []record.Mode{record.Sliced, record.Interleaved} {
			synctest.Test(t, func(t *testing.T) {
				schedule := budgeted(t, mode, tt.budget)
				schedule.Retries = 1
				if got := [2]int{schedule.Blocks, schedule.MaxBlocks}; got != tt.estimate {
					t.Errorf("%s: by the schedule %v blocks fit into %v s, want %v", mode, got, tt.budget, tt.estimate)
				}
				stage := &fakeStage{}
				if tt.loses != "" {
					if mode == record.Interleaved {
						return // what dies there takes other time
					}
					stage.dieAfter = map[string]time.Duration{tt.loses: 3200 * time.Millisecond}
				}
				c := newConductor(t, schedule, stage)
				c.hooks.Interim = func(s *record.Session) (now Standing) {
					now.Decided = tt.decidedAt > 0 && len(c.completeBlocks()) >= tt.decidedAt
					if tt.hopeAt > 0 && len(c.completeBlocks()) >= tt.hopeAt {
						now.Hopeless = "No hope."
					}
					return now
				}
				if err := c.run(t.Context()); err != nil {
					t.Fatal(err)
				}
				s := ended(t, c, stage, record.Complete)
				if got := [2]int{s.Schedule.Blocks, s.Schedule.MaxBlocks}; got != tt.fixed {
					t.Errorf("%s: %v blocks after the first, want %v", mode, got, tt.fixed)
				}
				if n := len(c.completeBlocks()); n != tt.blocks || s.Reason != tt.reason {
					t.Errorf("%s, %v s: %d blocks, reason %q; want %d, %q", mode, tt.budget, n, s.Reason, tt.blocks, tt.reason)
				}
				if len(s.Order) != len(s.Runs) {
					t.Errorf("%d runs were planned, %d begun", len(s.Order), len(s.Runs))
				}
				if took := time.Since(stage.begin); took > tt.budget.Duration() {
					t.Errorf("%s: it took %s of %v s", mode, took, tt.budget)
				}
			})
		}
	}
}

// A budget that turns out to be too short ends the session at once.
func TestBudgetTooShort(t *testing.T) {
	s := sliced
	s.BudgetS = 14
	want := "schedule.budget: 14s is too short: by the schedule 3 blocks take 14.4s, and starts and stops come on top; give it 16s at least, or make schedule.block or warmup shorter"
	if err := fitBudget(&s, 2); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	if err := fitBudget(&s, 1); err != nil {
		t.Errorf("a single arm: %v", err)
	}
	synctest.Test(t, func(t *testing.T) {
		stage := &fakeStage{}
		c := newConductor(t, budgeted(t, record.Sliced, 14.5), stage)
		err := c.run(t.Context())
		var stop *StopError
		want := "a block took 5s, so that only 2 of the 3 blocks that a verdict needs fit into the budget of 14.5s; give it 16s at least"
		if !errors.As(err, &stop) || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
		if s := ended(t, c, stage, record.Stopped); len(s.Runs) != 2 {
			t.Errorf("%d runs were begun, want 2", len(s.Runs))
		}
	})
}

// What is gone on with has what remains of its budget, and the length that
// was fixed by its first blocks.
func TestResumeWithinTheBudget(t *testing.T) {
	for at := 7 * time.Second; at < 40*time.Second; at += 3710 * time.Millisecond {
		synctest.Test(t, func(t *testing.T) {
			stage := &fakeStage{}
			c := newConductor(t, budgeted(t, record.Sliced, 48), stage)
			ctx, cancel := context.WithCancelCause(t.Context())
			time.AfterFunc(at, func() { cancel(errors.New("interrupted")) })
			if err := c.run(ctx); err == nil {
				t.Fatal("it was not interrupted")
			}
			first := time.Since(stage.begin)
			if err := c.folder.Close(); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Hour) // nothing was measured in it
			folder, s, err := record.Reopen(c.folder.Dir())
			if err != nil {
				t.Fatal(err)
			}
			stage = &fakeStage{t: t, alive: map[string]bool{}, begin: time.Now()}
			again := &conductor{folder: folder, session: s, stage: stage, probes: c.probes, deaths: map[string]int{}, started: map[string]bool{}}
			if err := again.run(t.Context()); err != nil {
				t.Fatal(err)
			}
			s = ended(t, again, stage, record.Complete)
			if s.Schedule.MaxBlocks != 9 {
				t.Errorf("after %s: at most %d blocks, want 9 as before", at, s.Schedule.MaxBlocks)
			}
			if took := first + time.Since(stage.begin); took > 48*time.Second || took < 37*time.Second {
				t.Errorf("after %s: %s were measured of 48 s", at, took)
			}
			if n := len(again.completeBlocks()); n < 8 && !strings.HasPrefix(s.Reason, "The budget of 48s") || n > 9 {
				t.Errorf("after %s: %d blocks, reason %q", at, n, s.Reason)
			}
		})
	}
}
