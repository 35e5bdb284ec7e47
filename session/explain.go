package session

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"

	"plumbline/plan"
	"plumbline/record"
	"plumbline/targets"
	"plumbline/targets/keys"
)

// Explain writes what a job would build, start and send, and for how long.
// Nothing is built or started; the plan, the targets and the CPUs are checked
// as a session would check them. Without refs and without arms in the plan it
// explains the router as `against` would use it, if that could.
func Explain(w io.Writer, j Job) error {
	against := len(j.Refs) > 0
	if !against && len(j.Plan.Arms) == 0 && j.Plan.Router.FromSources() {
		j.Refs, against = []string{"REF"}, true
	}
	l, err := layChecked(j)
	if err != nil {
		return &UsageError{err}
	}
	e := explainer{w: w}
	how := "plumbline run"
	if against {
		how = "plumbline against " + strings.Join(j.Refs, " ")
	}
	e.line("plan", "%s, for `%s`", j.Plan.Path, how)
	for i, a := range l.arms {
		e.line(head(i, "arms"), "%s", e.arm(a, against))
	}
	for i, a := range l.arms {
		if a.router.Build != "" && (i == 0 || a.router.Build != l.arms[i-1].router.Build) {
			e.line("build", "%s", oneLine(a.router.Build))
		}
	}
	for i, a := range l.arms {
		if i == 0 || strings.Join(a.router.Run, "\x00") != strings.Join(l.arms[i-1].router.Run, "\x00") {
			e.line(head(i, "start"), "%s", strings.Join(a.router.Run, " "))
		}
	}
	e.clocks(l.arms)
	for i, n := range l.needs {
		e.service(head(i, "services"), n)
	}
	r := l.arms[0].router
	e.line("ready", "when %s, within %s; stopped by %s", readyWhen(r.Ready.HTTP, ""), r.Ready.Within, r.Stop)
	from := "from " + l.kind.Targets
	if l.kind.Generate != nil {
		from = "generated"
	}
	e.line("send", "%s on %s, kind %s, %s", count(len(l.set.Targets), "target"), count(len(l.meta.Routes), "route"), l.kind.Name, from)
	if m := l.set.Manifest; m != nil {
		e.line("", "%s", tokens(m))
	}
	for _, rt := range l.meta.Routes {
		e.line("", "%s%s", rt.Name, expectation(rt))
	}
	e.line("load", "%s", loadLine(l.meta.Load))
	if onceOf(l) != nil && l.meta.Load.Rate == 0 {
		e.line("", "each target is sent once: a closed loop stops when they are used up")
	}
	if len(l.meta.Load.CPUs) > 0 {
		awake := ""
		if l.meta.Load.Awake {
			awake = ", kept awake"
		}
		e.line("cpus", "load on %v, arms on %v%s", l.meta.Load.CPUs, l.meta.Load.ArmCPUs, awake)
	} else {
		e.line("cpus", "nothing is pinned: the load generator and the arms share them")
	}
	s := l.meta.Schedule
	n := roundCount(s, len(l.arms))
	each := stretchOf(s, len(l.arms)).Duration()
	switch s.Mode {
	case record.Sliced:
		idle := "idle arms run on"
		if s.Freeze {
			idle = "idle arms are frozen"
		}
		if len(l.arms) == 1 {
			idle = "one arm, nothing to weigh it against"
		}
		e.line("schedule", "sliced: %s of fresh processes, each %d rounds of %s per arm, in random order; %s", blocks(s), n, each, idle)
	default:
		e.line("schedule", "%s: %s, each %s of load per arm, in one piece", s.Mode, blocks(s), each)
	}
	if c := s.Controls; c != nil {
		e.line("controls", "%s of our own responder after each slice; a block has %s of %s a side on %s, with a delay of %.3g %%",
			c.ResponderS.Duration(), count(c.Pairs, "pair"), controlSide(s, len(l.arms)).Duration(), l.arms[0].arm.Label, 100*c.Delay)
	}
	if s.Retries > 0 {
		e.line("", "of the blocks that lose a run, up to %d measured again at the end", s.Retries)
	}
	warm := s.WarmupS.Duration().String()
	if s.WarmupAuto {
		warm = fmt.Sprintf("load until latency and memory have settled, at most %s,", warm)
	} else {
		warm += " of load"
	}
	e.line("warm-up", "%s idle, %s per run", s.IdleS.Duration(), warm)
	for i, m := range record.Metrics {
		rule := l.meta.Rules.Metrics[m]
		zone := fmt.Sprintf("%.3g %%", rule.Zone*100)
		if m == record.ErrorRate {
			zone = fmt.Sprintf("%.3g points", rule.Zone*100)
		}
		kind := "judged"
		if rule.Watch {
			kind = "watched"
		}
		e.line(head(i, "gates"), "%s: zone ±%s, %s", m, zone, kind)
	}
	e.line("seed", "%d", l.meta.Seed)
	if plus := "plus builds, starts and stops"; s.BudgetS > 0 {
		e.line("time", "%s; builds do not count", length(s, len(l.arms)))
	} else if s.MaxBlocks > 0 {
		e.line("time", "%s, %s", length(s, len(l.arms)), plus)
	} else {
		e.line("time", "about %s, %s", about(s, len(l.arms), s.Blocks), plus)
	}
	if max(s.Blocks, s.MaxBlocks) < 3 {
		e.line("", "with fewer than 3 blocks nothing can be judged")
	}
	return e.err
}

// about is lengthOf as people are told it.
func about(s record.Schedule, arms, blocks int) string {
	return plan.Short(lengthOf(s, arms, blocks).Round(time.Second))
}

// length says how long a session is: "6 blocks, about 1m24s".
func length(s record.Schedule, arms int) string {
	until := ", until every judged row is decided"
	if arms == 1 {
		until = ""
	}
	switch {
	case s.BudgetS > 0:
		return fmt.Sprintf("%s at most, about %s%s", plan.Short(s.BudgetS.Duration()), count(s.MaxBlocks, "block"), until)
	case s.MaxBlocks > 0:
		return fmt.Sprintf("%s%s: %s to %s", blocks(s), until, about(s, arms, s.Blocks), about(s, arms, s.MaxBlocks))
	}
	return fmt.Sprintf("%s, about %s", blocks(s), about(s, arms, s.Blocks))
}

// tokens says of a generated set whose tokens it holds and what becomes of them.
func tokens(m *targets.Manifest) string {
	var parts []string
	for _, alg := range keys.Algs() {
		if n := m.Requested[alg]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d with %s", n, alg))
		}
	}
	what := string(m.Kind)
	if len(parts) > 0 {
		what += ": tokens, " + strings.Join(parts, ", ")
	}
	if !m.Once {
		return what + "; repeated"
	}
	what += "; each is sent once to a process"
	if x := m.Expiry; x != nil {
		what += fmt.Sprintf("; they expire within %d s of its start at %s, with a leeway of %d s", x.DurationS, m.BaseTime.Format(time.RFC3339), x.LeewayS)
	}
	return what
}

func loadLine(l record.Load) string {
	protocol := l.Protocol
	if l.TLS {
		protocol += " over TLS"
	}
	if l.Rate > 0 {
		return fmt.Sprintf("%s requests a second, at most %d under way, %s", number(l.Rate), l.Workers, protocol)
	}
	return fmt.Sprintf("closed loop, %s, %s", count(l.Workers, "worker"), protocol)
}

// explainer writes lines of a name and a text and keeps the first error.
type explainer struct {
	w   io.Writer
	err error
}

func (e *explainer) line(name, format string, args ...any) {
	if e.err == nil {
		_, e.err = fmt.Fprintf(e.w, "%-9s %s\n", name, fmt.Sprintf(format, args...))
	}
}

func (e *explainer) arm(l launch, against bool) string {
	what := "as it is"
	switch {
	case l.arm.Ref != "":
		what = "revision " + l.arm.Ref
	case against || l.router.Build != "":
		what = "the working tree with its tracked changes"
	}
	return fmt.Sprintf("%s (%s): %s", l.arm.Name, l.arm.Role, what)
}

// readyWhen says what a server is asked until it is ready: a path, a command,
// or with neither nothing but a connection.
func readyWhen(path, command string) string {
	switch {
	case path != "":
		return "GET " + path + " answers with a status below 400"
	case command != "":
		return "`" + command + "` succeeds"
	}
	return "a connection is accepted"
}

// clocks says what each arm's own clock shows at its start; once where all do the same.
func (e *explainer) clocks(arms []launch) {
	text := func(l launch) string {
		if l.arm.Clock.IsZero() {
			return "not moved"
		}
		library := l.clock.Library
		if library == "" {
			library = cmp.Or(l.router.Clock.Library, "libfaketime, which is looked for once it is built")
		}
		return fmt.Sprintf("%s at each start, by %s", l.arm.Clock.Format(time.RFC3339), library)
	}
	same, none := true, true
	for _, l := range arms {
		same, none = same && text(l) == text(arms[0]), none && l.arm.Clock.IsZero()
	}
	switch {
	case none:
	case same:
		e.line("clock", "%s", text(arms[0]))
	default:
		for i, l := range arms {
			e.line(head(i, "clock"), "%s: %s", l.arm.Name, text(l))
		}
	}
}

// service says what is done for a service, in order.
func (e *explainer) service(head string, s service) {
	how := "once per session"
	if s.Per == plan.PerBlock {
		how = "afresh for every block"
	}
	if s.account != nil {
		how += ", as user " + s.account.name
	}
	e.line(head, "%s, %s: %s", s.Name, how, oneLine(strings.Join(s.Run, " ")))
	for _, line := range s.Setup {
		e.line("", "before: %s", oneLine(line))
	}
	e.line("", "ready when %s, within %s; stopped by %s", readyWhen(s.Ready.HTTP, oneLine(s.Ready.Run)), s.Ready.Within, s.Stop)
	for _, line := range s.Fixtures {
		e.line("", "then: %s", oneLine(line))
	}
}

func head(i int, name string) string {
	if i == 0 {
		return name
	}
	return ""
}

func expectation(r record.Route) string {
	var parts []string
	if len(r.Status) > 0 {
		parts = append(parts, "status "+statuses(r.Status))
	}
	if r.BodyAny {
		parts = append(parts, "any body")
	}
	if len(parts) == 0 {
		return ""
	}
	return "  (" + strings.Join(parts, ", ") + ")"
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

func oneLine(s string) string {
	return strings.Join(strings.FieldsFunc(s, func(r rune) bool { return r == '\n' }), "; ")
}
