package record_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"plumbline/record"
)

// controlled is a session with one complete run that has these controls.
func controlled(t testing.TB, controls ...record.ControlSlice) (dir, file string) {
	t.Helper()
	f := newSession(t)
	m := meta()
	m.Schedule.Controls = &record.Controls{ResponderS: 0.01, Pairs: 1, Delay: 0.075}
	m.Order = m.Order[:1]
	if err := f.SaveMeta(m); err != nil {
		t.Fatal(err)
	}
	w, err := f.StartRun(baselineRun)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range controls {
		if err := w.Control(c); err != nil {
			t.Fatal(err)
		}
	}
	r := baselineRun
	r.State = record.Complete
	if err := w.Finish(r); err != nil {
		t.Fatal(err)
	}
	return f.Dir(), filepath.Join(f.Dir(), "runs", r.ID, "controls.csv")
}

var someControls = []record.ControlSlice{
	{Kind: record.Responder, N: 1, Latency: [][]int64{{30_000, 31_000}}},
	{Kind: record.Undelayed, N: 1, Latency: [][]int64{{100, 101}, {200}}},
	{Kind: record.Delayed, N: 1, Latency: [][]int64{{107}, {215, 216}}},
	{Kind: record.Responder, N: 2, Latency: [][]int64{{999_999_999_999_999_999}}},
	{Kind: record.Delayed, N: 3, Latency: [][]int64{nil, {217}}},
}

func TestControlsComeBack(t *testing.T) {
	dir, file := controlled(t, someControls...)
	s, err := record.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(someControls, s.Runs[0].Controls); diff != "" {
		t.Error(diff)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if want := "kind,slice,route,latency_ns\nresponder,1,0,30000\nresponder,1,0,31000\nundelayed,1,0,100\n"; !strings.HasPrefix(string(data), want) {
		t.Errorf("the file begins %q, want %q", data[:min(len(data), 100)], want)
	}
}

// Written as it happens: a killed session leaves the slices that are over.
func TestControlsOfAnUnfinishedRun(t *testing.T) {
	f := newSession(t)
	m := meta()
	m.Schedule.Controls = &record.Controls{Pairs: 1, Delay: 0.075}
	if err := f.SaveMeta(m); err != nil {
		t.Fatal(err)
	}
	w, err := f.StartRun(baselineRun)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range someControls[:3] {
		if err := w.Control(c); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(f.Dir(), "runs", baselineRun.ID, "controls.csv")
	for _, half := range []string{"", "responder,2", "responder,2,0,12", "delayed,nonsense\nresponder,2,0,12\n"} {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(string(data)+half), 0o644); err != nil {
			t.Fatal(err)
		}
		s, err := record.Open(f.Dir())
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(someControls[:3], s.Runs[0].Controls); diff != "" {
			t.Errorf("with %q at its end: %s", half, diff)
		}
		if err := os.WriteFile(file, data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func TestDamagedControls(t *testing.T) {
	dir, file := controlled(t, someControls...)
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(string(whole), "\n")
	replace := func(n int, line string) string {
		all := append([]string{}, lines...)
		all[n-1] = line
		return strings.Join(all, "")
	}
	for _, tc := range []struct{ name, data, want string }{
		{"empty", "", "controls.csv:1: the header is not kind,slice,route,latency_ns"},
		{"header", replace(1, "kind,slice\n"), "controls.csv:1: the header is not kind,slice,route,latency_ns"},
		{"kind", replace(3, "respond,1,0,5\n"), `controls.csv:3: kind: "respond" is none of responder, delayed and undelayed`},
		{"slice", replace(2, "responder,x,0,5\n"), `controls.csv:2: slice: "x" is no whole number`},
		{"negative", replace(2, "responder,1,0,-5\n"), `controls.csv:2: latency_ns: "-5" is no whole number`},
		{"huge", replace(2, "responder,1,0,1234567890123456789\n"), `controls.csv:2: latency_ns: "1234567890123456789" is no whole number`},
		{"empty field", replace(2, "responder,1,,7\n"), `controls.csv:2: route: "" is no whole number`},
		{"few fields", replace(4, "undelayed,1,0\n"), "controls.csv:4: has 3 fields instead of 4"},
		{"many fields", replace(4, "undelayed,1,0,7,7\n"), "controls.csv:4: has 5 fields instead of 4"},
		{"empty line", replace(4, "\n"), "controls.csv:4: has 1 fields instead of 4"},
		{"route of a responder", replace(2, "responder,1,1,5\n"), "controls.csv:2: route: 1 is none of the 1 of responder slices (from 0)"},
		{"route of a pair", replace(4, "undelayed,1,2,5\n"), "controls.csv:4: route: 2 is none of the 2 of undelayed slices (from 0)"},
		{"number 0", replace(2, "responder,0,0,5\n"), "controls.csv:2: slice: responder 0 comes after responder 0"},
		{"twice", string(whole) + "responder,2,0,5\n", "slice: responder 2 comes after responder 2"},
		{"half a line", string(whole[:len(whole)-2]), "the last line has no end"},
		{"a line less", strings.Join(lines[:len(lines)-2], ""), "controls.csv: holds 9 requests, but run.json says that 10 were counted"},
		{"a line more", string(whole) + "responder,3,0,5\n", "controls.csv: holds 11 requests"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if err := os.WriteFile(file, []byte(tc.data), 0o644); err != nil {
				t.Fatal(err)
			}
			if _, err := record.Open(dir); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v\nwant %s", err, tc.want)
			}
		})
	}
}

// TestMissingControls: fewer controls are no better ones.
func TestMissingControls(t *testing.T) {
	dir, file := controlled(t, someControls...)
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if _, err := record.Open(dir); err == nil || !strings.Contains(err.Error(), "controls.csv is missing, but run.json says that ") {
		t.Errorf("without the file: %v", err)
	}
	dir, _ = controlled(t, someControls...)
	path := filepath.Join(dir, "session.json")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, bytes.Replace(data, []byte(`"controls":`), []byte(`"none":`), 1), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := record.Open(dir); err == nil || !strings.Contains(err.Error(), "requests of controls were counted, but session.json has no controls") {
		t.Errorf("without the schedule's controls: %v", err)
	}
}

// Whatever stands in the file: no panic, and what is read can be a record.
func FuzzControls(f *testing.F) {
	dir, file := controlled(f, someControls...)
	whole, err := os.ReadFile(file)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole)
	f.Add(whole[:len(whole)-3])
	f.Add([]byte("kind,slice,route,latency_ns\nresponder,1,0,7\ndelayed,9,1,8\nundelayed,9,0,6\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if err := os.WriteFile(file, data, 0o644); err != nil {
			t.Fatal(err)
		}
		s, err := record.Open(dir)
		if err != nil {
			if !strings.Contains(err.Error(), file) {
				t.Errorf("the error does not name the file: %v", err)
			}
			return
		}
		n := 0
		for _, c := range s.Runs[0].Controls {
			for _, latency := range c.Latency {
				n += len(latency)
			}
		}
		if n != 10 {
			t.Errorf("%d requests were read without an error, 10 were written", n)
		}
	})
}

func BenchmarkReadControls(b *testing.B) {
	latency := make([]int64, 500)
	for i := range latency {
		latency[i] = int64(50_000 + i)
	}
	var all []record.ControlSlice
	for n := 1; n <= 200; n++ {
		all = append(all, record.ControlSlice{Kind: record.Responder, N: n, Latency: [][]int64{latency}})
	}
	dir, _ := controlled(b, all...)
	for b.Loop() {
		if _, err := record.Open(dir); err != nil {
			b.Fatal(err)
		}
	}
}
