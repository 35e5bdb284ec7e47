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

	"plumbline/plan"
	"plumbline/record"
)

// serviceStage writes the life of services into the log of a fakeStage.
type serviceStage struct {
	*fakeStage
	dieAfter map[string]time.Duration // by name and block: db 2
	refuse   map[string]error
}

func (s *serviceStage) serve(_ context.Context, one service, block int, values map[string]string) (*served, error) {
	id := fmt.Sprint(one.Name, " ", block)
	if err := s.refuse[id]; err != nil {
		return nil, &ServiceError{Service: one.Name, Ends: true, Err: err}
	}
	s.note("start %s, knowing %d", id, len(values))
	p := &fakeProcess{stage: s.fakeStage, id: id, done: make(chan struct{})}
	s.mu.Lock()
	s.alive[id] = true
	s.mu.Unlock()
	if d, ok := s.dieAfter[id]; ok {
		time.AfterFunc(d, func() { p.end("dies") })
	}
	return &served{service: one, process: p, values: map[string]string{one.Name + ".port": "1"}}, nil
}

// withServices gives a conductor one service per block, db, between two per session.
func withServices(c *conductor, s *serviceStage) {
	list := []service{
		{Service: plan.Service{Name: "first", Per: plan.PerSession}},
		{Service: plan.Service{Name: "db", Per: plan.PerBlock}},
		{Service: plan.Service{Name: "last", Per: plan.PerSession}},
	}
	c.services = &services{list: list, start: s.serve}
}

func TestServicesAroundRuns(t *testing.T) {
	for _, mode := range []record.Mode{record.Sliced, record.Interleaved} {
		t.Run(string(mode), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				schedule := sliced
				schedule.Mode = mode
				stage := &serviceStage{fakeStage: &fakeStage{}}
				c := newConductor(t, schedule, stage.fakeStage)
				withServices(c, stage)
				if err := c.run(t.Context()); err != nil {
					t.Fatal(err)
				}
				ended(t, c, stage.fakeStage, record.Complete)
				var got []string
				for _, line := range stage.log {
					_, what, _ := strings.Cut(line, "s ")
					switch {
					case strings.HasPrefix(what, "start 0"), strings.HasPrefix(what, "stop 0"):
						if what, _, _ = strings.Cut(what, " "); what+" run" != got[len(got)-1] {
							got = append(got, what+" run")
						}
					case strings.HasPrefix(what, "start "), strings.HasPrefix(what, "stop "):
						got = append(got, what)
					}
				}
				runs := []string{"start run", "stop run"}
				if mode == record.Interleaved {
					runs = append(runs, runs...)
				}
				want := slices.Concat(
					[]string{"start first 0, knowing 0", "start last 0, knowing 1", "start db 1, knowing 2"}, runs,
					[]string{"stop db 1", "start db 2, knowing 2"}, runs,
					[]string{"stop db 2", "stop last 0", "stop first 0"})
				if !slices.Equal(got, want) {
					t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
				}
			})
		})
	}
}

// The block of a service that ends is lost and measured again; no arm has lost a run.
func TestServiceOfABlockEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		schedule := sliced
		schedule.Blocks, schedule.Retries = 3, 1
		stage := &serviceStage{fakeStage: &fakeStage{}, dieAfter: map[string]time.Duration{"db 2": 4500 * time.Millisecond}}
		c := newConductor(t, schedule, stage.fakeStage)
		withServices(c, stage)
		if err := c.run(t.Context()); err != nil {
			t.Fatal(err)
		}
		s := ended(t, c, stage.fakeStage, record.Complete)
		want := []string{"1complete", "1complete", "2stopped", "2stopped", "3complete", "3complete", "4complete", "4complete"}
		if got := states(s); !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
		if len(c.deaths) > 0 {
			t.Errorf("arms have lost runs: %v", c.deaths)
		}
	})
}

// An arm that ends because its service does is not to blame, even if it is quicker.
func TestArmFollowsItsService(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		schedule := sliced
		schedule.Blocks = 3
		stage := &serviceStage{fakeStage: &fakeStage{}, dieAfter: map[string]time.Duration{"db 2": 4500 * time.Millisecond}}
		c := newConductor(t, schedule, stage.fakeStage)
		withServices(c, stage)
		stage.fakeStage.dieAfter = map[string]time.Duration{"003-candidate": 4300 * time.Millisecond, "004-candidate": 4300 * time.Millisecond}
		if err := c.run(t.Context()); err != nil {
			t.Fatal(err)
		}
		s := ended(t, c, stage.fakeStage, record.Complete)
		if got := states(s)[2:4]; !slices.Equal(got, []string{"2stopped", "2stopped"}) || len(c.deaths) > 0 {
			t.Errorf("the block's runs are %v, deaths %v", got, c.deaths)
		}
		for _, r := range s.Runs[2:4] {
			if !strings.Contains(r.Reason, "ended while it was needed") {
				t.Errorf("the reason is %q", r.Reason)
			}
		}
	})
}

// A service per session cannot be replaced, and neither can one that does not start.
func TestServiceEndsTheSession(t *testing.T) {
	for name, tc := range map[string]struct {
		dies   map[string]time.Duration
		refuse map[string]error
		runs   int
	}{
		"it dies":                    {dies: map[string]time.Duration{"first 0": 4500 * time.Millisecond}, runs: 2},
		"it does not start":          {refuse: map[string]error{"last 0": errors.New("no room")}},
		"the first block's does not": {refuse: map[string]error{"db 1": errors.New("no room")}},
		"a later block's does not":   {refuse: map[string]error{"db 2": errors.New("no room")}, runs: 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				stage := &serviceStage{fakeStage: &fakeStage{}, dieAfter: tc.dies, refuse: tc.refuse}
				c := newConductor(t, sliced, stage.fakeStage)
				withServices(c, stage)
				err := c.run(t.Context())
				var stop *StopError
				var service *ServiceError
				if !errors.As(err, &stop) || !errors.As(err, &service) {
					t.Errorf("got %v", err)
				}
				if s := ended(t, c, stage.fakeStage, record.Stopped); len(s.Runs) != tc.runs || s.Reason != err.Error() {
					t.Errorf("%d runs were begun, want %d; reason %q", len(s.Runs), tc.runs, s.Reason)
				}
			})
		})
	}
}

func TestInterruptStopsServices(t *testing.T) {
	interrupted := errors.New("interrupted")
	for at := time.Duration(0); at < 8*time.Second; at += 970 * time.Millisecond {
		synctest.Test(t, func(t *testing.T) {
			stage := &serviceStage{fakeStage: &fakeStage{}}
			c := newConductor(t, sliced, stage.fakeStage)
			withServices(c, stage)
			ctx, cancel := context.WithCancelCause(t.Context())
			time.AfterFunc(at, func() { cancel(interrupted) })
			if err := c.run(ctx); !errors.Is(err, interrupted) {
				t.Errorf("after %s: %v", at, err)
			}
			ended(t, c, stage.fakeStage, record.Interrupted)
		})
	}
}

func TestUnknownUser(t *testing.T) {
	if _, err := accountOf("no-such-user-here"); err == nil || !strings.Contains(err.Error(), "name a user of this machine") {
		t.Errorf("got %v", err)
	}
}
