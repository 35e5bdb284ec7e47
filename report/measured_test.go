package report_test

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	"pgregory.net/rapid"

	"plumbline/gates"
	"plumbline/record"
	"plumbline/report"
)

// measuring is a session with a measurement made by hand.
func measuring(percentiles []float64, arms []string, routes ...string) (*record.Session, *gates.Measured) {
	st := newStory(gates.Pass)
	s := &st.s
	s.Arms = nil
	m := &gates.Measured{Format: gates.Format, Percentiles: percentiles}
	for i, name := range arms {
		s.Arms = append(s.Arms, record.Arm{Name: name, Role: record.Baseline, Commit: "1a2b3c4d5e6f708192a3b4c5d6e7f8091a2b3c4d"})
		memory := int64(12_345_678 + i*1_000_000)
		m.Arms = append(m.Arms, gates.MeasuredArm{Name: name, Runs: 6, IdleMemory: &memory})
	}
	for i, route := range routes {
		s.Routes = append(s.Routes, record.Route{Name: route})
		for k, name := range arms {
			errors, size := 0.00125*float64(i), 512+float64(i)/3
			row := gates.MeasuredRow{Route: route, Arm: name, Requests: 40000 + i, Errors: &errors, Counted: 39000, BodyBytes: &size}
			for _, p := range percentiles {
				row.Latency = append(row.Latency, 150e-6*float64(i+1)*(1+float64(k)/50)*(1+p*p/5000))
			}
			m.Rows = append(m.Rows, row)
		}
	}
	return s, m
}

// loosen makes it one of result files, two a side unless each stands for itself.
func loosen(s *record.Session, m *gates.Measured, filesPerArm int) {
	s.Loose = true
	for i := range m.Arms {
		m.Arms[i].IdleMemory = nil
		for k := range filesPerArm {
			r := &record.Run{ID: fmt.Sprint(s.Arms[i].Name, "/", k), Arm: s.Arms[i].Name, Block: k + 1}
			if filesPerArm == 1 {
				r.ID = r.Arm
			}
			s.Runs = append(s.Runs, r)
		}
	}
}

func measuredText(t interface{ Fatal(...any) }, s *record.Session, m *gates.Measured, width int) string {
	var b bytes.Buffer
	if err := report.Measured(&b, s, m, report.Options{Width: width}); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func measuredMarkdown(t interface{ Fatal(...any) }, s *record.Session, m *gates.Measured) string {
	var b bytes.Buffer
	if err := report.MeasuredMarkdown(&b, s, m); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestMeasuredGolden(t *testing.T) {
	usual := []float64{50, 90, 95, 99}
	check := func(name string, s *record.Session, m *gates.Measured) {
		file := filepath.Join("testdata", "measured-"+name)
		golden(t, file+".txt", measuredText(t, s, m, 0))
		golden(t, file+".80.txt", measuredText(t, s, m, 80))
		golden(t, file+".md", measuredMarkdown(t, s, m))
	}
	s, m := measuring(usual, []string{"main"}, demo...)
	check("one-arm", s, m)

	s, m = measuring([]float64{0, 50, 99.9, 100}, []string{"main", "candidate"}, hostile...)
	s.State, s.Reason = record.Interrupted, "interrupted"
	m.Arms[1].Runs = 5
	m.SetAside = []gates.SetAside{{Run: "004-candidate", Reason: "died: exit status 1"}}
	s.Load.Rate, s.Load.Workers, s.Load.TLS = 500, 64, true
	all, some := 1.0, 0.99888
	m.Arms[0].Delivered, m.Arms[1].Delivered = &all, &some
	check("two-arms", s, m)

	s, m = measuring(usual, []string{"old/with a rather long path of a file/results-1.bin", "new/1.bin", "new/2.json"}, demo...)
	loosen(s, m, 1)
	m.Rows[3].Latency, m.Rows[3].BodyBytes, m.Rows[3].Errors, m.Rows[3].Requests = nil, nil, nil, 0
	check("files", s, m)

	s, m = measuring(usual, []string{"baseline", "candidate"}, demo[:2]...)
	loosen(s, m, 2)
	check("sides", s, m)
}

// Names from strangers change neither lines nor columns.
func TestMeasuredShapeHolds(t *testing.T) {
	hostileText := rapid.OneOf(rapid.String(), rapid.StringOfN(rapid.SampledFrom([]rune("a|`\\\n\r\x1b[<&*_@#-1. ~")), 0, 30, -1), rapid.SampledFrom(hostile))
	tell := func(route, label string) (*record.Session, *gates.Measured) {
		s, m := measuring([]float64{50, 99}, []string{"a", "b"}, "GET /first", route)
		s.Arms[1].Label = label
		s.Reason, s.Warnings = label, []string{route}
		return s, m
	}
	s, m := tell("GET /second", "HEAD")
	calmText, calmMarkdown := measuredText(t, s, m, 0), measuredMarkdown(t, s, m)
	rapid.Check(t, func(t *rapid.T) {
		s, m := tell("GET /"+hostileText.Draw(t, "route"), "x"+hostileText.Draw(t, "label"))
		txt, md := measuredText(t, s, m, 0), measuredMarkdown(t, s, m)
		sameShape(t, txt, md, calmText, calmMarkdown)
	})
}

func TestMeasuredWriteError(t *testing.T) {
	s, m := measuring([]float64{50}, []string{"main"}, demo...)
	if err := report.Measured(brokenPipe{}, s, m, report.Options{}); !errors.Is(err, errBroken) {
		t.Errorf("Measured: %v, want the writer's error", err)
	}
	if err := report.MeasuredMarkdown(brokenPipe{}, s, m); !errors.Is(err, errBroken) {
		t.Errorf("MeasuredMarkdown: %v, want the writer's error", err)
	}
}

// The load line of a fixed rate says how much was delivered, and never 100 %
// of what was not all.
func TestRateLine(t *testing.T) {
	st := newStory(gates.Pass).quiet(demo...)
	st.s.Load.Rate, st.s.Load.Workers = 500, 64
	st.v.Delivered = map[string]float64{"baseline": 1, "candidate": 0.99999}
	const want = "rate 500/s, delivered 100.0 % / 99.9 %, at most 64 under way, h1"
	for _, got := range []string{text(t, st, report.Options{}), markdown(t, st)} {
		if !strings.Contains(got, want) {
			t.Errorf("it does not say %q:\n%s", want, got)
		}
	}
}

// sameShape: names from strangers have changed neither lines nor columns, and
// nothing is printed that cannot be seen.
func sameShape(t *rapid.T, txt, md, calmText, calmMarkdown string) {
	if strings.Count(txt, "\n") != strings.Count(calmText, "\n") {
		t.Fatalf("other lines:\n%s", txt)
	}
	if fmt.Sprint(pipes(md)) != fmt.Sprint(pipes(calmMarkdown)) {
		t.Fatalf("other columns:\n%s", md)
	}
	for _, r := range txt + md {
		if r != '\n' && !unicode.IsPrint(r) {
			t.Fatalf("%U is printed:\n%q", r, txt+md)
		}
	}
}
