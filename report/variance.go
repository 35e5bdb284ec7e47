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

// Variance writes, for a terminal or a log, what sessions of one build against
// itself say of the machine; sessions are those that v was made from. It fails
// only if w does.
func Variance(w io.Writer, sessions []*record.Session, v *gates.Variance, o Options) error {
	p := &textPage{o: o}
	p.prose("", varianceLine(sessions, v, voice{clean, clean}))
	p.line("")
	for _, l := range varianceAbout(sessions, v, clean) {
		p.prose(fmt.Sprintf("  %-11s ", l[0]), l[1])
	}
	for _, m := range v.Modes {
		for _, r := range m.Reasons {
			p.prose("  - ", clean(string(m.Mode)+": "+r))
		}
	}
	if m := shown(v); m != nil {
		for _, t := range modeTables(m) {
			p.numbers(t)
		}
	}
	p.numbers(modesTable(v))
	p.line("")
	for _, l := range varianceLegend(v) {
		p.prose("", l)
	}
	_, err := io.WriteString(w, p.b.String())
	return err
}

// VarianceMarkdown writes the same for a pull request or a job summary, with
// the routes of every mode.
func VarianceMarkdown(w io.Writer, sessions []*record.Session, v *gates.Variance) error {
	p := &markdownPage{}
	p.line("**%s**", varianceLine(sessions, v, voice{code, prose}))
	p.line("")
	for _, l := range varianceAbout(sessions, v, code) {
		p.line("%s: %s  ", l[0], l[1])
	}
	p.line("")
	for _, m := range v.Modes {
		for _, r := range m.Reasons {
			p.line("- %s", prose(string(m.Mode)+": "+r))
		}
	}
	p.line("")
	p.numbers(modesTable(v))
	first := shown(v)
	for i := range v.Modes {
		m := &v.Modes[i]
		if len(m.Routes) == 0 {
			continue
		}
		p.fold("Routes in "+string(m.Mode)+" sessions", m == first)
		for _, t := range modeTables(m) {
			p.numbers(t)
		}
		p.unfold()
	}
	for _, l := range varianceLegend(v) {
		p.line("%s", l)
		p.line("")
	}
	_, err := io.WriteString(w, p.b.String())
	return err
}

// shown is the mode whose routes the text shows: the first that tells anything.
func shown(v *gates.Variance) *gates.ModeVariance {
	for i := range v.Modes {
		if len(v.Modes[i].Floors) > 0 {
			return &v.Modes[i]
		}
	}
	for i := range v.Modes {
		if len(v.Modes[i].Routes) > 0 { // with the reasons why they tell nothing
			return &v.Modes[i]
		}
	}
	return nil
}

// varianceLine is the headline: "VARIANCE main: 6 blocks see a change of 0.94 %
// at P50, …".
func varianceLine(sessions []*record.Session, v *gates.Variance, say voice) string {
	word := "VARIANCE"
	if slices.ContainsFunc(v.Modes, func(m gates.ModeVariance) bool { return !m.Complete }) {
		word += " (incomplete)"
	}
	s := sessions[0]
	line := fmt.Sprintf("%s %s against itself: ", word, say.name(s.Arms[0].Label))
	m := shown(v)
	if m == nil || len(m.Sees) == 0 {
		return line + "nothing can be said of this machine."
	}
	all := p50(m)
	first, last := m.Sees[0], m.Sees[len(m.Sees)-1]
	about := fmt.Sprintf("%s, %.0f %% power", m.Mode, v.Power*100)
	if len(all) > 1 {
		about += fmt.Sprintf(", median of %d routes", len(all))
	}
	line += fmt.Sprintf("%d blocks see a change of %s %% at P50, %d blocks one of %s %% (%s)",
		first.Blocks, inPercent(first.Noise), last.Blocks, inPercent(last.Noise), about)
	if pt, ok := all[m.Noisiest]; ok && len(all) > 1 {
		line += fmt.Sprintf("; on the noisiest route, %s, %s %% and %s %%", say.name(m.Noisiest),
			inPercent(pt.Sees[0].Noise), inPercent(pt.Sees[len(pt.Sees)-1].Noise))
	}
	return line + "."
}

// p50 are the points of the routes that have a floor there.
func p50(m *gates.ModeVariance) map[string]gates.PointVariance {
	out := map[string]gates.PointVariance{}
	for _, r := range m.Routes {
		for _, pt := range r.Points {
			if pt.P == 50 {
				out[r.Route] = pt
			}
		}
	}
	return out
}

// varianceAbout says what was measured, how and where: pairs of a word and a line.
func varianceAbout(sessions []*record.Session, v *gates.Variance, name func(string) string) [][2]string {
	s := sessions[0]
	arm := name(s.Arms[0].Label)
	if b := build(s.Arms[0]); b != "" {
		arm += "  " + clean(b)
	}
	out := [][2]string{{"build", arm}}
	var have []string
	for i, m := range v.Modes {
		out = append(out, [2]string{string(m.Mode), clean(strings.TrimPrefix(
			scheduleLine(sessions[i], &gates.Verdict{Planned: m.Planned, Blocks: m.Blocks}), string(m.Mode)+", "))})
		have = append(have, string(m.Mode))
	}
	var not []string
	for _, mode := range []record.Mode{record.Sliced, record.Interleaved, record.Sequential} {
		if !slices.Contains(have, string(mode)) {
			not = append(not, string(mode))
		}
	}
	if len(not) > 0 {
		out = append(out, [2]string{"without", strings.Join(not, " and ") + ": not measured"})
	}
	last := ""
	for _, of := range sessions { // in another mode a run is as long as another, and so its tokens are others
		if line := sentLine(of); line != last {
			out = append(out, [2]string{"sent", clean(line)})
			last = line
		}
	}
	if line := servicesLine(s); line != "" {
		out = append(out, [2]string{"services", clean(line)})
	}
	if line := clockLine(s); line != "" {
		out = append(out, [2]string{"clock", clean(line)})
	}
	return append(out, [2]string{"host", clean(hostLine(s))}, [2]string{"seed", strconv.FormatUint(s.Seed, 10)})
}

// numbersTable is a table of numbers, ready to be laid out; names and notes are raw.
type numbersTable struct {
	title string
	heads []string // of all columns
	rows  []numbersRow
	notes []string // footnote n is notes[n-1]
	names bool     // the first column holds names from strangers
}

type numbersRow struct {
	name  string
	sum   bool // of all rows: the name is ours
	cells []string
	notes []int
}

// modeTables are what one session says of its routes.
func modeTables(m *gates.ModeVariance) []numbersTable {
	out := []numbersTable{seesTable(m), sourceTable(m)}
	if m.FalseAlarms != nil {
		out = append(out, alarmsTable(m))
	}
	return out
}

// seesTable: what sessions of several lengths can see.
func seesTable(m *gates.ModeVariance) numbersTable {
	t := numbersTable{heads: []string{"route", "floor"}, names: true}
	var lengths []string
	for _, prefix := range []string{"sees ", "calls "} {
		for i, s := range m.Sees {
			if i > 0 {
				prefix = ""
			}
			t.heads = append(t.heads, prefix+strconv.Itoa(s.Blocks))
		}
	}
	for _, s := range m.Sees {
		lengths = append(lengths, strconv.Itoa(s.Blocks))
	}
	zones := zonesOf(m)
	for _, r := range m.Routes {
		row := numbersRow{name: r.Route}
		for _, reason := range r.Reasons {
			row.notes = append(row.notes, t.note(reason))
		}
		pt, ok := p50(m)[r.Route]
		if !ok {
			row.cells = slices.Repeat([]string{missing}, len(t.heads)-1)
			t.rows = append(t.rows, row)
			continue
		}
		if len(zones) > 1 {
			row.notes = append(row.notes, t.note("zone "+zoneOf(gates.Comparison{Zone: pt.Zone})+" here"))
		}
		row.cells = []string{inPercent(pt.Floor)}
		for _, s := range pt.Sees {
			row.cells = append(row.cells, inPercent(s.Noise))
		}
		for _, s := range pt.Sees {
			row.cells = append(row.cells, inPercent(s.Zone))
		}
		t.rows = append(t.rows, row)
	}
	t.title = fmt.Sprintf("What %s sessions can see at P50, in %%", m.Mode)
	if len(lengths) > 0 {
		zone := "zones differ"
		if len(zones) == 1 {
			zone = "zone " + zones[0]
		}
		t.title += fmt.Sprintf(" (%s blocks; %s)", strings.Join(lengths, ", "), zone)
	}
	return t
}

// note is the number of a footnote.
func (t *numbersTable) note(text string) int {
	if n := slices.Index(t.notes, text); n >= 0 {
		return n + 1
	}
	t.notes = append(t.notes, text)
	return len(t.notes)
}

// zonesOf are those of P50, each once; the floor in microseconds may have
// widened some.
func zonesOf(m *gates.ModeVariance) (zones []string) {
	for _, r := range m.Routes {
		if pt, ok := p50(m)[r.Route]; ok {
			if z := zoneOf(gates.Comparison{Zone: pt.Zone}); !slices.Contains(zones, z) {
				zones = append(zones, z)
			}
		}
	}
	return zones
}

// sourceTable: how much noise there is, and where it comes from.
func sourceTable(m *gates.ModeVariance) numbersTable {
	var values []float64
	for _, r := range m.Routes {
		for _, pt := range r.Points {
			values = append(values, pt.Value)
		}
	}
	u := unitOfTime(values)
	t := numbersTable{
		title: fmt.Sprintf("Where the noise of P50 comes from (P50 in %s, the rest in %%)", u.name),
		heads: []string{"route", "P50", "spread", "P90 floor", "between", "within", "pays"}, names: true,
	}
	for _, r := range m.Routes {
		row := numbersRow{name: r.Route, cells: slices.Repeat([]string{missing}, 6)}
		for _, pt := range r.Points {
			switch pt.P {
			case 50:
				row.cells[0], row.cells[1] = u.show(pt.Value), inPercent(pt.SD)
				copy(row.cells[3:], sourceCells(pt.Source))
			case 90:
				row.cells[2] = inPercent(pt.Floor)
			}
		}
		t.rows = append(t.rows, row)
	}
	if len(m.Routes) > 1 {
		t.rows = append(t.rows, numbersRow{name: "all routes", sum: true, cells: append(slices.Repeat([]string{missing}, 3), sourceCells(m.Source)...)})
	}
	return t
}

func sourceCells(s *gates.NoiseSource) []string {
	if s == nil {
		return slices.Repeat([]string{missing}, 3)
	}
	return []string{wholePercent(s.Between), wholePercent(s.Within), s.Pays}
}

// alarmsTable: what the rules would have said under other labels.
func alarmsTable(m *gates.ModeVariance) numbersTable {
	how := "all"
	if !m.FalseAlarms.Exact {
		how = "drawn"
	}
	t := numbersTable{
		title: fmt.Sprintf("False regressions under other labels, in %% of %d (%s)", m.FalseAlarms.Labellings, how),
		heads: []string{"metric", "claims", "allowed", "with zone", "zone 0"},
	}
	for _, a := range m.FalseAlarms.Metrics {
		t.rows = append(t.rows, numbersRow{name: title(a.Metric), cells: []string{strconv.Itoa(a.Claims), inPercent(a.Level), inPercent(a.Zone), inPercent(a.Noise)}})
	}
	any := m.FalseAlarms.Any
	t.rows = append(t.rows, numbersRow{name: "any of them", cells: []string{missing, missing, inPercent(any.Zone), inPercent(any.Noise)}})
	return t
}

// modesTable compares the ways to measure.
func modesTable(v *gates.Variance) numbersTable {
	t := numbersTable{
		title: "Modes: median floors and largest effect on P50 in %; routes and single blocks that look 5 % or more apart; false regressions",
		heads: []string{"mode", "blocks", "P50", "P90", "largest", "routes", "single", "false"},
	}
	for _, m := range v.Modes {
		row := numbersRow{name: string(m.Mode), cells: []string{strconv.Itoa(m.Blocks), missing, missing, missing, missing, missing, missing}}
		for _, f := range m.Floors {
			switch f.P {
			case 50:
				row.cells[1] = inPercent(f.Floor)
			case 90:
				row.cells[2] = inPercent(f.Floor)
			}
		}
		if m.Largest != nil {
			row.cells[3] = inPercent(*m.Largest)
			row.cells[4] = fmt.Sprintf("%d of %d", m.Beyond, m.Rows)
			row.cells[5] = fmt.Sprintf("%d of %d", m.LoneBlocks, m.AllBlocks)
			row.cells[6] = strconv.Itoa(m.Regressions)
		}
		t.rows = append(t.rows, row)
	}
	return t
}

// varianceLegend explains the words that the tables cannot do without.
func varianceLegend(v *gates.Variance) []string {
	out := []string{
		fmt.Sprintf("floor: half of P50's interval with the blocks measured; no zone narrower than this can be called equivalent. sees: the smallest change found beyond noise, calls: the smallest called a regression beyond the zone, each with %.0f %% power.", v.Power*100),
		"spread: standard deviation of the blocks' effects. Between runs: more blocks pay; within: longer blocks do. Shares of few blocks are rough.",
		"Both sides are one build: every effect, and every regression, is false.",
	}
	m := shown(v)
	if m == nil || len(m.Sees) == 0 {
		return out
	}
	var floors []string
	for _, s := range m.Sees {
		floors = append(floors, fmt.Sprintf("±%s %% with %d", inPercent(s.Floor), s.Blocks))
	}
	out = append(out, fmt.Sprintf("The floor of P50 would be %s blocks (%s, median over routes).", strings.Join(floors, ", "), m.Mode))
	if m.SpreadBound != nil {
		out = append(out, fmt.Sprintf("With %s the spread, and all that is seen, may be up to %.1f times as large (95 %%).", count(m.Blocks, "block"), *m.SpreadBound))
	}
	return out
}

// numbers lays a table out; the first column is as wide as the terminal lets it be.
func (p *textPage) numbers(t numbersTable) {
	p.line("")
	p.prose("", t.title)
	lines := [][]string{append(slices.Clone(t.heads), "")}
	for _, r := range t.rows {
		lines = append(lines, slices.Concat([]string{clean(r.name)}, r.cells, []string{strings.TrimSpace(marks(r.notes))}))
	}
	if len(t.notes) == 0 {
		for i, l := range lines {
			lines[i] = l[:len(l)-1]
		}
	}
	wide := p.widths(lines)
	for _, l := range lines {
		var b strings.Builder
		for i, cell := range l {
			b.WriteString("  " + pad(shorten(cell, wide[i]), wide[i], i > 0 && i < len(t.heads)))
		}
		p.line("%s", b.String())
	}
	for i, note := range t.notes {
		p.prose(fmt.Sprintf("  [%d] ", i+1), clean(note))
	}
}

func (p *markdownPage) numbers(t numbersTable) {
	p.line("%s", t.title)
	p.line("")
	p.line("| %s |", strings.Join(t.heads, " | "))
	p.line("| :--- |%s", strings.Repeat(" ---: |", len(t.heads)-1))
	for _, r := range t.rows {
		name := prose(r.name)
		if t.names && !r.sum {
			name = code(r.name)
		}
		if len(r.notes) > 0 {
			name += " <sup>" + numbers(r.notes) + "</sup>"
		}
		p.line("| %s |", strings.Join(append([]string{name}, r.cells...), " | "))
	}
	p.line("")
	for i, note := range t.notes {
		p.line("<sup>%d</sup> %s", i+1, prose(note))
		p.line("")
	}
}

// inPercent shows a fraction as a number of percent, without sign and unit.
func inPercent(x float64) string {
	if !finite(x) {
		return missing
	}
	x *= 100
	decimals := 2
	switch {
	case x >= 99.95:
		decimals = 0
	case x >= 9.995:
		decimals = 1
	}
	return strconv.FormatFloat(x, 'f', decimals, 64)
}

func wholePercent(x float64) string { return strconv.FormatFloat(100*x, 'f', 0, 64) }
