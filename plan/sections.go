package plan

import (
	"fmt"
	"math"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"plumbline/record"
)

// plan reads the whole file, section by section, over the defaults.
func (d *decoder) plan(p *Plan, root *node) {
	p.Router = Router{Env: map[string]string{}, Ready: Ready{Within: 30 * time.Second}, Stop: "TERM"}
	p.Load = Load{Protocol: "h1", Timeout: 30 * time.Second}
	p.Warmup = Warmup{Load: 2 * time.Second}
	p.CPUs.Awake = true
	p.Schedule = Schedule{Slice: 200 * time.Millisecond, Block: 10 * time.Second, Blocks: leastBlocks, MaxBlocks: mostBlocks, Retries: 1, Freeze: true, Controls: true}
	p.Rules = record.DefaultRules()
	p.Seed = 1

	d.services = serviceNames(root) // the router names them, and may stand above
	var arms *value                 // read last, because they build on the router, which may stand below
	d.keys(value{root, "", root.line},
		field{"router", func(v value) {
			var o Overrides
			d.keys(v, d.overrides(&o, p.Router)...)
			p.Router = p.Router.with(o)
		}},
		field{"arms", func(v value) { arms = &v }},
		field{"services", func(v value) {
			d.elements(v, "[{name: postgres, run: [...]}]", func(v value) { p.Services = append(p.Services, d.service(v)) })
		}},
		field{"kinds", func(v value) {
			d.each(v, func(name string, v value) { p.Kinds = append(p.Kinds, d.kind(name, p.Dir, v)) })
		}},
		field{"expect", func(v value) { p.Expect = d.expect(v) }},
		field{"load", func(v value) { d.load(p, v) }},
		field{"warmup", func(v value) { d.warmup(&p.Warmup, v) }},
		field{"schedule", func(v value) { d.schedule(p, v) }},
		field{"gates", func(v value) { d.gates(p.Rules, v) }},
		field{"cpus", func(v value) {
			d.keys(v,
				field{"load", func(v value) { p.CPUs.Load = d.cpus(v) }},
				field{"arms", func(v value) { p.CPUs.Arms = d.cpus(v) }},
				field{"awake", func(v value) { p.CPUs.Awake = d.yes(v) }},
			)
		}},
		field{"seed", func(v value) { p.Seed = d.whole(v, 0, math.MaxUint64) }},
	)
	if arms != nil {
		d.each(*arms, func(name string, v value) {
			arm := Arm{Name: name}
			ref := field{"ref", func(v value) { arm.Ref = d.text(v) }}
			d.keys(v, append([]field{ref}, d.overrides(&arm.Router, p.Router)...)...)
			p.Arms = append(p.Arms, arm)
		})
	}
	p.fillIn()
}

// Blocks are added from the least to the most, by default. Most sessions are
// decided by the least, and what twenty blocks cannot tell, more hardly will.
const leastBlocks, mostBlocks = 6, 20

// defaultInFlight is how many requests are under way at once, at most, at a
// fixed rate: beyond it they wait with the generator, and latency counts that.
const defaultInFlight = 100

// fillIn sets what depends on another key and was not written.
func (p *Plan) fillIn() {
	mode, workers := record.Sliced, 1
	if p.Load.Rate > 0 {
		mode, workers = record.Interleaved, defaultInFlight
	}
	if !p.chosen.mode {
		p.Schedule.Mode = mode
	}
	if !p.chosen.blocks && p.Schedule.Mode == record.Sequential {
		p.Schedule.MaxBlocks = 0 // all blocks of one arm come first
	}
	if !p.chosen.workers {
		p.Load.Workers = workers
	}
}

// overrides are the keys that the router and its arms share. from is what a
// partial ready: or clock: starts from.
func (d *decoder) overrides(o *Overrides, from Router) []field {
	return []field{
		{"build", func(v value) { o.Build = d.text(v) }},
		{"run", func(v value) { o.Run = d.command(v, `["{build}/server", "--listen", "{socket}"]`) }},
		{"env", func(v value) { o.Env = d.env(v) }},
		{"ready", func(v value) { o.Ready = d.ready(v, from.Ready) }},
		{"clock", func(v value) { o.Clock = d.clock(v, from.Clock) }},
		{"stop", func(v value) { o.Stop = d.stop(v) }},
	}
}

// command is a program and its arguments.
func (d *decoder) command(v value, example string) (run []string) {
	d.elements(v, example, func(v value) { run = append(run, d.template(v)) })
	if len(run) > 0 && strings.TrimSpace(run[0]) == "" {
		d.fail(v, "its first element, the program, is empty; write its path or name")
	}
	return run
}

func (d *decoder) stop(v value) string {
	if name, ok := strings.CutPrefix(v.text, "SIG"); ok {
		d.fail(v, "signals are written without SIG; say %s", name)
	}
	return d.choice(v, "TERM", "INT", "QUIT", "HUP", "KILL", "USR1", "USR2")
}

// path is that of a URL.
func (d *decoder) path(v value) string {
	s := d.text(v)
	if _, err := url.ParseRequestURI(s); err != nil || s[0] != '/' {
		d.fail(v, "%s is no path; write one such as /health", quote(s))
	}
	return s
}

// mustBeTrue is for the key tcp, which says aloud what is the default.
func (d *decoder) mustBeTrue(v value) bool {
	if !d.yes(v) {
		d.fail(v, "wants true; an accepted connection is the least that ready can mean")
	}
	return true
}

func (d *decoder) ready(v value, r Ready) *Ready {
	var http, tcp bool
	d.keys(v,
		field{"http", func(v value) { http, r.HTTP = true, d.path(v) }},
		field{"tcp", func(v value) { tcp, r.HTTP = d.mustBeTrue(v), "" }},
		field{"within", func(v value) { r.Within = d.duration(v, false) }},
	)
	if http && tcp {
		d.fail(v, "has both http and tcp; keep one, http says more")
	}
	return &r
}

func (d *decoder) env(v value) map[string]string {
	env := map[string]string{}
	d.each(v, func(name string, v value) {
		if strings.Contains(name, "=") {
			d.fail(v, "no environment variable can have = in its name; write NAME: value")
		}
		env[name] = d.template(v)
	})
	return env
}

// template is text with placeholders that will have a value.
func (d *decoder) template(v value) string {
	s := d.anyText(v)
	if err := checkPlaceholders(s, d.services); err != nil {
		d.fail(v, "%w", err)
	}
	return s
}

func (d *decoder) kind(name, dir string, v value) Kind {
	k := Kind{Name: name}
	d.misplaced(v)
	d.keys(v,
		field{"targets", func(v value) {
			if k.Targets = d.text(v); !filepath.IsAbs(k.Targets) {
				k.Targets = filepath.Join(dir, k.Targets)
			}
			info, err := os.Stat(k.Targets)
			switch {
			case err != nil:
				d.fail(v, "%w; the path is relative to the plan's folder", err)
			case info.IsDir():
				d.fail(v, "%s is a folder; name a target file", k.Targets)
			}
		}},
		field{"generate", func(v value) { k.Generate = d.generate(name, dir, v) }},
		field{"env", func(v value) { k.Env = d.env(v) }},
	)
	switch {
	case k.Targets == "" && k.Generate == nil:
		d.fail(v, "has no targets; name a file, such as targets: targets.http, or write generate: {kind: jwt-cache}")
	case k.Targets != "" && k.Generate != nil:
		d.fail(v, "has both targets and generate; keep one")
	}
	return k
}

func (d *decoder) expect(v value) []Expect {
	var out []Expect
	d.each(v, func(key string, v value) {
		method, path, _ := strings.Cut(key, " ")
		_, err := url.ParseRequestURI(path)
		if err != nil || method == "" || strings.Trim(method, "ABCDEFGHIJKLMNOPQRSTUVWXYZ-") != "" ||
			path[0] != '/' || strings.ContainsAny(path, " #") {
			d.fail(v, "is no route; write METHOD /path?query as in the target file, such as GET /users")
			return
		}
		e := Expect{Route: record.RouteName(method, path), Line: v.line}
		d.keys(v,
			field{"status", func(v value) {
				status := func(v value) { e.Status = append(e.Status, int(d.whole(v, 100, 599))) }
				if v.shape == number {
					status(v)
				} else {
					d.elements(v, "401 or [200, 401]", status)
				}
			}},
			field{"body", func(v value) { e.BodyAny = d.choice(v, "any") == "any" }},
		)
		if len(v.pairs) == 0 {
			d.fail(v, "expects nothing; write status: [401] or body: any")
		}
		if i := slices.IndexFunc(out, func(o Expect) bool { return o.Route == e.Route }); i >= 0 {
			d.fail(v, "is the same route as in line %d; put both into one", out[i].Line)
		}
		out = append(out, e)
	})
	return out
}

func (d *decoder) load(p *Plan, v value) {
	l := &p.Load
	var tls *bool
	d.keys(v,
		field{"rate", func(v value) {
			if v.shape == number && v.text == "0" {
				return // a closed loop, said aloud
			}
			rate, err := ParseRate(v.text)
			if v.shape != text {
				err = fmt.Errorf("wants a rate such as 500/s, not %s; 0 is a closed loop", v.describe())
			}
			if err != nil {
				d.fail(v, "%w", err)
			}
			l.Rate = rate
		}},
		field{"workers", func(v value) { l.Workers, p.chosen.workers = int(d.whole(v, 1, maxWorkers)), true }},
		field{"protocol", func(v value) { l.Protocol = d.choice(v, "h1", "h2c", "h2") }},
		field{"tls", func(v value) { yes := d.yes(v); tls = &yes }},
		field{"timeout", func(v value) {
			l.Timeout = d.duration(v, false)
			if l.Timeout < time.Second || l.Timeout > time.Hour {
				d.fail(v, "wants from 1s to 1h, not %s", v.text)
			}
		}},
	)
	l.TLS = l.Protocol == "h2" || tls != nil && *tls
	switch {
	case l.Protocol == "h2c" && l.TLS:
		d.fail(v, "h2c is HTTP/2 without TLS; write protocol: h2, or leave tls out")
	case l.Protocol == "h2" && tls != nil && !*tls:
		d.fail(v, "h2 is HTTP/2 over TLS; write protocol: h2c, or leave tls out")
	}
}

func (d *decoder) warmup(w *Warmup, v value) {
	atMost := 30 * time.Second
	limited := false
	d.keys(v,
		field{"idle", func(v value) { w.Idle = d.duration(v, true) }},
		field{"load", func(v value) {
			if w.Auto = v.shape == text && v.text == "auto"; !w.Auto {
				w.Load = d.duration(v, true)
			}
		}},
		field{"at_most", func(v value) { atMost, limited = d.duration(v, false), true }},
	)
	if w.Auto {
		w.Load = atMost
	} else if limited {
		d.fail(v, "has at_most, the limit of load: auto; write load: auto, or leave at_most out")
	}
}

func (d *decoder) schedule(p *Plan, v value) {
	s := &p.Schedule
	d.keys(v,
		field{"budget", func(v value) { s.Budget = d.duration(v, false) }},
		field{"mode", func(v value) {
			p.chosen.mode = true
			s.Mode = record.Mode(d.choice(v, string(record.Sliced), string(record.Interleaved), string(record.Sequential)))
		}},
		field{"slice", func(v value) { s.Slice = d.duration(v, false) }},
		field{"block", func(v value) { s.Block = d.duration(v, false) }},
		field{"blocks", func(v value) {
			p.chosen.blocks, s.MaxBlocks = true, 0
			if v.shape != mapping {
				s.Blocks = int(d.whole(v, 1, maxBlocks))
				return
			}
			d.keys(v,
				field{"min", func(v value) { s.Blocks = int(d.whole(v, 1, maxBlocks)) }},
				field{"max", func(v value) { s.MaxBlocks = int(d.whole(v, 1, maxLooked)) }},
			)
			switch {
			case s.MaxBlocks == 0:
				d.fail(v, "has no max; write {min: 6, max: 20}, or a number for a session of fixed length")
			case s.MaxBlocks < s.Blocks:
				d.fail(v, "has max %d below min %d; write {min: 6, max: 20}", s.MaxBlocks, s.Blocks)
			case s.MaxBlocks == s.Blocks:
				s.MaxBlocks = 0
			}
		}},
		field{"retries", func(v value) { s.Retries = int(d.whole(v, 0, 100)) }},
		field{"freeze", func(v value) { s.Freeze = d.yes(v) }},
		field{"controls", func(v value) { s.Controls = d.yes(v) }},
	)
	if s.Budget > 0 && p.chosen.blocks {
		d.fail(v, "has both blocks and budget, and each says how long a session is; keep one")
	}
}

const (
	maxWorkers = 10_000
	maxBlocks  = 10_000
	maxLooked  = 500 // blocks after each of which a session is judged
	maxRate    = 1e6
)

// ParseRate reads 500/s or 30000/m as requests per second.
func ParseRate(s string) (float64, error) {
	digits, unit, ok := strings.Cut(s, "/")
	per, known := map[string]float64{"s": 1, "m": 60}[unit]
	before, after, dot := strings.Cut(digits, ".")
	if !ok || !known || !isWhole(before) || dot && (after == "" || strings.Trim(after, "0123456789") != "") {
		return 0, fmt.Errorf("%s is no rate; write one such as 500/s or 30000/m, or 0 for a closed loop", quote(s))
	}
	rate, err := strconv.ParseFloat(digits, 64)
	if rate /= per; err != nil || rate <= 0 || rate > maxRate {
		return 0, fmt.Errorf("%s is outside of what can be offered; write more than 0/s and at most %d/s", s, int(maxRate))
	}
	return rate, nil
}

func (d *decoder) gates(rules record.Rules, v value) {
	var fields []field
	for _, metric := range record.Metrics {
		fields = append(fields, field{string(metric), func(v value) {
			rule := rules.Metrics[metric]
			d.keys(v,
				field{"zone", func(v value) { rule.Zone = d.zone(v, metric) }},
				field{"watch", func(v value) { rule.Watch = d.yes(v) }},
			)
			rules.Metrics[metric] = rule
		}})
	}
	d.keys(v, fields...)
}

func (d *decoder) zone(v value, metric record.Metric) float64 {
	if v.shape != text {
		d.fail(v, "wants a zone such as %s, not %s", zoneExample(metric), v.describe())
		return 0
	}
	zone, err := ParseZone(metric, v.text)
	if err != nil {
		d.fail(v, "%w", err)
	}
	return zone
}

func zoneExample(metric record.Metric) string {
	if metric == record.ErrorRate {
		return "0.1 points"
	}
	return "5%"
}

// ParseZone reads 5% as 0.05. Of an error rate, 0.1 points are 0.1%: a
// difference. It refuses what is not between 0 and 1.
func ParseZone(metric record.Metric, s string) (float64, error) {
	digits, ok := strings.CutSuffix(s, "%")
	if !ok && metric == record.ErrorRate {
		digits, ok = strings.CutSuffix(s, "points")
	}
	digits = strings.TrimRight(digits, " ")
	before, after, dot := strings.Cut(digits, ".")
	if !ok || !isWhole(before) || dot && (after == "" || strings.Trim(after, "0123456789") != "") {
		return 0, fmt.Errorf("wants a zone such as %s, not %s", zoneExample(metric), quote(s))
	}
	zone, err := strconv.ParseFloat(digits+"e-2", 64) // 5/100 rounded once
	if err != nil || zone <= 0 || zone >= 1 {
		return 0, fmt.Errorf("%s is outside of what can be judged; write more than 0%% and less than 100%%, such as %s", s, zoneExample(metric))
	}
	return zone, nil
}

// cpus reads 0, [0, 1] or "0-3,5". Numbers end where a Linux CPU set does.
func (d *decoder) cpus(v value) []int {
	const last = 1023
	var out []int
	add := func(v value, n int) {
		if slices.Contains(out, n) {
			d.fail(v, "names CPU %d twice; once is enough", n)
		}
		out = append(out, n)
	}
	switch v.shape {
	case number:
		add(v, int(d.whole(v, 0, last)))
	case text:
		for part := range strings.SplitSeq(v.text, ",") {
			low, high, ranged := strings.Cut(strings.TrimSpace(part), "-")
			if !ranged {
				high = low
			}
			from, err := strconv.Atoi(low)
			to, err2 := strconv.Atoi(high)
			if err != nil || err2 != nil || !isWhole(low) || !isWhole(high) || from > to || to > last {
				d.fail(v, `%s is no list of CPUs from 0 to %d; write 0, [0, 1] or "0-3,5"`, quote(v.text), last)
				return nil
			}
			for n := from; n <= to; n++ {
				add(v, n)
			}
		}
	default:
		d.elements(v, `0, [0, 1] or "0-3,5"`, func(v value) { add(v, int(d.whole(v, 0, last))) })
	}
	slices.Sort(out)
	return out
}
