package session

import (
	"bufio"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"

	"plumbline/build"
	"plumbline/session/router"
)

// guard is a process that outlives plumbline if it is killed, and puts away
// what it leaves. It sleeps in a read from a pipe that plumbline holds open:
// the kernel closes it with plumbline's death, whatever the cause.
//
// It knows what belongs to the session by a mark, a variable in the
// environment of everything that the session starts, by the locks that a dead
// session no longer holds, and by what it is told: the process groups of the
// routers that run, as a server may write over its environment (nginx does, to
// name its processes).
type guard struct {
	session string // the session's own part of a mark
	pipe    io.WriteCloser
	cmd     *exec.Cmd
	ended   chan struct{} // closed when the process has been waited for
	closing atomic.Bool
}

// markName is the variable that marks a session's processes.
const markName = "PLUMBLINE_MARK"

// startGuard starts the guard of a job's session.
func startGuard(j Job) (*guard, error) {
	g := &guard{session: rand.Text(), ended: make(chan struct{})}
	if err := g.start(j.Self, j.Plan.Dir); err != nil {
		return nil, fmt.Errorf("starting the guard, which cleans up if plumbline is killed: %w", err)
	}
	go func() {
		err := g.cmd.Wait()
		close(g.ended)
		if !g.closing.Load() {
			j.Talk("warning: the session goes on without its guard, which ended (%v): if plumbline is killed as well, the next session cleans up", err)
		}
	}()
	if j.Scratch != "" {
		_, _ = fmt.Fprintf(g.pipe, "owns %q\n", j.Scratch)
	}
	return g, nil
}

func (g *guard) start(self, dir string) error {
	g.cmd = exec.Command(self, "guard", g.session, dir)
	g.cmd.Dir = "/"
	g.cmd.Stderr = os.Stderr
	g.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // what is sent to our group or terminal is not for it
	var err error
	if g.pipe, err = g.cmd.StdinPipe(); err != nil {
		return err
	}
	out, err := g.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := g.cmd.Start(); err != nil {
		return err
	}
	if line, _ := bufio.NewReader(out).ReadString('\n'); line != "guarding\n" {
		_ = g.cmd.Process.Kill()
		return fmt.Errorf("it ended at once (%v)", g.cmd.Wait())
	}
	return nil
}

// mark is the variable for the environment of a run, or with 0 for that of
// checkouts and builds. All are of one length, as the environment's moves a
// process's stack, which is enough to change its speed (Mytkowicz et al. 2009);
// all builds have the same, as a build may depend on it.
func (g *guard) mark(run int) string { return fmt.Sprintf("%s%06d.", g.anyMark(), run) }

// anyMark is what all marks of the session begin with.
func (g *guard) anyMark() string { return markName + "=" + g.session + "." }

// begun and over tell the guard of a process group. A guard that has died
// hears nothing; that was said when it did.
func (g *guard) begun(group int) { _, _ = fmt.Fprintf(g.pipe, "begun %d\n", group) }
func (g *guard) over(group int)  { _, _ = fmt.Fprintf(g.pipe, "over %d\n", group) }

// endBuild ends what a build has left running, endAll that and what a router has.
func (g *guard) endBuild() { router.EndMarked(g.mark(0), 0) }
func (g *guard) endAll()   { router.EndMarked(g.anyMark(), 0) }

// close tells the guard that nothing is left for it, and waits for its end.
func (g *guard) close() {
	g.closing.Store(true)
	_, _ = io.WriteString(g.pipe, "done\n")
	g.pipe.Close()
	<-g.ended
}

// Guard is what a session's guard does: it says "guarding" on ready, and
// waits for the end of facts. If "done" was not the last of them, plumbline
// was killed, and all is put away that belongs to the session, or to any other
// that was killed. dir is the plan's folder.
func Guard(session, dir string, facts io.Reader, ready io.Writer) error {
	// Whoever ends plumbline with a signal may send it to all of its processes.
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	plumbline := os.Getppid()
	if _, err := fmt.Fprintln(ready, "guarding"); err != nil {
		return err
	}
	groups, folders := map[int]bool{}, map[string]bool{}
	for lines := bufio.NewScanner(facts); lines.Scan(); {
		var group int
		var folder string
		switch line := lines.Text(); {
		case line == "done":
			return nil
		case scans(line, "begun %d", &group):
			groups[group] = true
		case scans(line, "over %d", &group):
			delete(groups, group)
		case scans(line, "owns %q", &folder):
			folders[folder] = true
		default:
			return fmt.Errorf("guard: %q is no fact", line)
		}
	}
	// The pipe's end may be closed a moment before the locks are given back.
	for end := time.Now().Add(5 * time.Second); os.Getppid() == plumbline && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	router.SweepCgroups()
	for group := range groups {
		router.EndGroup(group)
	}
	g := guard{session: session}
	router.EndMarked(g.mark(0), 2*time.Second) // git takes back what it has begun
	router.EndMarked(g.anyMark(), 0)
	removeLeftovers(tempBase())
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	errs := []error{build.Sweep(ctx, dir)}
	for folder := range folders {
		errs = append(errs, os.RemoveAll(folder))
	}
	return errors.Join(errs...)
}

func scans(line, format string, value any) bool {
	n, err := fmt.Sscanf(line, format, value)
	return n == 1 && err == nil
}
