package report_test

import (
	"bytes"
	"errors"
	"flag"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"plumbline/gates"
	"plumbline/record"
	"plumbline/report"
)

var update = flag.Bool("update", false, "write the golden files instead of comparing with them")

func TestGolden(t *testing.T) {
	for name, st := range stories() {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join("testdata", strings.ReplaceAll(name, " ", "-"))
			golden(t, file+".txt", text(t, st, report.Options{}))
			golden(t, file+".md", markdown(t, st))
			if name == "forty routes" || name == "hostile names" {
				golden(t, file+".100.txt", text(t, st, report.Options{Width: 100}))
			}
		})
	}
}

func golden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); diff != "" {
		t.Errorf("%s (go test ./report -update writes it anew):\n%s", file, diff)
	}
}

func text(t interface{ Fatal(...any) }, st *story, o report.Options) string {
	var b bytes.Buffer
	if err := report.Text(&b, &st.s, &st.v, o); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func markdown(t interface{ Fatal(...any) }, st *story) string {
	var b bytes.Buffer
	if err := report.Markdown(&b, &st.s, &st.v); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// Colours come on top of the words: without them the report is the same.
func TestColor(t *testing.T) {
	for name, st := range stories() {
		colored := text(t, st, report.Options{Color: true})
		plain := strings.NewReplacer("\x1b[31m", "", "\x1b[32m", "", "\x1b[33m", "", "\x1b[0m", "").Replace(colored)
		if colored == plain {
			t.Errorf("%s: no colour", name)
		}
		if diff := cmp.Diff(text(t, st, report.Options{}), plain); diff != "" {
			t.Errorf("%s: colour changes more than colour:\n%s", name, diff)
		}
	}
	if got := text(t, stories()["regression"], report.Options{Color: true}); !strings.Contains(got, "\x1b[31mregression\x1b[0m") || !strings.Contains(got, "\x1b[32mequivalent\x1b[0m") {
		t.Errorf("a regression is red and an equivalent row green:\n%q", got)
	}
}

func TestPercent(t *testing.T) {
	for effect, want := range map[float64]string{
		0.052: "+5.2 %", -0.013: "−1.3 %", 0: "±0.0 %", 0.0004: "±0.0 %", -0.0004: "±0.0 %",
		2.5: "+250.0 %", 100: "+10000.0 %", 3.5e9: "> +10000 %", math.Inf(1): "–", math.NaN(): "–",
	} {
		if got := report.Percent(effect); got != want {
			t.Errorf("Percent(%v) = %q, want %q", effect, got, want)
		}
	}
}

func TestWorstLine(t *testing.T) {
	st := newStory(gates.Pass)
	check := func(c *gates.Comparison, want string) {
		t.Helper()
		if got := report.WorstLine(&st.s, *c); got != want {
			t.Errorf("WorstLine = %q, want %q", got, want)
		}
	}
	c := st.row(record.LatencyP50, "GET /search", 1e-3, 0.005, -0.008, 0.019, gates.RowEquivalent)
	check(c, "GET /search P50 −0.8 % … +1.9 % (zone ±5 %)")
	check(st.row(record.LatencyDistribution, "GET /a\nb", 1e-3, 0.05, -0.02, 0.1049, gates.RowInconclusive), `GET /a\nb P90 −2.0 % … +10.5 % (zone ±10 %)`)
	check(st.row(record.ErrorRate, "GET /", 0, 0, -0.0001, 0.0005, gates.RowEquivalent), "GET / errors −0.01 … +0.05 points (zone ±0.1 points)")
	check(st.missing(record.LatencyP99, "GET /", ""), "GET / P99 – (zone ±10 %)")
	st.alsoAgainst("v1.2")
	c.Arms[0] = "baseline-2"
	check(c, "GET /search P50 −0.8 % … +1.9 % (zone ±5 %) against v1.2")
}

func TestHeadline(t *testing.T) {
	for name, want := range map[string]string{
		"pass":              "PASS: HEAD+dirty is not slower than main: 5 routes, every change at P50 within ±1.3 %, zone ±5 %.",
		"regression":        "REGRESSION: HEAD+dirty is slower than main on 1 of 5 routes: GET /search?q=plumb +31.2 % at P50 (between +30.1 % and +32.4 %).",
		"several baselines": "REGRESSION: HEAD+dirty is slower than v1.2 on 1 of 5 routes: GET /missing +8.0 % at P50 (watched; between +7.1 % and +9.2 %).",
		"no comparisons":    "INVALID: no verdict on the candidate, which has no baseline. The plan has a single arm, so there is nothing to compare.",
	} {
		st := stories()[name]
		if got := report.Headline(&st.s, &st.v); got != want {
			t.Errorf("%s:\n got %s\nwant %s", name, got, want)
		}
	}
}

// The last line names the code; a verdict that --allow let pass says so.
func TestExitLine(t *testing.T) {
	st := stories()["inconclusive"]
	for code, want := range map[int]string{4: "exit code 4: inconclusive\n", 0: "exit code 0: inconclusive (allowed)\n"} {
		st.v.ExitCode = code
		for _, got := range []string{text(t, st, report.Options{}), markdown(t, st)} {
			if !strings.HasSuffix(got, want) {
				t.Errorf("the report ends with %q, want %q", got[len(got)-60:], want)
			}
		}
	}
}

// NaN and infinities cannot stand in verdict.json, but if they ever reach a
// report, it shows that they are no numbers.
func TestNoNumber(t *testing.T) {
	st := newStory(gates.Inconclusive)
	st.row(record.LatencyP50, "GET /", math.NaN(), math.NaN(), math.Inf(-1), math.NaN(), gates.RowNotComparable)
	st.missing(record.ErrorRate, "GET /", "nothing was measured")
	for _, got := range []string{text(t, st, report.Options{}), markdown(t, st)} {
		if strings.Contains(got, "NaN") || strings.Contains(got, "Inf") {
			t.Errorf("not a number is shown as one:\n%s", got)
		}
	}
}

type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, errBroken }

var errBroken = errors.New("broken pipe")

func TestWriteError(t *testing.T) {
	st := newStory(gates.Pass).quiet(demo...)
	if err := report.Text(brokenPipe{}, &st.s, &st.v, report.Options{}); !errors.Is(err, errBroken) {
		t.Errorf("Text: %v, want the writer's error", err)
	}
	if err := report.Markdown(brokenPipe{}, &st.s, &st.v); !errors.Is(err, errBroken) {
		t.Errorf("Markdown: %v, want the writer's error", err)
	}
}

// Whatever a route, a label or a reason is called, the report keeps its shape:
// the same lines and the same columns as with harmless names.
func TestShapeHolds(t *testing.T) {
	hostileText := rapid.OneOf(rapid.String(), rapid.StringOfN(rapid.SampledFrom([]rune("a|`\\\n\r\x1b[<&*_@#-1. ~")), 0, 30, -1), rapid.SampledFrom(hostile))
	tell := func(route, label, reason string) *story {
		st := newStory(gates.Regression).quiet("GET /first", route)
		st.change(record.LatencyP50, route, 1e-3, 0.2, 0.1, 0.3, gates.RowRegression).Reasons = []string{reason}
		st.s.Arms[1].Label = label
		st.s.Warnings = []string{reason}
		return st
	}
	calm := tell("GET /second", "HEAD", "because")
	calmText, calmMarkdown := text(t, calm, report.Options{}), markdown(t, calm)
	rapid.Check(t, func(t *rapid.T) {
		st := tell("GET /"+hostileText.Draw(t, "route"), hostileText.Draw(t, "label"), hostileText.Draw(t, "reason"))
		width := rapid.SampledFrom([]int{0, 40, 80, 120}).Draw(t, "width")
		txt, md := text(t, st, report.Options{Width: width}), markdown(t, st)
		if got, want := strings.Count(txt, "\n"), strings.Count(calmText, "\n"); width == 0 && got != want {
			t.Fatalf("text has %d lines, want %d:\n%s", got, want, txt)
		}
		if diff := cmp.Diff(tableLines(calmText), tableLines(txt)); diff != "" {
			t.Fatalf("the tables have other lines:\n%s\n%s", diff, txt)
		}
		if diff := cmp.Diff(pipes(calmMarkdown), pipes(md)); diff != "" {
			t.Fatalf("the unescaped pipes of Markdown's lines differ:\n%s\n%s", diff, md)
		}
		for _, r := range txt + md {
			if r != '\n' && !unicode.IsPrint(r) {
				t.Fatalf("%U is printed:\n%q", r, txt+md)
			}
		}
	})
}

// tableLines counts the lines of each table of a text: its head and a line a row.
func tableLines(txt string) []int {
	var out []int
	in := false
	for _, l := range strings.Split(txt, "\n") {
		switch {
		case strings.Contains(l, ", zone ±") && !strings.HasPrefix(l, " "):
			out = append(out, 0)
			in = true
		case l == "" || strings.HasPrefix(l, "  ["):
			in = false
		case in:
			out[len(out)-1]++
		}
	}
	return out
}

// pipes counts, line by line, the pipes that GitHub takes for a cell's edge:
// those after an even number of backslashes; code spans do not protect them.
func pipes(md string) []int {
	var out []int
	for _, l := range strings.Split(md, "\n") {
		n, escaped := 0, false
		for _, r := range l {
			if r == '|' && !escaped {
				n++
			}
			escaped = r == '\\' && !escaped
		}
		out = append(out, n)
	}
	return out
}
