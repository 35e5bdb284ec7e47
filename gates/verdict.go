package gates

import (
	"bytes"
	"encoding/json"
	"fmt"

	"plumbline/record"
)

// Format is the version of verdict.json.
const Format = 1

// Outcome is a session's verdict.
type Outcome string

const (
	Pass         Outcome = "pass"
	Regression   Outcome = "regression"
	Inconclusive Outcome = "inconclusive"
	Invalid      Outcome = "invalid"
)

// ExitCode is what a judging command ends with: 0, 3, 4 or 5.
func (o Outcome) ExitCode() int {
	switch o {
	case Pass:
		return 0
	case Regression:
		return 3
	case Inconclusive:
		return 4
	}
	return 5
}

// RowVerdict is what can be said of one metric of one route.
type RowVerdict string

const (
	RowEquivalent    RowVerdict = "equivalent"
	RowRegression    RowVerdict = "regression"
	RowImprovement   RowVerdict = "improvement"
	RowInconclusive  RowVerdict = "inconclusive"
	RowNotComparable RowVerdict = "not_comparable"
)

// Verdict is the content of verdict.json.
type Verdict struct {
	Format    int      `json:"format"`
	Verdict   Outcome  `json:"verdict"`
	ExitCode  int      `json:"exit_code"`
	Reasons   []string `json:"reasons"`              // why it is not a pass, or what limits it; whole sentences
	AA        bool     `json:"aa"`                   // the two deciding arms are the same build with the same configuration
	Complete  bool     `json:"complete"`             // the session went to its end and no planned run is missing; runs may have been set aside
	Blocks    int      `json:"blocks"`               // blocks with a complete run of both deciding arms
	Planned   int      `json:"planned_blocks"`       // blocks the plan asked for; with a maximum, those that were begun, and the plan's minimum at least
	MaxBlocks int      `json:"max_blocks,omitempty"` // as many were allowed, and the session was judged after each; 0: its length is fixed
	// Delivered is the share of the requests due at a fixed rate that each arm
	// was sent, 0 to 1; absent in a closed loop.
	Delivered map[string]float64 `json:"delivered,omitempty"`
	// Exploratory: judged by other rules than those that the record holds, which
	// were fixed before the first run.
	Exploratory bool      `json:"exploratory,omitempty"`
	Controls    []Control `json:"controls,omitempty"` // negative, positive; none where the session has none
	Pooled      []Pooled  `json:"pooled,omitempty"`   // the answer over all routes, by metric
	Repeats     []Repeat  `json:"repeats,omitempty"`  // Gate 2: metric by metric, routes in the session's order, then by arm
	// RareStart is the share of starts, 0 to 1, up to which the candidate may
	// have another speed, slower beside the baseline's, that the session did not
	// see, or saw no more often than it did (one-sided 95 %); 0 where nothing was judged.
	RareStart float64 `json:"rare_start,omitempty"`
	// RareGap is how far another speed must lie apart to be told from noise, on
	// the noisiest route; 0.05 = 5 %.
	RareGap     float64      `json:"rare_gap,omitempty"`
	SetAside    []SetAside   `json:"set_aside"`   // runs that Gate 1 took away
	Comparisons []Comparison `json:"comparisons"` // baseline by baseline, metric by metric, routes in the session's order
}

// Control is a measurement whose result is known.
type Control struct {
	Kind    string         `json:"kind"`   // negative, positive
	Effect  *float64       `json:"effect"` // 0.01 = +1 %; null without 3 blocks
	Low     *float64       `json:"low"`
	High    *float64       `json:"high"`
	Want    float64        `json:"want"` // what it is known to be: 0, or the delay
	Zone    float64        `json:"zone"` // negative: must lie within; positive: must lie above
	Blocks  int            `json:"blocks"`
	Verdict ControlVerdict `json:"verdict"`
}

// ControlVerdict is what a control says of its session.
type ControlVerdict string

const (
	ControlHeld   ControlVerdict = "held"   // negative: nothing was seen; positive: the delay was seen
	ControlOpen   ControlVerdict = "open"   // more blocks may tell
	ControlFailed ControlVerdict = "failed" // negative: something was seen where nothing is
	ControlBlind  ControlVerdict = "blind"  // positive: the delay was not seen within all blocks
)

// Pooled is one metric over all its routes that can be compared: they are
// averaged within each block, then weighed over blocks.
type Pooled struct {
	Metric     record.Metric `json:"metric"`
	Percentile int           `json:"percentile,omitempty"`
	Arms       [2]string     `json:"arms"`
	Effect     float64       `json:"effect"`
	Low        float64       `json:"low"`
	High       float64       `json:"high"`
	Blocks     int           `json:"blocks"`
	Routes     int           `json:"routes"`
}

// Repeat says how far the runs of one arm are apart on one route: as they are,
// and with the block's level taken out, which all arms of a block share.
type Repeat struct {
	Route  string        `json:"route"`
	Metric record.Metric `json:"metric"`
	Arm    string        `json:"arm"`
	Runs   int           `json:"runs"`
	// Raw and Own are coefficients of variation of P50 or P99 over runs; of a
	// distribution, median Wasserstein-1 distances between two runs, divided by
	// the median latency. Own is with the block's level taken out.
	Raw float64 `json:"raw"`
	Own float64 `json:"own"`
	// Bound is the upper 95 % limit of Own (of Raw, where the arms did not take
	// turns), of a single number; null where there is none.
	Bound *float64 `json:"bound,omitempty"`
	// Within is the distance between two halves of a run, of a distribution.
	Within *float64 `json:"within,omitempty"`
	// Disagree says why the repeats do not agree; empty: they do, or it does not matter.
	Disagree string `json:"disagree,omitempty"`
}

// SetAside is a run (or a route of it) that does not count, with the reason.
type SetAside struct {
	Run    string `json:"run"`
	Route  string `json:"route,omitempty"` // empty: the whole run
	Reason string `json:"reason"`
}

// Comparison is one metric of one route: the candidate against one baseline.
type Comparison struct {
	Route    string        `json:"route"`
	Metric   record.Metric `json:"metric"`
	Judged   bool          `json:"judged"`   // or only watched
	Arms     [2]string     `json:"arms"`     // baseline, candidate: names of record.Arm
	Values   *[2]float64   `json:"values"`   // in Unit; null where nothing was measured
	Unit     string        `json:"unit"`     // "s" for latencies, "fraction" for rates
	Effect   *float64      `json:"effect"`   // 0.05 = +5 %; for rates the difference
	Low      *float64      `json:"low"`      // limits of the effect, one-sided 97.85 % each (rates: 97.5 %; with looks: those of the look); null without 3 blocks
	High     *float64      `json:"high"`     //
	Zone     float64       `json:"zone"`     // the one in force, after the floor
	Blocks   int           `json:"blocks"`   // blocks behind the effect
	Requests [2]int        `json:"requests"` // per arm: latencies, those behind the values; rates, all that were sent
	Verdict  RowVerdict    `json:"verdict"`
	// NotSlower: inconclusive, but the upper limit is inside the zone. Counts as a pass.
	NotSlower bool     `json:"not_slower"`
	Reasons   []string `json:"reasons"` // short, lower case; shown as footnotes
	// Percentile is the one that decided a distribution's row, 5 to 95; 0 in other rows.
	Percentile  int          `json:"percentile,omitempty"`
	Percentiles []Percentile `json:"percentiles,omitempty"`
	// Speeds are the groups that the blocks' P50 effects fall into, where there
	// may be two speeds, so that the row can be nothing but a regression; fastest first.
	Speeds []Speed `json:"speeds,omitempty"`
	// NeedsRepeats is with how many blocks at least the repeats of a row that is
	// not comparable may be found to agree, in a session that may have so many.
	NeedsRepeats int `json:"needs_repeats,omitempty"`
	// MoreBlocks is about how many further blocks would decide an
	// inconclusive row; 0: not known, too close to the edge, or beyond the maximum.
	MoreBlocks int    `json:"more_blocks,omitempty"`
	Floor      *Floor `json:"floor,omitempty"` // the row cannot be decided by the maximum; null: it may, or is
	// Looks are all looks so far at a session with a maximum of blocks. The
	// row's own fields are those of the look that decided it, else of the newest.
	Looks []Look `json:"looks,omitempty"`
}

// Speed is a group of blocks whose effects agree, and lie apart from others.
type Speed struct {
	Effect float64 `json:"effect"` // mean of the group
	Blocks int     `json:"blocks"`
}

// Percentile is one point of a distribution's comparison.
type Percentile struct {
	P      int        `json:"p"` // 5 to 95
	Values [2]float64 `json:"values"`
	Effect float64    `json:"effect"`
	Low    float64    `json:"low"`
	High   float64    `json:"high"`
	Zone   float64    `json:"zone"`   // after the floor, which widens low percentiles more
	Blocks int        `json:"blocks"` // blocks with enough requests beyond this percentile
}

// JSON is the content of verdict.json: indented, with a newline at the end.
func (v *Verdict) JSON() ([]byte, error) { return indented(v, "the verdict") }

// indented is v as JSON for people to read, too.
func indented(v any, what string) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false) // routes hold & and stay readable
	if err := enc.Encode(v); err != nil {
		return nil, fmt.Errorf("writing %s: %w", what, err)
	}
	return b.Bytes(), nil
}

// ReadVerdict reads what JSON wrote. It refuses another format and a verdict
// whose exit code contradicts it.
func ReadVerdict(data []byte) (*Verdict, error) {
	v := new(Verdict)
	if err := json.Unmarshal(data, v); err != nil {
		return nil, fmt.Errorf("reading the verdict: %w", err)
	}
	if v.Format != Format {
		return nil, fmt.Errorf("reading the verdict: format is %d, this version reads %d; judge the session again", v.Format, Format)
	}
	switch v.Verdict {
	case Pass, Regression, Inconclusive, Invalid:
	default:
		return nil, fmt.Errorf("reading the verdict: unknown verdict %q; judge the session again", v.Verdict)
	}
	if v.ExitCode != v.Verdict.ExitCode() {
		return nil, fmt.Errorf("reading the verdict: exit_code %d does not belong to %q; judge the session again", v.ExitCode, v.Verdict)
	}
	return v, nil
}
