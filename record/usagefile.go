package record

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// UsageFile is a monitor file as it was read: ours, or another tool's.
type UsageFile struct {
	Path string
	// Rows in the order of time. Values that were set aside are not in them.
	Rows []Usage
	// Columns holds how the file calls a quantity, for those that it has.
	Columns map[Quantity]string
	Aside   []UsageFault
	Notes   []string // what else a reader should know: a line that was cut off, a gap
}

// UsageFault says why quantities of a file were set aside.
type UsageFault struct {
	Line       int        `json:"line"`   // of the file, from 1; 0: all of them
	Column     string     `json:"column"` // as the file calls it
	Quantities []Quantity `json:"set_aside"`
	Reason     string     `json:"reason"`
}

// String names line and reason, and the column if it is not the quantity's name.
func (f UsageFault) String() string {
	text := f.Reason
	if len(f.Quantities) != 1 || f.Quantities[0].String() != f.Column {
		text = f.Column + ": " + text
	}
	if f.Line > 0 {
		text = fmt.Sprintf("line %d: %s", f.Line, text)
	}
	return text
}

const (
	// mostUsageBytes is a week of a row every 0.1 s.
	mostUsageBytes = 512 << 20
	// cpuSlack is how far beyond all CPUs a percentage may be: a tool that looks
	// late, or counts in ticks of 10 ms, shows a little more than there is.
	cpuSlack = 1.1
	// gapSteps is a gap, in usual steps from row to row.
	gapSteps = 1.5
)

// ReadUsage reads a CSV of process samples; cpus is how many CPUs its machine
// had. The columns are found by their names (usageColumns); the others are not
// read. It takes a byte-order mark, CRLF, and semicolons or tabs with decimal
// commas. What cannot be true is set aside by quantity (UsageFile.Aside). An
// error, with file and line, is left for files of which nothing can be read.
func ReadUsage(path string, cpus int) (*UsageFile, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, mostUsageBytes+1))
	if err != nil {
		return nil, err
	}
	if len(data) > mostUsageBytes {
		return nil, fmt.Errorf("%s is larger than %d MiB", path, mostUsageBytes>>20)
	}
	return ParseUsage(path, data, cpus)
}

// ParseUsage is ReadUsage for what was read already.
func ParseUsage(path string, data []byte, cpus int) (*UsageFile, error) {
	r := &usageReader{UsageFile: UsageFile{Path: path, Columns: map[Quantity]string{}}, at: map[int]Quantity{}, elapsed: -1, faulty: map[Quantity]bool{}}
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	data, err := r.wholeLines(data)
	if err != nil {
		return nil, err
	}
	if err := r.read(data); err != nil {
		return nil, err
	}
	r.time()
	r.values(cpus)
	return &r.UsageFile, nil
}

type usageReader struct {
	UsageFile
	elapsed   int              // column of the time
	stamps    bool             // which holds moments, not seconds
	fields    int              // of the header
	at        map[int]Quantity // by column
	scale     [quantities]float64
	lines     []int // of the file, by row
	fractions bool  // some time is no whole second
	faulty    map[Quantity]bool
	dot       int // the first line with a decimal point, and
	comma     int // with a decimal comma
}

// wholeLines leaves the last line out if nothing ends it: a number in it may
// have been cut off.
func (r *usageReader) wholeLines(data []byte) ([]byte, error) {
	if len(bytes.TrimSpace(data)) == 0 {
		return nil, fmt.Errorf("%s is empty", r.Path)
	}
	if head, _, _ := bytes.Cut(data, []byte("\n")); bytes.IndexByte(data, 0) >= 0 || !utf8.Valid(head) {
		return nil, fmt.Errorf("%s:1: is no CSV: it holds bytes that are no text", r.Path)
	}
	end := bytes.LastIndexByte(data, '\n') + 1
	if end == 0 {
		return nil, fmt.Errorf("%s:1: has no whole line", r.Path)
	}
	if end < len(data) {
		r.Notes = append(r.Notes, fmt.Sprintf("line %d is cut off, and left out", bytes.Count(data, []byte("\n"))+1))
	}
	return data[:end], nil
}

func (r *usageReader) read(data []byte) error {
	head, _, _ := bytes.Cut(data, []byte("\n"))
	in := csv.NewReader(bytes.NewReader(data))
	in.Comma = separator(string(head))
	in.FieldsPerRecord = -1
	in.TrimLeadingSpace = true
	in.ReuseRecord = true
	for first := true; ; first = false {
		record, err := in.Read()
		var parse *csv.ParseError
		switch {
		case err == io.EOF:
			if len(r.Rows) == 0 {
				return fmt.Errorf("%s holds a header and no sample", r.Path)
			}
			return nil
		case errors.As(err, &parse):
			return fmt.Errorf("%s:%d: is no CSV: %w", r.Path, parse.Line, parse.Err)
		case err != nil:
			return fmt.Errorf("%s: %w", r.Path, err)
		}
		line, _ := in.FieldPos(0)
		if first {
			err = r.header(record)
		} else {
			err = r.row(line, record, in.Comma)
		}
		if err != nil {
			return fmt.Errorf("%s:%d: %w", r.Path, line, err)
		}
	}
}

// separator is what the header has most of.
func separator(head string) rune {
	return slices.MaxFunc([]rune{',', ';', '\t'}, func(a, b rune) int { // of equals the first
		return cmp.Compare(strings.Count(head, string(a)), strings.Count(head, string(b)))
	})
}

// usageColumns are the names that are understood beside ours, in lower case:
// those of psrecord (its MB are 1024² bytes), of the monitor in PostgREST's load
// test, and such as say what they hold. A name without a unit is not guessed.
func usageColumns() map[string]usageColumn {
	mib := 1 / float64(1<<20)
	all := map[string]usageColumn{
		"elapsed seconds": {time: true}, "elapsed_time": {time: true}, "elapsed time": {time: true}, "elapsed": {time: true},
		"timestamp": {time: true, stamp: true}, // seconds or milliseconds since 1970, or as 2026-01-31T10:00:00Z

		"cpu (%)": {CPUPercent, 1, false, false}, "cpu": {CPUPercent, 1, false, false}, "%cpu": {CPUPercent, 1, false, false}, "cpu%": {CPUPercent, 1, false, false},
		"real (mb)": {RSSMiB, 1, false, false}, "mem_real": {RSSMiB, 1, false, false},
		"rss_bytes": {RSSMiB, mib, false, false}, "rss_kib": {RSSMiB, mib * 1024, false, false},
		"pss_bytes": {PSSMiB, mib, false, false}, "pss_kib": {PSSMiB, mib * 1024, false, false},
		"num_threads": {Threads, 1, false, false}, "num_fds": {FDs, 1, false, false},
	}
	all[elapsedName] = usageColumn{time: true}
	for _, q := range Quantities() {
		all[q.String()] = usageColumn{quantity: q, scale: 1}
	}
	return all
}

type usageColumn struct {
	quantity    Quantity
	scale       float64
	time, stamp bool
}

// header finds the columns.
func (r *usageReader) header(names []string) error {
	known := usageColumns()
	r.fields = len(names)
	for i, name := range names {
		name = strings.TrimSpace(name)
		c, ok := known[strings.ToLower(name)]
		switch {
		case !ok:
		case c.time && r.elapsed >= 0:
			return fmt.Errorf("%q and %q are both a time; leave one", strings.TrimSpace(names[r.elapsed]), name)
		case c.time:
			r.elapsed, r.stamps = i, c.stamp
		case r.Columns[c.quantity] != "":
			return fmt.Errorf("%q and %q are both %s; leave one", r.Columns[c.quantity], name, c.quantity)
		default:
			r.at[i], r.scale[c.quantity], r.Columns[c.quantity] = c.quantity, c.scale, name
		}
	}
	switch {
	case r.elapsed >= 0:
		return nil
	case strings.HasPrefix(names[0], "#"):
		return errors.New("is no CSV: it begins with #; with psrecord, use --log-format csv")
	case len(names) == 1:
		return fmt.Errorf("is no CSV of samples: its header is one field, %.60q", names[0])
	}
	return fmt.Errorf("has no column %s (or %q, %q, %q); it has %s", elapsedName, "Elapsed seconds", "elapsed_time", "timestamp", listed(names))
}

func listed(names []string) string {
	const most = 12
	var all []string
	for _, name := range names[:min(len(names), most)] {
		all = append(all, fmt.Sprintf("%.60q", strings.TrimSpace(name)))
	}
	if len(names) > most {
		all = append(all, fmt.Sprintf("%d more", len(names)-most))
	}
	return strings.Join(all, ", ")
}

// row reads one. Of a row that is too short the last columns are set aside.
func (r *usageReader) row(line int, record []string, separator rune) error {
	if len(record) > r.fields {
		hint := ""
		if separator == ',' {
			hint = "; with decimal commas, separate the fields by semicolons, or write the file with LC_ALL=C"
		}
		return fmt.Errorf("has %d fields, but the header %d%s", len(record), r.fields, hint)
	}
	if r.elapsed >= len(record) {
		return fmt.Errorf("is cut off: it has %d fields of %d, and no time", len(record), r.fields)
	}
	var u Usage
	seconds, err := r.moment(line, strings.TrimSpace(record[r.elapsed]), separator)
	if err != nil {
		return err
	}
	u.ElapsedS = seconds
	r.fractions = r.fractions || seconds != math.Trunc(seconds)
	for _, i := range slices.Sorted(maps.Keys(r.at)) {
		q := r.at[i]
		if i >= len(record) {
			r.fault(line, q, fmt.Sprintf("the row is cut off: it has %d fields of %d", len(record), r.fields))
			continue
		}
		text := strings.TrimSpace(record[i])
		if text == "" {
			continue
		}
		x, err := r.number(line, text, separator)
		if err != nil {
			r.fault(line, q, err.Error())
			continue
		}
		u.Set(q, x*r.scale[q])
	}
	r.Rows = append(r.Rows, u)
	r.lines = append(r.lines, line)
	return nil
}

// moment reads the time in seconds; of moments those since the first.
func (r *usageReader) moment(line int, text string, separator rune) (float64, error) {
	if t, err := time.Parse(time.RFC3339, text); err == nil && r.stamps {
		return float64(t.UnixMicro()) / 1e6, nil
	}
	x, err := r.number(line, text, separator)
	if err != nil {
		return 0, fmt.Errorf("the time: %w", err)
	}
	const inMilliseconds = 1e11 // as seconds, the year 5138
	if r.stamps && x > inMilliseconds {
		x /= 1e3
	}
	return x, nil
}

// number reads a plain decimal number. A decimal comma is one only where
// commas do not separate fields, and no decimal point is in the file.
func (r *usageReader) number(line int, text string, separator rune) (float64, error) {
	plain := text
	if strings.Count(text, ",") == 1 && separator != ',' {
		r.comma = cmp.Or(r.comma, line)
		plain = strings.Replace(text, ",", ".", 1)
	}
	if strings.Contains(text, ".") {
		r.dot = cmp.Or(r.dot, line)
	}
	if r.dot > 0 && r.comma > 0 {
		return 0, fmt.Errorf("%.40q: there is a decimal comma in line %d and a decimal point in line %d; which is it?", text, r.comma, r.dot)
	}
	x, err := strconv.ParseFloat(plain, 64)
	if err != nil || strings.Trim(plain, "0123456789.+-eE") != "" {
		hint := ""
		if strings.Contains(text, ",") {
			hint = "; with decimal commas, separate the fields by semicolons"
		}
		return 0, fmt.Errorf("%.40q is no number%s", text, hint)
	}
	return x, nil
}

// fault sets a quantity aside; the first fault counts.
func (r *usageReader) fault(line int, q Quantity, reason string) {
	if !r.faulty[q] {
		r.faulty[q] = true
		r.Aside = append(r.Aside, UsageFault{Line: line, Column: r.Columns[q], Quantities: []Quantity{q}, Reason: reason})
	}
}

// time checks the clock: of a file in which it stands still or goes back nothing
// can be told. Where whole seconds are skipped, nobody knows over which time the
// CPU's percentage was taken; where the times are exact, it is a gap.
func (r *usageReader) time() {
	column := "time"
	if r.stamps {
		first := r.Rows[0].ElapsedS
		for i := range r.Rows {
			r.Rows[i].ElapsedS = math.Round((r.Rows[i].ElapsedS-first)*1e6) / 1e6
		}
	}
	if x := r.Rows[0].ElapsedS; x < 0 {
		r.lost(r.lines[0], column, fmt.Sprintf("%s s is before the start", number(x)))
		return
	}
	var steps []float64
	for i := 1; i < len(r.Rows); i++ {
		before, now := r.Rows[i-1].ElapsedS, r.Rows[i].ElapsedS
		switch {
		case now == before:
			r.lost(r.lines[i], column, fmt.Sprintf("%s s is there twice", number(now)))
			return
		case now < before:
			r.lost(r.lines[i], column, fmt.Sprintf("goes back from %s to %s s", number(before), number(now)))
			return
		}
		steps = append(steps, now-before)
	}
	r.gaps(steps)
}

// gaps looks for steps that are longer than usual.
func (r *usageReader) gaps(steps []float64) {
	if len(steps) == 0 {
		return
	}
	sorted := slices.Sorted(slices.Values(steps))
	usual, gaps, first := sorted[(len(sorted)-1)/2], 0, ""
	for i, step := range steps {
		if step <= gapSteps*usual {
			continue
		}
		from, to := number(r.Rows[i].ElapsedS), number(r.Rows[i+1].ElapsedS)
		if gaps++; gaps == 1 {
			first = fmt.Sprintf("line %d: there is no sample from %s to %s s", r.lines[i+1], from, to)
		}
		if _, has := r.Columns[CPUPercent]; has && !r.fractions {
			r.fault(r.lines[i+1], CPUPercent, fmt.Sprintf("the time goes from %s to %s s; of whole seconds nobody knows over which time this was taken", from, to))
		}
	}
	switch {
	case gaps == 1:
		r.Notes = append(r.Notes, first)
	case gaps > 1:
		r.Notes = append(r.Notes, fmt.Sprintf("%s, the first of %d gaps", first, gaps))
	}
}

// lost sets everything aside.
func (r *usageReader) lost(line int, column, reason string) {
	all := slices.Sorted(maps.Keys(r.Columns))
	for _, q := range all {
		r.faulty[q] = true
	}
	r.Rows = nil
	r.Aside = []UsageFault{{Line: line, Column: column, Quantities: all, Reason: reason}}
}

// values checks each quantity, and takes those out of the rows that are faulty.
func (r *usageReader) values(cpus int) {
	for _, q := range slices.Sorted(maps.Keys(r.Columns)) {
		if !r.faulty[q] {
			r.check(q, cpus)
		}
		if r.faulty[q] {
			for i := range r.Rows {
				r.Rows[i].forget(q)
			}
		}
	}
}

func (r *usageReader) check(q Quantity, cpus int) {
	n, zeros, before := 0, 0, 0.0
	for i := range r.Rows {
		x, known := r.Rows[i].Get(q)
		if !known {
			continue
		}
		n++
		if x == 0 {
			zeros++
		}
		switch line := r.lines[i]; {
		case x < 0:
			r.fault(line, q, number(x/r.scale[q])+" is below 0")
		case q == CPUPercent && x > 100*cpuSlack*float64(cpus):
			r.fault(line, q, fmt.Sprintf("%s %% is more than %d CPUs have; if there were more, say so with --cpus", number(x), cpus))
		case q.Kind() == Counter && n > 1 && x < before:
			r.fault(line, q, fmt.Sprintf("goes down from %s to %s, which a counter cannot", number(before), number(x)))
		}
		before = x
	}
	if n > 0 && zeros == n && (q == CPUPercent || q == RSSMiB || q == PSSMiB) {
		r.fault(0, q, "is 0 in all rows: the process was idle, a wrapper in front of the server, or not measured at all")
	}
}

func number(x float64) string {
	if math.Abs(x) >= 1e15 {
		return strconv.FormatFloat(x, 'g', -1, 64)
	}
	return strconv.FormatFloat(x, 'f', -1, 64)
}
