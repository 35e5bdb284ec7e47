package record_test

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"plumbline/record"
)

func usageCSV(t interface{ Fatal(...any) }, rows []record.Usage) []byte {
	var b bytes.Buffer
	w, err := record.NewUsageWriter(&b)
	for _, u := range rows {
		if err == nil {
			err = w.Write(u)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// What is written is read back the same, blanks as blanks.
func TestUsageIsReadAsWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var rows []record.Usage
		elapsed, counted := 0, map[record.Quantity]int{}
		for range rapid.IntRange(1, 20).Draw(t, "rows") {
			u := record.Usage{ElapsedS: float64(elapsed) / 1000}
			elapsed += rapid.IntRange(1, 5000).Draw(t, "step")
			for _, q := range record.Quantities() {
				if !rapid.Bool().Draw(t, "known") {
					continue
				}
				switch {
				case q == record.CPUPercent:
					u.Set(q, float64(rapid.IntRange(1, 20000).Draw(t, "percent"))/100)
				case q.Kind() == record.Counter:
					counted[q] += rapid.IntRange(0, 1<<40).Draw(t, "more")
					u.Set(q, float64(counted[q]))
				default:
					u.Set(q, float64(rapid.IntRange(1, 1<<20).Draw(t, "level")))
				}
			}
			rows = append(rows, u)
		}
		data := usageCSV(t, rows)
		f, err := record.ParseUsage("x.csv", data, 2)
		if err != nil {
			t.Fatal(err)
		}
		if len(f.Aside) > 0 {
			t.Fatal(f.Aside)
		}
		if !reflect.DeepEqual(f.Rows, rows) {
			t.Fatalf("%v\nwant\n%v\nin\n%s", f.Rows, rows, data)
		}
	})
}

// shown is what a file came to, in a form that is easily compared.
func shown(f *record.UsageFile) string {
	var b strings.Builder
	for _, u := range f.Rows {
		fmt.Fprintf(&b, "%g:", u.ElapsedS)
		for _, q := range record.Quantities() {
			if x, known := u.Get(q); known {
				fmt.Fprintf(&b, " %s=%g", q, x)
			}
		}
		b.WriteString("; ")
	}
	for _, a := range f.Aside {
		fmt.Fprintf(&b, "ASIDE %v: %s; ", a.Quantities, a)
	}
	for _, n := range f.Notes {
		fmt.Fprintf(&b, "NOTE %s; ", n)
	}
	return strings.TrimSuffix(b.String(), "; ")
}

func TestUsageOfOtherTools(t *testing.T) {
	const head = "Elapsed seconds,CPU (%),MEM (%),Real (MB)\n"
	for _, tt := range []struct{ name, data, want string }{
		{"PostgREST's monitor", head + "1,50.5,0.1,12.5\n2,60,0.1,13\n", "1: cpu_percent=50.5 rss_mib=12.5; 2: cpu_percent=60 rss_mib=13"},
		{"psrecord", "elapsed_time,cpu,mem_real,mem_virtual\n0.001,0.0,1.5,9\n1.01,99.9,2,9\n", "0.001: cpu_percent=0 rss_mib=1.5; 1.01: cpu_percent=99.9 rss_mib=2"},
		{"bytes and KiB", "elapsed,rss_bytes,pss_kib\n0,1048576,512\n1,2097152,1024\n", "0: rss_mib=1 pss_mib=0.5; 1: rss_mib=2 pss_mib=1"},
		{"moments in seconds", "timestamp,cpu\n1700000000.5,10\n1700000001.75,20\n", "0: cpu_percent=10; 1.25: cpu_percent=20"},
		{"moments in milliseconds", "timestamp,cpu\n1700000000500,10\n1700000001750,20\n", "0: cpu_percent=10; 1.25: cpu_percent=20"},
		{"moments in words", "timestamp,cpu\n2026-01-31T10:00:00Z,10\n2026-01-31T11:00:01+01:00,20\n", "0: cpu_percent=10; 1: cpu_percent=20"},
		{"CRLF and a mark", "\ufeffelapsed_s,cpu_percent\r\n0.5,10\r\n1.5,20\r\n", "0.5: cpu_percent=10; 1.5: cpu_percent=20"},
		{"semicolons and commas", "elapsed_s;cpu_percent\n0,5;10,25\n1,5;20\n", "0.5: cpu_percent=10.25; 1.5: cpu_percent=20"},
		{"tabs", "elapsed_s\tcpu_percent\n0.5\t10\n1.5\t20\n", "0.5: cpu_percent=10; 1.5: cpu_percent=20"},
		{"quotes, blanks and an empty line", "\"Elapsed seconds\", \"CPU (%)\"\n\"1\", 5\n\n2,\n3,6\n", "1: cpu_percent=5; 2:; 3: cpu_percent=6"},
		{"another order", "rss_mib,elapsed_s\n1,0.5\n", "0.5: rss_mib=1"},

		{"all zero", head + "1,0.0,0,12\n2,0.0,0,13\n", "1: rss_mib=12; 2: rss_mib=13; ASIDE [cpu_percent]: CPU (%): is 0 in all rows: the process was idle, a wrapper in front of the server, or not measured at all"},
		{"negative", head + "1,5,0,12\n2,-40,0,13\n3,6,0,13\n", "1: rss_mib=12; 2: rss_mib=13; 3: rss_mib=13; ASIDE [cpu_percent]: line 3: CPU (%): -40 is below 0"},
		{"more than there is", head + "1,5,0,12\n2,5363,0,13\n", "1: rss_mib=12; 2: rss_mib=13; ASIDE [cpu_percent]: line 3: CPU (%): 5363 % is more than 20 CPUs have; if there were more, say so with --cpus"},
		{"a little more than there is", head + "1,5,0,12\n2,2150,0,13\n", "1: cpu_percent=5 rss_mib=12; 2: cpu_percent=2150 rss_mib=13"},
		{"no number", head + "1,5,0,n/a\n2,6,0,13\n", `1: cpu_percent=5; 2: cpu_percent=6; ASIDE [rss_mib]: line 2: Real (MB): "n/a" is no number`},
		{"NaN", head + "1,NaN,0,7\n", `1: rss_mib=7; ASIDE [cpu_percent]: line 2: CPU (%): "NaN" is no number`},
		{"repeated second", head + "1,5,0,12\n1,6,0,13\n2,6,0,13\n", "ASIDE [cpu_percent rss_mib]: line 3: time: 1 s is there twice"},
		{"time goes back", head + "2,5,0,12\n1,6,0,13\n", "ASIDE [cpu_percent rss_mib]: line 3: time: goes back from 2 to 1 s"},
		{"before the start", head + "-1,5,0,12\n", "ASIDE [cpu_percent rss_mib]: line 2: time: -1 s is before the start"},
		{"skipped second", head + "1,5,0,12\n2,6,0,13\n4,6,0,14\n5,6,0,15\n", "1: rss_mib=12; 2: rss_mib=13; 4: rss_mib=14; 5: rss_mib=15; " +
			"ASIDE [cpu_percent]: line 4: CPU (%): the time goes from 2 to 4 s; of whole seconds nobody knows over which time this was taken; NOTE line 4: there is no sample from 2 to 4 s"},
		{"a gap in exact times", "elapsed_s,cpu_percent\n0.001,5\n1.001,6\n9.001,6\n10.001,7\n30.001,8\n", "0.001: cpu_percent=5; 1.001: cpu_percent=6; 9.001: cpu_percent=6; 10.001: cpu_percent=7; 30.001: cpu_percent=8; " +
			"NOTE line 4: there is no sample from 1.001 to 9.001 s, the first of 2 gaps"},
		{"a row is cut off", head + "1,5,0,12\n2,6\n3,6,0,13\n", "1: cpu_percent=5; 2: cpu_percent=6; 3: cpu_percent=6; ASIDE [rss_mib]: line 3: Real (MB): the row is cut off: it has 2 fields of 4"},
		{"the last line is cut off", head + "1,5,0,12\n2,6,0,1", "1: cpu_percent=5 rss_mib=12; NOTE line 3 is cut off, and left out"},
		{"a counter goes down", "elapsed_s,read_bytes\n0.5,9\n1.5,5\n", "0.5:; 1.5:; ASIDE [read_bytes]: line 3: goes down from 9 to 5, which a counter cannot"},
		{"points and commas", "elapsed_s;cpu_percent\n0.5;10,25\n", `0.5:; ASIDE [cpu_percent]: line 2: "10,25": there is a decimal comma in line 2 and a decimal point in line 2; which is it?`},
	} {
		f, err := record.ParseUsage("x.csv", []byte(tt.data), 20)
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		if got := shown(f); got != tt.want {
			t.Errorf("%s:\n%s\nwant\n%s", tt.name, got, tt.want)
		}
	}
}

func TestUsageThatIsNone(t *testing.T) {
	for _, tt := range []struct{ name, data, want string }{
		{"empty", "", "x.csv is empty"},
		{"blank", "\ufeff \r\n\n", "x.csv is empty"},
		{"header only", "elapsed_s,cpu_percent\n", "x.csv holds a header and no sample"},
		{"header, and a line that is cut off", "elapsed_s,cpu_percent\n0.0", "x.csv holds a header and no sample"},
		{"no whole line", "elapsed_s,cpu", "x.csv:1: has no whole line"},
		{"binary", "\x1f\x8b\x08\x00\x01\n", "x.csv:1: is no CSV: it holds bytes that are no text"},
		{"Latin 1", "Zeit;Geh\xe4use\n", "x.csv:1: is no CSV: it holds bytes that are no text"},
		{"prose", "Hello World\nthis\n", `x.csv:1: is no CSV of samples: its header is one field, "Hello World"`},
		{"psrecord's own", "# Elapsed time   CPU (%)     Real (MB)   Virtual (MB)\n   0.000   0.000   1.0   2.0\n", "x.csv:1: is no CSV: it begins with #; with psrecord, use --log-format csv"},
		{"no time", "when,cpu\n1,2\n", `x.csv:1: has no column elapsed_s (or "Elapsed seconds", "elapsed_time", "timestamp"); it has "when", "cpu"`},
		{"two times", "elapsed_s,timestamp,cpu\n1,2,3\n", `x.csv:1: "elapsed_s" and "timestamp" are both a time; leave one`},
		{"twice the same", "elapsed_s,cpu,%CPU\n1,2,3\n", `x.csv:1: "cpu" and "%CPU" are both cpu_percent; leave one`},
		{"decimal commas", "elapsed_s,cpu\n0,5,10,25\n", "x.csv:2: has 4 fields, but the header 2; with decimal commas, separate the fields by semicolons, or write the file with LC_ALL=C"},
		{"time is none", "elapsed_s,cpu\n1,2\nsoon,3\n", `x.csv:3: the time: "soon" is no number`},
		{"row without time", "cpu,elapsed_s\n1,2\n5\n", "x.csv:3: is cut off: it has 1 fields of 2, and no time"},
		{"quote", "elapsed_s,cpu\n1,\"2\n", "x.csv:2: is no CSV: extraneous or missing \" in quoted-field"},
	} {
		f, err := record.ParseUsage("x.csv", []byte(tt.data), 2)
		if err == nil || err.Error() != tt.want {
			t.Errorf("%s: %v, %v\nwant %s", tt.name, f, err, tt.want)
		}
	}
	if _, err := record.ReadUsage(filepath.Join(t.TempDir(), "none.csv"), 2); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

// fullDisk takes only so many bytes.
type fullDisk struct {
	bytes.Buffer
	room int
}

var errFull = errors.New("no space left on device")

func (d *fullDisk) Write(b []byte) (int, error) {
	n, _ := d.Buffer.Write(b[:min(len(b), d.room-d.Len())])
	if n < len(b) {
		return n, errFull
	}
	return n, nil
}

func (d *fullDisk) Truncate(size int64) error { d.Buffer.Truncate(int(size)); return nil }

// Where the disk is full, whole lines are left.
func TestUsageOnAFullDisk(t *testing.T) {
	d := &fullDisk{room: len(record.UsageHeader()) + 30}
	w, err := record.NewUsageWriter(d)
	if err != nil {
		t.Fatal(err)
	}
	var u record.Usage
	for err == nil {
		u.ElapsedS++
		err = w.Write(u)
	}
	if !errors.Is(err, errFull) || !strings.HasPrefix(err.Error(), "writing the samples: ") {
		t.Errorf("%v", err)
	}
	if want := record.UsageHeader() + "\n1.000,,,,,,,,,,,,\n"; d.String() != want {
		t.Errorf("left is %q, want %q", d.String(), want)
	}
}

// Whatever a file holds: no panic, times that grow, nothing of what was set
// aside among the values, and what was read is read again the same.
func FuzzUsage(f *testing.F) {
	for _, s := range []string{
		record.UsageHeader() + "\n0.000,,1.6,0.3,1,5,0,0,0,0,0,0,0.000000\n1.002,67.54,1.6,,1,5,0,695,0,0,0,0,0.5\n",
		"Elapsed seconds,CPU (%),Real (MB)\n1,5,12\n2,-40,13\n4,1,1\n", "elapsed_s;cpu\r\n0,5;1,5\r\n1,5;\r\n", "timestamp,cpu\n2026-01-31T10:00:00Z,1\n1700000000,2\n", "elapsed_s,cpu\n1,\"2\n3\"\n",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := record.ParseUsage("x.csv", data, 2)
		if err != nil {
			if !strings.HasPrefix(err.Error(), "x.csv") {
				t.Fatalf("the error names no file: %v", err)
			}
			return
		}
		aside := map[record.Quantity]bool{}
		for _, a := range file.Aside {
			for _, q := range a.Quantities {
				aside[q] = true
			}
		}
		for i, u := range file.Rows {
			if i > 0 && u.ElapsedS <= file.Rows[i-1].ElapsedS {
				t.Fatalf("%v comes after %v", u.ElapsedS, file.Rows[i-1].ElapsedS)
			}
			for _, q := range record.Quantities() {
				x, known := u.Get(q)
				if known && (aside[q] || file.Columns[q] == "" || x < 0 || math.IsNaN(x) || math.IsInf(x, 0)) {
					t.Fatalf("%s is %v", q, x)
				}
			}
		}
		if len(file.Rows) == 0 {
			return
		}
		first := usageCSV(t, file.Rows)
		again, err := record.ParseUsage("x.csv", first, 2)
		if err != nil {
			t.Fatal(err)
		}
		// Rounded to what is kept, times may meet, and small values are 0.
		if len(again.Aside) == 0 && !slices.Equal(first, usageCSV(t, again.Rows)) {
			t.Fatalf("%s\nis read as\n%s", first, usageCSV(t, again.Rows))
		}
	})
}
