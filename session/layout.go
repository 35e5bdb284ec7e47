package session

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"plumbline/plan"
	"plumbline/record"
	"plumbline/targets"
	"plumbline/targets/keys"
)

// layout is what a job comes to before anything is built.
type layout struct {
	kind    plan.Kind
	set     *targets.Set     // of a kind that is generated, at first a sketch
	targets []targets.Target // those of the set that are sent
	probes  probes
	arms    []launch
	needs   []service
	meta    record.Meta // without what only the build can tell
}

func lay(j Job) (l layout, err error) {
	if l.kind, err = j.Plan.Kind(j.Kind); err != nil {
		return l, err
	}
	if l.kind.Generate == nil {
		set, err := targets.Read(l.kind.Targets)
		if err != nil {
			return l, err
		}
		if err := l.send(j.Plan, set); err != nil {
			return l, err
		}
	}
	l.meta = record.Meta{
		Routes: l.meta.Routes,
		Asked:  record.Asked{Plan: j.Plan.Path, In: elsewhere(j.Plan), Kind: l.kind.Name, Refs: j.Refs, Arms: j.Arms, Itself: j.Itself},
		Seed:   j.Plan.Seed, Schedule: scheduleOf(j.Plan), Rules: j.Plan.Rules, Host: thisHost(), State: record.Running,
		Load: record.Load{Rate: j.Plan.Load.Rate, Workers: j.Plan.Load.Workers, Protocol: j.Plan.Load.Protocol, TLS: j.Plan.Load.TLS, TimeoutS: record.Seconds(j.Plan.Load.Timeout.Seconds())},
	}
	if l.arms, err = armsOf(j, l.kind); err != nil {
		return l, err
	}
	if err := clocksOf(j.Plan, l.arms); err != nil {
		return l, err
	}
	if warning := unevenClocks(l.arms); warning != "" {
		l.meta.Warnings = append(l.meta.Warnings, warning)
	}
	if len(l.arms) == 1 { // nothing is judged, and nobody is idle
		l.meta.Schedule.Freeze, l.meta.Schedule.MaxBlocks = false, 0
	}
	if err := longEnough(l.meta, len(l.arms)); err != nil {
		return l, fmt.Errorf("%s: %w", j.Plan.Path, err)
	}
	if j.Plan.Schedule.Controls {
		c, warning := controlsOf(l.meta.Schedule, len(l.arms), j.Plan.Rules.Metrics[record.LatencyP50].Zone)
		if l.meta.Schedule.Controls = c; warning != "" {
			l.meta.Warnings = append(l.meta.Warnings, warning)
		}
	}
	if err := fitBudget(&l.meta.Schedule, len(l.arms)); err != nil {
		return l, fmt.Errorf("%s: %w", j.Plan.Path, err)
	}
	if l.needs, err = servicesOf(j.Plan); err != nil {
		return l, err
	}
	l.meta.Services = recorded(l.needs)
	if l.meta.Load.CPUs, l.meta.Load.ArmCPUs, err = cpusOf(j.Plan.CPUs, allowedCPUs()); err != nil {
		return l, fmt.Errorf("%s: %w", j.Plan.Path, err)
	}
	l.meta.Load.Awake = j.Plan.CPUs.Awake && canKeepAwake && len(l.meta.Load.CPUs) > 0
	if l.kind.Generate != nil {
		spec := *l.kind.Generate
		if spec.Kind == targets.JWTCacheWorst && spec.Duration == 0 {
			spec.Duration = madeFor(l.meta.Schedule, len(l.arms))
		}
		l.kind.Generate = &spec
		if err := l.send(j.Plan, sketch(spec)); err != nil {
			return l, err
		}
	}
	return l, nil
}

// layChecked is lay for a session that begins: its targets must last for its runs.
func layChecked(j Job) (l layout, err error) {
	if l, err = lay(j); err != nil {
		return l, err
	}
	if err := l.checkDates(time.Now()); err != nil {
		return l, err
	}
	return l, onceOf(l).check(l)
}

// checkDates refuses tokens that are not good yet when a router starts, or not
// any more: by its own clock, or by this machine's, which shows now.
func (l layout) checkDates(now time.Time) error {
	m := l.set.Manifest
	if m == nil {
		return nil
	}
	from, until, ok := m.Good()
	if !ok {
		return nil
	}
	for _, a := range l.arms {
		start, whose := now, "it is %s on this machine's clock, by which "+a.called()+" goes"
		if moved := a.router.Clock.Start; !moved.IsZero() {
			start, whose = moved, "the clock of "+a.called()+" shows %s when it starts"
		}
		if !start.Before(from) && start.Before(until) {
			continue
		}
		advice := fmt.Sprintf("write kinds.%s.generate.base_time", l.kind.Name)
		if l.kind.Generate == nil {
			advice = "make them again with --base-time"
		}
		const layout = time.RFC3339
		return fmt.Errorf("%s: the tokens of kind %s are good from %s to %s, but "+whose+"; %s: a moment up to %d years before that",
			l.from(), l.kind.Name, from.Format(layout), until.Format(layout), start.UTC().Format(layout), advice, until.Year()-from.Year()-1)
	}
	return nil
}

// from is the file to blame for the targets.
func (l layout) from() string {
	if l.kind.Generate != nil {
		return l.meta.Asked.Plan
	}
	return l.kind.Targets
}

// send notes the targets of a set that are sent, and the requests of the preflight.
func (l *layout) send(p *plan.Plan, set *targets.Set) (err error) {
	l.set = set
	if l.targets, err = only(set.Targets, p.Only); err != nil {
		return err
	}
	if url := set.Targets[0].URL; strings.HasPrefix(url, "https:") && !p.Load.TLS { // all of them name one scheme
		return fmt.Errorf("%s: %s: the plan sends requests without TLS; write `load: {tls: true}` or `{protocol: h2}` there, or http:// here", l.from(), url)
	}
	reserve, expired := set.Reserve, set.Expired
	if p.Load.TLS {
		l.targets, reserve, expired = secured(l.targets), secured(reserve), secured(expired)
	}
	if l.meta.Routes, l.probes.routes, err = routesOf(p, set.Targets, l.targets, reserve); err != nil {
		return err
	}
	l.probes.expired = nil
	for _, t := range expired {
		if slices.ContainsFunc(l.meta.Routes, func(r record.Route) bool { return r.Name == record.RouteName(t.Method, t.URL) }) {
			l.probes.expired = append(l.probes.expired, t)
		}
	}
	if m := set.Manifest; m != nil {
		l.probes.good = m.Kind != targets.Mixed
		if m.Expiry != nil {
			l.probes.leewayS = m.Expiry.LeewayS
		}
	}
	return nil
}

// sent says what is sent, for the record.
func (l layout) sent() *record.Targets {
	t := &record.Targets{Count: len(l.targets)}
	m := l.set.Manifest
	if m == nil {
		return t
	}
	t.Set, t.Once = string(m.Kind), m.Once
	for _, alg := range keys.Algs() {
		if m.Requested[alg] > 0 && l.sends(alg) {
			t.Algs = append(t.Algs, string(alg))
		}
	}
	if x := m.Expiry; x != nil {
		t.ExpireS, t.LeewayS = x.DurationS, x.LeewayS
	}
	return t
}

// sends says whether tokens of an algorithm are among the targets that are
// sent: --only may leave out their routes.
func (l layout) sends(alg keys.Alg) bool {
	return len(l.targets) == len(l.set.Targets) || slices.ContainsFunc(l.targets, func(t targets.Target) bool {
		var header struct{ Alg keys.Alg }
		token, ok := bearerOf(t)
		return ok && json.Unmarshal(token.header, &header) == nil && header.Alg == alg
	})
}

// secured are the same targets, over TLS: also those that were a path alone.
func secured(all []targets.Target) []targets.Target {
	all = slices.Clone(all)
	for i, t := range all {
		if path, ok := strings.CutPrefix(t.URL, "http:"); ok {
			all[i].URL = "https:" + path
		}
	}
	return all
}

// only keeps the targets of some routes, named in full, without their query or
// without their method; of none: all.
func only(all []targets.Target, routes []string) (kept []targets.Target, err error) {
	if len(routes) == 0 {
		return all, nil
	}
	found, names := map[string]bool{}, map[string]bool{}
	for _, t := range all {
		name := record.RouteName(t.Method, t.URL)
		names[name] = true
		bare, _, _ := strings.Cut(name, "?")
		wanted := false
		for _, as := range []string{name, bare} {
			_, path, _ := strings.Cut(as, " ")
			for _, r := range routes {
				if r == as || r == path {
					found[r], wanted = true, true
				}
			}
		}
		if wanted {
			kept = append(kept, t)
		}
	}
	for _, r := range routes {
		if !found[r] {
			return nil, fmt.Errorf("--only %q: no target has this route; the targets' routes are: %s", r, strings.Join(slices.Sorted(maps.Keys(names)), ", "))
		}
	}
	return kept, nil
}

// longEnough refuses what could not be measured: load in pieces of which
// nothing counts, and at a fixed rate so few requests in a run that the rate
// would be another one.
func longEnough(m record.Meta, arms int) error {
	piece := stretchOf(m.Schedule, arms)
	if least := 2 * countFrom; piece < least {
		key := "schedule.block"
		if m.Schedule.Mode == record.Sliced {
			key = "schedule.slice"
		}
		return fmt.Errorf("%s: an arm would get load for %s at a time, of which the first %s do not count; make it longer, at least %s",
			key, piece.Duration(), countFrom.Duration(), least.Duration())
	}
	due := m.Load.Rate * float64(piece) * float64(roundCount(m.Schedule, arms))
	if m.Load.Rate > 0 && math.Ceil(due) > 1.02*due {
		return fmt.Errorf("load.rate: %s requests a second for %s are %s; lengthen schedule.block, so that a run has 50 requests or a whole number",
			number(m.Load.Rate), (piece * record.Seconds(roundCount(m.Schedule, arms))).Duration(), number(due))
	}
	return nil
}

// number writes a rate without an exponent.
func number(x float64) string {
	return strconv.FormatFloat(math.Round(x*1000)/1000, 'f', -1, 64)
}

// hostsOf are the hosts that the targets name, which go into the certificate.
func hostsOf(all []targets.Target) (hosts []string) {
	for _, t := range all {
		if u, err := url.Parse(t.URL); err == nil && !slices.Contains(hosts, u.Hostname()) {
			hosts = append(hosts, u.Hostname())
		}
	}
	return hosts
}

// routesOf lists the routes of the targets that are sent with what the plan
// expects of them, and the request that the preflight sends to each: one from
// the reserve, if there is one, so that the load is the first to send its own.
func routesOf(p *plan.Plan, all, sent, reserve []targets.Target) (routes []record.Route, probes []targets.Target, err error) {
	index := map[string]int{}
	for _, t := range sent {
		name := record.RouteName(t.Method, t.URL)
		if _, ok := index[name]; ok {
			continue
		}
		index[name] = len(routes)
		routes = append(routes, record.Route{Name: name})
		if i := slices.IndexFunc(reserve, func(r targets.Target) bool { return record.RouteName(r.Method, r.URL) == name }); i >= 0 {
			t = reserve[i]
		}
		probes = append(probes, t)
	}
	known := map[string]bool{}
	for _, t := range all {
		known[record.RouteName(t.Method, t.URL)] = true
	}
	others := sync.OnceValue(func() map[string]bool { return routesOfKinds(p) }) // read only where it matters
	for _, e := range p.Expect {
		if !known[e.Route] && !others()[e.Route] {
			return nil, nil, fmt.Errorf("%s:%d: expect: no target has the route %q; the targets' routes are: %s", p.Path, e.Line, e.Route, strings.Join(slices.Sorted(maps.Keys(known)), ", "))
		}
		if i, ok := index[e.Route]; ok {
			routes[i].Status, routes[i].BodyAny = e.Status, e.BodyAny
		}
	}
	return routes, probes, nil
}

// routesOfKinds are those of all kinds of the plan. What cannot be read is for
// a session of that kind to say.
func routesOfKinds(p *plan.Plan) map[string]bool {
	all := map[string]bool{}
	for _, k := range p.Kinds {
		var set *targets.Set
		if k.Generate != nil {
			spec := *k.Generate
			spec.Count = len(spec.Algs) // one of each route
			set = sketch(spec)
		} else if set, _ = targets.Read(k.Targets); set == nil {
			continue
		}
		for _, t := range set.Targets {
			all[record.RouteName(t.Method, t.URL)] = true
		}
	}
	return all
}

// armsOf puts together how each arm is started. Baselines come first, the
// candidate last; a single arm is measured and not weighed.
func armsOf(j Job, kind plan.Kind) (arms []launch, err error) {
	switch {
	case j.Itself:
		arms, err = itselfArms(j.Plan, kind, j.Refs)
	case len(j.Refs) > 0:
		arms, err = refArms(j.Plan, kind, j.Refs)
	default:
		arms, err = planArms(j.Plan, kind, j.Arms)
	}
	for i := range arms {
		arms[i].arm.Run, arms[i].arm.Env = arms[i].router.Run, arms[i].router.Env
		arms[i].arm.Clock = arms[i].router.Clock.Start
	}
	return arms, err
}

// itselfArms are two sides of one build: of a revision; of the working tree,
// which has no label before it is checked out; or what the plan starts where
// nothing comes from sources.
func itselfArms(p *plan.Plan, kind plan.Kind, refs []string) (arms []launch, err error) {
	var one launch
	switch {
	case len(refs) > 0:
		if arms, err = refArms(p, kind, refs[:1]); err != nil {
			return nil, err
		}
		one = arms[0]
	case p.RouterFor(kind, "candidate").FromSources():
		one.router = p.RouterFor(kind, "candidate")
	default:
		if arms, err = planArms(p, kind, nil); err != nil {
			return nil, err
		}
		one = arms[0]
	}
	other := one
	one.arm.Name, one.arm.Role = "baseline", record.Baseline
	other.arm.Name, other.arm.Role = "candidate", record.Candidate
	return []launch{one, other}, nil
}

// refArms are revisions and the working tree.
func refArms(p *plan.Plan, kind plan.Kind, refs []string) (arms []launch, err error) {
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
		if !l.router.FromSources() {
			return nil, fmt.Errorf("%s: router.build: every revision would run the same program, as nothing is built and run does not name {source}; say how a revision is built, or name the arms in the plan and use `plumbline run`", p.Path)
		}
	}
	return arms, nil
}

// planArms are the arms of the plan, or those of them that are named, the
// baseline first. A plan without arms has one: the router itself.
func planArms(p *plan.Plan, kind plan.Kind, named []string) (arms []launch, err error) {
	add := func(name, ref string) {
		file := fileName(name, len(arms))
		if slices.ContainsFunc(arms, func(l launch) bool { return l.arm.Name == file }) { // an arm against itself
			file += "-again"
		}
		arms = append(arms, launch{
			arm:    record.Arm{Name: file, Role: record.Baseline, Label: name, Ref: ref},
			router: p.RouterFor(kind, name),
		})
	}
	var names []string
	for _, a := range p.Arms {
		names = append(names, a.Name)
	}
	switch {
	case len(named) > 0:
		for _, name := range named {
			i := slices.Index(names, name)
			if i < 0 {
				return nil, fmt.Errorf("%s: arms: none is called %q; the plan names %s", p.Path, name, orNone(names))
			}
			add(name, p.Arms[i].Ref)
		}
	case len(names) == 0:
		add("router", "")
	default:
		for _, a := range p.Arms {
			add(a.Name, a.Ref)
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
	}
	arms[len(arms)-1].arm.Role = record.Candidate
	return arms, nil
}

func orNone(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
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
		Mode: p.Schedule.Mode, Blocks: p.Schedule.Blocks, MaxBlocks: p.Schedule.MaxBlocks, BlockS: record.Seconds(p.Schedule.Block.Seconds()),
		WarmupS: record.Seconds(p.Warmup.Load.Seconds()), WarmupAuto: p.Warmup.Auto, IdleS: record.Seconds(p.Warmup.Idle.Seconds()),
		CountFromS: countFrom, BudgetS: record.Seconds(p.Schedule.Budget.Seconds()),
	}
	if s.Mode != record.Sequential { // a block at the end would not be sequential any more
		s.Retries = p.Schedule.Retries
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

// elsewhere is the folder that a plan is for, if the file is kept in another.
func elsewhere(p *plan.Plan) string {
	if p.Dir == filepath.Dir(p.Path) {
		return ""
	}
	return p.Dir
}
