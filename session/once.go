package session

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"plumbline/plan"
	"plumbline/record"
	"plumbline/session/load"
	"plumbline/targets"
	"plumbline/targets/keys"
)

// This file is request sets that plumbline generates: how long a run they have
// to last for, how many requests that takes, and what is said when they did not.

// startAllowance is how long one router may take to start, in the time that a
// generated set is made for.
const startAllowance = 2 * time.Second

// unsent is how long before the end of that time the last token is sent, at the
// latest: the load keeps its margin, and the router's clock, which starts at a
// whole second, may be a second ahead.
const unsent = load.UntilMargin + time.Second

// runLength is the time from a router's start to its last request by the
// schedule itself. In a sliced session a router lives for the whole block.
func runLength(s record.Schedule, arms int) time.Duration {
	if s.Mode == record.Sliced {
		return lengthOf(s, arms, 1)
	}
	return (stretchOf(s, arms) + s.WarmupS + s.IdleS).Duration()
}

// madeFor is the time that a set whose tokens expire is made for, where the
// plan does not say: a run and some room, the starts, and the time in which
// nothing is sent any more, in whole seconds.
func madeFor(s record.Schedule, arms int) time.Duration {
	starts := arms
	if s.Mode != record.Sliced {
		starts = 1
	}
	return wholeSeconds(1.1*runLength(s, arms).Seconds() + float64(starts)*startAllowance.Seconds() + unsent.Seconds())
}

func wholeSeconds(s float64) time.Duration { return time.Duration(math.Ceil(s)) * time.Second }

// loadLength is the load that one run gets, without the control pairs.
func loadLength(s record.Schedule, arms int) record.Seconds {
	return s.WarmupS + record.Seconds(roundCount(s, arms))*stretchOf(s, arms)
}

// once is a set of which no request is sent to a process twice.
type once struct {
	kind     string // of the plan
	made     bool   // by the plan's generate, else by hand
	requests int    // that are sent
	routes   int    // on which they are
	all      int    // routes of the set: --only leaves some out
	rate     float64
	schedule record.Schedule
	arms     int
	manifest *targets.Manifest
}

// onceOf is nil for a set whose requests may be repeated.
func onceOf(l layout) *once {
	m := l.set.Manifest
	if m == nil || !m.Once {
		return nil
	}
	all := map[string]bool{}
	for _, t := range l.set.Targets {
		all[record.RouteName(t.Method, t.URL)] = true
	}
	return &once{
		kind: l.kind.Name, made: l.kind.Generate != nil, requests: len(l.targets), routes: len(l.meta.Routes), all: len(all),
		rate: l.meta.Load.Rate, schedule: l.meta.Schedule, arms: len(l.arms), manifest: m,
	}
}

// whole is how many requests a set must have for at least n to be sent. The
// routes have their turns in rounds, and --only sends some of each.
func (o *once) whole(n int) int {
	if o.routes == o.all {
		return n
	}
	return (n + o.routes - 1) / o.routes * o.all
}

// left says that only some of the set's requests are sent.
func (o *once) left() string {
	if o.routes == o.all {
		return ""
	}
	return fmt.Sprintf(" on the %d of its %s that --only leaves", o.routes, count(o.all, "route"))
}

// duration is what the set's tokens were made for; 0: they do not expire.
func (o *once) duration() time.Duration {
	if o.manifest.Expiry == nil {
		return 0
	}
	return time.Duration(o.manifest.Expiry.DurationS) * time.Second
}

// advice says how to get a set of so many requests, or for so long.
func (o *once) advice(key string, value any) string {
	if o.made {
		return "write " + o.setting(key, value)
	}
	return "make them again with " + o.setting(key, value)
}

func (o *once) setting(key string, value any) string {
	if o.made {
		return fmt.Sprintf("kinds.%s.generate.%s: %v", o.kind, key, value)
	}
	return fmt.Sprintf("--%s %v", key, value)
}

// check refuses a set that cannot last for a run, as far as the plan tells.
func (o *once) check(l layout) error {
	if o == nil {
		return nil
	}
	rate := o.rate
	length, made := runLength(o.schedule, o.arms), o.duration()
	if made > 0 {
		for _, a := range l.arms {
			if !a.router.Clock.Start.Equal(o.manifest.BaseTime) {
				return fmt.Errorf("%s: the tokens of kind %s expire as counted from %s, which the clock of %s has to show when it starts; write router: {clock: %[3]s}", l.from(), o.kind, o.manifest.BaseTime.Format(time.RFC3339), a.arm.Label)
			}
		}
		if least := length + unsent; made < least {
			return fmt.Errorf("%s: the tokens of kind %s are made for %s from a router's start, but a run of this plan takes %s and its starts, and none is sent in the last %s: %s is the least; %s, or make schedule.block or warmup shorter",
				l.from(), o.kind, plan.Short(made), plan.Short(length.Round(100*time.Millisecond)), unsent,
				plan.Short(wholeSeconds(least.Seconds())), o.advice("duration", plan.Short(madeFor(o.schedule, o.arms))))
		}
	}
	if rate == 0 {
		return nil // how many a closed loop sends, only the servers know
	}
	need := float64(loadLength(o.schedule, o.arms)) * rate
	over := fmt.Sprintf("%s requests a second for %s of load", number(rate), plan.Short(loadLength(o.schedule, o.arms).Duration()))
	if made > 0 { // the older a token is, the sooner it expires: the load must not run ahead
		need = made.Seconds() * rate
		over = fmt.Sprintf("%s requests a second for the %s that they are made for", number(rate), plan.Short(made))
	}
	if need = math.Ceil(need); float64(o.requests) < need {
		return fmt.Errorf("%s: kind %s has %s%s, each of which is sent once, and a run of this plan sends %.0f: %s; %s",
			l.from(), o.kind, count(o.requests, "target"), o.left(), need, over, o.advice("count", o.whole(int(need))))
	}
	return nil
}

// refused says that of so many answers of a run too many refuse tokens which
// should still have been good. The preflight's own expire at the end of the run,
// so it sees a leeway that was overstated only by more than what is left of that.
func (o *once) refused(answers, refused int) error {
	const least = 10 // refusals, and one answer in so many: fewer may be what a stall has held up
	if o == nil || o.duration() == 0 || refused < least || refused*least < answers {
		return nil
	}
	leeway := "--leeway"
	if o.made {
		leeway = "kinds." + o.kind + ".generate.leeway"
	}
	return fmt.Errorf("%d of %d answers under load refuse a token of kind %s that is still good for %s: the router takes a token for less than the %d s after exp that the targets were made for; find out for how long, and say it with %s",
		refused, answers, o.kind, load.UntilMargin, o.manifest.Expiry.LeewayS, leeway)
}

// ended says that a set was used up in a run, and what to do about it. alive is
// how long its router had been running.
func (o *once) ended(used *load.UsedUpError, alive time.Duration) error {
	if o == nil {
		return used
	}
	loaded := max(used.Load.Seconds(), 1e-3)
	pace := float64(used.Sent) / loaded // per second of load
	switch made := o.duration(); {
	case made > 0 && used.Late:
		return o.tooOld(used, alive)
	case made > 0:
		return o.tooFew(used, pace*made.Seconds())
	}
	return o.tooFew(used, pace*float64(loadLength(o.schedule, o.arms)+controlTime(o.schedule, o.arms)))
}

// tooOld says for how long the tokens must be made, and how many that takes.
func (o *once) tooOld(used *load.UsedUpError, alive time.Duration) error {
	made, loaded := o.duration(), used.Load.Seconds()
	pace := 0.0
	if loaded > 0.1 { // in less it would be anything
		pace = 1.2 * float64(used.Sent) / loaded
	}
	advice := o.longer(alive, max(0, 1-loaded/float64(loadLength(o.schedule, o.arms))), pace)
	return fmt.Errorf("all tokens of kind %s that were left were too old %s after the router's start: they are made for %s, and none is sent in the last %s (%d of %d were sent); %s",
		o.kind, alive.Round(100*time.Millisecond), plan.Short(made), unsent, used.Sent, o.requests, advice)
}

// longer advises a duration that is enough where a run was alive for so long and
// a share of it was still left, and the count that this takes at the plan's rate,
// or in a closed loop at that pace. What was left has twice as long as was
// planned: this run was slower, or only its start was.
func (o *once) longer(alive time.Duration, left, pace float64) string {
	rest := 2 * left * runLength(o.schedule, o.arms).Seconds()
	enough := max(o.duration()+time.Second, madeFor(o.schedule, o.arms), wholeSeconds(1.1*(alive.Seconds()+rest)+unsent.Seconds()))
	advice := o.advice("duration", plan.Short(enough))
	if o.rate > 0 {
		pace = o.rate
	}
	if need := int(math.Ceil(pace * enough.Seconds())); need > o.requests {
		advice += " and " + o.setting("count", o.whole(need))
	}
	return advice
}

// tooFew says about how many targets are needed.
func (o *once) tooFew(used *load.UsedUpError, need float64) error {
	skipped := ""
	if used.Skipped > 0 {
		skipped = fmt.Sprintf(" (%d of them had expired before their turn)", used.Skipped)
	}
	return fmt.Errorf("the targets of kind %s are used up: each is sent once, and the %d%s lasted for %s of load%s; a run of this plan needs about %d: %s, or a fixed rate with --rate",
		o.kind, o.requests, o.left(), used.Load.Round(10*time.Millisecond), skipped, roundUp(1.2*need), o.advice("count", o.whole(roundUp(1.2*need))))
}

// roundUp keeps two digits.
func roundUp(x float64) int {
	unit := math.Pow(10, max(0, math.Floor(math.Log10(max(1, x)))-1))
	return int(math.Ceil(x/unit) * unit)
}

// sketch is the set that a spec will make, without its tokens: enough to check
// and explain a plan.
func sketch(s targets.Spec) *targets.Set {
	m := &targets.Manifest{Kind: s.Kind, Seed: &s.Seed, BaseTime: s.BaseTime, Requests: s.Count, Once: s.Kind.Once(), Requested: map[keys.Alg]int{}}
	if s.Kind == targets.JWTCacheWorst {
		m.Expiry = &targets.Expiry{DurationS: int(s.Duration / time.Second), LeewayS: int(s.Leeway / time.Second)}
	}
	set := &targets.Set{Manifest: m}
	for i := range s.Count {
		alg := s.Algs[i%len(s.Algs)]
		m.Requested[alg]++
		url, _ := s.RequestURL(alg) // the plan has seen it
		set.Targets = append(set.Targets, targets.Target{Method: s.Method, URL: url})
	}
	return set
}

// generate puts the kind's set in place of its sketch: made now, or the one
// that was made before. Every session of this user that wants the same set
// gets the very same files.
func (p *Prepared) generate(ctx context.Context, j Job, l *layout) error {
	spec := l.kind.Generate
	if spec == nil {
		return nil
	}
	making := sync.OnceFunc(func() {
		j.Talk("making the targets of kind %s: %s", l.kind.Name, count(spec.Count, "request"))
	})
	root, dir := cacheRoot(), ""
	var err error
	if root != "" {
		if dir, err = targets.Cached(ctx, root, *spec, making); isFull(err) {
			j.Talk("warning: %s is full; the targets are made for this session alone", root)
			root = ""
		}
	}
	if root == "" {
		temp, tempErr := newTempDir()
		if tempErr != nil {
			return errors.Join(err, tempErr)
		}
		p.temp = temp
		dir, err = targets.Cached(ctx, filepath.Join(temp.path, "targets"), *spec, making)
	}
	if err != nil {
		return fmt.Errorf("making the targets of kind %s: %w", l.kind.Name, err)
	}
	return l.take(j.Plan, dir)
}

// isFull tells whether there was no room on a disk, or this user may take no more of it.
func isFull(err error) bool { return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) }

// take reads the set that was generated into dir.
func (l *layout) take(p *plan.Plan, dir string) error {
	l.kind.Targets = filepath.Join(dir, targets.TargetsFile)
	set, err := targets.Read(l.kind.Targets)
	if err != nil {
		return err
	}
	return l.send(p, set)
}

// cacheRoot is where generated sets are kept; empty: this user has no such place.
// One that belongs to somebody else (root with a user's HOME), or in which others
// may write, is none: what they put there would be sent in place of the set.
func cacheRoot() string {
	cache, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	root := filepath.Join(cache, "plumbline", "targets")
	if os.MkdirAll(root, 0o755) != nil || unix.Access(root, unix.W_OK) != nil {
		return ""
	}
	var st unix.Stat_t
	if unix.Stat(root, &st) != nil || int(st.Uid) != os.Geteuid() || st.Mode&0o022 != 0 {
		return ""
	}
	return root
}

// isUsedUp tells whether a stretch ended for want of targets.
func isUsedUp(err error) (used *load.UsedUpError, ok bool) {
	ok = errors.As(err, &used)
	return used, ok
}
