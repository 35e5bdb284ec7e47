package report

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"plumbline/gates"
	"plumbline/record"
)

// Measured writes, for a terminal or a log, tables of what was measured
// without a verdict. It fails only if w does.
func Measured(w io.Writer, s *record.Session, m *gates.Measured, o Options) error {
	p := &textPage{o: o}
	p.prose("", measuredLine(s, m, voice{clean, clean}))
	p.detail(s)
	about := measuredAbout(s, m, clean)
	if len(about) > 0 {
		p.line("")
	}
	for _, l := range about {
		p.prose(fmt.Sprintf("  %-12s ", l[0]), l[1])
	}
	t := newMeasuredTable(s, m)
	p.line("")
	p.line("Latency in %s", t.unit)
	p.measured(t)
	p.lists(s, &gates.Verdict{SetAside: m.SetAside})
	p.line("")
	p.prose("", measuredLegend)
	_, err := io.WriteString(w, p.b.String())
	return err
}

// MeasuredMarkdown writes the same for a pull request or a job summary.
func MeasuredMarkdown(w io.Writer, s *record.Session, m *gates.Measured) error {
	p := &markdownPage{}
	p.line("**%s**", measuredLine(s, m, voice{code, prose}))
	p.line("")
	p.detail(s)
	about := measuredAbout(s, m, code)
	for _, l := range about {
		p.line("%s: %s  ", l[0], l[1])
	}
	if len(about) > 0 {
		p.line("")
	}
	t := newMeasuredTable(s, m)
	p.line("Latency in %s", t.unit)
	p.line("")
	p.measured(t)
	p.lists(s, &gates.Verdict{SetAside: m.SetAside})
	p.line("%s", measuredLegend)
	_, err := io.WriteString(w, p.b.String())
	return err
}

const measuredLegend = "requests and errors: all that were sent; an error is no answer, or another status than is expected of the route. " +
	"Percentiles (exact, nearest rank) and bytes (the mean body): of the requests that count."

// measuredLine is the headline: "MEASURED main: 6 blocks, no verdict (one arm)."
func measuredLine(s *record.Session, m *gates.Measured, say voice) string {
	word := "MEASURED"
	if s.State != record.Complete {
		word += " (" + say.text(string(s.State)) + ")"
	}
	var labels []string
	runs := 0
	for _, a := range m.Arms {
		labels = append(labels, say.name(labelOf(s, a.Name)))
		runs += a.Runs
	}
	line := ""
	switch {
	case s.Loose && len(m.Arms) > 1 && eachForItself(s):
		line = fmt.Sprintf("%s %d files, no verdict.", word, len(s.Runs))
	case s.Loose:
		line = fmt.Sprintf("%s %s: %s, no verdict.", word, strings.Join(labels, " and "), filesOf(s))
	case len(m.Arms) == 1:
		line = fmt.Sprintf("%s %s: %s, no verdict (one arm).", word, labels[0], count(runs, "block"))
	default:
		line = fmt.Sprintf("%s %s: %s, without a verdict.", word, strings.Join(labels, " and "), count(gates.PlannedBlocks(s), "block"))
	}
	if s.Reason != "" && s.Reason != string(s.State) {
		line += " " + say.text(s.Reason)
	}
	return line
}

// eachForItself says that loose files are no sides of a comparison.
func eachForItself(s *record.Session) bool {
	return !slices.ContainsFunc(s.Runs, func(r *record.Run) bool { return r.Arm != r.ID })
}

// measuredAbout says how and where it was measured: pairs of a word and a line.
func measuredAbout(s *record.Session, m *gates.Measured, name func(string) string) [][2]string {
	var out [][2]string
	if !s.Loose {
		planned := gates.PlannedBlocks(s)
		v := &gates.Verdict{Planned: planned, Blocks: planned, Delivered: map[string]float64{}}
		for _, a := range m.Arms {
			if len(m.Arms) == 1 {
				v.Blocks = a.Runs
			}
			if a.Delivered != nil {
				v.Delivered[a.Name] = *a.Delivered
			}
		}
		for _, a := range s.Arms {
			out = append(out, [2]string{"arm", strings.TrimSpace(name(labelOf(s, a.Name)) + "  " + clean(build(a)))})
			if build(a) == "" {
				out[len(out)-1][1] = name(labelOf(s, a.Name))
			}
		}
		if line := sentLine(s); line != "" {
			out = append(out, [2]string{"sent", clean(line)})
		}
		out = append(out, [2]string{"schedule", clean(scheduleLine(s, v))})
		if line := clockLine(s); line != "" {
			out = append(out, [2]string{"clock", clean(line)})
		}
		out = append(out, [2]string{"host", clean(hostLine(s))})
	} else if !eachForItself(s) {
		out = append(out, [2]string{"schedule", clean(scheduleLine(s, &gates.Verdict{}))})
	}
	var memory []string
	for _, a := range m.Arms {
		if a.IdleMemory != nil {
			memory = append(memory, name(labelOf(s, a.Name))+" "+strconv.FormatFloat(float64(*a.IdleMemory)/1e6, 'f', 1, 64)+" MB")
		}
	}
	if len(memory) > 0 {
		out = append(out, [2]string{"idle memory", strings.Join(memory, ", ") + " (median, before load)"})
	}
	return out
}

// measuredTable is ready to be laid out; names are raw.
type measuredTable struct {
	unit   string
	heads  []string // of the numbers
	rows   []measuredRow
	single bool // one arm: no need to name it
}

type measuredRow struct {
	route, arm string
	cells      []string
}

func newMeasuredTable(s *record.Session, m *gates.Measured) measuredTable {
	var values []float64
	for _, r := range m.Rows {
		values = append(values, r.Latency...)
	}
	u := unitOfTime(values)
	t := measuredTable{unit: u.name, single: len(m.Arms) == 1, heads: []string{"requests", "errors"}}
	for _, p := range m.Percentiles {
		t.heads = append(t.heads, "P"+strconv.FormatFloat(p, 'f', -1, 64))
	}
	t.heads = append(t.heads, "bytes")
	for _, r := range m.Rows {
		cells := []string{strconv.Itoa(r.Requests), missing}
		if r.Errors != nil {
			cells[1] = unit{"%", 100}.show(*r.Errors) + " %"
		}
		for i := range m.Percentiles {
			cell := missing
			if r.Latency != nil {
				cell = u.show(r.Latency[i])
			}
			cells = append(cells, cell)
		}
		size := missing
		if r.BodyBytes != nil {
			size = strconv.FormatFloat(*r.BodyBytes, 'f', 0, 64)
		}
		t.rows = append(t.rows, measuredRow{r.Route, labelOf(s, r.Arm), append(cells, size)})
	}
	return t
}

// measured lays a table out: with several arms a route has a line of its own,
// so that long names of routes and files fit the terminal.
func (p *textPage) measured(t measuredTable) {
	lines := [][]string{append([]string{"route"}, t.heads...)}
	for _, r := range t.rows {
		first := "  " + clean(r.arm)
		if t.single {
			first = clean(r.route)
		}
		lines = append(lines, append([]string{first}, r.cells...))
	}
	wide := p.widths(lines)
	for n, l := range lines {
		if n > 0 && !t.single && (n == 1 || t.rows[n-1].route != t.rows[n-2].route) {
			route := clean(t.rows[n-1].route)
			if p.o.Width > 0 {
				route = shorten(route, p.o.Width-2)
			}
			p.line("  %s", route)
		}
		var b strings.Builder
		for i, cell := range l {
			b.WriteString("  " + pad(shorten(cell, wide[i]), wide[i], i > 0))
		}
		p.line("%s", b.String())
	}
}

// measured has a row for each route and arm.
func (p *markdownPage) measured(t measuredTable) {
	head, rule := "| route |", "| :--- |"
	if !t.single {
		head, rule = head+" arm |", rule+" :--- |"
	}
	p.line("%s %s |", head, strings.Join(t.heads, " | "))
	p.line("%s%s", rule, strings.Repeat(" ---: |", len(t.heads)))
	for _, r := range t.rows {
		names := []string{code(r.route)}
		if !t.single {
			names = append(names, code(r.arm))
		}
		p.line("| %s |", strings.Join(slices.Concat(names, r.cells), " | "))
	}
	p.line("")
}
