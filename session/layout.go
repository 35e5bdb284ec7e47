package session

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"plumbline/plan"
	"plumbline/record"
	"plumbline/targets"
)

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
	if l.meta.Load.CPUs, l.meta.Load.ArmCPUs, err = cpusOf(j.Plan.CPUs, allowedCPUs()); err != nil {
		return l, fmt.Errorf("%s: %w", j.Plan.Path, err)
	}
	l.meta.Load.Awake = j.Plan.CPUs.Awake && canKeepAwake && len(l.meta.Load.CPUs) > 0
	return l, nil
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
		for i, a := range p.Arms {
			arms = append(arms, launch{arm: record.Arm{Name: fileName(a.Name, i), Role: record.Baseline, Label: a.Name, Ref: a.Ref}, router: p.RouterFor(kind, a.Name)})
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

// fileName makes an arm's name fit to be part of a file's; the number keeps
// two apart that come to the same.
func fileName(name string, i int) string {
	safe := strings.Map(func(r rune) rune {
		if strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-", r) {
			return r
		}
		return '-'
	}, name)
	if safe != name || len(safe) > 50 {
		return fmt.Sprintf("%.50s-%d", safe, i+1)
	}
	return safe
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
