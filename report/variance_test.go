package report_test

import (
	"bytes"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"plumbline/gates"
	"plumbline/record"
	"plumbline/report"
)

// varying is what sessions of one build against itself say, made by hand.
func varying(routes ...string) ([]*record.Session, *gates.Variance) {
	v := &gates.Variance{Format: gates.Format, Power: 0.8}
	var sessions []*record.Session
	for k, mode := range []record.Mode{record.Sliced, record.Interleaved, record.Sequential} {
		s := &newStory(gates.Pass).s
		s.Arms[1].Commit, s.Arms[1].Label, s.Arms[1].Dirty = s.Arms[0].Commit, "main", false
		s.Schedule.Mode = mode
		wide := []float64{1, 2.5, 12}[k]
		bound, largest := 2.08926, 0.004*wide
		m := gates.ModeVariance{
			Mode: mode, Complete: true, Blocks: 6, Planned: 6, SpreadBound: &bound, Largest: &largest,
			Floors: []gates.MedianFloor{{P: 50, Floor: 0.006 * wide}, {P: 90, Floor: 0.011 * wide}},
			Sees:   seen(wide), Rows: len(routes), AllBlocks: 6 * len(routes), LoneBlocks: k * k, Beyond: k / 2,
			Source: &gates.NoiseSource{Between: 0.62, Within: 0.38, Pays: "more blocks"},
			FalseAlarms: &gates.FalseAlarms{Labellings: 64, Exact: true, Any: gates.Alarm{Noise: 0.046875}, Metrics: []gates.MetricAlarm{
				{Metric: record.LatencyP50, Claims: len(routes), Level: 0.025, Alarm: gates.Alarm{Noise: 0.015625}},
				{Metric: record.LatencyDistribution, Claims: 19 * len(routes), Level: 0.025, Alarm: gates.Alarm{Noise: 0.03125}},
			}},
		}
		for i, name := range routes {
			scale := wide * (1 + 0.3*float64(i))
			m.Routes = append(m.Routes, gates.RouteVariance{Route: name, Points: []gates.PointVariance{
				{P: 50, Value: 180e-6 * float64(i+1), Blocks: 6, Effect: -0.002, SD: 0.0054 * scale, Floor: 0.006 * scale, Zone: 0.05, Sees: seen(scale),
					Source: &gates.NoiseSource{Between: 0.7 - 0.1*float64(i), Within: 0.3 + 0.1*float64(i), Pays: []string{"more blocks", "longer blocks"}[i%2]}},
				{P: 90, Value: 310e-6 * float64(i+1), Blocks: 6, SD: 0.01 * scale, Floor: 0.011 * scale, Zone: 0.1, Sees: seen(2 * scale)},
			}})
			m.Noisiest = name
		}
		sessions, v.Modes = append(sessions, s), append(v.Modes, m)
	}
	return sessions, v
}

func seen(scale float64) []gates.Sees {
	return []gates.Sees{
		{Blocks: 6, Floor: 0.006 * scale, Noise: 0.0094 * scale, Zone: 0.05 + 0.0099*scale},
		{Blocks: 12, Floor: 0.004 * scale, Noise: 0.0062 * scale, Zone: 0.05 + 0.0065*scale},
		{Blocks: 24, Floor: 0.0025 * scale, Noise: 0.0041 * scale, Zone: 0.05 + 0.0043*scale},
	}
}

func varianceText(t interface{ Fatal(...any) }, sessions []*record.Session, v *gates.Variance, width int) string {
	var b bytes.Buffer
	if err := report.Variance(&b, sessions, v, report.Options{Width: width}); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func varianceMarkdown(t interface{ Fatal(...any) }, sessions []*record.Session, v *gates.Variance) string {
	var b bytes.Buffer
	if err := report.VarianceMarkdown(&b, sessions, v); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestVarianceGolden(t *testing.T) {
	check := func(name string, sessions []*record.Session, v *gates.Variance) {
		file := filepath.Join("testdata", "variance-"+name)
		golden(t, file+".txt", varianceText(t, sessions, v, 0))
		golden(t, file+".80.txt", varianceText(t, sessions, v, 80))
		golden(t, file+".md", varianceMarkdown(t, sessions, v))
	}
	sessions, v := varying(demo...)
	check("demo", sessions, v)

	// One route with a zone of its own kind, one that tells nothing, and a drawn share.
	sessions, v = varying(hostile[:3]...)
	for i := range v.Modes {
		v.Modes[i].Routes[0].Points[0].Zone = 0.124
		v.Modes[i].Routes[1].Points = nil
		v.Modes[i].Routes[1].Reasons = []string{"too few requests: 1 of 24 blocks had 20 beyond P50 on each side, 3 must; make the session longer"}
		v.Modes[i].Routes[2].Points[0].Source = nil
		v.Modes[i].FalseAlarms.Exact, v.Modes[i].FalseAlarms.Labellings = false, 65536
		v.Modes[i].Reasons = []string{"Its two sides are not the same build, started in the same way: what they differ by is taken for noise."}
	}
	check("odd", sessions, v)

	// Interrupted in the second mode, which has nothing to tell.
	sessions, v = varying("GET /only")
	v.Modes[1] = gates.ModeVariance{Mode: record.Interleaved, Planned: 6, Blocks: 1, Reasons: []string{
		"The session is not complete (interrupted: interrupted): 1 of 6 planned blocks.", "The spread over blocks needs at least 3 blocks, has 1."}}
	check("interrupted", sessions[:2], &gates.Variance{Format: v.Format, Power: v.Power, Modes: v.Modes[:2]})

	// Nothing at all.
	check("nothing", sessions[1:2], &gates.Variance{Format: v.Format, Power: v.Power, Modes: v.Modes[1:2]})
}

// Lines fit the terminal, but for facts of the host and the schedule.
func TestVarianceFits(t *testing.T) {
	sessions, v := varying(append([]string{"GET /films/with/a/rather/long/path?and=a&query=string"}, demo...)...)
	v.Modes[0].Routes[0].Reasons = []string{"a reason that is longer than a line of eighty columns has room for, so that it must be broken"}
	for _, width := range []int{80, 120} {
		for line := range strings.Lines(varianceText(t, sessions, v, width)) {
			if n := len([]rune(strings.TrimSuffix(line, "\n"))); n > width {
				t.Errorf("a line of %d columns for %d:\n%s", n, width, line)
			}
		}
	}
}

// Names from strangers change neither lines nor columns.
func TestVarianceShapeHolds(t *testing.T) {
	hostileText := rapid.OneOf(rapid.String(), rapid.StringOfN(rapid.SampledFrom([]rune("a|`\\\n\r\x1b[<&*_@#-1. ~")), 0, 30, -1), rapid.SampledFrom(hostile))
	tell := func(route, label string) ([]*record.Session, *gates.Variance) {
		sessions, v := varying("GET /first", route)
		for i, s := range sessions {
			s.Arms[0].Label = label
			v.Modes[i].Reasons = []string{label}
			v.Modes[i].Routes[0].Reasons = []string{route}
		}
		return sessions, v
	}
	sessions, v := tell("GET /second", "HEAD")
	calmText, calmMarkdown := varianceText(t, sessions, v, 0), varianceMarkdown(t, sessions, v)
	rapid.Check(t, func(t *rapid.T) {
		sessions, v := tell("GET /"+hostileText.Draw(t, "route"), "x"+hostileText.Draw(t, "label"))
		txt, md := varianceText(t, sessions, v, 0), varianceMarkdown(t, sessions, v)
		sameShape(t, txt, md, calmText, calmMarkdown)
	})
}

func TestVarianceWriteError(t *testing.T) {
	sessions, v := varying(demo...)
	if err := report.Variance(brokenPipe{}, sessions, v, report.Options{}); !errors.Is(err, errBroken) {
		t.Errorf("Variance: %v, want the writer's error", err)
	}
	if err := report.VarianceMarkdown(brokenPipe{}, sessions, v); !errors.Is(err, errBroken) {
		t.Errorf("VarianceMarkdown: %v, want the writer's error", err)
	}
}
