package session

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"plumbline/build"
	"plumbline/plan"
	"plumbline/session/router"
)

// clocksOf makes sure of the arms' own clocks, as far as that can be done
// before anything is built.
func clocksOf(p *plan.Plan, arms []launch) error {
	for i := range arms {
		l := &arms[i]
		c := l.router.Clock
		if c.Start.IsZero() {
			continue
		}
		err := router.CanMoveClocks()
		switch {
		case err != nil:
			err = fmt.Errorf("router.clock: %w", err)
		case !l.router.FromSources():
			err = l.moveClock(p.Dir)
		case c.Library != "" && !mentions([]string{c.Library}, "{build}") && !mentions([]string{c.Library}, "{source}"):
			if _, err = l.library(p.Dir); err != nil {
				err = fmt.Errorf("router.clock: %s: %w", l.called(), err)
			}
		}
		if err != nil {
			return fmt.Errorf("%s: %w", p.Path, err)
		}
	}
	return nil
}

// moveClock finds libfaketime for an arm that has a clock of its own, and makes
// sure that it can move the program's.
func (l *launch) moveClock(planDir string) error {
	if l.router.Clock.Start.IsZero() {
		return nil
	}
	program, err := l.program(planDir)
	if err != nil {
		return err
	}
	library, err := l.library(planDir)
	if err == nil && library == "" {
		library, err = router.FindClockLibrary(program, l.build)
	}
	if err == nil {
		err = router.CheckClock(program, library)
	}
	if err != nil {
		return fmt.Errorf("router.clock: %s: %w", l.called(), err)
	}
	l.clock = router.Clock{Start: l.router.Clock.Start, Library: library}
	l.arm.ClockLibrary = l.placed(library)
	return nil
}

// called is the arm's label; the working tree has none before it is checked out.
func (l launch) called() string { return cmp.Or(l.arm.Label, l.arm.Name) }

// library is the path of the one that the plan names; empty: it names none.
func (l launch) library(planDir string) (string, error) {
	if l.router.Clock.Library == "" {
		return "", nil
	}
	path, err := plan.Expand(l.router.Clock.Library, l.values(""))
	if err != nil {
		return "", err
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(planDir, path)
	}
	if _, err := os.Stat(path); err != nil {
		hint := "a relative path starts at the plan's folder"
		if mentions([]string{l.router.Clock.Library}, "{build}") {
			hint = "the build did not write it"
		}
		return "", fmt.Errorf("library: %w; %s", err, hint)
	}
	return path, nil
}

// placed names a file by {build} or {source} where it lies in one of them: the
// folders themselves are others in every session.
func (l launch) placed(path string) string {
	for _, at := range []struct{ name, dir string }{{"{build}", l.build}, {"{source}", l.checkout.Dir}} {
		if rest, ok := strings.CutPrefix(path, at.dir+"/"); ok && at.dir != "" {
			return at.name + "/" + rest
		}
	}
	return path
}

// unevenClocks warns where the time is not read at the same cost in all arms.
func unevenClocks(arms []launch) string {
	var moved, not []string
	for _, l := range arms {
		if l.arm.Clock.IsZero() {
			not = append(not, l.called())
		} else {
			moved = append(moved, l.called())
		}
	}
	if len(moved) == 0 || len(not) == 0 {
		return ""
	}
	runs := "runs"
	if len(moved) > 1 {
		runs = "run"
	}
	return fmt.Sprintf("only %s %s under libfaketime, which makes reading the time slower, not %s: what differs may be that; give all arms a clock", strings.Join(moved, " and "), runs, strings.Join(not, " and "))
}

// unlikeLibraries warns where the arms run under different files of it.
func unlikeLibraries(arms []launch) (string, error) {
	var first, name string
	for _, l := range arms {
		if l.clock.Library == "" {
			continue
		}
		hash, err := build.HashTree(l.clock.Library)
		switch {
		case err != nil:
			return "", err
		case first == "":
			first, name = hash, l.called()
		case hash != first:
			return fmt.Sprintf("%s and %s run under different builds of libfaketime, in which reading the time may cost differently: what differs may be that; name one for both with clock: {start: ..., library: PATH}", name, l.called()), nil
		}
	}
	return "", nil
}
