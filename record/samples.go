package record

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	vegeta "github.com/tsenart/vegeta/v12/lib"
)

// request is what is kept of one result while its slice is read.
type request struct {
	at      int64 // time stamp, ns since 1970
	latency int64 // ns
	seq     uint64
	slice   int32 // index in Run.Slices
	route   int32 // index in Meta.Routes
	body    uint32
	code    uint16
}

// readSamples fills in the run's slices, samples and counts.
//
// Results come slice by slice, so only one slice is held at a time. A file
// whose slices are mixed (records copied to its end, say) is read again as a
// whole and sorted first: what a file holds must not depend on its order.
func (s *Session) readSamples(r *Run, dir string) error {
	slicesPath := filepath.Join(dir, slicesFile)
	all, err := readSlices(slicesPath)
	if err != nil && r.State == Complete {
		return err
	}
	r.Slices = all
	c := newCollector(&s.Meta, r)
	path := filepath.Join(dir, resultFile)
	err = c.read(path, false)
	if errors.Is(err, errMixed) {
		c = newCollector(&s.Meta, r)
		err = c.read(path, true)
	}
	if err != nil && r.State == Complete {
		return err
	}
	c.finish()
	planned := 0
	for _, sl := range all {
		planned += sl.Sent
	}
	if r.State == Complete && r.Sent != planned {
		return fmt.Errorf("%s: holds %d requests, but %s says that %d were sent", path, r.Sent, slicesPath, planned)
	}
	return nil
}

var errMixed = errors.New("slices are mixed")

// collector turns results into samples.
type collector struct {
	run      *Run
	routes   []Route
	index    map[string]int32 // by route name
	byURL    map[[2]string]int32
	slices   map[string]int32 // index in run.Slices by number
	expected []map[int]bool   // by route
	samples  []*Samples       // by route
	pending  []request        // of the slice that is being read
	current  int32            // that slice's index; -1: none yet
	flushed  request          // the last one that was added to the samples
	seen     []bool           // routes met in the slice of flushed
}

// A slice that holds a whole run is read in pieces: once it has come to most
// requests, all but the last few are added to the samples. Requests of several
// workers come in the order of their answers, so they stand a little out of order.
const (
	mostPending = 1 << 17
	keptPending = 1 << 14
)

func newCollector(m *Meta, r *Run) *collector {
	c := &collector{
		run: r, routes: m.Routes, current: -1, flushed: request{slice: -1},
		index: map[string]int32{}, byURL: map[[2]string]int32{}, slices: map[string]int32{},
		seen: make([]bool, len(m.Routes)),
	}
	r.Sent, r.Samples = 0, map[string]*Samples{}
	for i, rt := range m.Routes {
		c.index[rt.Name] = int32(i)
		s := &Samples{Codes: map[int]int{}, Ends: make([]int, len(r.Slices))}
		c.samples = append(c.samples, s)
		r.Samples[rt.Name] = s
		expected := map[int]bool{}
		for _, code := range rt.Status {
			expected[code] = true
		}
		if len(rt.Status) == 0 {
			for _, a := range r.Preflight {
				if a.Route == rt.Name {
					expected[a.Status] = true
				}
			}
		}
		c.expected = append(c.expected, expected)
	}
	for i, sl := range r.Slices {
		c.slices[strconv.Itoa(sl.N)] = int32(i)
	}
	return c
}

func (c *collector) read(path string, mixed bool) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	dec := vegeta.NewDecoder(bufio.NewReaderSize(f, 1<<16))
	for n := 1; ; n++ {
		var v vegeta.Result
		if err := dec.Decode(&v); err == io.EOF {
			break
		} else if err != nil {
			return fmt.Errorf("%s: request %d cannot be read (the file is damaged or cut short): %w", path, n, err)
		}
		q := request{at: v.Timestamp.UnixNano(), latency: int64(v.Latency), seq: v.Seq, code: v.Code, body: uint32(min(v.BytesIn, math.MaxUint32))}
		var ok bool
		if q.slice, ok = c.slices[v.Attack]; !ok {
			return fmt.Errorf("%s: request %d belongs to slice %q, which %s does not have", path, n, v.Attack, slicesFile)
		}
		key := [2]string{v.Method, v.URL}
		if q.route, ok = c.byURL[key]; !ok {
			name := RouteName(v.Method, v.URL)
			if q.route, ok = c.index[name]; !ok {
				return fmt.Errorf("%s: request %d is %q, a route that %s does not have", path, n, name, sessionFile)
			}
			c.byURL[key] = q.route
		}
		if q.slice != c.current && !mixed {
			if q.slice < c.current {
				return errMixed
			}
			c.flush(0)
			c.current = q.slice
		}
		if byTime(q, c.flushed) <= 0 {
			return errMixed // it belongs before what was already added, or is a copy of it
		}
		c.pending = append(c.pending, q)
		if len(c.pending) == mostPending && !mixed {
			c.flush(keptPending)
		}
	}
	c.flush(0)
	return nil
}

func byTime(a, b request) int {
	return cmp.Or(cmp.Compare(a.slice, b.slice), cmp.Compare(a.at, b.at), cmp.Compare(a.seq, b.seq))
}

// flush adds the pending requests but the last few to the samples: in order,
// identical ones once. A record copied ten times over is still one observation.
func (c *collector) flush(keep int) {
	if !slices.IsSortedFunc(c.pending, byTime) {
		slices.SortStableFunc(c.pending, byTime)
	}
	c.pending = slices.CompactFunc(c.pending, func(a, b request) bool { return byTime(a, b) == 0 })
	ready := c.pending[:max(0, len(c.pending)-keep)]
	for _, q := range ready {
		if q.slice != c.flushed.slice {
			clear(c.seen)
		}
		c.flushed = q
		s := c.samples[q.route]
		s.Codes[int(q.code)]++
		// Cold starts: the first moments of a slice, and each route's first request in it.
		first := !c.seen[q.route]
		c.seen[q.route] = true
		if first || q.at < c.run.Slices[q.slice].Counted.UnixNano() {
			continue
		}
		if q.code == 0 || !c.expected[q.route][int(q.code)] {
			continue
		}
		s.BodyBytes += int64(q.body)
		s.Latency = append(s.Latency, q.latency)
		s.Ends[q.slice] = len(s.Latency)
	}
	c.run.Sent += len(ready)
	c.pending = c.pending[:copy(c.pending, c.pending[len(ready):])]
}

// finish closes the gaps that slices without a sample left in Ends.
func (c *collector) finish() {
	for _, s := range c.samples {
		for i := 1; i < len(s.Ends); i++ {
			s.Ends[i] = max(s.Ends[i], s.Ends[i-1])
		}
		s.Latency = slices.Clip(s.Latency)
	}
}
