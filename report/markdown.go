package report

import (
	"fmt"
	"html"
	"io"
	"strings"

	"plumbline/gates"
	"plumbline/record"
)

// Markdown writes the report in GitHub's flavour, for a pull request or a job
// summary: the sentence and the P50 table in sight, the rest folded, except
// where a regression is inside. It fails only if w does.
func Markdown(w io.Writer, s *record.Session, v *gates.Verdict) error {
	p := &markdownPage{}
	p.line("**%s**", strings.TrimSpace(headline(s, v, voice{code, prose})))
	p.line("")
	if reasons := moreReasons(s, v); len(reasons) > 0 {
		for _, r := range reasons {
			p.line("- %s", prose(r))
		}
		p.line("")
	}
	p.detail(s)
	p.about(s, v)
	all := baselines(s, v)
	if silent(v) {
		p.line("%s", nothing(s))
		p.line("")
		all = nil
	}
	for i, base := range all {
		for _, t := range tables(s, v, base) {
			if i == 0 && t.title == title(record.LatencyP50) {
				p.line("%s in %s: %s (%s)", t.title, t.unit, t.counts, t.about)
				p.line("")
				p.table(t)
				continue
			}
			title := t.title
			if i > 0 {
				title = "Also against " + codeHTML(labelOf(s, base)) + " (watched): " + t.title
			}
			p.fold(fmt.Sprintf("%s in %s: %s (%s)", title, t.unit, t.counts, t.about), t.worst == gates.RowRegression)
			p.table(t)
			p.unfold()
		}
	}
	p.trust(s, v)
	p.lists(s, v)
	p.reproduce(s)
	p.line("%s", exitLine(v))
	_, err := io.WriteString(w, p.b.String())
	return err
}

type markdownPage struct{ b strings.Builder }

func (p *markdownPage) detail(s *record.Session) {
	lines := detail(s)
	if len(lines) == 0 {
		return
	}
	p.line("%s", prose(lines[0]))
	p.line("")
	if len(lines) == 1 {
		return
	}
	p.line("<pre>")
	for _, l := range lines[1:] {
		p.line("%s", html.EscapeString(l)) // nothing in it can end the block
	}
	p.line("</pre>")
	p.line("")
}

func (p *markdownPage) line(format string, args ...any) {
	fmt.Fprintf(&p.b, format, args...)
	p.b.WriteByte('\n')
}

// fold starts a part that is closed until clicked. The summary is HTML: no
// Markdown is read in it. The blank line ends the HTML.
func (p *markdownPage) fold(summary string, open bool) {
	state := ""
	if open {
		state = " open"
	}
	p.line("<details%s><summary>%s</summary>", state, summary)
	p.line("")
}

func (p *markdownPage) unfold() {
	p.line("</details>")
	p.line("")
}

func (p *markdownPage) about(s *record.Session, v *gates.Verdict) {
	var arms []string
	for _, a := range s.Arms {
		if s.Loose {
			break // their names are all that is known
		}
		text := prose(string(a.Role)) + " " + code(labelOf(s, a.Name))
		if b := build(a); b != "" {
			text += " (" + prose(b) + ")"
		}
		arms = append(arms, text)
	}
	if len(arms) > 0 {
		p.line("%s  ", strings.Join(arms, " · "))
	}
	if line := sentLine(s); line != "" {
		p.line("sent %s  ", prose(line))
	}
	p.line("%s  ", prose(scheduleLine(s, v)))
	if line := servicesLine(s); line != "" {
		p.line("with %s  ", prose(line))
	}
	if line := clockLine(s); line != "" {
		p.line("clock %s  ", prose(line))
	}
	p.line("%s", prose(hostLine(s)))
	if state := stateLine(s); state != "" {
		p.line("  \nsession %s", prose(state))
	}
	p.line("")
}

// table has one row per route; no cell can hold a pipe or a line break.
func (p *markdownPage) table(t table) {
	at, rule := "", ""
	if t.at {
		at, rule = " at |", " ---: |"
	}
	p.line("| route | %s | %s |%s effect | interval | verdict |", code(t.heads[0]), code(t.heads[1]), at)
	p.line("| :--- | ---: | ---: |%s ---: | ---: | :--- |", rule)
	for _, r := range t.rows {
		if t.at {
			at = " " + r.at + " |"
		}
		verdict := r.verdict
		if !r.fine {
			verdict = "**" + verdict + "**"
		}
		if len(r.notes) > 0 {
			verdict += " <sup>" + numbers(r.notes) + "</sup>"
		}
		p.line("| %s | %s | %s |%s %s | %s | %s |", code(r.route), r.values[0], r.values[1], at, r.effect, r.interval, verdict)
	}
	p.line("")
	for i, note := range t.notes {
		end := "  " // a line break, but not after the last
		if i == len(t.notes)-1 {
			end = "\n"
		}
		p.line("<sup>%d</sup> %s%s", i+1, prose(note), end)
	}
}

// trust says how far the verdict can be trusted, and what all routes say together.
func (p *markdownPage) trust(s *record.Session, v *gates.Verdict) {
	if line := pooledLine(s, v); line != "" {
		p.line("%s", line)
		p.line("")
	}
	for _, sec := range trust(s, v) {
		p.fold(sec.title, sec.bad)
		p.line("| %s |", strings.Join(sec.heads, " | "))
		p.line("|%s", strings.Repeat(" :--- |", len(sec.heads)))
		for _, row := range sec.rows {
			var line []string
			for _, c := range row {
				line = append(line, c.show(code))
			}
			p.line("| %s |", strings.Join(line, " | "))
		}
		p.line("")
		p.unfold()
	}
	if line := rareLine(v); line != "" {
		p.line("%s", line)
		p.line("")
	}
}

func (p *markdownPage) lists(s *record.Session, v *gates.Verdict) {
	if all := setAside(v); len(all) > 0 {
		p.fold(fmt.Sprintf("Set aside: %d", len(all)), false)
		for _, a := range all {
			p.line("- %s: %s", a.what(code), prose(a.reason))
		}
		p.line("")
		p.unfold()
	}
	if len(s.Warnings) > 0 {
		p.line("Warnings:")
		p.line("")
		for _, w := range s.Warnings {
			p.line("- %s", prose(w))
		}
		p.line("")
	}
}

func (p *markdownPage) reproduce(s *record.Session) {
	seed := fmt.Sprintf(" (seed %d)", s.Seed)
	if s.Loose {
		seed = ""
	}
	p.fold("How to reproduce"+seed+", and what the words mean", false)
	if c := command(s); c != "" {
		p.line("```sh")
		p.line("%s", clean(c)) // one line, and its beginning cannot end the fence
		p.line("```")
		p.line("")
	}
	for _, l := range legend() {
		p.line("%s", l)
		p.line("")
	}
	p.unfold()
}
