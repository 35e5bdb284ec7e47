package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"plumbline/gates"
	"plumbline/record"
)

// table is one metric against one baseline, ready to be laid out. Names and
// notes are raw: the renderer makes them safe.
type table struct {
	title  string // "Latency P50"
	unit   string // "ms"
	about  string // "judged, zone ±5 %"
	heads  [2]string
	at     bool // rows say at which percentile they were decided
	rows   []row
	notes  []string // footnote n is notes[n-1]
	counts string   // "1 regression, 4 equivalent"
	worst  gates.RowVerdict
}

// row is one route. The cells are text; kind is there for emphasis.
type row struct {
	route, at        string
	values           [2]string
	effect, interval string
	verdict          string
	notes            []int
	kind             gates.RowVerdict
	fine             bool // kind counts as a pass
}

// tables are those against one baseline, in the order of the report.
func tables(s *record.Session, v *gates.Verdict, base string) []table {
	var out []table
	all := of(v, base)
	for _, m := range metrics(all) {
		var rows []gates.Comparison
		for _, c := range all {
			if c.Metric == m {
				rows = append(rows, c)
			}
		}
		out = append(out, newTable(s, v, m, rows))
	}
	return out
}

func newTable(s *record.Session, v *gates.Verdict, m record.Metric, rows []gates.Comparison) table {
	rows = slices.Clone(rows)
	slices.SortStableFunc(rows, worstFirst)
	mixed := slices.ContainsFunc(rows, func(c gates.Comparison) bool { return c.Judged != rows[0].Judged })
	about := "judged, "
	switch {
	case mixed:
		about = "partly watched, "
	case !rows[0].Judged:
		about = "watched, "
	}
	u := unitFor(rows)
	t := table{
		title: title(m), unit: u.name, about: about + zoneText(rows),
		heads: heads(s, rows[0].Arms), at: m == record.LatencyDistribution,
		counts: counts(rows), worst: rows[0].Verdict,
	}
	for _, c := range rows {
		at := percentileOf(c)
		if c.Percentile == 0 {
			at = missing
		}
		r := row{
			route: c.Route, at: at,
			values: [2]string{u.value(c, 0), u.value(c, 1)},
			effect: amount(c, c.Effect), interval: interval(c, to),
			verdict: verdictWord(c), kind: c.Verdict,
			fine: c.Verdict == gates.RowEquivalent || c.Verdict == gates.RowImprovement || c.NotSlower,
		}
		if mixed && !c.Judged {
			r.verdict += " (watched)"
		}
		for _, text := range notes(s, v, c) {
			n := slices.Index(t.notes, text)
			if n < 0 {
				n = len(t.notes)
				t.notes = append(t.notes, text)
			}
			if !slices.Contains(r.notes, n+1) {
				r.notes = append(r.notes, n+1)
			}
		}
		t.rows = append(t.rows, r)
	}
	return t
}

// notes are what the numbers of a row cannot say themselves.
func notes(s *record.Session, v *gates.Verdict, c gates.Comparison) []string {
	out := slices.Clone(c.Reasons)
	if c.Verdict == gates.RowInconclusive {
		if text := openEnd(v, c); text != "" {
			out = append(out, text)
		}
	}
	if rule, ok := s.Rules.Metrics[c.Metric]; ok && c.Zone > rule.Zone*(1+1e-9) {
		asked := c
		asked.Zone = rule.Zone
		out = append(out, fmt.Sprintf("zone widened from %s to %s: differences below %s are not judged", zoneOf(asked), zoneOf(c), seconds(s.Rules.FloorS)))
	}
	if text := decidedAfter(v, c); text != "" {
		out = append(out, text)
	}
	return out
}

// decidedAfter says that a row's numbers are not from all blocks, and what the
// newest look says if that is another verdict.
func decidedAfter(v *gates.Verdict, c gates.Comparison) string {
	decided := 0 // blocks at the look whose numbers are shown
	for _, l := range c.Looks {
		if l.Verdict == c.Verdict && equal(l.Effect, c.Effect) && equal(l.Low, c.Low) {
			decided = l.Blocks
			break
		}
	}
	switch newest := len(c.Looks) - 1; {
	case c.Verdict == gates.RowInconclusive || c.Verdict == gates.RowNotComparable:
	case newest < 0 || decided == 0 || decided == c.Looks[newest].Blocks:
	case c.Looks[newest].Verdict == c.Verdict:
		return fmt.Sprintf("decided after %d of %s", decided, count(v.Blocks, "block"))
	default:
		l := c.Looks[newest]
		now := c
		now.Effect, now.Low, now.High = l.Effect, l.Low, l.High
		text := fmt.Sprintf("decided after %d of %s; all of them say %s", decided, count(v.Blocks, "block"), strings.ReplaceAll(string(l.Verdict), "_", " "))
		if l.Effect != nil {
			text += fmt.Sprintf(", %s (%s)", amount(now, now.Effect), interval(now, to))
		}
		return text
	}
	if c.Blocks > 0 && c.Blocks < v.Blocks && len(c.Reasons) == 0 && decided == 0 {
		return fmt.Sprintf("from %d of %s", c.Blocks, count(v.Blocks, "block"))
	}
	return ""
}

func equal(a, b *float64) bool { return a == b || a != nil && b != nil && *a == *b }

// worstFirst orders rows by what a reader must see first, then by the size of
// the effect; a row without one comes last of its kind.
func worstFirst(a, b gates.Comparison) int {
	if d := rank(a) - rank(b); d != 0 {
		return d
	}
	return cmp.Compare(size(b), size(a))
}

func rank(c gates.Comparison) int {
	switch c.Verdict {
	case gates.RowRegression:
		return 0
	case gates.RowNotComparable:
		return 1
	case gates.RowInconclusive:
		if c.NotSlower {
			return 3
		}
		return 2
	case gates.RowImprovement:
		return 4
	case gates.RowEquivalent:
		return 5
	}
	return 1 // a word of a newer version is not a pass
}

func size(c gates.Comparison) float64 {
	if c.Effect == nil || !finite(*c.Effect) {
		return -1
	}
	return math.Abs(*c.Effect)
}

func verdictWord(c gates.Comparison) string {
	word := strings.ReplaceAll(string(c.Verdict), "_", " ")
	if c.NotSlower && c.Verdict == gates.RowInconclusive {
		word += " (not slower)"
	}
	return word
}

// counts: "1 regression, 4 equivalent", in the order of the sorted rows.
func counts(sorted []gates.Comparison) string {
	var words []string
	number := map[string]int{}
	for _, c := range sorted {
		w := verdictWord(c)
		if number[w] == 0 {
			words = append(words, w)
		}
		number[w]++
	}
	for i, w := range words {
		if w == string(gates.RowRegression) || w == string(gates.RowImprovement) {
			words[i] = count(number[w], w)
		} else {
			words[i] = fmt.Sprintf("%d %s", number[w], w)
		}
	}
	return strings.Join(words, ", ")
}

func title(m record.Metric) string {
	switch m {
	case record.LatencyP50:
		return "Latency P50"
	case record.LatencyDistribution:
		return "Latency distribution P5–P95"
	case record.LatencyP99:
		return "Latency P99"
	case record.ErrorRate:
		return "Error rate"
	}
	return string(m)
}

// metrics are those of the rows, in the report's order, unknown ones last.
func metrics(rows []gates.Comparison) []record.Metric {
	var known, unknown []record.Metric
	for _, m := range record.Metrics {
		if slices.ContainsFunc(rows, func(c gates.Comparison) bool { return c.Metric == m }) {
			known = append(known, m)
		}
	}
	for _, c := range rows {
		if !slices.Contains(known, c.Metric) && !slices.Contains(unknown, c.Metric) {
			unknown = append(unknown, c.Metric)
		}
	}
	return append(known, unknown...)
}

// baselines are the names of the baseline arms, the deciding one first.
func baselines(s *record.Session, v *gates.Verdict) []string {
	var out []string
	for _, a := range s.Arms {
		if a.Role == record.Baseline {
			out = append(out, a.Name)
		}
	}
	for _, c := range v.Comparisons {
		if !slices.Contains(out, c.Arms[0]) {
			out = append(out, c.Arms[0])
		}
	}
	return out
}

func of(v *gates.Verdict, base string) []gates.Comparison {
	var out []gates.Comparison
	for _, c := range v.Comparisons {
		if c.Arms[0] == base {
			out = append(out, c)
		}
	}
	return out
}

func candidate(s *record.Session, v *gates.Verdict) string {
	for _, a := range s.Arms {
		if a.Role == record.Candidate {
			return labelOf(s, a.Name)
		}
	}
	for _, c := range v.Comparisons {
		return labelOf(s, c.Arms[1])
	}
	return "the candidate"
}

// labelOf is what people call an arm. Where two arms have the same label, as in
// an A/A, the arm's own name tells them apart.
func labelOf(s *record.Session, name string) string {
	label := name
	for _, a := range s.Arms {
		if a.Name == name && a.Label != "" {
			label = a.Label
		}
	}
	for _, a := range s.Arms {
		if a.Name != name && a.Label == label {
			return label + " (" + name + ")"
		}
	}
	return label
}

func heads(s *record.Session, arms [2]string) [2]string {
	return [2]string{labelOf(s, arms[0]), labelOf(s, arms[1])}
}
