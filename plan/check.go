package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"plumbline/record"
)

// check looks at what no single key can tell.
func (d *decoder) check(p *Plan) {
	switch {
	case len(p.Router.Run) == 0:
		d.failAt("router.run", `missing; say how to start the server, such as run: ["{build}/server", "--listen", "{socket}"]`)
	case len(p.Kinds) == 0:
		d.failAt("kinds", "missing; say what to send, such as kinds: {main: {targets: targets.http}}")
	}
	if err := p.Schedule.check(); err != nil {
		d.failAt(err.at, "%s", err.why)
	}
	d.checkServices(p)
	d.checkGenerated(p)
	for _, n := range p.CPUs.Load {
		if slices.Contains(p.CPUs.Arms, n) {
			d.failAt("cpus", "CPU %d is in both load and arms; the generator must not share one with what it measures", n)
		}
	}
	for _, kind := range p.Kinds {
		d.checkRouter(kind, p.Load.TLS, "router", p.RouterFor(kind))
		d.checkClock(kind, "router", p.RouterFor(kind))
		for _, arm := range p.Arms {
			path := join("arms", arm.Name)
			r := p.RouterFor(kind, arm.Name)
			d.checkRouter(kind, p.Load.TLS, path, r)
			d.checkClock(kind, path, r)
			if arm.Ref != "" && !r.FromSources() {
				d.failAt(path+".ref", "changes nothing; add router.build, or use {source}, the folder of its sources")
			}
		}
	}
}

// checkRouter looks at the router as one kind and arm have it. at is the part
// of the plan to blame: an arm is looked at after the router itself is good.
func (d *decoder) checkRouter(kind Kind, tls bool, at string, r Router) {
	if r.Build == "" && uses(r.Clock.Library)["build"] {
		d.failAt(at+".clock", "its library is in {build}, but nothing is built; add build, or give the library's own path")
	}
	if _, ok := d.lines[at+".run"]; ok {
		at += ".run"
	}
	fromKind := uses(slices.Collect(maps.Values(kind.Env))...)
	used := uses(r.texts()...)
	switch {
	case !used["socket"] && !used["port"]:
		d.failAt(at, "names no address to listen on; several arms run at once, so put {socket} or {port} into run or env")
	case used["socket"] && used["port"]:
		if fromKind["socket"] || fromKind["port"] {
			at = join("kinds", kind.Name) + ".env"
		}
		d.failAt(at, "uses both {socket} and {port}; keep one of them in run and env together")
	case (used["cert"] || used["key"]) && !tls:
		d.failAt(at, "uses {cert} and {key}, which only a plan with TLS has; write load: {tls: true} or {protocol: h2}")
	case used["build"] && r.Build == "":
		if fromKind["build"] {
			at = join("kinds", kind.Name) + ".env"
		}
		d.failAt(at, "uses {build} without a build command; add build, or name the program by its path")
	}
}

// checkServices looks at how often services are started afresh.
func (d *decoder) checkServices(p *Plan) {
	for i, s := range p.Services {
		at := fmt.Sprintf("services[%d]", i)
		if s.Per == PerBlock && p.Schedule.Mode == record.Sequential {
			d.failAt(at+".per", "a block's runs are far apart in sequential mode, other blocks' lie between them; write per: session, or use another schedule.mode")
		}
		for _, other := range p.Services[:i] {
			for _, own := range ofService {
				if s.Per == PerSession && other.Per == PerBlock && uses(s.texts()...)[other.Name+"."+own] {
					d.failAt(at+".run", "{%s.%s} is another one in every block, but %s is started once per session; write per: block here, or per: session there", other.Name, own, s.Name)
				}
			}
		}
	}
}

// texts are all that can hold placeholders.
func (r Router) texts() []string {
	return slices.AppendSeq(append(slices.Clone(r.Run), r.Clock.Library), maps.Values(r.Env))
}

// minRounds is the least number of slices per arm and block: the order of the
// arms is balanced within four.
const minRounds = 4

// scheduleError says which key of a schedule does not go with the others.
type scheduleError struct{ at, why string }

func (e *scheduleError) Error() string { return e.at + ": " + e.why }

func (s Schedule) check() *scheduleError {
	if s.Mode == record.Sequential && s.Budget > 0 {
		return &scheduleError{"schedule.budget", "a sequential session cannot grow: all blocks of one arm come first; write blocks: 6, or mode: interleaved"}
	}
	if s.Mode == record.Sequential && s.MaxBlocks > 0 {
		return &scheduleError{"schedule.blocks", "a sequential session cannot grow: all blocks of one arm come first; write a number, or mode: interleaved"}
	}
	if s.Mode != record.Sliced {
		return nil
	}
	switch rounds := s.Block / s.Slice / 2; {
	case s.Slice > s.Block:
		return &scheduleError{"schedule.slice", fmt.Sprintf("a slice of %s is longer than a block of %s; make slice shorter or block longer", Short(s.Slice), Short(s.Block))}
	case rounds < minRounds:
		return &scheduleError{"schedule.block", fmt.Sprintf("%s holds %d rounds of %s slices for two arms and %d are needed; make block longer or slice shorter",
			Short(s.Block), rounds, Short(s.Slice), minRounds)}
	}
	return nil
}

// Short writes 2m and not 2m0s.
func Short(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
