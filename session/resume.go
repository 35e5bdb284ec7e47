package session

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"time"

	"plumbline/plan"
	"plumbline/record"
)

// Resume prepares the rest of a session that ended early. It is refused where
// the new blocks would not be the same measurement as the old ones: another
// machine, boot or kernel, other builds, another plan or other targets. Every
// block is measured back to back in itself, so time may lie between blocks;
// in a sequential session the arms themselves would be torn apart.
//
// Of the job only Dir, Self and Talk count; the rest is in the record.
func Resume(ctx context.Context, j Job) (_ *Prepared, err error) {
	folder, s, err := record.Reopen(j.Dir)
	if err != nil {
		return nil, &UsageError{err}
	}
	p := &Prepared{folder: folder, session: s, self: j.Self, talk: j.Talk}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.Close())
		}
	}()
	if err := mayResume(s.Meta, thisHost()); err != nil {
		return nil, p.refuse("%w", err)
	}
	in := s.Asked.In
	if in == "" {
		in = filepath.Dir(s.Asked.Plan)
	}
	if j.Plan, err = plan.ReadIn(s.Asked.Plan, in); err != nil {
		return nil, p.refuse("%w", err)
	}
	var names []string
	for _, r := range s.Routes {
		names = append(names, r.Name)
	}
	if j.Plan, err = j.Plan.With(plan.Changes{Only: names}); err != nil {
		return nil, p.refuse("%w", err)
	}
	j.Kind, j.Refs, j.Arms, j.Itself = s.Asked.Kind, s.Asked.Refs, s.Asked.Arms, s.Asked.Itself
	l, err := lay(j)
	if err != nil {
		return nil, p.refuse("%w", err)
	}
	if l.kind.Generate != nil {
		if err := l.take(j.Plan, filepath.Join(folder.Dir(), targetsDir)); err != nil {
			return nil, p.refuse("%w", err)
		}
	}
	inputs, _, err := inputsOf(j.Plan, l.kind, l.set)
	if err != nil {
		return nil, err
	}
	for _, in := range s.Inputs {
		if !slices.Contains(inputs, in) {
			return nil, p.refuse("%s is not the file any more that the session began with", in.Path)
		}
	}
	if _, _, err := cpusOf(plan.CPUs{Load: s.Load.CPUs, Arms: s.Load.ArmCPUs}, allowedCPUs()); err != nil {
		return nil, p.refuse("%w", err)
	}
	// What the record says is how it is measured, whatever the plan's defaults
	// or the first command line were.
	l.meta.Load, l.meta.Schedule = s.Load, s.Schedule
	if p.guard, err = startGuard(j); err != nil {
		return nil, err
	}
	var warnings []string // the record has them
	if err := p.checkouts(ctx, j, l.arms, &warnings); err != nil {
		return nil, err
	}
	arms, err := p.build(ctx, j, l)
	if err != nil {
		return nil, err
	}
	if err := sameArms(s.Arms, arms); err != nil {
		return nil, p.refuse("%w", err)
	}
	s.Resumed = append(s.Resumed, record.Resumed{At: time.Now(), Was: s.State, Reason: s.Reason})
	j.Talk("going on with %s: %s", s.Dir, purpose(s.Arms))
	return p, nil
}

func (p *Prepared) refuse(format string, args ...any) error {
	return &UsageError{fmt.Errorf("resuming %s: %w; begin a new session", p.folder.Dir(), fmt.Errorf(format, args...))}
}

// mayResume holds the record against the machine.
func mayResume(m record.Meta, now record.Host) error {
	switch {
	case m.State == record.Complete:
		return errors.New("it is complete: nothing is left to be measured")
	case m.Schedule.Mode == record.Sequential:
		return errors.New("it is sequential: its arms would be measured at different times")
	case m.Asked.Plan == "":
		return errors.New("it does not say which plan it was made from")
	}
	for _, fact := range []struct{ name, was, is string }{
		{"host", m.Host.Hostname, now.Hostname},
		{"boot", m.Host.BootID, now.BootID},
		{"kernel", m.Host.OS + " " + m.Host.Kernel, now.OS + " " + now.Kernel},
		{"CPU", fmt.Sprintf("%d × %s", m.Host.CPUs, m.Host.CPU), fmt.Sprintf("%d × %s", now.CPUs, now.CPU)},
	} {
		if fact.was != fact.is {
			return fmt.Errorf("it was begun on another %s (%s, now %s)", fact.name, fact.was, fact.is)
		}
	}
	return nil
}

// sameArms holds what was built anew against what the session has measured.
func sameArms(was, is []record.Arm) error {
	if len(was) != len(is) {
		return fmt.Errorf("it weighs %d arms, the plan now names %d", len(was), len(is))
	}
	for i, a := range was {
		b := is[i]
		sources := a.Tree != "" && a.Tree == b.Tree
		bytes := a.BinarySHA256 != "" && a.BinarySHA256 == b.BinarySHA256
		switch {
		case a.Name != b.Name || !slices.Equal(a.Run, b.Run) || !maps.Equal(a.Env, b.Env) || !a.Clock.Equal(b.Clock) || a.ClockLibrary != b.ClockLibrary:
			return fmt.Errorf("%s is not started as it was", a.Label)
		case !sources && !bytes:
			return fmt.Errorf("%s is not the build any more that was measured", a.Label)
		}
	}
	return nil
}
