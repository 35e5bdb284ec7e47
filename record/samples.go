package record

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	vegeta "github.com/tsenart/vegeta/v12/lib"
)

// request is what is kept of one result while its slice is read.
type request struct {
	at      int64 // time stamp, ns since 1970
	latency int64 // ns
	seq     uint64
	slice   int32 // index in Run.Slices
	route   int32 // index in Meta.Routes
	attack  int32 // loose files: which of the file's attacks, by first appearance
	body    uint32
	code    uint16
}

// filing is where the requests of a run go: sessionFiling, looseFiling.
type filing interface {
	// place says to which slice, route and attack a request belongs.
	place(q *request, v *vegeta.Result) error
	// add takes the requests, each once, in the order they were sent; counted
	// says that it is no cold start.
	add(q request, counted bool) error
}

// readSamples fills in the run's slices, samples and counts.
func (s *Session) readSamples(r *Run, dir string) error {
	slicesPath := filepath.Join(dir, slicesFile)
	all, err := readSlices(slicesPath)
	if err != nil && r.State == Complete {
		return err
	}
	r.Slices = all
	path := filepath.Join(dir, resultFile)
	var f *sessionFiling
	err = collect(r, func() (*results, error) { return openGob(path) }, func() filing {
		f = newSessionFiling(&s.Meta, r)
		return f
	})
	if err != nil && r.State == Complete {
		return err
	}
	for _, sm := range r.Samples {
		sm.finish()
	}
	planned := 0
	for _, sl := range all {
		planned += sl.Sent
	}
	if r.State != Complete {
		return nil
	}
	if r.Sent != planned {
		return fmt.Errorf("%s: holds %d requests, but %s says that %d were sent", path, r.Sent, slicesPath, planned)
	}
	for i, sl := range all {
		if got := f.sent[i]; got != sl.Sent {
			return fmt.Errorf("%s: slice %d holds %d requests, but %s says that %d were sent", path, sl.N, got, slicesPath, sl.Sent)
		}
	}
	return nil
}

// sessionFiling knows the slices, the routes and the expected statuses beforehand.
type sessionFiling struct {
	run      *Run
	index    map[string]int32 // of a route by its name
	byURL    map[[2]string]int32
	slices   map[string]int32 // index in run.Slices by number
	expected []map[int]bool   // by route
	samples  []*Samples       // by route
	sent     []int            // by slice
}

func newSessionFiling(m *Meta, r *Run) *sessionFiling {
	f := &sessionFiling{run: r, index: map[string]int32{}, byURL: map[[2]string]int32{}, slices: map[string]int32{}, sent: make([]int, len(r.Slices))}
	r.Samples = map[string]*Samples{}
	for i, rt := range m.Routes {
		f.index[rt.Name] = int32(i)
		s := &Samples{Codes: map[int]int{}, Ends: make([]int, len(r.Slices))}
		f.samples = append(f.samples, s)
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
		f.expected = append(f.expected, expected)
	}
	for i, sl := range r.Slices {
		f.slices[strconv.Itoa(sl.N)] = int32(i)
	}
	return f
}

func (f *sessionFiling) place(q *request, v *vegeta.Result) error {
	var ok bool
	if q.slice, ok = f.slices[v.Attack]; !ok {
		return fmt.Errorf("belongs to slice %q, which %s does not have", v.Attack, slicesFile)
	}
	key := [2]string{v.Method, v.URL}
	if q.route, ok = f.byURL[key]; !ok {
		name := RouteName(v.Method, v.URL)
		if q.route, ok = f.index[name]; !ok {
			return fmt.Errorf("is %q, a route that %s does not have", name, sessionFile)
		}
		f.byURL[key] = q.route
	}
	return nil
}

func (f *sessionFiling) add(q request, counted bool) error {
	f.sent[q.slice]++
	s := f.samples[q.route]
	s.Codes[int(q.code)]++
	if counted && q.code != 0 && f.expected[q.route][int(q.code)] {
		s.add(q)
	}
	return nil
}

// add takes a request that counts; they come slice by slice.
func (s *Samples) add(q request) {
	s.BodyBytes += int64(q.body)
	s.Latency = append(s.Latency, q.latency)
	s.Ends[q.slice] = len(s.Latency)
}

// finish closes the gaps that slices without a sample left in Ends.
func (s *Samples) finish() {
	for i := 1; i < len(s.Ends); i++ {
		s.Ends[i] = max(s.Ends[i], s.Ends[i-1])
	}
	s.Latency = slices.Clip(s.Latency)
}

// collect reads a run's results and sets Sent.
//
// Results come slice by slice, so only one slice is held at a time. A file
// whose slices are mixed (records copied to its end, say) is read again as a
// whole and sorted first: what a file holds must not depend on its order.
func collect(r *Run, open func() (*results, error), file func() filing) error {
	err := errMixed
	for i := 0; i < 2 && errors.Is(err, errMixed); i++ {
		in, err2 := open()
		if err2 != nil {
			return err2
		}
		r.Sent = 0
		c := &collector{run: r, filing: file(), mixed: i > 0, current: -1, flushed: request{slice: -1}}
		err = c.read(in)
		in.close()
	}
	return err
}

var errMixed = errors.New("slices are mixed")

// collector brings results in order.
type collector struct {
	filing
	run     *Run
	mixed   bool      // all requests are held, and sorted at the end
	pending []request // of the slice that is being read
	current int32     // that slice's index; -1: none yet
	flushed request   // the last one that was added
	seen    []bool    // routes met in the slice of flushed
}

// A slice that holds a whole run is read in pieces: once it has come to most
// requests, all but the last few are added to the samples. Requests of several
// workers come in the order of their answers, so they stand a little out of order.
const (
	mostPending = 1 << 17
	keptPending = 1 << 14
)

func (c *collector) read(in *results) error {
	for {
		v, err := in.next()
		if err == io.EOF {
			break
		} else if err != nil {
			return err
		}
		q := request{at: v.Timestamp.UnixNano(), latency: int64(v.Latency), seq: v.Seq, code: v.Code, body: uint32(min(v.BytesIn, math.MaxUint32))}
		if err := c.place(&q, &v); err != nil {
			return fmt.Errorf("%s: request %d %w", in.path, in.n, err)
		}
		if q.slice != c.current && !c.mixed {
			if q.slice < c.current {
				return errMixed
			}
			if err := c.flush(in, 0); err != nil {
				return err
			}
			c.current = q.slice
		}
		if byTime(q, c.flushed) <= 0 {
			return errMixed // it belongs before what was already added, or is a copy of it
		}
		c.pending = append(c.pending, q)
		if len(c.pending) == mostPending && !c.mixed {
			if err := c.flush(in, keptPending); err != nil {
				return err
			}
		}
	}
	return c.flush(in, 0)
}

func byTime(a, b request) int {
	return cmp.Or(cmp.Compare(a.slice, b.slice), cmp.Compare(a.at, b.at), cmp.Compare(a.seq, b.seq))
}

// flush adds the pending requests but the last few to the samples: in order,
// identical ones once. A record copied ten times over is still one observation.
func (c *collector) flush(in *results, keep int) error {
	if !slices.IsSortedFunc(c.pending, byTime) {
		slices.SortStableFunc(c.pending, byTime)
	}
	c.pending = slices.Compact(c.pending)
	ready := c.pending[:max(0, len(c.pending)-keep)]
	for _, q := range ready {
		if byTime(q, c.flushed) == 0 {
			return fmt.Errorf("%s: two requests have the sequence number %d and the time stamp %s, but are not the same", in.path, q.seq, stamp(q))
		}
		if q.slice != c.flushed.slice {
			clear(c.seen)
		}
		c.flushed = q
		// Cold starts: the first moments of a slice, and each route's first request in it.
		if n := int(q.route) + 1; n > len(c.seen) {
			c.seen = append(c.seen, make([]bool, n-len(c.seen))...)
		}
		first := !c.seen[q.route]
		c.seen[q.route] = true
		sl := &c.run.Slices[q.slice]
		if sl.Start.IsZero() { // a loose file does not say
			sl.Start = time.Unix(0, q.at)
			sl.Counted = sl.Start.Add(looseCountFrom)
		}
		if err := c.add(q, !first && q.at >= sl.Counted.UnixNano()); err != nil {
			return fmt.Errorf("%s: %w", in.path, err)
		}
	}
	c.run.Sent += len(ready)
	c.pending = c.pending[:copy(c.pending, c.pending[len(ready):])]
	return nil
}

func stamp(q request) string { return time.Unix(0, q.at).UTC().Format(time.RFC3339Nano) }
