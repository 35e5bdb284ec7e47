package report

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"plumbline/gates"
	"plumbline/record"
)

// Options are what the place of the output can show.
type Options struct {
	Color bool // ANSI colours, beside the words, never instead of them
	Width int  // columns of the terminal; 0: no limit, as for a pipe
}

// Text writes the report for a terminal or a log. It fails only if w does.
func Text(w io.Writer, s *record.Session, v *gates.Verdict, o Options) error {
	p := &textPage{o: o}
	p.prose("", p.headline(s, v))
	for _, r := range moreReasons(s, v) {
		p.prose("  - ", clean(r))
	}
	p.detail(s)
	p.line("")
	p.about(s, v)

	all := baselines(s, v)
	if silent(v) {
		p.line("")
		p.line("%s", nothing(s))
		all = nil
	}
	for i, base := range all {
		ts := tables(s, v, base)
		if i > 0 && len(ts) > 0 {
			p.line("")
			p.line("Also against %s (watched)", clean(labelOf(s, base)))
		}
		for _, t := range ts {
			p.table(t)
		}
	}
	p.trust(s, v)
	p.lists(s, v)
	p.line("")
	p.reproduce(s)
	p.line("")
	for _, l := range legend() {
		p.prose("", l)
	}
	p.line("%s", exitLine(v))
	_, err := io.WriteString(w, p.b.String())
	return err
}

// detail sets the lines after the first apart by their indent.
func (p *textPage) detail(s *record.Session) {
	for i, l := range detail(s) {
		indent := "    "
		if i == 0 {
			indent = "  "
		}
		p.line("%s%s", indent, l)
	}
}

type textPage struct {
	b strings.Builder
	o Options
}

func (p *textPage) line(format string, args ...any) {
	p.b.WriteString(strings.TrimRight(fmt.Sprintf(format, args...), " "))
	p.b.WriteByte('\n')
}

// prose breaks a text at its spaces to fit the terminal; lines after the first
// are indented as far as the first one's mark.
func (p *textPage) prose(mark, text string) {
	indent := strings.Repeat(" ", columns(mark))
	line, used := mark, columns(mark)
	for i, word := range strings.Split(text, " ") {
		wide := columns(colors.Replace(word))
		if i > 0 {
			if p.o.Width > 0 && used+1+wide > p.o.Width && used > len(indent) {
				p.line("%s", line)
				line, used = indent, len(indent)
			} else {
				line += " "
				used++
			}
		}
		line += word
		used += wide
	}
	p.line("%s", line)
}

// colors takes the colours out of a text, to measure it.
var colors = strings.NewReplacer(red, "", green, "", yellow, "", reset, "")

func (p *textPage) headline(s *record.Session, v *gates.Verdict) string {
	color := map[gates.Outcome]string{gates.Pass: green, gates.Inconclusive: yellow}[v.Verdict]
	if color == "" {
		color = red
	}
	name := clean
	if p.o.Width > 0 {
		name = func(s string) string { return shorten(clean(s), p.o.Width/2) }
	}
	word, rest, _ := strings.Cut(headline(s, v, voice{name, clean}), ":")
	return p.paint(color, word) + ":" + rest
}

// about says who was compared, how and where.
func (p *textPage) about(s *record.Session, v *gates.Verdict) {
	wide := 0
	for _, a := range s.Arms {
		wide = max(wide, columns(clean(labelOf(s, a.Name))))
	}
	bases := baselines(s, v)
	for _, a := range s.Arms {
		if s.Loose {
			break // their names are all that is known
		}
		made := ""
		if b := build(a); b != "" {
			made = clean(b)
		}
		if len(bases) > 1 && a.Name == bases[0] {
			made += " (decides)"
		} else if slices.Contains(bases, a.Name) && a.Name != bases[0] {
			made += " (watched)"
		}
		p.line("  %-10s %s  %s", clean(string(a.Role)), pad(clean(labelOf(s, a.Name)), wide, false), made)
	}
	if line := sentLine(s); line != "" {
		p.prose("  sent       ", clean(line))
	}
	p.prose("  schedule   ", clean(scheduleLine(s, v)))
	if line := servicesLine(s); line != "" {
		p.prose("  services   ", clean(line))
	}
	if line := clockLine(s); line != "" {
		p.prose("  clock      ", clean(line))
	}
	p.prose("  host       ", clean(hostLine(s)))
	if state := stateLine(s); state != "" {
		p.line("  %-10s %s", "session", clean(state))
	}
}

// table lays one table out, a line per row. A route too long for the terminal
// loses its middle; nothing else is cut.
func (p *textPage) table(t table) {
	p.line("")
	p.line("%s in %s: %s (%s)", t.title, t.unit, t.counts, t.about)
	lines := [][]string{{"route", p.headText(t.heads[0]), p.headText(t.heads[1]), "at", "effect", "interval", "verdict"}}
	for _, r := range t.rows {
		lines = append(lines, []string{clean(r.route), r.values[0], r.values[1], r.at, r.effect, r.interval, r.verdict + marks(r.notes)})
	}
	const at, verdict = 3, 6
	if !t.at {
		for i, l := range lines {
			lines[i] = slices.Delete(l, at, at+1)
		}
	}
	last := len(lines[0]) - 1
	wide := p.widths(lines)
	for n, l := range lines {
		var b strings.Builder
		for i, cell := range l {
			text := pad(shorten(cell, wide[i]), wide[i], i > 0 && i < last)
			if i == last && n > 0 {
				text = p.paint(colorOf(t.rows[n-1]), strings.TrimRight(text, " "))
			}
			b.WriteString("  " + text)
		}
		p.line("%s", b.String())
	}
	for i, note := range t.notes {
		p.prose(fmt.Sprintf("  [%d] ", i+1), clean(note))
	}
}

// trust says how far the verdict can be trusted, and what all routes say together.
func (p *textPage) trust(s *record.Session, v *gates.Verdict) {
	if line := pooledLine(s, v); line != "" {
		p.line("")
		p.prose("", line)
	}
	for _, sec := range trust(s, v) {
		p.line("")
		p.line("%s", sec.title)
		lines := [][]string{sec.heads}
		for _, row := range sec.rows {
			var line []string
			for _, c := range row {
				line = append(line, c.show(clean))
			}
			lines = append(lines, line)
		}
		wide := p.widths(lines)
		for _, l := range lines {
			var b strings.Builder
			for i, cell := range l {
				b.WriteString("  " + pad(shorten(cell, wide[i]), wide[i], false))
			}
			p.line("%s", b.String())
		}
	}
	if line := rareLine(v); line != "" {
		p.line("")
		p.prose("", line)
	}
}

// widths are those of the columns of lines, the first one narrowed to fit the
// terminal.
func (p *textPage) widths(lines [][]string) []int {
	wide := make([]int, len(lines[0]))
	total := 0
	for i := range wide {
		for _, l := range lines {
			wide[i] = max(wide[i], columns(l[i]))
		}
		total += 2 + wide[i] // the indent, then the gap between columns
	}
	const shortest = 16
	if over := total - p.o.Width; p.o.Width > 0 && over > 0 {
		wide[0] = min(wide[0], max(shortest, wide[0]-over))
	}
	return wide
}

// headText is an arm's label as the head of a column of numbers.
func (p *textPage) headText(label string) string {
	const longest = 20
	if p.o.Width == 0 {
		return clean(label)
	}
	return shorten(clean(label), longest)
}

// reproduce says how to get the same again; loose files know no seed.
func (p *textPage) reproduce(s *record.Session) {
	head := fmt.Sprintf("How to reproduce: seed %d", s.Seed)
	if s.Loose {
		head = "How to reproduce:"
	}
	p.line("%s", head)
	if c := command(s); c != "" {
		p.line("  %s", clean(c))
	}
}

// lists are what was set aside and what the session warned of.
func (p *textPage) lists(s *record.Session, v *gates.Verdict) {
	if len(v.SetAside) > 0 {
		p.line("")
		p.line("Set aside:")
	}
	for _, a := range setAside(v) {
		p.prose("  - ", a.what(clean)+": "+clean(a.reason))
	}
	if len(s.Warnings) > 0 {
		p.line("")
		p.line("Warnings:")
	}
	for _, w := range s.Warnings {
		p.prose("  - ", clean(w))
	}
}

const (
	red    = "\x1b[31m"
	green  = "\x1b[32m"
	yellow = "\x1b[33m"
	reset  = "\x1b[0m"
)

func (p *textPage) paint(color, text string) string {
	if !p.o.Color {
		return text
	}
	return color + text + reset
}

func colorOf(r row) string {
	switch {
	case r.kind == gates.RowRegression:
		return red
	case r.fine:
		return green
	}
	return yellow
}

func pad(s string, wide int, right bool) string {
	space := strings.Repeat(" ", max(0, wide-columns(s)))
	if right {
		return space + s
	}
	return s + space
}

func marks(notes []int) string {
	if len(notes) == 0 {
		return ""
	}
	return " [" + numbers(notes) + "]"
}
