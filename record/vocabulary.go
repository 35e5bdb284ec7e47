package record

import (
	"net/url"
	"strings"
	"time"
)

// Format is the version of the session folder. A reader refuses a newer one.
const Format = 1

// Role says which side of a comparison an arm is on.
type Role string

const (
	Baseline  Role = "baseline"
	Candidate Role = "candidate"
)

// Mode is the order in which the arms of a block get their load.
type Mode string

const (
	// Sliced keeps all arms running and gives the load to one at a time in
	// short slices, the others frozen.
	Sliced Mode = "sliced"
	// Interleaved measures whole runs, one arm after the other, in an order
	// that turns from block to block.
	Interleaved Mode = "interleaved"
	// Sequential measures all blocks of one arm, then all of the next. It
	// exists for comparison with other tools: drift of the host is not told
	// apart from a change of the router.
	Sequential Mode = "sequential"
)

// Seconds is a duration as it stands in a JSON file: a number of seconds.
type Seconds float64

// Duration converts to the standard library's type.
func (s Seconds) Duration() time.Duration { return time.Duration(float64(s) * float64(time.Second)) }

// Session is a whole record: what session.json says and the finished runs.
type Session struct {
	Dir string // the folder it was read from
	Meta
	Runs []*Run // in the order they were started
	// Loose: made of result files by ReadLoose. Nothing is known of the host,
	// the processes and their order.
	Loose bool
}

// State says how far a session or a run got.
type State string

const (
	Running     State = "running"     // being written, or its writer was killed
	Complete    State = "complete"    // all that was planned was measured
	Died        State = "died"        // a run: the router ended before its load did
	Stopped     State = "stopped"     // something was wrong: Reason says what
	Interrupted State = "interrupted" // by a signal
)

// Meta is the content of session.json.
type Meta struct {
	Format  int       `json:"format"`
	Tool    string    `json:"tool"`    // plumbline's version
	Command []string  `json:"command"` // the arguments that started it
	Asked   Asked     `json:"asked"`   // what to weigh
	Created time.Time `json:"created"`
	State   State     `json:"state"`
	Reason  string    `json:"reason,omitempty"` // why it is stopped or interrupted, or complete with a verdict still open before the maximum of blocks; in a line
	Detail  string    `json:"detail,omitempty"` // what goes with Reason: the end of a log, a body
	Seed    uint64    `json:"seed"`

	Arms     []Arm     `json:"arms"`              // baselines in order, the first decides; then the candidate
	Routes   []Route   `json:"routes"`            // in the order of the target file
	Targets  *Targets  `json:"targets,omitempty"` // nil: by a version that did not say
	Schedule Schedule  `json:"schedule"`
	Load     Load      `json:"load"`
	Order    []RunRef  `json:"order"` // every run that was planned, in order; with a maximum of blocks, grows as blocks are begun
	Rules    Rules     `json:"rules"`
	Services []Service `json:"services,omitempty"` // what the arms needed to run
	// CalibrationS is how long a fixed piece of work took on this machine just
	// before the first run, the best of several tries.
	CalibrationS Seconds   `json:"calibration_s,omitempty"`
	Host         Host      `json:"host"`
	Inputs       []Input   `json:"inputs"` // plan, target files, bodies
	Warnings     []string  `json:"warnings,omitempty"`
	Resumed      []Resumed `json:"resumed,omitempty"`
}

// Service is what ran beside the arms, such as a database.
type Service struct {
	Name string   `json:"name"`
	Run  []string `json:"run"` // with placeholders, as in the plan
	Per  string   `json:"per"` // session or block: how often it was started afresh
}

// Resumed notes that a session which had ended early was gone on with.
type Resumed struct {
	At     time.Time `json:"at"`
	Was    State     `json:"was"`              // the state it was found in
	Reason string    `json:"reason,omitempty"` // why it had ended
}

// PlanVariable is the environment's variable that names a plan which is kept
// elsewhere than what it is for: Asked.In.
const PlanVariable = "PLUMBLINE_PLAN"

// Asked is what a session was asked to weigh; with the plan's file it is
// enough to go on with one that ended early.
type Asked struct {
	Plan string   `json:"plan"`           // absolute path
	In   string   `json:"in,omitempty"`   // absolute path of the folder that it is for; empty: its own
	Kind string   `json:"kind"`           // one of the plan's
	Refs []string `json:"refs,omitempty"` // revisions, against the working tree
	Arms []string `json:"arms,omitempty"` // of the plan, in place of all of them
	// Itself: the first revision, or the plan's router, against itself.
	Itself bool `json:"itself,omitempty"`
}

// Arm is one version of the router with its own configuration.
type Arm struct {
	Name         string            `json:"name"`  // unique, safe as part of a file name: baseline, baseline-2, candidate
	Role         Role              `json:"role"`  // which side it is on
	Label        string            `json:"label"` // what people call it: main, v1.2, HEAD+dirty
	Ref          string            `json:"ref,omitempty"`
	Commit       string            `json:"commit,omitempty"`
	Tree         string            `json:"tree,omitempty"`          // git tree of the sources it was built from
	Dirty        bool              `json:"dirty,omitempty"`         // the tree holds changes that no commit has
	BinarySHA256 string            `json:"binary_sha256,omitempty"` // of what was started
	Run          []string          `json:"run"`                     // with placeholders, as in the plan
	Env          map[string]string `json:"env,omitempty"`
	// Clock is what the router's own clock showed when a run was started, moved
	// by libfaketime; zero: it was not moved. ClockLibrary is that library's
	// path, with {build} and {source} where it came from there.
	Clock        time.Time `json:"clock,omitzero"`
	ClockLibrary string    `json:"clock_library,omitempty"`
}

// Route is a row of the report.
type Route struct {
	Name    string `json:"name"`              // METHOD path?query
	Status  []int  `json:"status,omitempty"`  // statuses that count as an answer
	Learned bool   `json:"learned,omitempty"` // Status is that of the first preflight, not the plan's
	BodyAny bool   `json:"body_any,omitempty"`
}

// Targets says in few words what was sent: the files are among the inputs.
type Targets struct {
	Count int `json:"count"` // on the session's routes
	// Of a set that plumbline made, its kind (jwt-cache, ...) and whose tokens it holds:
	Set     string   `json:"set,omitempty"`
	Algs    []string `json:"algorithms,omitempty"`
	Once    bool     `json:"once,omitempty"`    // none is sent to a process twice
	Skipped int      `json:"skipped,omitempty"` // the most in one run that were about to expire when their turn came
	// The tokens expire within so long of a router's start; 0: not in a run. The
	// router takes them for LeewayS longer than they say.
	ExpireS int `json:"expire_s,omitempty"`
	LeewayS int `json:"leeway_s,omitempty"`
}

// Schedule says what was planned to be measured, and in what order.
type Schedule struct {
	Mode       Mode    `json:"mode"`
	Blocks     int     `json:"blocks"`                 // of a session with a maximum: the fewest
	MaxBlocks  int     `json:"max_blocks,omitempty"`   // 0: the length is fixed, Blocks; otherwise rows may be judged after Blocks blocks and after each further one
	BudgetS    Seconds `json:"budget_s,omitempty"`     // from the first start of a router, in place of a number of blocks: Blocks and MaxBlocks are what fits, fixed after the first two complete blocks
	Retries    int     `json:"retries,omitempty"`      // blocks that may be measured again at the end because they lost a run
	BlockS     Seconds `json:"block_s"`                // load per block, shared by its arms
	SliceS     Seconds `json:"slice_s,omitempty"`      // sliced only
	CountFromS Seconds `json:"count_from_s,omitempty"` // start of a slice that is sent but not counted
	Freeze     bool    `json:"freeze,omitempty"`       // idle arms are frozen
	WarmupS    Seconds `json:"warmup_s,omitempty"`     // load before a run's first counted slice; with WarmupAuto its limit
	WarmupAuto bool    `json:"warmup_auto,omitempty"`  // the warm-up ends when latency and memory have settled
	IdleS      Seconds `json:"idle_s,omitempty"`       // without load, before the warm-up
	// Controls are measured inside every block; nil: none.
	Controls *Controls `json:"controls,omitempty"`
}

// Controls are measurements whose result is known: they show what the session
// itself makes of nothing, and of a change that is really there.
type Controls struct {
	// ResponderS is how long, at the end of each slice, the load goes to a
	// responder inside plumbline that no arm can touch (the negative control).
	ResponderS Seconds `json:"responder_s"`
	// Pairs is how many pairs of slices of each block go to the first baseline
	// on both sides, with a delay after every answer that counts on one side
	// only (the positive control).
	Pairs int `json:"pairs"`
	// Delay is that delay, as a share of the answer's own latency; the session
	// must see it to be beyond Zone.
	Delay float64 `json:"delay"`
	Zone  float64 `json:"zone"`
}

// Load says how requests were offered.
type Load struct {
	// Rate is how many requests are due per second, whatever the answers do;
	// 0: a closed loop, in which each worker sends when its last answer has come.
	Rate     float64 `json:"rate,omitempty"`
	Workers  int     `json:"workers"`       // closed loop: always under way at once; at a rate: at most
	Protocol string  `json:"protocol"`      // h1, h2c or h2
	TLS      bool    `json:"tls,omitempty"` // h1 over TLS; h2 always is
	CPUs     []int   `json:"cpus"`          // of the generator; empty: not pinned
	ArmCPUs  []int   `json:"arm_cpus"`      // of the arms; empty: not pinned
	Awake    bool    `json:"awake"`         // those CPUs were kept from going to sleep
	// TimeoutS is how long an answer might take; a run with a slower one is lost.
	// 0: by a version that did not say, 30 s.
	TimeoutS Seconds `json:"timeout_s,omitempty"`
}

// Timeout is TimeoutS, whatever the version.
func (l Load) Timeout() time.Duration {
	if l.TimeoutS == 0 {
		return 30 * time.Second
	}
	return l.TimeoutS.Duration()
}

// RunRef names a planned run.
type RunRef struct {
	ID    string `json:"id"` // 003-candidate, also its folder
	Block int    `json:"block"`
	Arm   string `json:"arm"`
}

// Host holds what must be equal in all runs of a session.
type Host struct {
	Hostname string `json:"hostname"`
	OS       string `json:"os"`
	Kernel   string `json:"kernel"`
	BootID   string `json:"boot_id,omitempty"`
	CPU      string `json:"cpu"`
	CPUs     int    `json:"cpus"`
}

// Input is a file the session was made from.
type Input struct {
	Path   string `json:"path"` // as the plan names it
	SHA256 string `json:"sha256"`
}

// Metric names one quantity that gets a verdict.
type Metric string

const (
	LatencyP50          Metric = "latency_p50"
	LatencyDistribution Metric = "latency_distribution"
	LatencyP99          Metric = "latency_p99"
	ErrorRate           Metric = "error_rate"
)

// Metrics are those that this version judges, in the order of the report.
var Metrics = [...]Metric{LatencyP50, LatencyDistribution, LatencyP99, ErrorRate}

// Rule is how one metric is judged.
type Rule struct {
	Zone  float64 `json:"zone"`  // smallest change that counts: a share (0.05 = 5 %), for rates a difference (0.001 = 0.1 points)
	Watch bool    `json:"watch"` // only its regressions count for the session
}

// Rules are the gates' settings, kept with the record so that a verdict can be computed again.
type Rules struct {
	Metrics map[Metric]Rule `json:"metrics"`
	FloorS  Seconds         `json:"floor_s"` // a latency zone is never narrower than this
}

// DefaultRules are METHOD.md's: zones of 5 % for P50, 10 % for the
// distribution and P99 (watched), 0.1 points for error rates; a floor of 5 µs.
func DefaultRules() Rules {
	return Rules{
		Metrics: map[Metric]Rule{
			LatencyP50:          {Zone: 0.05},
			LatencyDistribution: {Zone: 0.10},
			LatencyP99:          {Zone: 0.10, Watch: true},
			ErrorRate:           {Zone: 0.001},
		},
		FloorS: 5e-6,
	}
}

// Run is one process of one arm, from start to stop: the unit of analysis.
type Run struct {
	ID      string    `json:"id"`
	Block   int       `json:"block"` // from 1
	Arm     string    `json:"arm"`
	State   State     `json:"state"`
	Reason  string    `json:"reason,omitempty"` // why it is not complete, in a line
	Started time.Time `json:"started"`
	Ended   time.Time `json:"ended"`
	ReadyS  Seconds   `json:"ready_s"` // from start to ready
	PID     int       `json:"pid"`
	// ClockOffsetS is how far the router's own clock was ahead of the host's, in
	// whole seconds; nil: it was not moved.
	ClockOffsetS *Seconds   `json:"clock_offset_s,omitempty"`
	Freezer      string     `json:"freezer,omitempty"` // how the idle arm was frozen
	Preflight    []Answer   `json:"preflight"`         // one per route, in the session's order
	Expired      []Answer   `json:"expired,omitempty"` // to requests after those, whose token the router has to refuse
	Warmup       WarmupSent `json:"warmup"`
	// Skipped is how many targets, each of which is sent once, were not sent, in
	// the warm-up and later: their token was about to expire when their turn came.
	Skipped int `json:"skipped,omitempty"`
	// IdleMemory is the memory of the run's processes before any load but the
	// preflight's, in bytes (what they share counted once, where the kernel
	// tells); 0: not measured.
	IdleMemory int64 `json:"idle_memory_bytes,omitempty"`
	// IdleCPU is the share of one CPU that the run used while other arms had
	// the load; only where idle arms are not frozen.
	IdleCPU float64 `json:"idle_cpu,omitempty"`
	// ControlRequests is how many requests controls.csv holds.
	ControlRequests int `json:"control_requests,omitempty"`

	Slices   []Slice             `json:"-"` // slices.csv
	Controls []ControlSlice      `json:"-"` // controls.csv
	Samples  map[string]*Samples `json:"-"` // result.bin, by route name
	Sent     int                 `json:"-"` // requests in result.bin, identical records once
}

// Clock is what the router's own clock showed when the host's showed t; false:
// it was not moved, and showed t as well.
func (r Run) Clock(t time.Time) (time.Time, bool) {
	if r.ClockOffsetS == nil {
		return t, false
	}
	return t.Add(r.ClockOffsetS.Duration()), true
}

// WarmupSent counts the requests before the first slice; they are not kept.
type WarmupSent struct {
	Sent    int     `json:"sent"`
	Failed  int     `json:"failed"` // no answer at all, or a 5xx
	TookS   Seconds `json:"took_s,omitempty"`
	Settled *bool   `json:"settled,omitempty"` // with Schedule.WarmupAuto: whether it did within the limit
}

// Answer is the reply to a preflight request.
type Answer struct {
	Route     string `json:"route"`
	Status    int    `json:"status"`          // 0: no answer
	BodyBytes int64  `json:"body_bytes"`      // size of the whole body
	Excerpt   string `json:"body,omitempty"`  // its first bytes, where the status is no success
	Date      string `json:"date,omitempty"`  // the header, as it was sent; where Excerpt is there
	Error     string `json:"error,omitempty"` // why there was no answer
}

// Slice is a stretch of load on one arm. Slice n of one arm of a block and
// slice n of another form a pair: they were measured back to back.
type Slice struct {
	N       int       // from 1
	Start   time.Time // first request
	Counted time.Time // requests before this are sent but not counted
	End     time.Time // last answer
	Sent    int
	Due     int // at a fixed rate: requests that were due; the rest was not sent
}

// ControlKind says what a control slice is.
type ControlKind string

const (
	Responder ControlKind = "responder" // answered inside plumbline, at the end of an arm's slice
	Delayed   ControlKind = "delayed"   // answered by the first baseline; the delay counts
	Undelayed ControlKind = "undelayed" // the same, and the delay does not count
)

// ControlSlice is a stretch of load whose effect is known.
type ControlSlice struct {
	Kind ControlKind
	// N is, for a responder, that of the slice that it follows; otherwise that
	// of the pair, from 1: its delayed and its undelayed side have the same.
	N int
	// Latency holds the requests that count, in ns, by route in the session's
	// order and within it as they were sent; a responder has one route.
	Latency [][]int64
}

// Samples are what one run measured on one route.
type Samples struct {
	// Latency holds the counted requests with an expected status, in
	// nanoseconds, slice by slice in the order they were sent.
	Latency []int64
	// Ends[i] is the index in Latency just after the last sample of Run.Slices[i].
	Ends []int
	// Codes counts every request of the route by status, counted or not; 0: no answer.
	Codes map[int]int
	// BodyBytes is the sum of the body sizes of the counted requests.
	BodyBytes int64
}

// Slice returns the samples of the i-th slice (from 0).
func (s *Samples) Slice(i int) []int64 {
	start := 0
	if i > 0 {
		start = s.Ends[i-1]
	}
	return s.Latency[start:s.Ends[i]]
}

// RouteName is the name of a request's row: METHOD path?query. Scheme and
// host do not count: every request goes to the arm under load.
func RouteName(method, rawURL string) string {
	u, err := url.Parse(rawURL)
	if err != nil {
		return method + " " + rawURL
	}
	p := u.EscapedPath()
	if p == "" {
		p = "/"
	}
	if !strings.HasPrefix(p, "/") {
		p = "/" + p
	}
	if u.RawQuery != "" || u.ForceQuery {
		p += "?" + u.RawQuery
	}
	return method + " " + p
}
