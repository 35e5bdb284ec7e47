package record

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
)

// controlsHeader names the columns of a run's controls.csv. The route is its
// place in the session's routes, from 0; a responder has one, 0.
const controlsHeader = "kind,slice,route,latency_ns"

var controlFields = [...]string{"kind", "slice", "route", "latency_ns"}

// Control appends a control slice: a line for each request that counts. The
// file is made with the first one.
func (w *RunWriter) Control(s ControlSlice) error {
	if w.controls == nil {
		f, err := os.Create(filepath.Join(w.folder.dir, w.path, controlsFile))
		if err != nil {
			return fmt.Errorf("writing the record: %w", err)
		}
		w.controls, w.lines = f, bufio.NewWriter(f)
		w.lines.WriteString(controlsHeader + "\n") // its error comes back with Flush
	}
	var line []byte
	for route, latencies := range s.Latency {
		head := fmt.Appendf(nil, "%s,%d,%d,", s.Kind, s.N, route)
		for _, ns := range latencies {
			line = append(strconv.AppendInt(append(line[:0], head...), ns, 10), '\n')
			w.lines.Write(line)
			w.controlled++
		}
	}
	if err := w.lines.Flush(); err != nil {
		return fmt.Errorf("writing the record: %s: %w", controlsFile, err)
	}
	return nil
}

// readControls fills in the run's controls. Where the file is missing it has
// none, and whoever wants to see one does not; what is left of one must be whole.
func (s *Session) readControls(r *Run, dir string) error {
	path := filepath.Join(dir, controlsFile)
	if s.Schedule.Controls == nil {
		if r.ControlRequests > 0 {
			return fmt.Errorf("%s says that %d requests of controls were counted, but %s has no controls", filepath.Join(dir, runFile), r.ControlRequests, sessionFile)
		}
		return nil
	}
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		if r.ControlRequests > 0 {
			return fmt.Errorf("%s is missing, but %s says that %d requests of controls were counted", path, runFile, r.ControlRequests)
		}
		return nil
	}
	if err != nil {
		return err
	}
	c := controlReader{routes: len(s.Routes), last: map[ControlKind]int{}}
	err = c.read(data)
	r.Controls = c.all
	if r.State != Complete {
		return nil
	}
	if err == nil && c.lines != r.ControlRequests {
		return fmt.Errorf("%s: holds %d requests, but %s says that %d were counted", path, c.lines, runFile, r.ControlRequests)
	}
	if err != nil {
		return fmt.Errorf("%s:%w", path, err)
	}
	return nil
}

// controlReader reads a controls.csv. A run may have 100,000 lines, so nothing
// is made for each of them.
type controlReader struct {
	routes int
	all    []ControlSlice
	last   map[ControlKind]int // number of the newest slice
	lines  int                 // requests read
}

// read takes lines up to the first that is damaged, or that has no end.
func (c *controlReader) read(data []byte) error {
	header, rest, ok := bytes.Cut(data, []byte("\n"))
	if !ok || string(header) != controlsHeader {
		return fmt.Errorf("1: the header is not %s", controlsHeader)
	}
	for len(rest) > 0 {
		var line []byte
		if line, rest, ok = bytes.Cut(rest, []byte("\n")); !ok {
			return fmt.Errorf("%d: the last line has no end: the file is cut short", c.lines+2)
		}
		if err := c.line(line); err != nil {
			return fmt.Errorf("%d: %w", c.lines+2, err)
		}
		c.lines++
	}
	return nil
}

func (c *controlReader) line(line []byte) error {
	if n := bytes.Count(line, []byte(",")) + 1; n != len(controlFields) {
		return fmt.Errorf("has %d fields instead of %d (%s)", n, len(controlFields), controlsHeader)
	}
	kind, rest, _ := bytes.Cut(line, []byte(","))
	var v [len(controlFields)]int64
	for i := 1; i < len(v); i++ {
		var field []byte
		if field, rest, _ = bytes.Cut(rest, []byte(",")); !digits(field, &v[i]) {
			return fmt.Errorf("%s: %.40q is no whole number from 0 to 18 digits", controlFields[i], field)
		}
	}
	n, route := int(v[1]), int(v[2])
	sl, err := c.slice(kind, n)
	if err != nil {
		return err
	}
	if v[2] >= int64(len(sl.Latency)) {
		return fmt.Errorf("route: %d is none of the %d of %s slices (from 0)", v[2], len(sl.Latency), sl.Kind)
	}
	sl.Latency[route] = append(sl.Latency[route], v[3])
	return nil
}

// slice is that of the line: the one before's, or the next of its kind.
func (c *controlReader) slice(kind []byte, n int) (*ControlSlice, error) {
	if i := len(c.all) - 1; i >= 0 && c.all[i].N == n && string(c.all[i].Kind) == string(kind) {
		return &c.all[i], nil
	}
	sl := ControlSlice{Kind: ControlKind(kind), N: n}
	switch sl.Kind {
	case Responder:
		sl.Latency = make([][]int64, 1)
	case Delayed, Undelayed:
		sl.Latency = make([][]int64, c.routes)
	default:
		return nil, fmt.Errorf("kind: %.40q is none of %s, %s and %s", kind, Responder, Delayed, Undelayed)
	}
	if last := c.last[sl.Kind]; n <= last {
		return nil, fmt.Errorf("slice: %s %d comes after %s %d", sl.Kind, n, sl.Kind, last)
	}
	c.last[sl.Kind] = n
	c.all = append(c.all, sl)
	return &c.all[len(c.all)-1], nil
}

// digits reads a whole number of at most 18 digits, which an int64 can hold.
func digits(field []byte, v *int64) bool {
	if len(field) == 0 || len(field) > 18 {
		return false
	}
	for _, b := range field {
		if b < '0' || b > '9' {
			return false
		}
		*v = 10**v + int64(b-'0')
	}
	return true
}
