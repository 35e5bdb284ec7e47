package record_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	vegeta "github.com/tsenart/vegeta/v12/lib"
	"pgregory.net/rapid"

	"plumbline/record"
)

// fataler is a test, also one of rapid.
type fataler interface{ Fatal(...any) }

// attack is what `vegeta attack` writes: request k of n to two routes, one a ms.
func attack(start time.Time, n int) []*vegeta.Result {
	var all []*vegeta.Result
	for k := range n {
		r := result(0, k, 0, []string{"GET /a?x=1", "POST /b"}[k%2], 200, time.Duration(100_000+k))
		r.Timestamp = start.Add(time.Duration(k) * time.Millisecond)
		r.Headers = map[string][]string{"Content-Type": {"text/plain"}}
		all = append(all, r)
	}
	return all
}

func encode(t fataler, encoding string, all []*vegeta.Result) []byte {
	var b bytes.Buffer
	enc := map[string]func(io.Writer) vegeta.Encoder{"gob": vegeta.NewEncoder, "csv": vegeta.NewCSVEncoder, "json": vegeta.NewJSONEncoder}[encoding](&b)
	for _, r := range all {
		if err := enc(r); err != nil {
			t.Fatal(err)
		}
	}
	return b.Bytes()
}

func decode(t fataler, encoding string, data []byte) (all []*vegeta.Result) {
	dec := map[string]func(io.Reader) vegeta.Decoder{"gob": vegeta.NewDecoder, "csv": vegeta.NewCSVDecoder, "json": vegeta.NewJSONDecoder}[encoding](bytes.NewReader(data))
	for {
		r := new(vegeta.Result)
		if err := dec(r); err == io.EOF {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}
}

// place writes a file under a name that says nothing.
func place(t testing.TB, data []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "results")
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func arm(name string, role record.Role, files ...string) record.LooseArm {
	return record.LooseArm{Arm: record.Arm{Name: name, Role: role}, Files: files}
}

// readOne reads a single file.
func readOne(path string) (*record.Session, error) {
	return record.ReadLoose(arm("file", record.Baseline, path))
}

func encodings() []string { return []string{"gob", "csv", "json"} }

// What is read does not depend on the encoding, nor on the ends of lines.
func TestLooseEncodings(t *testing.T) {
	all := attack(epoch, 20)
	all[7].Code, all[7].Error = 0, "read tcp: connection reset\nby \"peer\", 1,5 s"
	all[8].Code = 500
	want := map[string]*record.Samples{
		// Without the first 5 ms, the failed and the unexpected.
		"GET /a?x=1": {Latency: []int64{100_006, 100_010, 100_012, 100_014, 100_016, 100_018}, Ends: []int{6}, Codes: map[int]int{200: 9, 500: 1}, BodyBytes: 60},
		"POST /b":    {Latency: []int64{100_005, 100_009, 100_011, 100_013, 100_015, 100_017, 100_019}, Ends: []int{7}, Codes: map[int]int{200: 9, 0: 1}, BodyBytes: 70},
	}
	crlf := func(data []byte) []byte { return bytes.ReplaceAll(data, []byte("\n"), []byte("\r\n")) }
	for name, data := range map[string][]byte{
		"gob": encode(t, "gob", all), "csv": encode(t, "csv", all), "json": encode(t, "json", all),
		"csv with CRLF": crlf(encode(t, "csv", all)), "json with CRLF": crlf(encode(t, "json", all)),
	} {
		s, err := readOne(place(t, data))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if diff := cmp.Diff(want, s.Runs[0].Samples); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		r := s.Runs[0]
		if r.Sent != 20 || !r.Started.Equal(epoch) || !r.Ended.Equal(epoch.Add(19*time.Millisecond+100_019)) {
			t.Errorf("%s: %d requests from %s to %s", name, r.Sent, r.Started, r.Ended)
		}
		if names := []string{s.Routes[0].Name, s.Routes[1].Name}; !slices.Equal(names, []string{"GET /a?x=1", "POST /b"}) {
			t.Errorf("%s: routes %q", name, names)
		}
	}
}

// The k-th file of each side forms block k; who came first shows in the times.
func TestLooseBlocks(t *testing.T) {
	file := func(minute int) string {
		return place(t, encode(t, "gob", attack(epoch.Add(time.Duration(minute)*time.Minute), 10)))
	}
	for name, c := range map[string]struct {
		base, cand []int
		mode       record.Mode
	}{
		"in turns":       {[]int{0, 3}, []int{1, 2}, record.Interleaved},
		"one by one":     {[]int{0, 1}, []int{2, 3}, record.Sequential},
		"backwards":      {[]int{3, 2}, []int{1, 0}, record.Sequential},
		"a single block": {[]int{0}, []int{1}, record.Sequential},
	} {
		files := [2][]string{}
		for i := range c.base {
			files[0] = append(files[0], file(c.base[i]))
			files[1] = append(files[1], file(c.cand[i]))
		}
		s, err := record.ReadLoose(arm("baseline", record.Baseline, files[0]...), arm("candidate", record.Candidate, files[1]...))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, r := range s.Runs {
			got = append(got, fmt.Sprint(r.Block, r.Arm, r.ID))
		}
		var want []string
		for i := range c.base {
			want = append(want, fmt.Sprint(i+1, "baseline", files[0][i]), fmt.Sprint(i+1, "candidate", files[1][i]))
		}
		if s.Schedule.Mode != c.mode || s.Schedule.Blocks != len(c.base) || !slices.Equal(got, want) {
			t.Errorf("%s: %s, %d blocks, runs %q", name, s.Schedule.Mode, s.Schedule.Blocks, got)
		}
	}
}

// A route expects the usual status of the first baseline file that has it, but
// none that needs to be asked for.
func TestLooseStatus(t *testing.T) {
	file := func(minute int, codes ...uint16) string {
		all := attack(epoch.Add(time.Duration(minute)*time.Minute), 2*len(codes))
		for i, code := range codes {
			all[2*i].Code = code
			if code == 0 {
				all[2*i].Error = "refused"
			}
		}
		return place(t, encode(t, "gob", all))
	}
	for name, c := range map[string]struct {
		first, second, cand []uint16
		want                []int
	}{
		"the usual one":       {[]uint16{404, 200, 404}, []uint16{200, 200, 200}, []uint16{200, 200, 200}, []int{404}},
		"of as many, the low": {[]uint16{404, 200}, []uint16{404}, []uint16{404}, []int{200}},
		"a redirect":          {[]uint16{302}, []uint16{200}, []uint16{200}, []int{302}},
		"not 500":             {[]uint16{500, 500, 204, 0, 0, 0}, []uint16{500}, []uint16{500}, []int{204}},
		"not 401":             {[]uint16{401, 401}, []uint16{200}, []uint16{200}, nil},
		"not no answer":       {[]uint16{0, 0}, []uint16{0}, []uint16{200}, nil},
	} {
		s, err := record.ReadLoose(arm("baseline", record.Baseline, file(1, c.first...), file(3, c.second...)), arm("candidate", record.Candidate, file(0, c.cand...), file(2, 500)))
		if err != nil {
			t.Fatal(err)
		}
		if got := s.Routes[0]; !slices.Equal(got.Status, c.want) || !got.Learned {
			t.Errorf("%s: %s expects %v, want %v", name, got.Name, got.Status, c.want)
		}
	}
}

// A failed target is a failure of no route, and never dropped.
func TestLooseNoTarget(t *testing.T) {
	all := attack(epoch, 10)
	failed := &vegeta.Result{Seq: 10, Timestamp: epoch.Add(time.Second), Latency: 1, Error: "no targets to attack"}
	for _, encoding := range encodings() {
		s, err := readOne(place(t, encode(t, encoding, append(all, failed))))
		if err != nil {
			t.Fatal(err)
		}
		sm := s.Runs[0].Samples[record.NoTarget]
		if s.Runs[0].Sent != 11 || sm == nil || sm.Codes[0] != 1 || len(sm.Latency) > 0 || s.Routes[2].Name != record.NoTarget || s.Routes[2].Status != nil {
			t.Errorf("%s: %d sent, %+v, routes %v", encoding, s.Runs[0].Sent, sm, s.Routes)
		}
	}
}

func TestLooseRefusals(t *testing.T) {
	good := attack(epoch, 10)
	later := attack(epoch.Add(time.Minute), 10)
	edit := func(change func(r *vegeta.Result)) []byte {
		all := attack(epoch, 10)
		change(all[4])
		return encode(t, "gob", all)
	}
	join := func(encoding string) []byte { return append(encode(t, encoding, good), encode(t, encoding, later)...) }
	cut := func(data []byte, n int) []byte { return data[:len(data)-n] }
	csv, json := encode(t, "csv", good), encode(t, "json", good)
	for name, c := range map[string]struct {
		data []byte
		want string
	}{
		"empty":                {nil, "is empty"},
		"only a line end":      {[]byte("\n"), "is no result file of vegeta"},
		"a target file":        {[]byte("GET http://localhost/\n"), `it begins with "GET http://localhost/"`},
		"a JSON target":        {[]byte(`{"method": "GET", "url": "http://localhost/"}` + "\n"), "request 1 cannot be read (the file is damaged or cut short): it has no time stamp"},
		"a text report":        {[]byte("Requests      [total, rate, throughput]  10, 1, 1\n"), "targets and reports are not"},
		"a JSON report":        {[]byte(`{"latencies":{"total":1,"mean":2},"requests":10,"rate":1}` + "\n"), "it has no time stamp"},
		"a CSV head":           {append([]byte("timestamp,code\n"), csv...), `it begins with "timestamp,code"`},
		"another CSV":          {[]byte("1,2,3\n"), "request 1 cannot be read"},
		"gzip":                 {[]byte{0x1f, 0x8b, 8, 0}, "gunzip"},
		"zstd":                 {[]byte{0x28, 0xb5, 0x2f, 0xfd, 0}, "unzstd"},
		"a byte order mark":    {append([]byte("\xef\xbb\xbf"), csv...), "byte order mark"},
		"binary":               {bytes.Repeat([]byte{0xff, 0x03, 0x80}, 50), "request 1 cannot be read"},
		"two gobs":             {join("gob"), "request 11 cannot be read: a second gob file begins there"},
		"two CSVs":             {join("csv"), "comes after number 9: the file holds two attacks"},
		"two JSONs":            {join("json"), "comes after number 9: the file holds two attacks"},
		"two kinds":            {append(encode(t, "csv", good), json...), "request 11 cannot be read"},
		"a cut gob":            {cut(encode(t, "gob", good), 5), "request 10 cannot be read (the file is damaged or cut short)"},
		"a CSV without an end": {cut(csv, 1), "the last line has no end"},
		"a cut CSV":            {cut(csv, 60), "cut short"},
		"a cut JSON":           {cut(json, 30), "the last line has no end"},
		"a negative latency":   {edit(func(r *vegeta.Result) { r.Latency = -1 }), "request 5 cannot be read (the file is damaged or cut short): its latency is -1ns"},
		"a status of 7":        {edit(func(r *vegeta.Result) { r.Code = 7 }), "its status is 7"},
		"no URL":               {edit(func(r *vegeta.Result) { r.URL = "" }), "it has the status 200, but no URL"},
		"the year 3000":        {edit(func(r *vegeta.Result) { r.Timestamp = time.Date(3000, 1, 1, 0, 0, 0, 0, time.UTC) }), "its time stamp is 3000-01-01"},
		"a contradiction":      {edit(func(r *vegeta.Result) { r.Timestamp, r.Seq = epoch, 0 }), "but are not the same"},
	} {
		if _, err := readOne(place(t, c.data)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	if _, err := readOne(t.TempDir()); err == nil || !strings.Contains(err.Error(), "a folder") {
		t.Errorf("a folder: %v", err)
	}
	if _, err := readOne(filepath.Join(t.TempDir(), "old", "*.bin")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	var many []*vegeta.Result
	for i := range 10_001 {
		many = append(many, result(0, i, float64(i), fmt.Sprintf("GET /item/%d", i), 200, 1000))
	}
	if _, err := readOne(place(t, encode(t, "gob", many))); err == nil || !strings.Contains(err.Error(), "request 10001 is to the 10001-th route") {
		t.Errorf("many routes: %v", err)
	}
}

// The same requests count once, in whatever encoding and order they come.
func TestLooseGivenTwice(t *testing.T) {
	all := attack(epoch, 10)
	a := place(t, encode(t, "gob", all))
	slices.Reverse(all)
	b := place(t, encode(t, "csv", all))
	for name, read := range map[string]func() (*record.Session, error){
		"on one side": func() (*record.Session, error) { return record.ReadLoose(arm("baseline", record.Baseline, a, b)) },
		"on both": func() (*record.Session, error) {
			return record.ReadLoose(arm("x", record.Baseline, a), arm("y", record.Candidate, b))
		},
		"one path": func() (*record.Session, error) {
			return record.ReadLoose(arm("x", record.Baseline, a), arm("y", record.Candidate, a))
		},
	} {
		if _, err := read(); !errors.Is(err, record.ErrGivenTwice) || !strings.Contains(err.Error(), a) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What a session recorded can be given as a loose file.
func TestLooseReadsASession(t *testing.T) {
	f := newSession(t)
	writeRun(t, f, baselineRun, some())
	s, err := readOne(filepath.Join(f.Dir(), "runs", "001-baseline", "result.bin"))
	if err != nil {
		t.Fatal(err)
	}
	if s.Runs[0].Sent != 9 {
		t.Errorf("%d requests, want 9", s.Runs[0].Sent)
	}
}

// Wherever a file is cut, it is refused, or holds fewer requests.
func TestLooseCut(t *testing.T) {
	for _, encoding := range encodings() {
		data := encode(t, encoding, attack(epoch, 3))
		path := place(t, data)
		whole := 0
		for n := len(data) - 1; n >= 0; n-- {
			if err := os.Truncate(path, int64(n)); err != nil {
				t.Fatal(err)
			}
			s, err := readOne(path)
			if err != nil {
				continue
			}
			whole++
			if s.Runs[0].Sent >= 3 {
				t.Errorf("%s: the first %d of %d bytes hold %d requests", encoding, n, len(data), s.Runs[0].Sent)
			}
		}
		if whole != 2 { // only between two requests
			t.Errorf("%s: %d cuts are not seen, want 2", encoding, whole)
		}
	}
}

// Neither the order of the results nor copies of them change what is read.
func TestLooseOrder(t *testing.T) {
	all := attack(epoch, 40)
	for i, r := range all {
		r.Latency = time.Duration(i*7919%40) * time.Millisecond
		if i%9 == 0 {
			r.Code = 503
		}
	}
	path := place(t, nil)
	read := func(t fataler, encoding string, all []*vegeta.Result) *record.Session {
		if err := os.WriteFile(path, encode(t, encoding, all), 0o644); err != nil {
			t.Fatal(err)
		}
		s, err := readOne(path)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	want := read(t, "gob", all)
	rapid.Check(t, func(rt *rapid.T) {
		mixed := slices.Repeat(all, rapid.IntRange(1, 3).Draw(rt, "copies"))
		got := read(rt, rapid.SampledFrom(encodings()).Draw(rt, "encoding"), rapid.Permutation(mixed).Draw(rt, "order"))
		if diff := cmp.Diff(want, got); diff != "" {
			rt.Fatal(diff)
		}
	})
}

// A file is read in pieces; one that does not fit into a piece is the same.
func TestLooseLong(t *testing.T) {
	const n = 150_000 // more than a piece
	all := make([]*vegeta.Result, n)
	for k := range all {
		all[k] = result(0, k, float64(k)/100, "GET /a", 200, time.Duration(1+k))
	}
	all[0], all[n-1] = all[n-1], all[0] // an answer that took as long as all others
	s, err := readOne(place(t, encode(t, "gob", all)))
	if err != nil {
		t.Fatal(err)
	}
	got := s.Runs[0].Samples["GET /a"].Latency
	if s.Runs[0].Sent != n || len(got) != n-500 || !slices.IsSorted(got) {
		t.Errorf("%d sent, %d counted, in order: %v", s.Runs[0].Sent, len(got), slices.IsSorted(got))
	}
}

// FuzzResults: no file makes the reader panic. What it takes holds together
// and is the same when it is written again.
func FuzzResults(f *testing.F) {
	all := attack(epoch, 4)
	all[1].Code, all[1].Error = 0, "refused"
	all[3] = &vegeta.Result{Seq: 3, Timestamp: epoch.Add(time.Second), Error: "no targets"}
	for _, encoding := range encodings() {
		f.Add(encode(f, encoding, all))
	}
	f.Add([]byte(`{"timestamp":"2026-01-02T03:04:05Z","seq":1,"code":200,"method":"GET","url":"/\u0000 %zz","latency":9223372036854775807}` + "\n"))
	f.Add([]byte("1,200,5,0,18446744073709551615,,,,0,GET,http://a/?,\n 2,0,5,0,0,\"a\nb\",,x,1,\" GET\",\"/\",\n"))
	path := filepath.Join(f.TempDir(), "results")
	f.Fuzz(func(t *testing.T, data []byte) {
		read := func(data []byte) (*record.Session, error) {
			if err := os.WriteFile(path, data, 0o644); err != nil {
				t.Fatal(err)
			}
			return readOne(path)
		}
		s, err := read(data)
		if err != nil {
			if s != nil {
				t.Fatal("a session and an error")
			}
			return
		}
		r := s.Runs[0]
		sent := 0
		for _, route := range s.Routes {
			sm := r.Samples[route.Name]
			n := 0
			for _, k := range sm.Codes {
				n += k
			}
			if len(sm.Ends) != 1 || sm.Ends[0] != len(sm.Latency) || len(sm.Latency) > n {
				t.Fatalf("%q: %+v", route.Name, sm)
			}
			if slices.ContainsFunc(sm.Latency, func(ns int64) bool { return ns < 0 }) {
				t.Fatalf("%q: a latency below 0", route.Name)
			}
			sent += n
		}
		if sent != r.Sent || sent == 0 || r.Slices[0].Sent != sent || r.Ended.Before(r.Started) {
			t.Fatalf("%d requests on the routes, %d sent, %s to %s", sent, r.Sent, r.Started, r.Ended)
		}
		encoding := "gob"
		if text := bytes.TrimLeft(data, " \t\r\n"); data[0] < 0x80 {
			encoding = map[bool]string{true: "json", false: "csv"}[text[0] == '{']
		}
		results := decode(t, encoding, data)
		again, err := read(encode(t, "gob", results))
		if err != nil {
			t.Fatalf("written again: %v", err)
		}
		if diff := cmp.Diff(s, again); diff != "" {
			t.Fatalf("written again: %s", diff)
		}
		if shorter, err := read(encode(t, "gob", results[:len(results)/2])); err == nil && shorter.Runs[0].Sent > r.Sent {
			t.Fatalf("half of the results are %d requests, all are %d", shorter.Runs[0].Sent, r.Sent)
		}
	})
}
