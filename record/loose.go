package record

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"maps"
	"slices"
	"time"

	vegeta "github.com/tsenart/vegeta/v12/lib"
)

// NoTarget is the row of results that have neither a URL nor a status: vegeta
// could not make a request. They are failures of no route.
const NoTarget = "(no target)"

// ErrGivenTwice says that two of the files hold the same requests.
var ErrGivenTwice = errors.New("a file counts once")

const (
	// looseCountFrom is METHOD.md's start of a slice that is not counted.
	looseCountFrom = 5 * time.Millisecond
	// mostRoutes is more than a report can show; beyond it, a part of the URL
	// is not the route's name but chance.
	mostRoutes = 10_000
)

// LooseArm is one arm made of result files, each of which is one run.
type LooseArm struct {
	Arm
	Files []string
}

// ReadLoose makes a session of vegeta's result files (gob, CSV or JSON, told
// apart by content). The k-th file of each arm belongs to block k. Files must
// be whole, hold one attack each and be all different (ErrGivenTwice).
//
// A file is read as one slice: its first 5 ms and each route's first request
// are not counted. A route expects the status that most requests had in the
// first file with that route, baselines first, among those below 500 but 401
// and 403. Nothing is known of the host and of the order of the runs, except
// what the time stamps say.
func ReadLoose(arms ...LooseArm) (*Session, error) {
	l := &loose{index: map[string]int32{}, sums: map[[sha256.Size]byte]string{}}
	s := &Session{Loose: true, Meta: Meta{Format: Format, State: Complete, Rules: DefaultRules(), Schedule: Schedule{
		Mode: Interleaved, CountFromS: Seconds(looseCountFrom.Seconds()),
	}}}
	most := 0
	for _, a := range arms {
		s.Arms = append(s.Arms, a.Arm)
		most = max(most, len(a.Files))
	}
	s.Schedule.Blocks = most
	for block := 1; block <= most; block++ {
		for _, a := range arms {
			if block > len(a.Files) {
				continue
			}
			r, err := l.read(a.Files[block-1], block, a.Name)
			if err != nil {
				return nil, fmt.Errorf("reading the results: %w", err)
			}
			s.Runs = append(s.Runs, r)
			s.Order = append(s.Order, RunRef{ID: r.ID, Block: block, Arm: a.Name})
		}
	}
	l.finish(s)
	if apart(s) {
		s.Schedule.Mode = Sequential
	}
	return s, nil
}

// apart says that each arm's files end before the next arm's begin.
func apart(s *Session) bool {
	ends := map[string][2]time.Time{}
	for _, r := range s.Runs {
		e, ok := ends[r.Arm]
		if !ok || r.Started.Before(e[0]) {
			e[0] = r.Started
		}
		if r.Ended.After(e[1]) {
			e[1] = r.Ended
		}
		ends[r.Arm] = e
	}
	all := slices.SortedFunc(maps.Values(ends), func(a, b [2]time.Time) int { return a[0].Compare(b[0]) })
	for i := 1; i < len(all); i++ {
		if all[i][0].Before(all[i-1][1]) {
			return false
		}
	}
	return len(all) > 1
}

// loose is what the files have in common while they are read.
type loose struct {
	index map[string]int32             // of a route by its name
	names []string                     // by index
	order []int32                      // routes as they were first sent
	sums  map[[sha256.Size]byte]string // file by what it holds
	files []*looseFiling               // one for each run
}

func (l *loose) read(path string, block int, arm string) (*Run, error) {
	r := &Run{ID: path, Block: block, Arm: arm, State: Complete, Samples: map[string]*Samples{}}
	known := len(l.names)
	var f *looseFiling
	err := collect(r, func() (*results, error) { return openAny(path) }, func() filing {
		r.Slices = []Slice{{N: 1}}
		f = &looseFiling{
			loose: l, run: r, byURL: map[[2]string]int32{}, attacks: map[string]int32{}, last: map[int32]uint64{},
			samples: map[int32]map[int]*Samples{}, sum: sha256.New(),
		}
		return f
	})
	if err != nil {
		return nil, err
	}
	if r.Sent == 0 {
		return nil, fmt.Errorf("%s holds no result", path)
	}
	sum := [sha256.Size]byte(f.sum.Sum(nil))
	if other, ok := l.sums[sum]; ok {
		return nil, fmt.Errorf("%s and %s hold the same requests: %w", other, path, ErrGivenTwice)
	}
	l.sums[sum] = path
	for _, route := range f.order {
		if int(route) >= known {
			l.order = append(l.order, route)
		}
	}
	l.files = append(l.files, f)
	r.Slices[0].Sent = r.Sent
	r.Started, r.Ended = r.Slices[0].Start, r.Slices[0].End
	return r, nil
}

// finish settles the expected statuses, which only the files tell, and gives
// the runs their samples.
func (l *loose) finish(s *Session) {
	for _, route := range l.order {
		rt := Route{Name: l.names[route], Learned: true}
		if code := l.usual(s, route); code != 0 {
			rt.Status = []int{code}
		}
		s.Routes = append(s.Routes, rt)
		for i, r := range s.Runs {
			r.Samples[rt.Name] = l.files[i].choose(route, rt.Status)
		}
	}
}

// usual is the status that most requests had in the first file with the route,
// baselines first, of those that a route may have without being named; 0: none.
func (l *loose) usual(s *Session, route int32) int {
	for _, role := range []Role{Baseline, Candidate} {
		for i, r := range s.Runs {
			arm := slices.IndexFunc(s.Arms, func(a Arm) bool { return a.Name == r.Arm })
			if codes := l.files[i].samples[route]; s.Arms[arm].Role == role && len(codes) > 0 {
				return mostFrequent(codes)
			}
		}
	}
	return 0
}

func mostFrequent(codes map[int]*Samples) (best int) {
	most := 0
	for _, code := range slices.Sorted(maps.Keys(codes)) {
		if n := codes[code].Codes[code]; code >= 200 && code < 500 && code != 401 && code != 403 && n > most {
			best, most = code, n
		}
	}
	return best
}

// looseFiling keeps the samples of every status, since which of them is an
// answer is only known when all files are read.
type looseFiling struct {
	*loose
	run     *Run
	byURL   map[[2]string]int32
	attacks map[string]int32
	last    map[int32]uint64           // sequence number of the last request, by attack
	samples map[int32]map[int]*Samples // by route and status
	order   []int32                    // routes as they were first sent
	sum     hash.Hash
}

func (f *looseFiling) place(q *request, v *vegeta.Result) error {
	key := [2]string{v.Method, v.URL}
	route, ok := f.byURL[key]
	if !ok {
		name := NoTarget
		if v.URL != "" {
			name = RouteName(v.Method, v.URL)
		}
		if route, ok = f.index[name]; !ok {
			if len(f.names) == mostRoutes {
				return fmt.Errorf("is to the %d-th route, which is more than can be judged: a row is method, path and query, so these must come from a fixed list", mostRoutes+1)
			}
			route = int32(len(f.names))
			f.index[name] = route
			f.names = append(f.names, name)
		}
		f.byURL[key] = route
	}
	attack, ok := f.attacks[v.Attack]
	if !ok {
		attack = int32(len(f.attacks))
		f.attacks[v.Attack] = attack
	}
	q.route, q.attack = route, attack
	if end := v.End(); end.After(f.run.Slices[0].End) {
		f.run.Slices[0].End = end
	}
	return nil
}

// add also holds against the file what no single attack does: vegeta numbers
// requests and takes their time under one lock.
func (f *looseFiling) add(q request, counted bool) error {
	if last, ok := f.last[q.attack]; ok && q.seq < last {
		return fmt.Errorf("request number %d, sent at %s, comes after number %d: the file holds two attacks; keep one file for each run", q.seq, stamp(q), last)
	}
	f.last[q.attack] = q.seq
	var b [8*3 + 4 + 2]byte
	binary.LittleEndian.PutUint64(b[0:], uint64(q.at))
	binary.LittleEndian.PutUint64(b[8:], uint64(q.latency))
	binary.LittleEndian.PutUint64(b[16:], q.seq)
	binary.LittleEndian.PutUint32(b[24:], q.body)
	binary.LittleEndian.PutUint16(b[28:], q.code)
	f.sum.Write(b[:])
	byCode := f.samples[q.route]
	if byCode == nil {
		byCode = map[int]*Samples{}
		f.samples[q.route] = byCode
		f.order = append(f.order, q.route)
	}
	s := byCode[int(q.code)]
	if s == nil {
		s = &Samples{Codes: map[int]int{}, Ends: make([]int, 1)}
		byCode[int(q.code)] = s
	}
	s.Codes[int(q.code)]++
	if counted {
		s.add(q)
	}
	return nil
}

// choose are the samples of a route with an expected status, and the counts of all.
func (f *looseFiling) choose(route int32, status []int) *Samples {
	out := &Samples{Codes: map[int]int{}, Ends: make([]int, 1)}
	for code, s := range f.samples[route] {
		if slices.Contains(status, code) { // there is one at most
			out.Latency, out.Ends, out.BodyBytes = slices.Clip(s.Latency), s.Ends, s.BodyBytes
		}
		out.Codes[code] += s.Codes[code]
	}
	return out
}
