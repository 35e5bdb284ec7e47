// Package plan owns plumbline.yaml: it turns strict YAML or JSON into a Plan
// that nobody changes afterwards.
//
// Bad input never half-passes: an unknown key, a repeated key, a number
// without its unit or a placeholder nobody fills is refused with file, line,
// the key's path and what to do about it. The package looks whether target
// files exist; it reads no other file but a template of claims, starts nothing
// and knows no git.
package plan

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"plumbline/record"
	"plumbline/targets"
)

// Plan is a plan file after all its checks, with the defaults filled in.
type Plan struct {
	Path   string // of the plan file, absolute
	Dir    string // what its paths are relative to, absolute: its folder, but for ReadIn
	Source []byte // the file's bytes

	Router   Router
	Arms     []Arm     // in file order
	Services []Service // in file order, which is that of their start
	Kinds    []Kind    // in file order, at least one; the first is the default
	Expect   []Expect  // in file order
	Load     Load
	Warmup   Warmup
	Schedule Schedule
	Rules    record.Rules
	CPUs     CPUs
	Seed     uint64 // of all chance in the session

	Only []string // routes that are sent, as record.RouteName writes them; none: all

	chosen struct{ mode, workers, blocks bool } // the file has these keys: no default for them
}

// Router says how the server under test is built, started and stopped. Run,
// the values of Env and Clock.Library hold placeholders for Expand.
type Router struct {
	Build string   // shell command; empty: nothing is built
	Run   []string // program and arguments
	Env   map[string]string
	Ready Ready
	Clock Clock
	Stop  string // signal without SIG: TERM, INT, QUIT, HUP, KILL, USR1 or USR2
}

// Ready says when a started router may get requests.
type Ready struct {
	HTTP   string        // path that answers with success; empty: a connection is accepted
	Within time.Duration // above 0
}

// Arm is what the plan says about one arm, by the name it is asked for.
type Arm struct {
	Name   string
	Ref    string // git revision it is built from; empty: the session decides
	Router Overrides
}

// Overrides replace parts of the plan's router; a zero field replaces nothing.
type Overrides struct {
	Build string
	Run   []string
	Env   map[string]string // key by key
	Ready *Ready            // whole: what the arm leaves out is already taken from the router's
	Clock *Clock            // whole, too
	Stop  string
}

// Kind is a request set with the environment that it needs.
type Kind struct {
	Name     string
	Targets  string        // absolute path of a file that existed; empty: the set is generated
	Generate *targets.Spec // checked, but that a Duration of 0 is left to the session; nil: Targets names it
	Env      map[string]string
}

// Expect says which answers of a route count as good.
type Expect struct {
	Route   string // as record.RouteName writes it
	Status  []int  // 100 to 599; empty: as in the preflight
	BodyAny bool   // sizes of the arms may differ
	Line    int    // in the plan file
}

// Service is a program that the arms need, such as a database. Its commands
// hold placeholders for Expand, its own and those of the services before it.
type Service struct {
	Name     string   // small letters, digits and underscores
	User     string   // whom it runs as where plumbline runs as root; empty: as plumbline
	Setup    []string // shell lines that are run before it is started
	Run      []string // program and arguments
	Fixtures []string // shell lines that are run once it is ready
	Env      map[string]string
	Ready    ServiceReady
	Per      Per
	Stop     string // as Router.Stop
}

// ServiceReady says when a started service may be used. With neither HTTP nor
// Run a connection to its {port} or {socket} must be accepted.
type ServiceReady struct {
	HTTP   string        // path that answers with success
	Run    string        // shell line that succeeds
	Within time.Duration // above 0
}

// Per says how often something is started afresh.
type Per string

const (
	PerSession Per = "session"
	PerBlock   Per = "block"
)

// Load says how requests are offered.
type Load struct {
	// Rate is how many requests are due per second, up to 1,000,000; 0: a
	// closed loop, each worker sends when its last answer has come.
	Rate     float64
	Workers  int    // 1 to 10,000; closed loop: always under way at once, at a rate: at most
	Protocol string // h1, h2c or h2
	TLS      bool   // of h1; h2 always is
	// Timeout is how long an answer may take, body included, 1 s to 1 h. A run
	// with a slower one is lost.
	Timeout time.Duration
}

// Warmup is what a run does before its first counted request; 0 leaves it out.
type Warmup struct {
	Idle time.Duration
	Load time.Duration // with Auto the longest it may take
	Auto bool          // until latency and memory have settled
}

// Schedule says what is measured, and in what order.
type Schedule struct {
	Mode      record.Mode
	Slice     time.Duration // sliced only: load on one arm at a time
	Block     time.Duration // load per block, shared by its arms
	Blocks    int           // 1 to 10,000
	MaxBlocks int           // blocks are added up to this until every judged row is decided; 0: none is
	Budget    time.Duration // in place of Blocks and MaxBlocks: blocks are added as long as this much time is left; 0: there is none
	Retries   int           // blocks that may be measured again because they lost a run; 0 to 100
	Freeze    bool          // sliced only: idle arms are frozen
	Controls  bool          // sliced only: every block also holds measurements whose result is known
}

// CPUs pins the generator and the arms; an empty list leaves it to the session.
type CPUs struct {
	Load, Arms []int
	Awake      bool // they are kept from going to sleep
}

// maxSize is far beyond any plan and keeps hostile YAML from taking minutes.
const maxSize = 64 << 10

// Read reads and checks a plan file.
func Read(path string) (*Plan, error) { return ReadIn(path, filepath.Dir(path)) }

// ReadIn is Read for a plan file that is kept elsewhere than the sources that
// it is for, such as in the Nix store: it is read as if it lay in dir.
func ReadIn(path, dir string) (*Plan, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("reading the plan: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxSize+1)) // Parse refuses what is larger
	if err != nil {
		return nil, fmt.Errorf("reading the plan: %w", err)
	}
	return parse(path, dir, data)
}

// Parse is Read for bytes at hand. Paths in the plan are relative to the
// folder of path, and errors name path as it is given. A name that ends in
// .json, or content that is JSON as a whole, is read as JSON.
func Parse(path string, data []byte) (*Plan, error) { return parse(path, filepath.Dir(path), data) }

func parse(path, dir string, data []byte) (*Plan, error) {
	abs, err := filepath.Abs(path)
	if err == nil {
		dir, err = filepath.Abs(dir)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the plan: %w", err)
	}
	root, err := parseTree(path, data)
	if err != nil {
		return nil, err
	}
	d := &decoder{file: path, lines: map[string]int{}}
	p := &Plan{Path: abs, Dir: dir, Source: bytes.Clone(data)}
	d.plan(p, root)
	if d.err == nil {
		d.check(p)
	}
	if d.err != nil {
		return nil, d.err
	}
	return p, nil
}

// Kind returns the kind with that name; an empty name is the first one.
func (p *Plan) Kind(name string) (Kind, error) {
	if name == "" {
		return p.Kinds[0], nil
	}
	var names []string
	for _, k := range p.Kinds {
		if k.Name == name {
			return k, nil
		}
		names = append(names, k.Name)
	}
	return Kind{}, errors.New("no kind " + quote(name) + " in " + p.Path + ";" + didYouMean(name, names) + " its kinds are " + list(names))
}

// RouterFor is the plan's router as kind and one arm have it: the router, then
// the kind's environment, then the overrides of the first of names that the
// plan has among its arms. Environments merge key by key, the rest replaces.
func (p *Plan) RouterFor(kind Kind, names ...string) Router {
	r := p.Router.with(Overrides{Env: kind.Env})
	for _, name := range names {
		if i := slices.IndexFunc(p.Arms, func(a Arm) bool { return a.Name == name }); i >= 0 {
			return r.with(p.Arms[i].Router)
		}
	}
	return r
}

// FromSources says whether what is started depends on the sources: it is built
// from them, or run names their folder.
func (r Router) FromSources() bool { return r.Build != "" || uses(r.texts()...)["source"] }

// with returns a copy of r that shares nothing with it.
func (r Router) with(o Overrides) Router {
	env := map[string]string{}
	maps.Copy(env, r.Env)
	maps.Copy(env, o.Env)
	r.Env = env
	if o.Build != "" {
		r.Build = o.Build
	}
	if o.Run != nil {
		r.Run = o.Run
	}
	r.Run = slices.Clone(r.Run)
	if o.Ready != nil {
		r.Ready = *o.Ready
	}
	if o.Clock != nil {
		r.Clock = *o.Clock
	}
	if o.Stop != "" {
		r.Stop = o.Stop
	}
	return r
}
