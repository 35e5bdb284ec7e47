package record

import (
	"bufio"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	vegeta "github.com/tsenart/vegeta/v12/lib"
)

// RunWriter writes one run as it happens.
type RunWriter struct {
	folder  *Folder
	path    string // runs/ID below the folder
	results *os.File
	buf     *bufio.Writer
	encode  vegeta.Encoder
	slices  *os.File
	csv     *csv.Writer

	controls   *os.File // nil: there was none yet
	lines      *bufio.Writer
	controlled int // requests in it
}

// slicesHeader names the columns; due is 0 in a closed loop.
var slicesHeader = []string{"slice", "start_unix_ns", "counted_unix_ns", "end_unix_ns", "sent", "due"}

// StartRun makes the run's folder and writes run.json as r is now.
func (f *Folder) StartRun(r Run) (_ *RunWriter, err error) {
	w := &RunWriter{folder: f, path: filepath.Join(runsDir, r.ID)}
	defer func() {
		if err != nil {
			w.closeFiles()
		}
	}()
	if err := f.writeJSON(filepath.Join(w.path, runFile), r); err != nil {
		return nil, err
	}
	if w.results, err = os.Create(filepath.Join(f.dir, w.path, resultFile)); err != nil {
		return nil, fmt.Errorf("writing the record: %w", err)
	}
	if w.slices, err = os.Create(filepath.Join(f.dir, w.path, slicesFile)); err != nil {
		return nil, fmt.Errorf("writing the record: %w", err)
	}
	w.buf = bufio.NewWriterSize(w.results, 1<<16)
	w.encode = vegeta.NewEncoder(w.buf)
	w.csv = csv.NewWriter(w.slices)
	return w, w.row(slicesHeader)
}

// Log is the path of the router's log in the run's folder.
func (w *RunWriter) Log() string { return filepath.Join(w.folder.dir, w.path, LogFile) }

func (w *RunWriter) row(fields []string) error {
	err := w.csv.Write(fields)
	if w.csv.Flush(); err == nil {
		err = w.csv.Error()
	}
	if err != nil {
		return fmt.Errorf("writing the record: %s: %w", slicesFile, err)
	}
	return nil
}

// Results appends requests of slice n. The slice's number goes into the
// Attack field only here: an attack that has a name sends it as a header, and
// the arms would get different requests.
func (w *RunWriter) Results(n int, results []*vegeta.Result) error {
	name := strconv.Itoa(n)
	for _, r := range results {
		r.Attack, r.Body, r.Headers = name, nil, nil
		if err := w.encode.Encode(r); err != nil {
			return fmt.Errorf("writing the record: %s: %w", resultFile, err)
		}
	}
	return nil
}

// Slice ends a slice, all of whose results were written.
func (w *RunWriter) Slice(s Slice) error {
	if err := w.buf.Flush(); err != nil {
		return fmt.Errorf("writing the record: %s: %w", resultFile, err)
	}
	ns := func(t time.Time) string { return strconv.FormatInt(t.UnixNano(), 10) }
	return w.row([]string{strconv.Itoa(s.N), ns(s.Start), ns(s.Counted), ns(s.End), strconv.Itoa(s.Sent), strconv.Itoa(s.Due)})
}

// Finish closes the files and replaces run.json by r, whose state is now final;
// ControlRequests it fills in itself.
func (w *RunWriter) Finish(r Run) error {
	err := w.buf.Flush()
	if err2 := w.closeFiles(); err == nil {
		err = err2
	}
	if err != nil {
		return fmt.Errorf("writing the record: %w", err)
	}
	r.ControlRequests = w.controlled
	return w.folder.writeJSON(filepath.Join(w.path, runFile), r)
}

func (w *RunWriter) closeFiles() error {
	var errs []error
	for _, f := range []*os.File{w.results, w.slices, w.controls} {
		if f != nil {
			errs = append(errs, f.Close())
		}
	}
	return errors.Join(errs...)
}

// ErrNoRun says that a planned run was never begun.
var ErrNoRun = errors.New("the run was never begun")

// ReadRun reads one run of the session. A run that is not complete is read as
// far as it goes; a complete one must be whole.
func (s *Session) ReadRun(id string) (*Run, error) {
	dir := filepath.Join(s.Dir, runsDir, id)
	path := filepath.Join(dir, runFile)
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNoRun
	}
	if err != nil {
		return nil, fmt.Errorf("reading a run: %w", err)
	}
	r := &Run{}
	if err := json.Unmarshal(data, r); err != nil {
		return nil, fmt.Errorf("reading a run: %s: %w", path, err)
	}
	i := slices.IndexFunc(s.Order, func(o RunRef) bool { return o.ID == id })
	if i < 0 || r.ID != id || r.Arm != s.Order[i].Arm || r.Block != s.Order[i].Block {
		return nil, fmt.Errorf("reading a run: %s: run %q of arm %q in block %d is not the one that %s has planned under that name", path, r.ID, r.Arm, r.Block, sessionFile)
	}
	if err := s.readSamples(r, dir); err != nil {
		return nil, fmt.Errorf("reading a run: %w", err)
	}
	if err := s.readControls(r, dir); err != nil {
		return nil, fmt.Errorf("reading a run: %w", err)
	}
	return r, nil
}

func readSlices(path string) ([]Slice, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	rd := csv.NewReader(bufio.NewReader(f))
	rd.ReuseRecord = true
	header, err := rd.Read()
	// Records of the first days have no column for what was due.
	old := slices.Equal(header, slicesHeader[:len(slicesHeader)-1])
	if err != nil || !old && !slices.Equal(header, slicesHeader) {
		return nil, fmt.Errorf("%s:1: the header is not %v", path, slicesHeader)
	}
	var all []Slice
	for {
		row, err := rd.Read()
		if err == io.EOF {
			return all, nil
		}
		if err != nil {
			return all, fmt.Errorf("%s: %w", path, err)
		}
		line, _ := rd.FieldPos(0)
		var v [6]int64
		for i := range row {
			if v[i], err = strconv.ParseInt(row[i], 10, 64); err != nil {
				return all, fmt.Errorf("%s:%d: %s: %w", path, line, slicesHeader[i], err)
			}
		}
		sl := Slice{N: int(v[0]), Start: time.Unix(0, v[1]), Counted: time.Unix(0, v[2]), End: time.Unix(0, v[3]), Sent: int(v[4]), Due: int(v[5])}
		if n := len(all); n > 0 && all[n-1].N >= sl.N {
			return all, fmt.Errorf("%s:%d: slice %d comes after slice %d", path, line, sl.N, all[n-1].N)
		}
		if sl.Sent < 0 || sl.Due < 0 || sl.Counted.Before(sl.Start) {
			return all, fmt.Errorf("%s:%d: slice %d cannot have been: %v", path, line, sl.N, row)
		}
		all = append(all, sl)
	}
}
