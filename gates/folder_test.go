package gates_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	vegeta "github.com/tsenart/vegeta/v12/lib"

	"plumbline/gates"
	"plumbline/record"
)

// results are one run's requests to one route, one a ms, in two slices.
func results(rng *rand.Rand, start time.Time, n int) (parts [2][]*vegeta.Result) {
	for k := range n {
		r := &vegeta.Result{
			Seq: uint64(k), Timestamp: start.Add(time.Duration(k) * time.Millisecond), Code: 200, Method: "GET", URL: "http://router/a",
			Latency: time.Duration(200e3 * math.Exp(0.1*rng.NormFloat64())), BytesIn: 512,
		}
		parts[2*k/n] = append(parts[2*k/n], r)
	}
	return parts
}

// folder writes a session at 1,000/s whose verdict is a pass, just: three
// blocks, and hardly more requests than are needed.
func folder(t testing.TB, dir string) {
	t.Helper()
	f, err := record.Create(dir)
	if err != nil {
		t.Fatal(err)
	}
	m := record.Meta{
		Format: record.Format, Tool: "test", State: record.Complete, Seed: 1, Rules: record.DefaultRules(),
		Arms:     []record.Arm{{Name: "baseline", Role: record.Baseline}, {Name: "candidate", Role: record.Candidate}},
		Routes:   []record.Route{{Name: "GET /a"}},
		Schedule: record.Schedule{Mode: record.Interleaved, Blocks: 3},
		Load:     record.Load{Rate: 1000, Workers: 8},
	}
	rng := rand.New(rand.NewPCG(1, 1))
	for block := 1; block <= 3; block++ {
		for _, a := range m.Arms {
			r := record.Run{ID: fmt.Sprintf("%03d-%s", len(m.Order)+1, a.Name), Block: block, Arm: a.Name, State: record.Running}
			r.Started = time.Date(2026, 1, 1, 0, len(m.Order), 0, 0, time.UTC)
			r.Preflight = []record.Answer{{Route: "GET /a", Status: 200, BodyBytes: 512}}
			m.Order = append(m.Order, record.RunRef{ID: r.ID, Block: block, Arm: a.Name})
			w, err := f.StartRun(r)
			if err != nil {
				t.Fatal(err)
			}
			for i, part := range results(rng, r.Started, 1400) {
				if err := w.Results(i+1, part); err != nil {
					t.Fatal(err)
				}
				at := part[0].Timestamp
				if err := w.Slice(record.Slice{N: i + 1, Start: at, Counted: at, End: at.Add(time.Second), Sent: len(part), Due: len(part)}); err != nil {
					t.Fatal(err)
				}
			}
			r.State = record.Complete
			if err := w.Finish(r); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := f.SaveMeta(m); err != nil {
		t.Fatal(err)
	}
}

func filesBelow(t testing.TB, dir string) (names []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			names = append(names, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func judgeFolder(t testing.TB, dir string) (*gates.Verdict, []byte, error) {
	t.Helper()
	s, err := record.Open(dir)
	if err != nil {
		return nil, nil, err
	}
	v := gates.Judge(s)
	data, err := v.JSON()
	if err != nil {
		t.Fatal(err)
	}
	return v, data, nil
}

// FuzzFolder spoils one file of a session that passes. Nothing of it panics;
// what is gone never passes; what still passes has all that a pass needs.
func FuzzFolder(f *testing.F) {
	const cut, remove, insert, overwrite, swap = 0, 1, 2, 3, 4
	dir := filepath.Join(f.TempDir(), "s")
	folder(f, dir)
	names := filesBelow(f, dir)
	whole := map[string][]byte{}
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		whole[name] = data
	}
	v, good, err := judgeFolder(f, dir)
	if err != nil || v.Verdict != gates.Pass {
		f.Fatalf("the session to be spoilt is no pass: %v, %s", err, good)
	}
	for i := range names {
		f.Add(byte(i), byte(cut), uint32(100), []byte{})
		f.Add(byte(i), byte(remove), uint32(0), []byte{})
		f.Add(byte(i), byte(insert), uint32(60), []byte("1"))
		f.Add(byte(i), byte(overwrite), uint32(200), []byte("0"))
		f.Add(byte(i), byte(swap), uint32(i+3), []byte{})
	}
	state := bytes.Index(whole[filepath.Join(dir, "session.json")], []byte(`"complete"`))
	f.Add(byte(slices.Index(names, filepath.Join(dir, "session.json"))), byte(overwrite), uint32(state), []byte(`"stopped" `))
	f.Fuzz(func(t *testing.T, file, op byte, at uint32, text []byte) {
		name := names[int(file)%len(names)]
		old := whole[name]
		i := int(at) % (len(old) + 1)
		data := slices.Clone(old)
		switch op % 5 {
		case cut:
			data = data[:i]
		case remove:
			data = nil
		case insert:
			data = slices.Insert(data, i, text...)
		case overwrite:
			copy(data[i:], text)
		case swap:
			data = whole[names[int(at)%len(names)]]
		}
		err := os.WriteFile(name, data, 0o644)
		if op%5 == remove {
			err = os.Remove(name)
		}
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := os.WriteFile(name, old, 0o644); err != nil {
				t.Fatal(err)
			}
		}()
		v, got, err := judgeFolder(t, dir)
		if err != nil || v.Verdict != gates.Pass {
			return
		}
		if (op%5 == cut || op%5 == remove) && !bytes.Equal(got, good) { // the last line's end may go
			t.Fatalf("%s is not whole, and passes:\n%s", name, got)
		}
		if !v.Complete || v.Blocks < 3 || v.ExitCode != 0 {
			t.Fatalf("passed: %s", got)
		}
		for _, c := range v.Comparisons {
			if c.Judged && (c.Values == nil || c.Effect == nil || c.Blocks < 3 || min(c.Requests[0], c.Requests[1]) < 3000) {
				t.Fatalf("passed without data: %+v", c)
			}
		}
	})
}

// FuzzFiles cuts and spoils one of six loose files that pass together: a
// verdict never gets better from less, and never passes by panic or chance.
func FuzzFiles(f *testing.F) {
	dir := f.TempDir()
	rng := rand.New(rand.NewPCG(1, 1))
	var names [6]string
	var whole [6][]byte
	encoders := []func(*bytes.Buffer) vegeta.Encoder{
		func(b *bytes.Buffer) vegeta.Encoder { return vegeta.NewEncoder(b) },
		func(b *bytes.Buffer) vegeta.Encoder { return vegeta.NewCSVEncoder(b) },
		func(b *bytes.Buffer) vegeta.Encoder { return vegeta.NewJSONEncoder(b) },
	}
	for i := range names {
		var b bytes.Buffer
		enc := encoders[i%3](&b)
		for _, part := range results(rng, time.Date(2026, 1, 1, 0, i, 0, 0, time.UTC), 1500) {
			for _, r := range part {
				if err := enc(r); err != nil {
					f.Fatal(err)
				}
			}
		}
		names[i], whole[i] = filepath.Join(dir, fmt.Sprint(i)), b.Bytes()
		if err := os.WriteFile(names[i], whole[i], 0o644); err != nil {
			f.Fatal(err)
		}
	}
	judge := func() (*gates.Verdict, error) {
		s, err := record.ReadLoose(
			record.LooseArm{Arm: record.Arm{Name: "baseline", Role: record.Baseline}, Files: []string{names[0], names[2], names[4]}},
			record.LooseArm{Arm: record.Arm{Name: "candidate", Role: record.Candidate}, Files: []string{names[1], names[3], names[5]}})
		if err != nil {
			return nil, err
		}
		return gates.Judge(s), nil
	}
	if v, err := judge(); err != nil || v.Verdict != gates.Pass {
		f.Fatalf("%v, %+v", err, v)
	}
	for i := range names {
		f.Add(byte(i), uint32(5000), false, []byte{})
		f.Add(byte(i), uint32(70_000), false, []byte{})
		f.Add(byte(i), uint32(1000), true, []byte("7"))
	}
	f.Fuzz(func(t *testing.T, file byte, at uint32, spoil bool, text []byte) {
		n := int(file) % len(names)
		i := int(at) % len(whole[n])
		data := slices.Clone(whole[n][:i])
		if spoil {
			data = slices.Clone(whole[n])
			copy(data[i:], text)
		}
		if err := os.WriteFile(names[n], data, 0o644); err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := os.WriteFile(names[n], whole[n], 0o644); err != nil {
				t.Fatal(err)
			}
		}()
		v, err := judge()
		switch {
		case err != nil:
			if v != nil || errors.Is(err, fs.ErrNotExist) {
				t.Fatal(err)
			}
		case v.Verdict == gates.Pass:
			for _, c := range v.Comparisons {
				if c.Judged && (c.Values == nil || c.Effect == nil || c.Blocks < 3 || c.Requests[0] < 3000 || c.Requests[1] < 3000) {
					t.Fatalf("passed without data: %+v", c)
				}
			}
		case v.Verdict == gates.Regression && !spoil:
			t.Fatalf("a regression from a file that was cut: %v", v.Reasons)
		}
	})
}
