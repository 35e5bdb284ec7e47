package report

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"plumbline/gates"
	"plumbline/record"
)

// MergedMarkdown writes monitor files side by side: the table by seconds, then
// what each file comes to, then what was set aside and why. It fails only if w does.
func MergedMarkdown(w io.Writer, m *gates.Merged) error {
	p := &markdownPage{}
	p.mergedSeconds(m)
	p.mergedFiles(m)
	p.mergedMetrics(m)
	for _, f := range m.Files {
		for _, a := range f.Aside {
			p.line("- %s: set aside: %s: %s", code(f.Name), quantityNames(a.Quantities), prose(a.String()))
		}
		for _, n := range f.Notes {
			p.line("- %s: %s", code(f.Name), prose(n))
		}
	}
	_, err := io.WriteString(w, strings.TrimRight(p.b.String(), "\n")+"\n")
	return err
}

func (p *markdownPage) mergedSeconds(m *gates.Merged) {
	head, rule := "| s |", "| ---: |"
	for _, q := range m.Metrics {
		for _, f := range m.Files {
			head += fmt.Sprintf(" %s %s |", q, code(f.Name))
			rule += " ---: |"
		}
	}
	p.line("%s", head)
	p.line("%s", rule)
	for _, s := range m.Seconds {
		row := fmt.Sprintf("| %d |", s.Second)
		for i, q := range m.Metrics {
			for _, x := range s.Values[i] {
				row += " " + quantity(q, x) + " |"
			}
		}
		p.line("%s", strings.ReplaceAll(row, "  |", " |"))
	}
	p.line("")
}

func (p *markdownPage) mergedFiles(m *gates.Merged) {
	requests := false
	for _, f := range m.Files {
		requests = requests || f.Requests > 0
	}
	more := [2]string{}
	if requests {
		more = [2]string{" requests | CPU s per 1,000 requests |", " ---: | ---: |"}
	}
	p.line("| file | samples | length, s | CPU s |%s", more[0])
	p.line("| :--- | ---: | ---: | ---: |%s", more[1])
	for _, f := range m.Files {
		row := fmt.Sprintf("| %s | %d | %s | %s |", code(f.Name), f.Samples, fixed(&f.LengthS, 1), fixed(f.CPUSeconds, 2))
		if requests {
			n := missing
			if f.Requests > 0 {
				n = strconv.FormatInt(f.Requests, 10)
			}
			row += fmt.Sprintf(" %s | %s |", n, fixed(f.CPUPer1000, 4))
		}
		p.line("%s", row)
	}
	p.line("")
}

func (p *markdownPage) mergedMetrics(m *gates.Merged) {
	p.line("| metric | file | start | plateau | end | mean | max | growth |")
	p.line("| :--- | :--- | ---: | ---: | ---: | ---: | ---: | ---: |")
	for i, q := range m.Metrics {
		for _, f := range m.Files {
			v := f.Metrics[i]
			if v.SetAside {
				p.line("| %s | %s | set aside | | | | | |", q, code(f.Name))
				continue
			}
			row := fmt.Sprintf("| %s | %s |", q, code(f.Name))
			for _, x := range []*float64{v.Start, v.Plateau, v.End, v.Mean, v.Max, v.Growth} {
				row += " " + orMissing(quantity(q, x)) + " |"
			}
			p.line("%s", row)
		}
	}
	p.line("")
}

// quantity shows a value of a monitor file; blank if there is none.
func quantity(q record.Quantity, x *float64) string {
	decimals := 0
	switch q {
	case record.CPUPercent, record.RSSMiB, record.PSSMiB:
		decimals = 1
	case record.ThrottledS:
		decimals = 3
	}
	if x == nil {
		return ""
	}
	return fixed(x, decimals)
}

func fixed(x *float64, decimals int) string {
	if x == nil || !finite(*x) {
		return missing
	}
	return strconv.FormatFloat(*x, 'f', decimals, 64)
}

func orMissing(s string) string {
	if s == "" {
		return missing
	}
	return s
}

func quantityNames(all []record.Quantity) string {
	var names []string
	for _, q := range all {
		names = append(names, q.String())
	}
	return strings.Join(names, ", ")
}
