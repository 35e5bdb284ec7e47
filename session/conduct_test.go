package session

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	vegeta "github.com/tsenart/vegeta/v12/lib"

	"plumbline/record"
	"plumbline/session/load"
	"plumbline/session/router"
	"plumbline/targets"
)

// fakeStage writes down what a session does to its routers, in virtual time.
type fakeStage struct {
	t     *testing.T
	mu    sync.Mutex
	log   []string
	alive map[string]bool // by run: processes that run
	begin time.Time

	dieAfter map[string]time.Duration // by run: the router ends so long after its start
	hang     string                   // this run's requests get no answer

	hangDelayed string // nor do this run's that are to be delayed

	skips   int    // targets in each stretch
	refuses string // this arm's routers answer to the load by 401
	targets int    // each client has so many to send once; 0: it may repeat them
	burns   string // this run's router closes every connection, which uses up the targets, and is gone a moment later

	answer func(arm int, route string) (code int) // nil: 200
	body   string                                 // of a refusal
	refuse func(id string) error                  // start fails
}

func (s *fakeStage) note(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log = append(s.log, fmt.Sprintf("%6.1fs ", time.Since(s.begin).Seconds())+fmt.Sprintf(format, args...))
}

func (s *fakeStage) start(arm int, ref record.RunRef, log string) (process, client, error) {
	if s.refuse != nil {
		if err := s.refuse(ref.ID); err != nil {
			return nil, nil, err
		}
	}
	if _, err := os.Stat(filepath.Dir(log)); err != nil {
		s.t.Errorf("the run's folder is not there when its router starts: %v", err)
	}
	s.note("start %s", ref.ID)
	p := &fakeProcess{stage: s, id: ref.ID, done: make(chan struct{})}
	s.alive[ref.ID] = true
	if d, ok := s.dieAfter[ref.ID]; ok {
		time.AfterFunc(d, func() { p.end("dies") })
	}
	return p, &fakeClient{stage: s, arm: arm, id: ref.ID, process: p}, nil
}

type fakeProcess struct {
	stage  *fakeStage
	id     string
	frozen bool
	once   sync.Once
	done   chan struct{}
}

func (p *fakeProcess) end(how string) {
	p.once.Do(func() {
		p.stage.note("%s %s", how, p.id)
		p.stage.mu.Lock()
		delete(p.stage.alive, p.id)
		p.stage.mu.Unlock()
		close(p.done)
	})
}
func (p *fakeProcess) PID() int                           { return 42 }
func (p *fakeProcess) ClockOffset() (time.Duration, bool) { return -time.Hour, true }
func (p *fakeProcess) ReadyIn() time.Duration             { return 100 * time.Millisecond }
func (p *fakeProcess) Freezer() string                    { return "fake" }
func (p *fakeProcess) Memory() int64                      { return 50 << 20 }
func (p *fakeProcess) CPU() time.Duration                 { return time.Since(p.stage.begin) / 20 }
func (p *fakeProcess) Done() <-chan struct{}              { return p.done }
func (p *fakeProcess) Stop()                              { p.end("stop") }
func (p *fakeProcess) Freeze() error                      { p.frozen = true; p.stage.note("freeze %s", p.id); return nil }
func (p *fakeProcess) Thaw() error                        { p.frozen = false; p.stage.note("thaw %s", p.id); return nil }
func (p *fakeProcess) WaitReady(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-p.done:
		return p.Alive("before it was ready")
	case <-time.After(100 * time.Millisecond):
	}
	p.stage.note("ready %s", p.id)
	return nil
}
func (p *fakeProcess) Alive(when string) error {
	select {
	case <-p.done:
		return &router.DeathError{Name: "the router", When: when}
	default:
		return nil
	}
}

type fakeClient struct {
	stage   *fakeStage
	arm     int
	id      string
	process *fakeProcess
	next    int
}

func (c *fakeClient) Close() {}

func (c *fakeClient) Ask(_ context.Context, t targets.Target) record.Answer {
	a := record.Answer{Route: record.RouteName(t.Method, t.URL), Status: 200, BodyBytes: 5, Date: time.Now().UTC().Format(http.TimeFormat)}
	if c.stage.answer != nil {
		a.Status = c.stage.answer(c.arm, a.Route)
	}
	if a.Status >= 400 {
		a.Excerpt = "because it may not be\n"
	}
	if a.Excerpt != "" && c.stage.body != "" {
		a.Excerpt = c.stage.body
	}
	c.stage.note("ask %s %s", c.id, a.Route)
	return a
}

// Stretch answers one request every 10 ms.
func (c *fakeClient) Stretch(ctx context.Context, d time.Duration, sink func([]*vegeta.Result) error) (load.Offered, error) {
	c.stage.note("load %s %s", c.id, d)
	return c.offer(ctx, d, sink)
}

// Delayed is a Stretch whose latencies are longer, where the delay counts.
func (c *fakeClient) Delayed(ctx context.Context, d time.Duration, delay load.Delay, sink func([]*vegeta.Result) error) (load.Offered, error) {
	c.stage.note("load %s %s, delayed by %.1f %%, which counts: %v", c.id, d, 100*delay.Share, delay.Counts)
	if c.stage.hangDelayed == c.id {
		start := time.Now()
		time.Sleep((record.Load{}).Timeout())
		return load.Offered{Start: start, End: time.Now()}, sink([]*vegeta.Result{{Timestamp: start, Latency: (record.Load{}).Timeout(), Method: "GET", URL: "http://router/b"}})
	}
	return c.offer(ctx, d, func(rs []*vegeta.Result) error {
		for _, r := range rs {
			if delay.Counts {
				r.Latency += time.Duration(delay.Share * float64(r.Latency))
			}
		}
		return sink(rs)
	})
}

func (c *fakeClient) offer(ctx context.Context, d time.Duration, sink func([]*vegeta.Result) error) (load.Offered, error) {
	if c.process.frozen {
		c.stage.t.Errorf("%s gets load while it is frozen", c.id)
	}
	start := time.Now()
	var rs []*vegeta.Result
	if c.stage.hang == c.id {
		time.Sleep((record.Load{}).Timeout())
		return load.Offered{Start: start, End: time.Now()}, sink([]*vegeta.Result{{Timestamp: start, Latency: (record.Load{}).Timeout(), Method: "GET", URL: "http://router/b"}})
	}
	if c.stage.burns == c.id {
		time.AfterFunc(100*time.Millisecond, func() { c.process.end("dies") })
		used := &load.UsedUpError{Sent: 1}
		return load.Offered{Start: start, End: start}, errors.Join(sink([]*vegeta.Result{{Timestamp: start, Method: "GET", URL: "http://router/a", Error: "EOF"}}), used)
	}
	for n := uint64(0); time.Since(start) < d && ctx.Err() == nil; n++ {
		at := time.Now()
		if c.stage.targets > 0 && c.next == c.stage.targets {
			used := &load.UsedUpError{Sent: c.next, Load: time.Duration(c.next) * 10 * time.Millisecond}
			return load.Offered{Start: start, End: time.Now()}, errors.Join(sink(rs), used)
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
		}
		rs = append(rs, &vegeta.Result{Timestamp: at, Seq: n, Latency: time.Since(at), Code: 200, Method: "GET", URL: []string{"http://router/a", "http://router/b"}[c.next%2], Body: []byte("hello"), BytesIn: 5})
		if c.stage.refuses != "" && strings.HasSuffix(c.id, c.stage.refuses) {
			rs[n].Code = 401
		}
		c.next++
	}
	return load.Offered{Start: start, End: time.Now(), Skipped: c.stage.skips}, sink(rs)
}

// fakeResponder answers one request every 2 ms, and never one of a router.
type fakeResponder struct {
	client
	stage *fakeStage
}

func (r *fakeResponder) Stretch(ctx context.Context, d time.Duration, sink func([]*vegeta.Result) error) (load.Offered, error) {
	r.stage.note("responder %s", d)
	start := time.Now()
	var rs []*vegeta.Result
	for n := uint64(0); time.Since(start) < d && ctx.Err() == nil; n++ {
		rs = append(rs, &vegeta.Result{Timestamp: time.Now(), Seq: n, Latency: 2 * time.Millisecond, Code: 200, Method: "GET", URL: responderURL})
		time.Sleep(2 * time.Millisecond)
	}
	return load.Offered{Start: start, End: time.Now()}, sink(rs)
}

func newConductor(t *testing.T, schedule record.Schedule, stage *fakeStage) *conductor {
	t.Helper()
	folder, err := record.Create(filepath.Join(t.TempDir(), "session"))
	if err != nil {
		t.Fatal(err)
	}
	stage.t, stage.alive, stage.begin = t, map[string]bool{}, time.Now()
	return &conductor{
		folder: folder, stage: stage, responder: &fakeResponder{stage: stage}, deaths: map[string]int{}, started: map[string]bool{},
		probes: probes{routes: []targets.Target{{Method: "GET", URL: "http://router/a"}, {Method: "GET", URL: "http://router/b"}}},
		session: &record.Session{Dir: folder.Dir(), Meta: record.Meta{
			Format: record.Format, Seed: 1, Schedule: schedule, Rules: record.DefaultRules(),
			Routes: []record.Route{{Name: "GET /a"}, {Name: "GET /b"}},
			Arms:   []record.Arm{{Name: "baseline", Role: record.Baseline, Label: "main"}, {Name: "candidate", Role: record.Candidate, Label: "HEAD"}},
		}},
	}
}

var sliced = record.Schedule{Mode: record.Sliced, Blocks: 2, BlockS: 0.8, SliceS: 0.2, WarmupS: 1, IdleS: 2, Freeze: true, CountFromS: 0.005}

// controlled has 3 rounds with controls, which take 2 × 3 × 10 ms and 2 × 90 ms.
var controlled = record.Schedule{Mode: record.Sliced, Blocks: 2, BlockS: 1.2, SliceS: 0.2, WarmupS: 1, Freeze: true, CountFromS: 0.005,
	Controls: &record.Controls{ResponderS: 0.01, Pairs: 1, Delay: 0.075, Zone: 0.05}}

// TestOrderOfSideEffects holds every effect of a session, and its time,
// against what METHOD.md says a block does step by step.
func TestOrderOfSideEffects(t *testing.T) {
	for name, schedule := range map[string]record.Schedule{
		"sliced":      sliced,
		"controls":    controlled,
		"interleaved": {Mode: record.Interleaved, Blocks: 3, BlockS: 2, WarmupS: 1, CountFromS: 0.005},
		"sequential":  {Mode: record.Sequential, Blocks: 2, BlockS: 2, WarmupS: 1, CountFromS: 0.005},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				stage := &fakeStage{}
				c := newConductor(t, schedule, stage)
				if err := c.run(t.Context()); err != nil {
					t.Fatal(err)
				}
				// Routers are stopped side by side: their order says nothing.
				for i := 1; i < len(stage.log); i++ {
					if a, b := stage.log[i-1], stage.log[i]; strings.Contains(a, " stop ") && strings.Contains(b, " stop ") && b < a {
						stage.log[i-1], stage.log[i] = b, a
					}
				}
				got := strings.Join(stage.log, "\n") + "\n"
				golden := filepath.Join("testdata", name+".order")
				if os.Getenv("UPDATE") != "" {
					if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
						t.Fatal(err)
					}
				}
				want, err := os.ReadFile(golden)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(string(want), got); diff != "" {
					t.Errorf("the order of side effects is not the one in %s (UPDATE=1 writes it anew):\n%s", golden, diff)
				}
				s, err := record.Open(c.folder.Dir())
				if err != nil {
					t.Fatal(err)
				}
				if s.State != record.Complete || len(s.Runs) != 2*schedule.Blocks {
					t.Errorf("the record is %s with %d runs", s.State, len(s.Runs))
				}
				for _, r := range s.Runs {
					if r.State != record.Complete || r.Sent == 0 || len(r.Samples["GET /a"].Latency) == 0 {
						t.Errorf("run %s is %s, %d sent, %d counted on GET /a", r.ID, r.State, r.Sent, len(r.Samples["GET /a"].Latency))
					}
				}
			})
		})
	}
}

// ended checks what must hold after any end of a session.
func ended(t *testing.T, c *conductor, stage *fakeStage, want record.State) *record.Session {
	t.Helper()
	if len(stage.alive) > 0 {
		t.Errorf("routers are left running: %v", stage.alive)
	}
	s, err := record.Open(c.folder.Dir())
	if err != nil {
		t.Fatal(err)
	}
	if s.State != want {
		t.Errorf("the session is %q (%s), want %q", s.State, s.Reason, want)
	}
	for _, r := range s.Runs {
		if r.State == record.Running {
			t.Errorf("run %s is left in the state %q", r.ID, r.State)
		}
	}
	return s
}

func TestOneDeathLosesItsBlockOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		schedule := sliced
		schedule.Blocks = 4
		stage := &fakeStage{dieAfter: map[string]time.Duration{"003-candidate": 4500 * time.Millisecond}}
		c := newConductor(t, schedule, stage)
		if err := c.run(t.Context()); err != nil {
			t.Fatal(err)
		}
		s := ended(t, c, stage, record.Complete)
		var states []string
		for _, r := range s.Runs {
			states = append(states, fmt.Sprint(r.Block, r.State))
		}
		want := []string{"1complete", "1complete", "2died", "2stopped", "3complete", "3complete", "4complete", "4complete"}
		if !slices.Equal(states, want) {
			t.Errorf("got %v, want %v", states, want)
		}
	})
}

func TestHangingRouteLosesItsRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stage := &fakeStage{hang: "002-candidate"}
		c := newConductor(t, sliced, stage)
		if err := c.run(t.Context()); err != nil {
			t.Fatal(err)
		}
		s := ended(t, c, stage, record.Complete)
		for _, r := range s.Runs {
			if r.ID == "002-candidate" && (r.State != record.Died || r.Reason != "GET /b gave no answer within 30s") {
				t.Errorf("the hanging run is %s: %s", r.State, r.Reason)
			}
		}
	})
}

func TestSecondDeathOfAnArmStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		schedule := sliced
		schedule.Blocks = 6
		stage := &fakeStage{dieAfter: map[string]time.Duration{}}
		for n := range 12 {
			stage.dieAfter[fmt.Sprintf("%03d-candidate", n+1)] = 4500 * time.Millisecond
		}
		c := newConductor(t, schedule, stage)
		err := c.run(t.Context())
		var stop *StopError
		if !errors.As(err, &stop) || !strings.Contains(err.Error(), "HEAD lost 2 runs") {
			t.Errorf("got %v, want a StopError that names the arm", err)
		}
		if s := ended(t, c, stage, record.Stopped); len(s.Runs) != 4 {
			t.Errorf("%d runs were begun, want those of 2 blocks", len(s.Runs))
		}
	})
}

func TestInterruptAtAnyMoment(t *testing.T) {
	interrupted := errors.New("interrupted")
	for at := time.Duration(0); at < 16*time.Second; at += 310 * time.Millisecond {
		synctest.Test(t, func(t *testing.T) {
			stage := &fakeStage{}
			c := newConductor(t, sliced, stage)
			ctx, cancel := context.WithCancelCause(t.Context())
			time.AfterFunc(at, func() { cancel(interrupted) })
			err := c.run(ctx)
			if err == nil { // it was over before
				ended(t, c, stage, record.Complete)
				return
			}
			if !errors.Is(err, interrupted) {
				t.Errorf("after %s: %v", at, err)
			}
			s := ended(t, c, stage, record.Interrupted)
			for _, r := range s.Runs[:len(s.Runs)/2*2] {
				if r.State == record.Complete && r.Sent == 0 {
					t.Errorf("after %s: run %s is complete but empty", at, r.ID)
				}
			}
		})
	}
}

func TestWrongAnswersStop(t *testing.T) {
	cases := map[string]struct {
		answer func(arm int, route string) int
		want   string
	}{
		"an unnamed 401":    {func(int, string) int { return 401 }, `preflight: GET /a: status 401; if that is the answer to weigh, name it in the plan`},
		"a 500":             {func(int, string) int { return 500 }, `preflight: GET /a: status 500`},
		"no agreement":      {func(arm int, route string) int { return 200 + 4*arm }, ` answered 20`},
		"only one route":    {func(arm int, route string) int { return map[string]int{"GET /a": 200, "GET /b": 404 - 200*arm}[route] }, `GET /b`},
		"named by the plan": {nil, "status 200, but `expect` in the plan wants 401"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				stage := &fakeStage{answer: tc.answer}
				c := newConductor(t, sliced, stage)
				if tc.answer == nil {
					c.session.Routes[0].Status = []int{401}
				}
				err := c.run(t.Context())
				var stop *StopError
				if !errors.As(err, &stop) || !strings.Contains(err.Error(), tc.want) {
					t.Errorf("got %v, want a StopError with %q", err, tc.want)
				}
				s := ended(t, c, stage, record.Stopped)
				if strings.Contains(s.Reason, "\n") {
					t.Errorf("the reason is not one line: %q", s.Reason)
				}
				if want := "the body (5 bytes):\nbecause it may not be"; tc.answer != nil && tc.answer(1, "GET /a") >= 400 && s.Detail != want {
					t.Errorf("the body is not shown: %q, want %q", s.Detail, want)
				}
				if slices.ContainsFunc(stage.log, func(l string) bool { return strings.Contains(l, " load ") }) {
					t.Error("load was sent to a router that answers wrongly")
				}
			})
		})
	}
}

func TestExpectedStatusPasses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stage := &fakeStage{answer: func(int, string) int { return 401 }}
		c := newConductor(t, sliced, stage)
		for i := range c.session.Routes {
			c.session.Routes[i].Status = []int{401}
		}
		if err := c.run(t.Context()); err != nil {
			t.Fatal(err)
		}
		ended(t, c, stage, record.Complete)
	})
}

func TestStartFailureStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stage := &fakeStage{refuse: func(id string) error {
			if strings.HasSuffix(id, "candidate") {
				return errors.New("no such program")
			}
			return nil
		}}
		c := newConductor(t, sliced, stage)
		err := c.run(t.Context())
		var stop *StopError
		if !errors.As(err, &stop) || !strings.Contains(err.Error(), "HEAD: no such program") {
			t.Errorf("got %v", err)
		}
		ended(t, c, stage, record.Stopped)
	})
}

func TestOrderIsBalancedAndFromTheSeed(t *testing.T) {
	for _, n := range []int{2, 3, 4} {
		for seed := range uint64(50) {
			all := rounds(seed, 1, n, 10*n)
			if !slices.EqualFunc(all, rounds(seed, 1, n, 10*n), slices.Equal) {
				t.Fatal("the same seed gives another order")
			}
			for k := 0; k < len(all); k += 2 * n {
				first, last := make([]int, n), make([]int, n)
				for _, order := range all[k : k+2*n] {
					first[order[0]]++
					last[order[n-1]]++
				}
				for i := range n {
					if first[i] != 2 || last[i] != 2 {
						t.Errorf("%d arms, seed %d, rounds from %d: arm %d is first %d times and last %d, want 2", n, seed, k, i, first[i], last[i])
					}
				}
			}
		}
	}
	if slices.EqualFunc(rounds(1, 1, 2, 40), rounds(2, 1, 2, 40), slices.Equal) {
		t.Error("another seed gives the same order")
	}
	if slices.EqualFunc(rounds(1, 1, 2, 40), rounds(1, 2, 2, 40), slices.Equal) {
		t.Error("two blocks of a session have the same order")
	}
}

func TestInterleavedTurns(t *testing.T) {
	for _, n := range []int{2, 3} {
		arms := make([]record.Arm, n)
		for i := range arms {
			arms[i].Name = fmt.Sprint(i)
		}
		first := map[string]int{}
		blocks := 2 * n
		all := newOrder(7, record.Interleaved, arms).add(blocks)
		for _, g := range all {
			if len(g.runs) != 1 {
				t.Fatalf("a group of %d runs", len(g.runs))
			}
		}
		for b := 0; b < blocks; b++ {
			first[all[b*n].runs[0].Arm]++
			seen := map[string]bool{}
			for i := range n {
				seen[all[b*n+i].runs[0].Arm] = true
			}
			if len(seen) != n {
				t.Errorf("block %d holds %d arms of %d", b+1, len(seen), n)
			}
		}
		for name, count := range first {
			if count != 2 {
				t.Errorf("%d arms: arm %s begins %d blocks of %d, want 2", n, name, count, blocks)
			}
		}
	}
}
