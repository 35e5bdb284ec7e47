package session

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
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
	Kind    string   // one of the plan's kinds; empty: the first
	Refs    []string // baselines, against the working tree; none: the arms that the plan names
	Dir     string   // new session folder
	Tool    string   // plumbline's version, for the record
	Command []string // how it was called, for the record
	Awake   []string // program that runs KeepAwake for the CPU it is given as last argument; nil: CPUs may sleep
	Talk    func(format string, args ...any)
}

// Prepared is a session that can begin: everything is built, nothing runs.
type Prepared struct {
	folder    *record.Folder
	session   *record.Session
	stage     *machine
	probes    []targets.Target
	workspace *build.Workspace // nil: nothing came from git
	awake     []string         // Job.Awake
}

// Close removes what Prepare put outside the session folder.
func (p *Prepared) Close() error {
	var err error
	if p.workspace != nil {
		err = p.workspace.Close()
	}
	if p.stage != nil {
		err = errors.Join(err, os.RemoveAll(p.stage.temp))
	}
	return err
}

// Run measures the session, on the CPUs that the plan says.
func (p *Prepared) Run(ctx context.Context, hooks Hooks) (*record.Session, error) {
	unpin, err := pin(p.session.Load.CPUs)
	if err != nil {
		return p.session, err
	}
	defer unpin()
	if p.session.Load.Awake {
		sleep, err := keepAwake(p.awake, slices.Concat(p.session.Load.CPUs, p.session.Load.ArmCPUs))
		if err != nil {
			return p.session, err
		}
		defer sleep()
	}
	c := &conductor{
		folder: p.folder, session: p.session, stage: p.stage, probes: p.probes, hooks: hooks,
		deaths: map[string]int{}, started: map[string]bool{},
	}
	return p.session, c.run(ctx)
}

// Prepare reads the targets, builds every arm and creates the session folder.
// What it has put on disk by the time of an error is removed again, but for a
// session folder that holds a build's log.
func Prepare(ctx context.Context, j Job) (_ *Prepared, err error) {
	l, err := lay(j)
	if err != nil {
		return nil, &UsageError{err}
	}
	folder, err := record.Create(j.Dir)
	if err != nil {
		return nil, err
	}
	p := &Prepared{folder: folder, probes: l.probes, awake: j.Awake}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.Close())
			if !built(folder.Dir()) { // a build's log is worth keeping, nothing else is
				err = errors.Join(err, folder.Discard())
			}
		}
	}()
	meta := l.meta
	meta.Format, meta.Tool, meta.Command, meta.Created = record.Format, j.Tool, j.Command, time.Now()
	if len(meta.Load.CPUs) == 0 {
		meta.Warnings = append(meta.Warnings, "the load generator and the arms share their CPUs: nothing is pinned")
	}
	if meta.Inputs, err = p.copyInputs(j.Plan, l.kind, l.set); err != nil {
		return nil, err
	}
	temp, err := privateDir()
	if err != nil {
		return nil, err
	}
	p.stage = &machine{planDir: j.Plan.Dir, temp: temp, load: meta.Load, targets: l.set.Targets}
	for i := range l.arms {
		if err := p.buildArm(ctx, j, &l.arms[i], &meta.Warnings); err != nil {
			return nil, err
		}
		l.arms[i].targets = filepath.Dir(l.kind.Targets)
		meta.Arms = append(meta.Arms, l.arms[i].arm)
	}
	p.stage.launches = l.arms
	p.session = &record.Session{Dir: folder.Dir(), Meta: meta}
	for _, w := range meta.Warnings {
		j.Talk("warning: %s", w)
	}
	labels := make([]string, len(meta.Arms))
	for i, a := range meta.Arms {
		labels[i] = a.Label
	}
	last := len(labels) - 1
	j.Talk("weighing %s against %s: %s, about %s, recorded in %s", labels[last], strings.Join(labels[:last], ", "),
		count(meta.Schedule.Blocks, "block"), about(meta.Schedule, len(labels)), folder.Dir())
	return p, folder.SaveMeta(meta)
}

const buildsDir = "builds"

func built(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, buildsDir))
	return err == nil
}

// UsageError says that the plan or an argument is wrong: nothing was started.
type UsageError struct{ Err error }

func (e *UsageError) Error() string { return e.Err.Error() }
func (e *UsageError) Unwrap() error { return e.Err }

// layout is what a job comes to before anything is built.
type layout struct {
	kind   plan.Kind
	set    *targets.Set
	probes []targets.Target
	arms   []launch
	meta   record.Meta // without what only the build can tell
}

func lay(j Job) (l layout, err error) {
	if l.kind, err = j.Plan.Kind(j.Kind); err != nil {
		return l, err
	}
	if l.set, err = targets.Read(l.kind.Targets); err != nil {
		return l, err
	}
	l.meta = record.Meta{
		Seed: j.Plan.Seed, Schedule: scheduleOf(j.Plan), Rules: j.Plan.Rules, Host: thisHost(), State: record.Running,
		Load: record.Load{Workers: j.Plan.Load.Workers, Protocol: j.Plan.Load.Protocol},
	}
	if url := l.set.Targets[0].URL; strings.HasPrefix(url, "https:") { // all of them name one scheme
		return l, fmt.Errorf("%s: %s: requests are sent without TLS; write http://, or the path alone", l.kind.Targets, url)
	}
	if l.meta.Routes, l.probes, err = routesOf(j.Plan, l.set); err != nil {
		return l, err
	}
	if l.arms, err = armsOf(j.Plan, l.kind, j.Refs); err != nil {
		return l, err
	}
	l.meta.Load.CPUs, l.meta.Load.ArmCPUs, err = cpusOf(j.Plan.CPUs, allowedCPUs())
	l.meta.Load.Awake = j.Plan.CPUs.Awake && canKeepAwake && len(l.meta.Load.CPUs) > 0
	return l, err
}

// routesOf lists the routes of the targets with what the plan expects of
// them, and the request that the preflight sends to each.
func routesOf(p *plan.Plan, set *targets.Set) (routes []record.Route, probes []targets.Target, err error) {
	index := map[string]int{}
	for _, t := range set.Targets {
		name := record.RouteName(t.Method, t.URL)
		if _, ok := index[name]; ok {
			continue
		}
		index[name] = len(routes)
		routes = append(routes, record.Route{Name: name})
		probes = append(probes, t)
	}
	for _, e := range p.Expect {
		i, ok := index[e.Route]
		if !ok {
			names := slices.Collect(maps.Keys(index))
			slices.Sort(names)
			return nil, nil, fmt.Errorf("%s:%d: expect: no target has the route %q; the targets' routes are: %s", p.Path, e.Line, e.Route, strings.Join(names, ", "))
		}
		routes[i].Status, routes[i].BodyAny = e.Status, e.BodyAny
	}
	return routes, probes, nil
}

// armsOf names the arms and puts together how each is started: the refs and
// the working tree, or the arms of the plan. Baselines come first.
func armsOf(p *plan.Plan, kind plan.Kind, refs []string) ([]launch, error) {
	var arms []launch
	if len(refs) > 0 {
		for i, ref := range refs {
			name := "baseline"
			if i > 0 {
				name = fmt.Sprintf("baseline-%d", i+1)
			}
			arms = append(arms, launch{
				arm:    record.Arm{Name: name, Role: record.Baseline, Label: ref, Ref: ref},
				router: p.RouterFor(kind, ref, name),
			})
		}
		arms = append(arms, launch{arm: record.Arm{Name: "candidate", Role: record.Candidate, Label: "HEAD"}, router: p.RouterFor(kind, "candidate")})
		for _, l := range arms {
			if l.router.Build == "" && !l.uses("{source}") {
				return nil, fmt.Errorf("%s: router.build: every revision would run the same program, as nothing is built and run does not name {source}; say how a revision is built, or name the arms in the plan and use `plumbline run`", p.Path)
			}
		}
	} else {
		for _, a := range p.Arms {
			arms = append(arms, launch{arm: record.Arm{Name: a.Name, Role: record.Baseline, Label: a.Name, Ref: a.Ref}, router: p.RouterFor(kind, a.Name)})
		}
		if len(arms) < 2 {
			return nil, fmt.Errorf("%s: arms: a session weighs at least two, the plan names %d; add `arms: {baseline: …, candidate: …}`, or weigh revisions with `plumbline against REF`", p.Path, len(arms))
		}
		// The candidate is the arm of that name, else the last; what is called
		// baseline decides, else the first.
		if i := slices.IndexFunc(arms, func(l launch) bool { return l.arm.Name == "candidate" }); i >= 0 {
			arms = append(slices.Delete(slices.Clone(arms), i, i+1), arms[i])
		}
		if i := slices.IndexFunc(arms, func(l launch) bool { return l.arm.Name == "baseline" }); i > 0 && i < len(arms)-1 {
			first := arms[i]
			arms = append([]launch{first}, slices.Delete(slices.Clone(arms), i, i+1)...)
		}
		arms[len(arms)-1].arm.Role = record.Candidate
	}
	for i := range arms {
		arms[i].arm.Run, arms[i].arm.Env = arms[i].router.Run, arms[i].router.Env
	}
	return arms, nil
}

func scheduleOf(p *plan.Plan) record.Schedule {
	s := record.Schedule{
		Mode: p.Schedule.Mode, Blocks: p.Schedule.Blocks, BlockS: record.Seconds(p.Schedule.Block.Seconds()),
		WarmupS: record.Seconds(p.Warmup.Load.Seconds()), IdleS: record.Seconds(p.Warmup.Idle.Seconds()),
		CountFromS: countFrom,
	}
	if s.Mode == record.Sliced {
		s.SliceS, s.Freeze = record.Seconds(p.Schedule.Slice.Seconds()), p.Schedule.Freeze
	}
	return s
}

// countFrom is the start of a slice that is sent but not counted: caches and
// the CPU's clock have to come back from what ran in between (METHOD.md).
const countFrom record.Seconds = 0.005

// armCPUs is how many CPUs the arms get by default. They do not run at the
// same time, and each CPU more is one that has to be kept awake.
const armCPUs = 4

// cpusOf decides where the generator and the arms run. By default the first
// CPU that this process may use is the generator's and the next are the arms'.
func cpusOf(c plan.CPUs, allowed []int) (load, arms []int, err error) {
	if len(c.Load) == 0 && len(c.Arms) == 0 {
		if len(allowed) < 2 {
			return nil, nil, nil
		}
		return allowed[:1], allowed[1:min(len(allowed), 1+armCPUs)], nil
	}
	for _, n := range slices.Concat(c.Load, c.Arms) {
		if len(allowed) > 0 && !slices.Contains(allowed, n) {
			return nil, nil, fmt.Errorf("cpus: this process may not use CPU %d; it may use %v", n, allowed)
		}
	}
	rest := func(taken []int) []int {
		return slices.DeleteFunc(slices.Clone(allowed), func(n int) bool { return slices.Contains(taken, n) })
	}
	load, arms = c.Load, c.Arms
	if len(load) == 0 {
		load = rest(arms)
	}
	if len(arms) == 0 {
		arms = rest(load)
	}
	if len(load) == 0 || len(arms) == 0 {
		return nil, nil, fmt.Errorf("cpus: nothing is left of %v for the other side; name cpus.load and cpus.arms", allowed)
	}
	return load, arms, nil
}

// copyInputs hashes the plan and the target files and copies them into the record.
func (p *Prepared) copyInputs(pl *plan.Plan, kind plan.Kind, set *targets.Set) ([]record.Input, error) {
	name := "plan" + filepath.Ext(pl.Path)
	if err := p.folder.Write(name, pl.Source); err != nil {
		return nil, err
	}
	inputs := []record.Input{{Path: name, SHA256: hashOf(pl.Source)}}
	base := filepath.Dir(kind.Targets)
	for i, in := range set.Inputs {
		path := in.Path
		if !filepath.IsAbs(path) && i > 0 { // bodies are named relative to the target file
			path = filepath.Join(base, path)
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("copying the targets into the record: %w", err)
		}
		if hashOf(data) != in.SHA256 {
			return nil, fmt.Errorf("copying the targets into the record: %s has changed since it was read", path)
		}
		// A body from outside the targets' folder keeps only its name and part of its hash.
		name, err := filepath.Rel(base, path)
		if err != nil || !filepath.IsLocal(name) {
			name = filepath.Join("outside", in.SHA256[:12]+"-"+filepath.Base(path))
		}
		if err := p.folder.Write(filepath.Join("targets", name), data); err != nil {
			return nil, err
		}
		inputs = append(inputs, record.Input{Path: filepath.Join("targets", name), SHA256: in.SHA256})
	}
	return inputs, nil
}

func hashOf(data []byte) string { return fmt.Sprintf("%x", sha256.Sum256(data)) }

// buildArm checks out and builds one arm where the plan asks for it, and
// notes what will be started.
func (p *Prepared) buildArm(ctx context.Context, j Job, l *launch, warnings *[]string) error {
	a := &l.arm
	l.source = j.Plan.Dir
	if len(j.Refs) > 0 || a.Ref != "" || l.router.Build != "" {
		if p.workspace == nil {
			w, err := build.Open(ctx, j.Plan.Dir)
			if err != nil {
				return err
			}
			p.workspace = w
		}
		src, err := p.workspace.Checkout(ctx, a.Ref)
		if err != nil {
			return &UsageError{err}
		}
		l.source = src.Dir
		a.Commit, a.Tree, a.Dirty = src.Commit, src.Tree, src.Dirty
		if len(j.Refs) > 0 {
			a.Label = src.Label
		}
		if len(src.Untracked) > 0 {
			*warnings = append(*warnings, fmt.Sprintf("%s is built without files that git does not track: %s; `git add` those that belong to it", a.Label, strings.Join(src.Untracked, ", ")))
		}
		if l.router.Build != "" {
			j.Talk("building %s", describe(*a))
			log := filepath.Join(p.folder.Dir(), buildsDir, a.Name+".log")
			if l.build, err = p.workspace.Build(ctx, a.Name, src, l.router.Build, nil, log); err != nil {
				return fmt.Errorf("building %s: %w", a.Label, err)
			}
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
	return build.HashTree(path)
}

// privateDir makes the folder for sockets and the runs' own folders. Where
// TMPDIR is too deep for a unix socket's path, the system's is used.
func privateDir() (string, error) {
	const longest = 60 // leaves room for /NNN.sock and the random part in 104 bytes
	base := os.TempDir()
	if len(base) > longest {
		base = "/tmp"
	}
	dir, err := os.MkdirTemp(base, "plumbline-run-")
	if err != nil {
		return "", fmt.Errorf("making a private folder: %w", err)
	}
	return dir, os.Chmod(dir, 0o755)
}

var _ client = (*load.Client)(nil)
