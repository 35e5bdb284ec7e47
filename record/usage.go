package record

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Quantity is one column of a monitor file: what a process (or a tree of them)
// uses of its machine.
type Quantity int

// The quantities in the order of the file's columns.
const (
	CPUPercent       Quantity = iota // of one CPU, over the time since the row before; unknown in the first
	RSSMiB                           // resident memory; pages that several processes of a tree share count for each
	PSSMiB                           // proportional set size: shared pages count in parts
	Threads                          // now
	FDs                              // open file descriptors now
	CtxVoluntary                     // context switches since the first row: it waited for something
	CtxInvoluntary                   // the same: it was made to give way
	ReadBytes                        // read from storage since the first row
	WriteBytes                       // written to storage since the first row
	Periods                          // CPU quota: periods since the first row
	ThrottledPeriods                 // those of them in which it had to wait
	ThrottledS                       // and for how many seconds, over all CPUs
	quantities
)

// Kind says what may be done with a quantity's values.
type Kind int

// The kinds.
const (
	Rate    Kind = iota // over the time since the row before: the mean is weighted with it
	Level               // at the moment of the row
	Counter             // only grows
)

// quantityFacts are a quantity's name, which is its column's, its kind, and how
// many decimals are kept.
type quantityFacts struct {
	name     string
	kind     Kind
	decimals int
}

func (q Quantity) facts() quantityFacts {
	return [quantities]quantityFacts{
		CPUPercent: {"cpu_percent", Rate, 2}, RSSMiB: {"rss_mib", Level, 3}, PSSMiB: {"pss_mib", Level, 3},
		Threads: {"threads", Level, 0}, FDs: {"fds", Level, 0},
		CtxVoluntary: {"ctx_voluntary", Counter, 0}, CtxInvoluntary: {"ctx_involuntary", Counter, 0},
		ReadBytes: {"read_bytes", Counter, 0}, WriteBytes: {"write_bytes", Counter, 0},
		Periods: {"periods", Counter, 0}, ThrottledPeriods: {"throttled_periods", Counter, 0}, ThrottledS: {"throttled_s", Counter, 6},
	}[q]
}

func (q Quantity) String() string { return q.facts().name }

// MarshalText makes it its name in JSON.
func (q Quantity) MarshalText() ([]byte, error) { return []byte(q.String()), nil }

// Kind is the quantity's.
func (q Quantity) Kind() Kind { return q.facts().kind }

// Quantities are all of them, in the order of the file's columns.
func Quantities() (all []Quantity) {
	for q := range quantities {
		all = append(all, q)
	}
	return all
}

// ParseQuantity finds one by its name.
func ParseQuantity(name string) (Quantity, bool) {
	i := slices.IndexFunc(Quantities(), func(q Quantity) bool { return q.String() == name })
	return Quantity(max(i, 0)), i >= 0
}

// Usage is one row of a monitor file: what was used ElapsedS seconds after the
// first row, by a clock that only goes forward and goes on while the machine
// sleeps. What is not known is not 0: it is not there.
type Usage struct {
	ElapsedS float64
	values   [quantities]float64
	known    [quantities]bool
}

// Set notes a value.
func (u *Usage) Set(q Quantity, x float64) { u.values[q], u.known[q] = x, true }

// Get returns a value, if it is known.
func (u *Usage) Get(q Quantity) (x float64, known bool) { return u.values[q], u.known[q] }

// forget takes a value away.
func (u *Usage) forget(q Quantity) { u.values[q], u.known[q] = 0, false }

// elapsedName is the first column of a monitor file.
const elapsedName = "elapsed_s"

// UsageHeader is the first line of a monitor file.
func UsageHeader() string {
	names := []string{elapsedName}
	for _, q := range Quantities() {
		names = append(names, q.String())
	}
	return strings.Join(names, ",")
}

// UsageWriter writes a monitor file: each row in one piece, so that a monitor
// that is killed leaves whole lines.
type UsageWriter struct {
	w    io.Writer
	size int64 // of all that was written whole
}

// NewUsageWriter writes the header.
func NewUsageWriter(w io.Writer) (*UsageWriter, error) {
	u := &UsageWriter{w: w}
	return u, u.line([]byte(UsageHeader() + "\n"))
}

// Write appends a row. Unknown values are blank; ElapsedS keeps milliseconds.
func (w *UsageWriter) Write(u Usage) error {
	line := strconv.AppendFloat(nil, u.ElapsedS, 'f', 3, 64)
	for _, q := range Quantities() {
		line = append(line, ',')
		if x, known := u.Get(q); known && !math.IsNaN(x) && !math.IsInf(x, 0) {
			line = strconv.AppendFloat(line, x, 'f', q.facts().decimals, 64)
		}
	}
	return w.line(append(line, '\n'))
}

// line writes one line. Of a line that does not fit on the disk nothing is
// left, where the file can be cut.
func (w *UsageWriter) line(b []byte) error {
	n, err := w.w.Write(b)
	if err == nil {
		w.size += int64(n)
		return nil
	}
	if f, ok := w.w.(interface{ Truncate(int64) error }); ok && n > 0 {
		_ = f.Truncate(w.size) // what counts is the error before
	}
	return fmt.Errorf("writing the samples: %w", err)
}
