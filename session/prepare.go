package session

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"plumbline/build"
	"plumbline/plan"
	"plumbline/record"
	"plumbline/session/load"
	"plumbline/targets"
)

// Job says what is to be weighed.
type Job struct {
	Plan    *plan.Plan
	Kind    string    // one of the plan's kinds; empty: the first
	Refs    []string  // baselines, against the working tree; none: the arms that the plan names
	Arms    []string  // those arms of the plan, in place of all of them
	Itself  bool      // the only revision in Refs against itself; without one the working tree, or where nothing is built the plan's router or first arm
	Dir     string    // new session folder
	Tool    string    // plumbline's version, for the record
	Command []string  // how it was called, for the record
	Self    string    // plumbline's own program: it has the commands "awake" and "guard", which run KeepAwake and Guard
	Scratch string    // a folder of the caller's that goes if plumbline is killed; empty: none
	Builds  *Prepared // of a session with the same arms, not yet closed: its builds are used again; nil: none
	Talk    func(format string, args ...any)
}

// Prepared is a session that can begin: everything is built, nothing runs.
type Prepared struct {
	folder    *record.Folder
	session   *record.Session
	stage     *machine
	temp      *tempDir
	probes    probes
	once      *once
	workspace *build.Workspace // nil: nothing came from git
	self      string           // Job.Self
	guard     *guard
	talk      func(format string, args ...any)
}

// Close ends what the session may have left running, removes what Prepare put
// outside the session folder, and gives that free.
func (p *Prepared) Close() error {
	var err error
	if p.guard != nil {
		p.guard.endAll()
	}
	if p.folder != nil {
		err = p.folder.Close()
	}
	if p.workspace != nil {
		err = p.workspace.Close()
	}
	if p.temp != nil {
		err = errors.Join(err, p.temp.remove())
	}
	if p.guard != nil {
		p.guard.close()
	}
	return err
}

// Run measures the session, on the CPUs that the plan says.
func (p *Prepared) Run(ctx context.Context, hooks Hooks) (_ *record.Session, err error) {
	defer func() {
		if err != nil && p.session.State == record.Running && len(p.session.Runs) == 0 { // it did not come to its first run
			p.session.State, p.session.Reason = record.Stopped, err.Error()
			if ctx.Err() != nil {
				p.session.State = record.Interrupted
			}
			err = errors.Join(err, p.folder.SaveMeta(p.session.Meta))
		}
	}()
	cpus := slices.Concat(p.session.Load.CPUs, p.session.Load.ArmCPUs)
	release, err := takeTurn(ctx, turnsDir, cpus, func(cpu int) {
		p.talk("waiting: another session measures on CPU %d", cpu)
	})
	if err != nil {
		return p.session, err
	}
	defer release()
	unpin, err := pin(p.session.Load.CPUs)
	if err != nil {
		return p.session, err
	}
	defer unpin()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if p.session.Load.Awake {
		sleep, err := keepAwake(p.self, cpus, cancel)
		if err != nil {
			return p.session, err
		}
		defer sleep()
	}
	if err := p.calibrate(); err != nil {
		return p.session, err
	}
	c := &conductor{
		folder: p.folder, session: p.session, stage: p.stage, services: p.stage.services, probes: p.probes, once: p.once, hooks: hooks,
		deaths: map[string]int{}, started: map[string]bool{},
	}
	if p.session.Schedule.Controls != nil {
		responder, end := newResponder()
		defer end()
		c.responder = responder
	}
	return p.session, c.run(ctx)
}

// Prepare reads the targets, builds every arm and creates the session folder.
// What it has put on disk by the time of an error is removed again, but for a
// session folder that holds a build's log.
func Prepare(ctx context.Context, j Job) (_ *Prepared, err error) {
	l, err := layChecked(j)
	if err != nil {
		return nil, &UsageError{err}
	}
	p := &Prepared{self: j.Self, talk: j.Talk}
	defer func() {
		if err == nil {
			return
		}
		if p.folder != nil && !built(p.folder.Dir()) { // a build's log is worth keeping, nothing else is
			err = errors.Join(err, p.folder.Discard())
		}
		err = errors.Join(err, p.Close())
	}()
	if p.guard, err = startGuard(j); err != nil {
		return nil, err
	}
	meta := l.meta
	// Every revision is found before the first is built, and before the session
	// folder is there, which may lie in the repository itself.
	if err := p.checkouts(ctx, j, l.arms, &meta.Warnings); err != nil {
		return nil, err
	}
	if err := p.generate(ctx, j, &l); err != nil {
		return nil, err
	}
	if p.folder, err = record.Create(j.Dir); err != nil {
		return nil, err
	}
	meta.Routes, meta.Targets = l.meta.Routes, l.sent()
	meta.Format, meta.Tool, meta.Command, meta.Created = record.Format, j.Tool, j.Command, time.Now()
	if len(meta.Load.CPUs) == 0 {
		meta.Warnings = append(meta.Warnings, "the load generator and the arms share their CPUs: nothing is pinned")
	}
	inputs, files, err := inputsOf(j.Plan, l.kind, l.set)
	if err != nil {
		return nil, err
	}
	for i, in := range inputs {
		if err := p.folder.Write(in.Path, files[i]); err != nil {
			return nil, err
		}
	}
	meta.Inputs = inputs
	if meta.Arms, err = p.build(ctx, j, l); err != nil {
		return nil, err
	}
	if warning, err := unlikeLibraries(l.arms); err != nil {
		return nil, err
	} else if warning != "" {
		meta.Warnings = append(meta.Warnings, warning)
	}
	p.session = &record.Session{Dir: p.folder.Dir(), Meta: meta}
	for _, w := range meta.Warnings {
		j.Talk("warning: %s", w)
	}
	j.Talk("%s: %s, recorded in %s", purpose(meta.Arms), length(meta.Schedule, len(meta.Arms)), p.folder.Dir())
	return p, p.folder.SaveMeta(meta)
}

// purpose: "weighing HEAD against main", "weighing main against itself", "measuring router".
func purpose(arms []record.Arm) string {
	var labels []string
	for _, a := range arms {
		labels = append(labels, a.Label)
	}
	last := len(labels) - 1
	if last == 0 {
		return "measuring " + labels[0]
	}
	if last == 1 && labels[0] == labels[1] {
		return "weighing " + labels[0] + " against itself"
	}
	return "weighing " + labels[last] + " against " + strings.Join(labels[:last], ", ")
}

// blocks: "6 blocks", "6 to 20 blocks", "as many blocks as the budget allows".
func blocks(s record.Schedule) string {
	if s.BudgetS > 0 {
		return "as many blocks as the budget allows"
	}
	if s.MaxBlocks > 0 {
		return fmt.Sprintf("%d to %s", s.Blocks, count(s.MaxBlocks, "block"))
	}
	return count(s.Blocks, "block")
}

const (
	buildsDir  = "builds"
	targetsDir = "targets"
)

func built(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, buildsDir))
	return err == nil
}

// UsageError says that the plan or an argument is wrong: nothing was started.
type UsageError struct{ Err error }

func (e *UsageError) Error() string { return e.Err.Error() }
func (e *UsageError) Unwrap() error { return e.Err }

// inputsOf lists the plan and the target files as they stand in the record,
// with their content.
func inputsOf(pl *plan.Plan, kind plan.Kind, set *targets.Set) (inputs []record.Input, files [][]byte, err error) {
	add := func(name string, data []byte) {
		inputs, files = append(inputs, record.Input{Path: name, SHA256: hashOf(data)}), append(files, data)
	}
	add("plan"+filepath.Ext(pl.Path), pl.Source)
	base := filepath.Dir(kind.Targets)
	for i, in := range set.Inputs {
		path := in.Path
		if !filepath.IsAbs(path) && i > 0 { // bodies are named relative to the target file
			path = filepath.Join(base, path)
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, nil, fmt.Errorf("copying the targets into the record: %w", err)
		}
		if hashOf(data) != in.SHA256 {
			return nil, nil, fmt.Errorf("copying the targets into the record: %s has changed since it was read", path)
		}
		// A body from outside the targets' folder keeps only its name and part of its hash.
		name, err := filepath.Rel(base, path)
		if err != nil || !filepath.IsLocal(name) {
			name = filepath.Join("outside", in.SHA256[:12]+"-"+filepath.Base(path))
		}
		add(filepath.Join(targetsDir, name), data)
	}
	return inputs, files, nil
}

func hashOf(data []byte) string { return fmt.Sprintf("%x", sha256.Sum256(data)) }

// checkouts fetches the sources of all arms.
func (p *Prepared) checkouts(ctx context.Context, j Job, arms []launch, warnings *[]string) error {
	for i := range arms {
		if same := j.same(arms, i); same != nil {
			arms[i].share(*same)
		} else if err := p.checkout(ctx, j, &arms[i], warnings); err != nil {
			return err
		}
	}
	return nil
}

// same is the launch whose sources and build serve arm i as well: that of an
// earlier session, or of an arm against itself the other side's; nil: none.
func (j Job) same(arms []launch, i int) *launch {
	switch {
	case j.Builds != nil:
		return &j.Builds.stage.launches[i]
	case j.Itself && i > 0:
		return &arms[0]
	}
	return nil
}

// share takes over what another launch was made from.
func (l *launch) share(of launch) {
	l.checkout, l.source, l.build = of.checkout, of.source, of.build
	l.arm.Label, l.arm.Commit, l.arm.Tree, l.arm.Dirty = of.arm.Label, of.arm.Commit, of.arm.Tree, of.arm.Dirty
	l.arm.BinarySHA256 = of.arm.BinarySHA256
}

// checkout fetches an arm's sources where the plan builds or runs from them.
func (p *Prepared) checkout(ctx context.Context, j Job, l *launch, warnings *[]string) error {
	a := &l.arm
	l.source = j.Plan.Dir
	if len(j.Refs) == 0 && a.Ref == "" && a.Label != "" && l.router.Build == "" {
		return nil
	}
	if p.workspace == nil {
		w, err := build.Open(ctx, j.Plan.Dir, p.guard.mark(0))
		if err != nil {
			return err
		}
		p.workspace = w
	}
	src, err := p.workspace.Checkout(ctx, a.Ref)
	if err != nil {
		return &UsageError{err}
	}
	l.checkout, l.source = src, src.Dir
	a.Commit, a.Tree, a.Dirty = src.Commit, src.Tree, src.Dirty
	if len(j.Refs) > 0 || a.Label == "" {
		a.Label = src.Label
	}
	if len(src.Untracked) > 0 {
		*warnings = append(*warnings, fmt.Sprintf("%s is built without files that git does not track: %s; `git add` those that belong to it", a.Label, strings.Join(src.Untracked, ", ")))
	}
	return nil
}

// build builds every arm and makes the place where they will run.
func (p *Prepared) build(ctx context.Context, j Job, l layout) (arms []record.Arm, err error) {
	if p.temp == nil {
		if p.temp, err = newTempDir(); err != nil {
			return nil, err
		}
	}
	p.probes, p.once = l.probes, onceOf(l)
	p.stage = &machine{planDir: j.Plan.Dir, temp: p.temp.path, session: p.folder.Dir(), load: l.meta.Load, targets: l.targets, once: p.once != nil, guard: p.guard}
	if l.meta.Load.TLS {
		if p.stage.certificate, err = newCertificate(p.temp.path, hostsOf(l.targets)...); err != nil {
			return nil, err
		}
	}
	for i := range l.arms {
		if same := j.same(l.arms, i); same != nil {
			l.arms[i].share(*same)
		} else if err := p.buildArm(ctx, j, &l.arms[i]); err != nil {
			return nil, err
		}
		if err := l.arms[i].moveClock(j.Plan.Dir); err != nil {
			return nil, &UsageError{err}
		}
		l.arms[i].targets = filepath.Dir(l.kind.Targets)
		if l.kind.Generate != nil { // what a router reads is what the record holds
			l.arms[i].targets = filepath.Join(p.folder.Dir(), targetsDir)
		}
		arms = append(arms, l.arms[i].arm)
	}
	p.stage.launches = l.arms
	if len(l.needs) > 0 {
		p.stage.services = &services{list: l.needs, start: p.stage.serve}
	}
	return arms, nil
}

// buildArm builds an arm where the plan says how, and notes what will be started.
func (p *Prepared) buildArm(ctx context.Context, j Job, l *launch) error {
	a := &l.arm
	if l.router.Build != "" {
		j.Talk("building %s: %s", a.Name, describe(*a))
		log := filepath.Join(p.folder.Dir(), buildsDir, a.Name+".log")
		var err error
		l.build, err = p.workspace.Build(ctx, a.Name, l.checkout, l.router.Build, nil, log)
		// What it leaves in the background would disturb the measurement.
		p.guard.endBuild()
		if err != nil {
			return fmt.Errorf("building %s: %w", a.Label, err)
		}
	}
	if a.Tree != "" && l.build == "" {
		return nil // the interpreter that runs the sources says nothing about them; the tree does
	}
	hash, err := l.hash(j.Plan.Dir)
	if err != nil {
		return &UsageError{fmt.Errorf("%s: %w", a.Label, err)}
	}
	a.BinarySHA256 = hash
	return nil
}

func describe(a record.Arm) string {
	if a.Commit == "" {
		return a.Label
	}
	return fmt.Sprintf("%s (%.10s)", a.Label, a.Commit)
}

// hash is that of what the build wrote, else of the program that run names.
func (l launch) hash(planDir string) (string, error) {
	if l.build != "" {
		return build.HashTree(l.build)
	}
	path, err := l.program(planDir)
	if err != nil {
		return "", err
	}
	return build.HashTree(path)
}

// program is the path of the program that run names.
func (l launch) program(planDir string) (string, error) {
	program, err := plan.Expand(l.router.Run[0], l.values(""))
	if err != nil {
		return "", fmt.Errorf("router.run: %w", err)
	}
	if strings.Contains(program, "/") && !filepath.IsAbs(program) {
		program = filepath.Join(planDir, program)
	}
	path, err := exec.LookPath(program)
	if err != nil {
		return "", fmt.Errorf("router.run: %w; install it, or name it with its path (relative to the plan's folder)", err)
	}
	return path, nil
}

var _ client = (*load.Client)(nil)
