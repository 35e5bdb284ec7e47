package plan

import (
	"maps"
	"slices"
	"strings"
	"time"
)

// serviceNames looks ahead for the names that placeholders may begin with.
func serviceNames(root *node) (names []string) {
	for _, p := range root.pairs {
		if p.key != "services" {
			continue
		}
		for _, item := range p.value.items {
			for _, field := range item.pairs {
				if field.key == "name" {
					names = append(names, field.value.text)
				}
			}
		}
	}
	return names
}

func (d *decoder) service(v value) Service {
	s := Service{Env: map[string]string{}, Ready: ServiceReady{Within: 60 * time.Second}, Per: PerSession, Stop: "TERM"}
	lines := func(out *[]string, example string) func(value) {
		return func(v value) {
			d.elements(v, example, func(v value) {
				d.text(v)
				*out = append(*out, d.template(v))
			})
		}
	}
	d.keys(v,
		field{"name", func(v value) {
			s.Name = d.text(v)
			if strings.Trim(s.Name, "abcdefghijklmnopqrstuvwxyz0123456789_") != "" {
				d.fail(v, "%s is no name of a service; write small letters, digits and underscores, as it stands in placeholders: {postgres.port}", quote(s.Name))
			}
		}},
		field{"user", func(v value) { s.User = d.text(v) }},
		field{"setup", lines(&s.Setup, `["initdb -D {dir}/data"]`)},
		field{"run", func(v value) { s.Run = d.command(v, `[postgres, -D, "{dir}/data", -p, "{port}"]`) }},
		field{"fixtures", lines(&s.Fixtures, `["psql -p {port} -f fixtures.sql"]`)},
		field{"env", func(v value) { s.Env = d.env(v) }},
		field{"ready", func(v value) { d.serviceReady(&s.Ready, v) }},
		field{"per", func(v value) { s.Per = Per(d.choice(v, string(PerSession), string(PerBlock))) }},
		field{"stop", func(v value) { s.Stop = d.stop(v) }},
	)
	switch used := uses(s.texts()...); {
	case s.Name == "":
		d.fail(v, "has no name; write name: postgres")
	case len(s.Run) == 0:
		d.fail(v, `has no run; say how to start it, such as run: [postgres, -D, "{dir}/data", -p, "{port}"]`)
	case used["socket"] && used["port"]:
		d.fail(v, "uses both {socket} and {port}; keep one of them")
	case !used["socket"] && !used["port"] && s.Ready.Run == "":
		d.fail(v, "nobody can tell when it is ready: put {port} or {socket} into run or env, or write ready: {run: a command that succeeds}")
	case others(s.texts()) != "":
		d.fail(v, "{%s} is the router's; a service has {port} {socket} {dir} {targets}, and those of the services before it: {name.port}", others(s.texts()))
	case d.later(s) != "":
		d.fail(v, "{%s} is of a service that is started later; put %s before %s", d.later(s), strings.Split(d.later(s), ".")[0], s.Name)
	case slices.Contains(d.seen, s.Name):
		d.fail(v, "is the second service called %s; give it another name", s.Name)
	}
	d.seen = append(d.seen, s.Name)
	return s
}

// texts are all that can hold placeholders.
func (s Service) texts() []string {
	return slices.Concat(slices.Collect(maps.Values(s.Env)), s.Run, s.Setup, s.Fixtures, []string{s.Ready.Run})
}

// later is a placeholder of a service that has not been started by then.
func (d *decoder) later(s Service) string {
	for name := range uses(s.texts()...) {
		if service, _, ok := strings.Cut(name, "."); ok && !slices.Contains(d.seen, service) {
			return name
		}
	}
	return ""
}

// others is a placeholder that a service cannot have.
func others(texts []string) string {
	for name := range uses(texts...) {
		if !strings.Contains(name, ".") && name != "targets" && !slices.Contains(ofService[:], name) {
			return name
		}
	}
	return ""
}

func (d *decoder) serviceReady(r *ServiceReady, v value) {
	n := 0
	d.keys(v,
		field{"http", func(v value) { n, r.HTTP = n+1, d.path(v) }},
		field{"tcp", func(v value) { n, _ = n+1, d.mustBeTrue(v) }},
		field{"run", func(v value) {
			n++
			d.text(v)
			r.Run = d.template(v)
		}},
		field{"within", func(v value) { r.Within = d.duration(v, false) }},
	)
	if n > 1 {
		d.fail(v, "has more than one of http, tcp and run; keep the one that says most")
	}
}
