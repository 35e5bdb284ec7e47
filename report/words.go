package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"plumbline/gates"
	"plumbline/record"
)

// named is how many routes a sentence names before it says "and 4 more".
const named = 3

// voice is how a renderer writes what came from strangers.
type voice struct {
	name func(string) string // labels, routes, commits
	text func(string) string // reasons, whole sentences
}

// Headline is the sentence on top: the verdict, who was compared, and the rows
// that made it so. It is plain text on one line.
func Headline(s *record.Session, v *gates.Verdict) string {
	return headline(s, v, voice{clean, clean})
}

func headline(s *record.Session, v *gates.Verdict, say voice) string {
	word := strings.ToUpper(string(v.Verdict))
	var limits []string
	if v.AA {
		limits = append(limits, "A/A")
	}
	if v.Exploratory {
		limits = append(limits, "exploratory")
	}
	if !v.Complete && v.Planned > 0 {
		limits = append(limits, fmt.Sprintf("incomplete, %d of %s", v.Blocks, count(v.Planned, "block")))
	}
	if len(limits) > 0 {
		word += " (" + strings.Join(limits, "; ") + ")"
	}
	sentence := ""
	switch v.Verdict {
	case gates.Regression:
		sentence = regressed(s, v, say)
	case gates.Inconclusive:
		sentence = undecided(s, v, say)
	case gates.Pass:
		sentence = passed(s, v, say)
	}
	if sentence != "" {
		return word + ": " + sentence + "."
	}
	// Not because of a row: the session's own reasons say why.
	about := ""
	if v.Verdict == gates.Invalid {
		about = "no verdict on "
	}
	out := word + ": " + about + against(s, say) + "."
	if len(v.Reasons) > 0 {
		out += " " + say.text(v.Reasons[0])
	}
	return out
}

// against: "HEAD against main".
func against(s *record.Session, say voice) string {
	v := &gates.Verdict{}
	all := baselines(s, v)
	if len(s.Arms) == 1 {
		return say.name(labelOf(s, s.Arms[0].Name))
	}
	if len(all) == 0 {
		return say.name(candidate(s, v)) + ", which has no baseline"
	}
	return say.name(candidate(s, v)) + " against " + say.name(labelOf(s, all[0]))
}

// regressed: "HEAD is slower than main on 1 of 5 routes: GET /search …".
func regressed(s *record.Session, v *gates.Verdict, say voice) string {
	var parts []string
	for _, base := range baselines(s, v) {
		rows := of(v, base)
		slower := worstPerRoute(rows, func(c gates.Comparison) bool { return c.Verdict == gates.RowRegression && !isRate(c) })
		errors := worstPerRoute(rows, func(c gates.Comparison) bool { return c.Verdict == gates.RowRegression && isRate(c) })
		for i, found := range [][]gates.Comparison{slower, errors} {
			if len(found) > 0 {
				does := [...]string{"is slower than", "fails more often than"}[i]
				parts = append(parts, fmt.Sprintf("%s %s %s on %s: %s", say.name(candidate(s, v)), does,
					say.name(labelOf(s, base)), ofRoutes(found, rows), list(found, say)))
			}
		}
	}
	return strings.Join(parts, "; ")
}

// undecided names the judged rows without a verdict and what they need.
func undecided(s *record.Session, v *gates.Verdict, say voice) string {
	if slices.ContainsFunc(v.Controls, func(c gates.Control) bool { return c.Verdict == gates.ControlBlind }) {
		return "" // not because of a row
	}
	open := func(c gates.Comparison) bool {
		return c.Judged && (c.Verdict == gates.RowInconclusive && !c.NotSlower || c.Verdict == gates.RowNotComparable)
	}
	for _, base := range baselines(s, v) {
		rows := of(v, base)
		found := worstPerRoute(rows, open)
		if len(found) == 0 {
			continue
		}
		does := "is slower than"
		if slices.ContainsFunc(found, isRate) {
			does = "is worse than"
		}
		sentence := fmt.Sprintf("whether %s %s %s is undecided on %s: %s", say.name(candidate(s, v)), does,
			say.name(labelOf(s, base)), ofRoutes(found, rows), list(found, say))
		// The slowest row to decide sets the number; one unknown makes it unknown.
		more := 0
		for _, c := range rows {
			if !open(c) {
				continue
			}
			if c.MoreBlocks <= 0 {
				return sentence
			}
			more = max(more, c.MoreBlocks)
		}
		return sentence + fmt.Sprintf("; about %s would decide", count(more, "more block"))
	}
	return ""
}

// passed: "HEAD is not slower than main: 5 routes, every change at P50 within
// ±1.3 %, zone ±5 %". The change is the interval, not its middle.
func passed(s *record.Session, v *gates.Verdict, say voice) string {
	all := baselines(s, v)
	if len(all) == 0 {
		return ""
	}
	rows := of(v, all[0])
	who, than := say.name(candidate(s, v)), say.name(labelOf(s, all[0]))
	faster := worstPerRoute(rows, func(c gates.Comparison) bool { return c.Verdict == gates.RowImprovement && !isRate(c) })
	if len(faster) > 0 {
		return fmt.Sprintf("%s is faster than %s on %s and slower on none: %s", who, than, ofRoutes(faster, rows), list(faster, say))
	}
	sentence := fmt.Sprintf("%s is not slower than %s: %s", who, than, count(routesIn(rows), "route"))
	var p50 []gates.Comparison
	low, high, zone := 0.0, 0.0, math.Inf(1)
	for _, c := range rows {
		if c.Metric == record.LatencyP50 && c.Low != nil && c.High != nil {
			p50 = append(p50, c)
			low, high, zone = min(low, *c.Low), max(high, *c.High), min(zone, c.Zone)
		}
	}
	if len(p50) == 0 {
		return sentence
	}
	span := "between " + Percent(low) + " and " + Percent(high)
	if widest := max(-low, high); widest <= zone {
		span = "within ±" + strings.TrimLeft(Percent(widest), "+±")
	}
	change := "every change"
	if len(p50) == 1 {
		change = "change"
	}
	return fmt.Sprintf("%s, %s at P50 %s, %s", sentence, change, span, zoneText(p50))
}

// list names the first rows: "GET /a +31.2 % at P50 (between … and …), …".
func list(rows []gates.Comparison, say voice) string {
	var out []string
	for _, c := range rows[:min(named, len(rows))] {
		at := " at " + percentileOf(c)
		if isRate(c) {
			at = " of errors"
		}
		var inside []string
		if !c.Judged {
			inside = append(inside, "watched")
		}
		if c.Low != nil && c.High != nil {
			inside = append(inside, "between "+interval(c, " and "))
		}
		text := say.name(c.Route)
		if c.Verdict == gates.RowNotComparable {
			text += " is not comparable" + at
			if len(c.Reasons) > 0 {
				reason, _, _ := strings.Cut(clean(c.Reasons[0]), ";") // the hint after it stands in the footnote
				text += " (" + say.text(head(reason, 80)) + ")"
			}
		} else {
			text += " " + amount(c, c.Effect) + at
			if len(inside) > 0 {
				text += " (" + strings.Join(inside, "; ") + ")"
			}
		}
		out = append(out, text)
	}
	if more := len(rows) - named; more > 0 {
		out = append(out, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(out, ", ")
}

// head is the start of a sentence that is too long.
func head(s string, limit int) string {
	if columns(s) <= limit {
		return s
	}
	n := 0
	for i, r := range s {
		if n += runeColumns(r); n >= limit {
			return strings.TrimRight(s[:i], " ,:") + "…"
		}
	}
	return s
}

// worstPerRoute keeps one row a route, the first metric in the report's order,
// the largest effect first.
func worstPerRoute(rows []gates.Comparison, keep func(gates.Comparison) bool) []gates.Comparison {
	var out []gates.Comparison
	for _, m := range metrics(rows) {
		for _, c := range rows {
			seen := func(o gates.Comparison) bool { return o.Route == c.Route }
			if c.Metric == m && keep(c) && !slices.ContainsFunc(out, seen) {
				out = append(out, c)
			}
		}
	}
	slices.SortStableFunc(out, worstFirst)
	return out
}

// WorstLine is one row in short, for a progress line:
// "GET /search P50 −0.8 % … +1.9 % (zone ±5 %)".
func WorstLine(s *record.Session, c gates.Comparison) string {
	line := fmt.Sprintf("%s %s %s (zone %s)", clean(c.Route), percentileOf(c), interval(c, to), zoneOf(c))
	if all := baselines(s, &gates.Verdict{}); len(all) > 1 && c.Arms[0] != all[0] {
		line += " against " + clean(labelOf(s, c.Arms[0]))
	}
	return line
}

// openEnd says how far the truth of an inconclusive row may be and what would
// decide it.
func openEnd(v *gates.Verdict, c gates.Comparison) string {
	more := c.High != nil && *c.High > c.Zone
	less := c.Low != nil && *c.Low < -c.Zone
	text := "undecided"
	switch {
	case !more && !less && c.MoreBlocks == 0 && len(c.Reasons) > 0,
		slices.ContainsFunc(c.Reasons, func(r string) bool { return strings.HasPrefix(r, "too few requests") }):
		return "" // its reasons are all there is to say
	case more && less:
		text = "may be anything from " + interval(c, " to ")
	case more:
		text = "may be as much as " + amount(c, c.High)
	case less:
		text = "may be as little as " + amount(c, c.Low)
	}
	switch {
	case c.Floor != nil && c.Floor.HalfWidth != nil:
		return text + fmt.Sprintf("; after %s it would be known to ±%s, which is wider than the zone", count(v.MaxBlocks, "block"), strings.TrimLeft(amount(c, c.Floor.HalfWidth), "+±"))
	case c.MoreBlocks > 0:
		return text + "; about " + count(c.MoreBlocks, "more block") + " would decide"
	case c.NotSlower:
		return text + "; the upper limit is inside the zone, which counts as a pass"
	case v.MaxBlocks > 0:
		return text + fmt.Sprintf("; too close to the edge, or too noisy, to be decided within %s", count(v.MaxBlocks, "block"))
	}
	return text + "; too close to the edge to say how many more blocks would decide"
}

// exitLine names the code a judging command ends with.
func exitLine(v *gates.Verdict) string {
	line := fmt.Sprintf("exit code %d: %s", v.ExitCode, v.Verdict)
	if v.ExitCode != v.Verdict.ExitCode() {
		line += " (allowed)"
	}
	return line
}

// legend explains the words a table cannot do without.
func legend() []string {
	return []string{
		"judged rows decide; of watched ones only a regression counts. zone: the smallest change that counts.",
		"interval: where the true change lies, with about 95 % confidence. Inside the zone: equivalent; clearly beyond it: regression or improvement; else inconclusive.",
	}
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

func ofRoutes(found, rows []gates.Comparison) string {
	if n := routesIn(rows); n > 1 {
		return fmt.Sprintf("%d of %d routes", len(found), n)
	}
	return "its only route"
}

func routesIn(rows []gates.Comparison) int {
	seen := map[string]bool{}
	for _, c := range rows {
		seen[c.Route] = true
	}
	return len(seen)
}

// moreReasons are the session's reasons that the headline has not told already.
func moreReasons(s *record.Session, v *gates.Verdict) []string {
	top := Headline(s, v)
	var out []string
	for _, r := range v.Reasons {
		if !strings.Contains(top, clean(r)) {
			out = append(out, r)
		}
	}
	return out
}

// setAside puts together what was set aside for one reason: a process that was
// slow was so on every route.
func setAside(v *gates.Verdict) (all []asideLine) {
	for _, a := range v.SetAside {
		about, _, _ := strings.Cut(a.Reason, ";")
		i := slices.IndexFunc(all, func(l asideLine) bool { return l.run == a.Run && l.about == about && len(l.routes) > 0 })
		if i < 0 || a.Route == "" {
			i = len(all)
			all = append(all, asideLine{run: a.Run, about: about, reason: a.Reason})
		}
		if a.Route != "" {
			all[i].routes = append(all[i].routes, a.Route)
		}
	}
	return all
}

// asideLine is a run, or its latencies on some routes.
type asideLine struct {
	run, about string
	routes     []string
	reason     string // of the first route
}

// what names the run and the first routes.
func (l asideLine) what(name func(string) string) string {
	parts := []string{name(l.run)}
	for _, r := range l.routes[:min(named, len(l.routes))] {
		parts = append(parts, name(r))
	}
	text := strings.Join(parts[:min(2, len(parts))], " ")
	if len(parts) > 2 {
		text += ", " + strings.Join(parts[2:], ", ")
	}
	if more := len(l.routes) - named; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
