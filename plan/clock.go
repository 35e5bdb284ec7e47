package plan

import (
	"strings"
	"time"
)

// Clock moves the router's own clock, by libfaketime.
type Clock struct {
	Start   time.Time // what it shows when the router is started, whole seconds, UTC; zero: it is not moved
	Library string    // path of the library, with {build} and {source} for Expand, relative to the plan's folder; empty: it is looked for
}

// The moments that a clock may start at: from here on, all of them less than
// 292 years (a time.Duration) from now.
var (
	firstMoment = time.Date(1970, 1, 1, 0, 0, 0, 0, time.UTC)
	lastMoment  = time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC)
)

// clock reads a moment, or a map over c.
func (d *decoder) clock(v value, c Clock) *Clock {
	if v.shape != mapping {
		c.Start = d.moment(v)
		return &c
	}
	d.keys(v,
		field{"start", func(v value) { c.Start = d.moment(v) }},
		field{"library", func(v value) {
			c.Library = d.template(v)
			if strings.TrimSpace(c.Library) == "" {
				d.fail(v, "is empty; give it a value or leave the key out")
			}
			for name := range uses(c.Library) {
				if name != "build" && name != "source" {
					d.fail(v, "{%s} says nothing of a library; its path may hold {build} and {source}", name)
				}
			}
		}},
	)
	if c.Start.IsZero() {
		d.fail(v, "has no start; write %s", clockExample)
	}
	return &c
}

const clockExample = "{start: 2000-01-01T00:00:00Z}"

// moment reads RFC 3339 without fractions of a second. YAML knows no such
// thing, so quotes or not, it is text.
func (d *decoder) moment(v value) time.Time {
	t, err := time.Parse(time.RFC3339, v.text)
	switch {
	case v.shape != text:
		d.fail(v, "wants a moment such as 2000-01-01T00:00:00Z, not %s", v.describe())
	case err != nil:
		d.fail(v, "%s is no moment; write one such as 2000-01-01T00:00:00Z or 2000-01-01T01:00:00+01:00", quote(v.text))
	case strings.ContainsAny(v.text, ".,"):
		d.fail(v, "%s has a fraction of a second; write whole seconds, such as %s", v.text, t.UTC().Truncate(time.Second).Format(time.RFC3339))
	case t.Before(firstMoment) || !t.Before(lastMoment):
		d.fail(v, "%s is out of reach; write a moment from %d to %d", v.text, firstMoment.Year(), lastMoment.Year()-1)
	}
	return t.UTC()
}
