package session

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	vegeta "github.com/tsenart/vegeta/v12/lib"

	"plumbline/plan"
	"plumbline/record"
	"plumbline/session/load"
	"plumbline/session/router"
	"plumbline/targets"
)

// process is the router of one run; *router.Process is the real one.
type process interface {
	PID() int
	ClockOffset() (ahead time.Duration, moved bool) // of its own clock
	WaitReady(context.Context) error
	ReadyIn() time.Duration
	Freezer() string
	Memory() int64      // of the router and all it started, in bytes; 0: the system does not tell
	CPU() time.Duration // that they have used
	Freeze() error
	Thaw() error
	Alive(when string) error
	Done() <-chan struct{}
	Stop()
}

// client asks that router; *load.Client is the real one.
type client interface {
	Ask(context.Context, targets.Target) record.Answer
	Stretch(ctx context.Context, d time.Duration, sink func([]*vegeta.Result) error) (load.Offered, error)
	Delayed(ctx context.Context, d time.Duration, delay load.Delay, sink func([]*vegeta.Result) error) (load.Offered, error)
	Close()
}

// stage is where runs take place: a machine, or a fake one in tests.
type stage interface {
	// start starts the router of a run of Meta.Arms[arm].
	start(arm int, ref record.RunRef, log string) (process, client, error)
}

// Event is news of a session for whoever watches it.
type Event struct {
	Phase  string        // what is being done: starting, warming up, measuring, ...
	Block  int           // from 1
	Blocks int           // number of the last one, as things stand
	AtMost bool          // the session ends before Blocks if every judged row is decided
	Arm    string        // label of the arm that Phase is about; empty: all
	Left   time.Duration // about how long the session will still take
	Worst  string        // what Hooks.Interim said last
	Done   bool          // the block has just ended
	Lost   string        // why the block that has just ended does not count
}

// Hooks are functions that a session calls as it goes; either may be nil.
type Hooks struct {
	Progress func(Event)
	// Interim says how things stand, after each block.
	Interim func(*record.Session) Standing
}

// Standing is what a caller makes of a session so far.
type Standing struct {
	Worst    string // for the progress line
	Decided  bool   // more blocks would change no verdict
	Hopeless string // why the blocks that are left cannot decide, for the record; empty: they may
}

// StopError says that the session ended early because of the routers it
// weighs, not because plumbline failed. What was measured is in the record.
type StopError struct{ Err error }

func (e *StopError) Error() string { return e.Err.Error() }
func (e *StopError) Unwrap() error { return e.Err }

// deathsAllowed is how many of its runs an arm may lose before the session
// is not worth going on with.
const deathsAllowed = 1

// conductor carries out the runs of a session.
type conductor struct {
	folder  *record.Folder
	session *record.Session // grows run by run
	stage   stage
	probes  probes
	once    *once // nil: the targets may be repeated
	hooks   Hooks

	services  *services // what the arms need; nil: nothing
	responder client    // of the negative control; nil: there are no controls

	order     *order
	todo      []group
	spent     int // blocks that were begun or are to be, without those that an interruption took
	begun     time.Time
	clock     time.Time      // of a budget: the first start of a router; zero: none was started
	before    time.Duration  // that was measured before the session was gone on with
	outOfTime bool           // no further block fitted
	done      int            // groups
	deaths    map[string]int // lost runs by arm
	started   map[string]bool
	first     string // label of the arm that was asked first
	standing  Standing
	lost      string // why the block under way does not count
}

// member is one run of the group that is under way.
type member struct {
	arm    record.Arm
	run    record.Run
	w      *record.RunWriter
	proc   process
	client client

	answers, refused int // under load so far: all, and those that refuse a token
}

// faultError is an error that is the doing of one member's router.
type faultError struct {
	member *member
	err    error
}

func (e *faultError) Error() string { return e.member.arm.Label + ": " + e.err.Error() }
func (e *faultError) Unwrap() error { return e.err }

// run measures block by block and leaves session.json in its final state.
func (c *conductor) run(ctx context.Context) error {
	meta := &c.session.Meta
	c.order = newOrder(meta.Seed, meta.Schedule.Mode, meta.Arms)
	if len(meta.Order) > 0 {
		c.takeUp()
	} else if meta.Schedule.BudgetS > 0 {
		c.add(1) // how many fit is not known yet
	} else {
		c.add(meta.Schedule.Blocks)
	}
	c.begun = time.Now()
	meta.State, meta.Reason, meta.Detail = record.Running, "", ""
	if err := c.folder.SaveMeta(*meta); err != nil {
		return err
	}
	err := c.groups(ctx)
	c.services.end()
	var stop *StopError
	switch {
	case err == nil:
		meta.State, meta.Reason = record.Complete, c.early()
	case ctx.Err() != nil:
		meta.State, meta.Reason = record.Interrupted, fmt.Sprint(context.Cause(ctx))
		err = context.Cause(ctx)
	case errors.As(err, &stop):
		meta.State, meta.Reason, meta.Detail = record.Stopped, err.Error(), detailOf(err)
	default:
		meta.State, meta.Reason = record.Stopped, "plumbline failed: "+err.Error()
	}
	return errors.Join(err, c.folder.SaveMeta(*meta))
}

// group measures the runs of g. Whatever happens, when it returns their
// routers are gone and each run that was begun is on disk in its final state.
func (c *conductor) group(ctx context.Context, g group) error {
	var members []*member
	err := c.services.serve(ctx, g.block, func(name string) {
		c.tell(Event{Phase: "starting", Block: g.block, Arm: name})
	})
	if err == nil {
		err = c.measure(ctx, g, &members)
	}
	var fault *faultError
	if errors.As(err, &fault) { // for want of a service, it may be
		if dead := c.services.blame(ctx); dead != nil {
			err, fault = dead, nil
		}
	}
	c.tell(Event{Phase: "stopping", Block: g.block})
	var stops sync.WaitGroup
	for _, m := range members {
		stops.Go(func() {
			if m.client != nil {
				m.client.Close()
			}
			if m.proc != nil {
				m.proc.Stop()
			}
		})
	}
	stops.Wait()

	var wrong *AnswerError
	var unmoved *router.ClockError
	var unserved *ServiceError
	isFault := fault != nil && ctx.Err() == nil
	alive := errors.As(err, &wrong) || errors.As(err, &unmoved)
	isUnserved := errors.As(err, &unserved) && ctx.Err() == nil
	for _, m := range members {
		m.run.Ended = time.Now()
		switch {
		case err == nil:
			m.run.State = record.Complete
		case ctx.Err() != nil:
			m.run.State, m.run.Reason = record.Interrupted, fmt.Sprint(context.Cause(ctx))
		case isFault && fault.member == m:
			m.run.State, m.run.Reason = record.Died, fault.err.Error()
			if alive { // but it does not answer as it must, or by its own clock
				m.run.State = record.Stopped
			}
		case isUnserved:
			m.run.State, m.run.Reason = record.Stopped, err.Error()
		default:
			m.run.State, m.run.Reason = record.Stopped, "its block ended early"
		}
		if m.w != nil {
			if err2 := m.w.Finish(m.run); err2 != nil && (err == nil || isFault || isUnserved) {
				return err2
			}
		}
	}
	if isUnserved {
		c.lost = err.Error()
		if unserved.Ends {
			return &StopError{err}
		}
		c.services.stop(plan.PerBlock) // what is still to come gets fresh ones
		return nil                     // nobody's fault: no arm has lost a run
	}
	if !isFault {
		return err
	}
	arm := fault.member.arm
	c.lost = err.Error()
	c.deaths[arm.Name]++
	if alive || !c.started[arm.Name] {
		return &StopError{err} // it would be the same in every block
	}
	if c.deaths[arm.Name] > deathsAllowed {
		return &StopError{fmt.Errorf("%s lost %d runs; the last: %w", arm.Label, c.deaths[arm.Name], fault.err)}
	}
	return nil
}

// measure starts the group's members and gives them their load. It appends to
// members as it goes, so that the caller can end them after any error.
func (c *conductor) measure(ctx context.Context, g group, members *[]*member) error {
	meta := &c.session.Meta
	for _, ref := range g.runs {
		c.tell(Event{Phase: "starting", Block: g.block, Arm: c.arm(ref).Label})
		if err := context.Cause(ctx); err != nil {
			return err
		}
		if err := c.start(ctx, ref, members); err != nil {
			return err
		}
	}
	for _, m := range *members {
		if err := c.preflight(ctx, m); err != nil {
			return err
		}
	}
	if err := c.folder.SaveMeta(*meta); err != nil { // the first preflight fixes expected statuses
		return err
	}
	if idle := meta.Schedule.IdleS.Duration(); idle > 0 {
		c.tell(Event{Phase: "idling", Block: g.block})
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(idle):
		}
	}
	for _, m := range *members {
		m.run.IdleMemory = m.proc.Memory()
	}
	freeze := meta.Schedule.Freeze && len(*members) > 1
	if freeze {
		for _, m := range *members {
			if err := m.proc.Freeze(); err != nil {
				return &faultError{m, err}
			}
		}
	}
	for _, m := range *members {
		if err := c.warmUp(ctx, m, freeze); err != nil {
			return err
		}
	}
	c.tell(Event{Phase: "measuring", Block: g.block})
	quiet := load.QuietGC()
	defer quiet()
	return c.rounds(ctx, g.block, *members, freeze)
}

// block is what the slices of a block share.
type block struct {
	members  []*member
	freeze   bool
	idle     *idleCPU // nil: who is frozen uses none
	baseline *member  // the first; nil: it is no member
}

// rounds gives every member a slice in each round, and the controls theirs.
func (c *conductor) rounds(ctx context.Context, number int, members []*member, freeze bool) error {
	meta := &c.session.Meta
	b := &block{members: members, freeze: freeze}
	if !freeze && len(members) > 1 {
		b.idle = newIdleCPU(members)
	}
	if i := slices.IndexFunc(members, func(m *member) bool { return m.arm.Name == meta.Arms[0].Name }); i >= 0 {
		b.baseline = members[i]
	}
	n := roundCount(meta.Schedule, len(meta.Arms))
	var pairs []int
	if meta.Schedule.Controls != nil {
		pairs = pairsAfter(n, meta.Schedule.Controls.Pairs)
	}
	for i, order := range rounds(meta.Seed, number, len(members), n) {
		for _, k := range order {
			if err := c.slice(ctx, b, members[k], i+1); err != nil {
				return err
			}
		}
		for p, after := range pairs {
			if after != i+1 {
				continue
			}
			if err := c.pair(ctx, b, p+1); err != nil {
				return err
			}
		}
	}
	b.idle.note()
	return nil
}

// slice measures slice n of a member, with the responder's time after it.
func (c *conductor) slice(ctx context.Context, b *block, m *member, n int) error {
	meta := &c.session.Meta
	sl := record.Slice{N: n}
	var responded record.ControlSlice
	s := stint{
		length: stretchOf(meta.Schedule, len(meta.Arms)).Duration(), freeze: b.freeze, when: "under load",
		sink: func(rs []*vegeta.Result) error {
			sl.Sent += len(rs)
			return m.w.Results(sl.N, rs)
		},
	}
	if meta.Schedule.Controls != nil {
		s.after = func() (err error) {
			responded, err = c.respond(ctx, n)
			return err
		}
	}
	runtime.GC() // while nothing is measured, not within a slice
	b.idle.pause(m)
	offered, err := c.stretch(ctx, m, s)
	sl.Start, sl.End, sl.Due = offered.Start, offered.End, offered.Due
	sl.Counted = sl.Start.Add(meta.Schedule.CountFromS.Duration())
	if !sl.Start.IsZero() {
		if err2 := m.w.Slice(sl); err == nil {
			err = err2
		}
	}
	if err != nil {
		return err
	}
	b.idle.resume(m)
	if s.after == nil {
		return nil
	}
	return m.w.Control(responded)
}

// start starts one run and waits until it is ready. While one starts, those
// that are ready idle unfrozen: they may depend on nothing, but a shared
// service could wait for them.
func (c *conductor) start(ctx context.Context, ref record.RunRef, members *[]*member) error {
	m := &member{arm: c.arm(ref)}
	m.run = record.Run{ID: ref.ID, Block: ref.Block, Arm: ref.Arm, State: record.Running, Started: time.Now()}
	var err error
	if m.w, err = c.folder.StartRun(m.run); err != nil {
		return err
	}
	*members = append(*members, m)
	if m.proc, m.client, err = c.stage.start(c.armIndex(ref.Arm), ref, m.w.Log()); err != nil {
		return &faultError{m, err}
	}
	m.run.PID, m.run.Freezer = m.proc.PID(), m.proc.Freezer()
	if ahead, moved := m.proc.ClockOffset(); moved {
		seconds := record.Seconds(ahead.Seconds())
		m.run.ClockOffsetS = &seconds
	}
	if err := m.proc.WaitReady(ctx); err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return &faultError{m, err}
	}
	m.run.ReadyS = record.Seconds(m.proc.ReadyIn().Seconds())
	return nil
}

// detailOf is what an error has to show beyond its one line.
func detailOf(err error) string {
	var d interface{ Detail() string }
	if errors.As(err, &d) {
		return d.Detail()
	}
	return ""
}

// stint is one member's time under load.
type stint struct {
	length time.Duration
	delay  *load.Delay // of a control; nil: none
	freeze bool        // it is thawed for it, and frozen again
	sink   func([]*vegeta.Result) error
	after  func() error // called before it is frozen again, unless it failed; may be nil
	when   string       // for errors
}

// offer sends the load of a stint.
func (s stint) offer(ctx context.Context, c client, sink func([]*vegeta.Result) error) (load.Offered, error) {
	if s.delay != nil {
		return c.Delayed(ctx, s.length, *s.delay, sink)
	}
	return c.Stretch(ctx, s.length, sink)
}

// stretch gives one member load, thawed if the others are frozen. The death of
// its router ends it.
func (c *conductor) stretch(ctx context.Context, m *member, s stint) (o load.Offered, err error) {
	if s.freeze {
		if err := m.proc.Thaw(); err != nil {
			return o, &faultError{m, err}
		}
	}
	live, cancel := context.WithCancel(ctx)
	unserved := c.services.ended()
	go func() {
		select {
		case <-m.proc.Done():
			cancel()
		case <-unserved:
			cancel()
		case <-live.Done():
		}
	}()
	hangs, unanswered, tooLong := "", false, c.session.Load.Timeout()
	o, err = s.offer(live, m.client, func(rs []*vegeta.Result) error {
		m.answers += len(rs)
		for _, r := range rs {
			unanswered = unanswered || r.Code == 0
			if c.refuses(r) {
				m.refused++
			}
			if r.Code == 0 && r.Latency >= tooLong {
				hangs = record.RouteName(r.Method, r.URL) + " gave no answer"
				if strings.HasPrefix(r.Error, load.Unended) {
					hangs = record.RouteName(r.Method, r.URL) + " did not end its answer"
				}
			}
		}
		if ctx.Err() != nil { // what we cut off ourselves is no error of the router
			rs = slices.DeleteFunc(rs, func(r *vegeta.Result) bool { return r.Code == 0 })
		}
		return s.sink(c.services.excuse(rs))
	})
	cancel()
	m.run.Skipped += o.Skipped
	used, usedUp := isUsedUp(err)
	switch {
	case ctx.Err() != nil:
		return o, context.Cause(ctx)
	case err != nil && !usedUp:
		return o, err
	case usedUp && unanswered:
		// Who closes every connection uses up a set in no time, and that it is
		// dead is known a moment later.
		c.settle(m)
	}
	if err := c.services.alive(s.when); err != nil {
		return o, err
	}
	if err := m.proc.Alive(s.when); err != nil {
		return o, &faultError{m, err}
	}
	if hangs != "" { // every slice would wait for it again
		return o, &faultError{m, fmt.Errorf("%s within %s", hangs, tooLong)}
	}
	if m.arm.Role == record.Baseline || len(c.session.Arms) == 1 { // if only the candidate refuses them, that is a result
		if err := c.once.refused(m.answers, m.refused); err != nil {
			return o, &StopError{fmt.Errorf("%s: %w", m.arm.Label, err)}
		}
	}
	if usedUp {
		return o, &StopError{fmt.Errorf("%s: %w", m.arm.Label, c.once.ended(used, time.Since(m.run.Started)))}
	}
	if s.after != nil {
		if err := s.after(); err != nil {
			return o, err
		}
		if err := m.proc.Alive(s.when); err != nil {
			return o, &faultError{m, err}
		}
	}
	if s.freeze {
		if err := m.proc.Freeze(); err != nil {
			return o, &faultError{m, err}
		}
	}
	return o, nil
}

// refuses tells whether an answer is that a token is not good, where that is not expected.
func (c *conductor) refuses(r *vegeta.Result) bool {
	code := int(r.Code)
	if code != http.StatusUnauthorized && code != http.StatusForbidden {
		return false
	}
	name := record.RouteName(r.Method, r.URL)
	return !slices.ContainsFunc(c.session.Routes, func(rt record.Route) bool { return rt.Name == name && slices.Contains(rt.Status, code) })
}

func (c *conductor) armIndex(name string) int {
	for i, a := range c.session.Arms {
		if a.Name == name {
			return i
		}
	}
	panic("session: a run of an arm that is not there: " + name)
}

func (c *conductor) arm(ref record.RunRef) record.Arm { return c.session.Arms[c.armIndex(ref.Arm)] }

func (c *conductor) tell(e Event) {
	if c.hooks.Progress == nil {
		return
	}
	s := c.session.Schedule
	// The number of the last block: those that lost a run or were cut off have one as well.
	most := max(s.Blocks, s.MaxBlocks)
	e.Blocks = max(c.order.blocks+max(0, most-c.spent), e.Block)
	e.AtMost, e.Worst = s.MaxBlocks > s.Blocks, c.standing.Worst
	spent, left := time.Since(c.begun).Seconds(), 0.0
	if c.done > 0 {
		left = float64(c.left()) * spent / float64(c.done)
	} else {
		left = max(0, lengthOf(s, len(c.session.Arms), c.wanted()).Seconds()-spent)
	}
	e.Left = time.Duration(left * float64(time.Second)).Round(time.Second)
	c.hooks.Progress(e)
}

var _ process = (*router.Process)(nil)
