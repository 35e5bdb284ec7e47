package gates

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"plumbline/gates/stats"
	"plumbline/record"
)

const (
	// power is the probability with which a change that can be seen is seen.
	power = 0.8
	// loneEffect is the change that people believe without an interval.
	loneEffect = 0.05
)

// varianceBlocks are the lengths for which is said what a session can see.
func varianceBlocks() []int { return []int{6, 12, 24} }

// variancePercentiles are those of which it is said.
func variancePercentiles() []int { return []int{50, 90} }

// Variance is what sessions that weigh one build against itself say of the
// machine: what it can see, how often it sees what is not there, and where its
// noise comes from. It is the content of variance.json. Effects and limits are
// fractions: 0.05 = +5 %.
type Variance struct {
	Format int            `json:"format"`
	Power  float64        `json:"power"` // with which a detectable change is found, 0 to 1
	Modes  []ModeVariance `json:"modes"` // in the order of the sessions
}

// ModeVariance is one session.
type ModeVariance struct {
	Mode     record.Mode `json:"mode"`
	Complete bool        `json:"complete"` // it went to its end
	Blocks   int         `json:"blocks"`   // with a complete run on both sides
	Planned  int         `json:"planned_blocks"`
	Reasons  []string    `json:"reasons"` // what limits all of it; whole sentences
	// SpreadBound is how many times as large as it was found the spread over
	// blocks may be, with 95 % confidence; null with fewer than 3 blocks.
	SpreadBound *float64      `json:"spread_bound"`
	Floors      []MedianFloor `json:"floors"`      // by percentile; none where no route has a floor
	Sees        []Sees        `json:"sees"`        // of P50: medians over routes; none where no route has a floor
	Noisiest    string        `json:"noisiest"`    // the route with the largest floor of P50; empty: none has one
	Largest     *float64      `json:"largest"`     // size of the largest effect on P50, of any route
	Rows        int           `json:"rows"`        // routes with an effect on P50
	Beyond      int           `json:"beyond"`      // those whose effect is 5 % or more, as its size
	LoneBlocks  int           `json:"lone_blocks"` // blocks, of any route, that alone have an effect of 5 % or more on P50
	AllBlocks   int           `json:"all_blocks"`  // of all routes
	Regressions int           `json:"regressions"` // rows that the gates call a regression: all of them are false
	// Source is where the noise of P50 comes from, over all routes; null where it
	// cannot be told.
	Source      *NoiseSource    `json:"source"`
	FalseAlarms *FalseAlarms    `json:"false_alarms"`
	Routes      []RouteVariance `json:"routes"` // in the session's order
}

// MedianFloor is the median of the routes' noise floors at a percentile.
type MedianFloor struct {
	P     int     `json:"p"`
	Floor float64 `json:"floor"`
}

// FalseAlarms say how often the rules would have called a regression, of the
// ways to call one side of each block the candidate.
type FalseAlarms struct {
	Labellings int           `json:"labellings"`
	Exact      bool          `json:"exact"` // all there are; otherwise drawn from the session's seed
	Metrics    []MetricAlarm `json:"metrics"`
	Any        Alarm         `json:"any"` // of any metric
}

// MetricAlarm is one family of claims.
type MetricAlarm struct {
	Metric record.Metric `json:"metric"`
	Claims int           `json:"claims"` // routes, or routes × percentiles
	Level  float64       `json:"level"`  // at most so many false alarms the test allows for, where the truth is the edge
	Alarm
}

// Alarm is a share of labellings with a regression, 0 to 1.
type Alarm struct {
	Zone  float64 `json:"zone"`  // beyond the zones in force
	Noise float64 `json:"noise"` // beyond a zone of 0: significant, however small
}

// RouteVariance is one route.
type RouteVariance struct {
	Route   string          `json:"route"`
	Reasons []string        `json:"reasons"` // why points are missing; short, lower case
	Points  []PointVariance `json:"points"`  // P50, P90, as far as they could be measured
}

// PointVariance is one percentile of a route.
type PointVariance struct {
	P      int     `json:"p"`
	Value  float64 `json:"value_s"` // of the side called baseline, in seconds
	Blocks int     `json:"blocks"`  // with enough requests beyond the percentile
	Effect float64 `json:"effect"`  // what was found; the truth is 0
	SD     float64 `json:"sd"`      // of the blocks' effects, ln
	// Floor is the half-width of the interval with these blocks: the smallest
	// zone in which an effect of 0 is called equivalent.
	Floor float64 `json:"floor"`
	Zone  float64 `json:"zone"` // the one in force, after the floor in microseconds
	Sees  []Sees  `json:"sees"`
	// Source is null where the halves of a block are too short to tell.
	Source *NoiseSource `json:"source"`

	parts parts
}

// NoiseSource parts the variance of the blocks' effects. A few blocks tell it roughly.
type NoiseSource struct {
	Between float64 `json:"between"` // the share that comes from the runs of each block being others, 0 to 1
	Within  float64 `json:"within"`  // from within the runs
	// Pays is "more blocks" or "longer blocks": the one that makes the floor
	// lower. Longer blocks only shrink the share from within.
	Pays string `json:"pays"`
}

// parts are the two parts of a variance, as they add up.
type parts struct{ between, within float64 }

func (p parts) source() *NoiseSource {
	between := max(0, p.between)
	if !(between+p.within > 0) { // NaN, or no noise at all
		return nil
	}
	s := &NoiseSource{Between: digits(6, between/(between+p.within)), Pays: "longer blocks"}
	s.Within = digits(6, 1-s.Between)
	if s.Between > 0.5 {
		s.Pays = "more blocks"
	}
	return s
}

// Sees is what a session of so many blocks can see of the percentile.
type Sees struct {
	Blocks int     `json:"blocks"`
	Floor  float64 `json:"floor"`
	// Noise is the smallest true change that is found beyond noise, with
	// Variance.Power; Zone the smallest that is called a regression.
	Noise float64 `json:"noise"`
	Zone  float64 `json:"zone"`
}

// Vary looks at sessions of one build against itself, one for each mode. What
// a session cannot tell, it does not say.
func Vary(sessions []*record.Session) *Variance {
	v := &Variance{Format: Format, Power: power, Modes: []ModeVariance{}}
	for _, s := range sessions {
		v.Modes = append(v.Modes, vary(s))
	}
	return v
}

// Empty says that no route of any session has a noise floor.
func (v *Variance) Empty() bool {
	return !slices.ContainsFunc(v.Modes, func(m ModeVariance) bool { return len(m.Floors) > 0 })
}

func vary(s *record.Session) ModeVariance {
	verdict := Judge(s)
	m := ModeVariance{
		Mode: s.Schedule.Mode, Complete: verdict.Complete, Blocks: verdict.Blocks, Planned: verdict.Planned,
		Reasons: []string{}, Floors: []MedianFloor{}, Sees: []Sees{}, Routes: []RouteVariance{},
		Regressions: len(verdict.rows(func(c Comparison) bool { return c.Verdict == RowRegression })),
	}
	if !m.Complete {
		m.Reasons = append(m.Reasons, fmt.Sprintf("The session is not complete (%s): %d of %d planned blocks.", stateAndReason(s), m.Blocks, m.Planned))
	}
	if !verdict.AA {
		m.Reasons = append(m.Reasons, "Its two sides are not the same build, started in the same way: what they differ by is taken for noise.")
	}
	baselines, candidate, ok := sides(s.Arms)
	if !ok {
		m.Reasons = append(m.Reasons, "It does not have two sides.")
		return m
	}
	if m.Blocks < minBlocks {
		m.Reasons = append(m.Reasons, fmt.Sprintf("The spread over blocks %s.", needsBlocks(m.Blocks)))
		return m
	}
	bound := digits(6, stats.Sample{N: m.Blocks, SD: 1}.MostSD(0.05))
	m.SpreadBound = &bound
	runs, _ := sound(s)
	p := newPairing(s, runs, [2]string{baselines[0].Name, candidate.Name}, newLevels(s.Schedule))
	p.measureAll()
	p.findSpeeds()
	out := p.ruledOut()
	var claims []flipClaim
	for i, route := range s.Routes {
		r := varyingRoute{pairing: p, name: route.Name, blocks: p.effects[i], speeds: p.speeds[i], measured: putTogether(p.effects[i], p.speeds[i].keeps)}
		if reasons := out[route.Name]; len(reasons) > 0 {
			m.Routes = append(m.Routes, RouteVariance{Route: route.Name, Reasons: reasons, Points: []PointVariance{}})
			continue
		}
		m.add(r)
		claims = append(claims, r.claims()...)
	}
	m.sumUp()
	m.FalseAlarms = relabel(claims, p)
	return m
}

// varyingRoute is a route of a session whose sides are the same.
type varyingRoute struct {
	*pairing
	name     string
	blocks   []blockEffects
	speeds   *speeds
	measured *measured
}

// add says what there is to say of a route.
func (m *ModeVariance) add(r varyingRoute) {
	row := RouteVariance{Route: r.name, Reasons: []string{}, Points: []PointVariance{}}
	row.Reasons = append(row.Reasons, r.speeds.named...)
	if r.speeds.apart != "" {
		row.Reasons = append(row.Reasons, r.speeds.apart)
	}
	for _, percent := range variancePercentiles() {
		pt := r.measured.at(percent)
		switch {
		case r.measured.flat:
			row.Reasons = append(row.Reasons, "resolution: the clock shows one latency and nothing else")
		case len(pt.effects) < minBlocks:
			row.Reasons = append(row.Reasons, fmt.Sprintf("too few requests: %d of %d blocks had %d beyond P%d on each side, %d must; make the session longer",
				len(pt.effects), r.measured.blocks, minBeyond, percent, minBlocks))
		default:
			row.Points = append(row.Points, r.point(pt))
			if percent == 50 {
				m.addEffects(r, pt)
			}
		}
	}
	row.Reasons = slices.Compact(row.Reasons)
	m.Routes = append(m.Routes, row)
}

func (r varyingRoute) point(pt point) PointVariance {
	s := stats.Describe(pt.effects)
	widen := r.widen(pt)
	out := PointVariance{
		P: pt.p, Value: seconds(pt.values[0]), Blocks: s.N,
		Effect: share(s.Mean), SD: digits(6, s.SD),
		Floor: share(s.HalfWidth(r.levels.percentile(len(r.pairing.blocks))) + widen),
		Zone:  digits(6, r.zone(pt)),
	}
	level := r.levels.family(len(r.pairing.blocks), 1) / float64(r.familySize(pt.p))
	for _, n := range varianceBlocks() {
		more := s
		more.N = n
		noise := s.SD*stats.Detectable(n, level, power) + widen
		out.Sees = append(out.Sees, Sees{
			Blocks: n,
			Floor:  share(more.HalfWidth(r.levels.percentile(n)) + widen),
			Noise:  share(noise),
			Zone:   share(noise + math.Log1p(r.zone(pt))),
		})
	}
	out.parts.between, out.parts.within = stats.Components(r.halves(pt.p))
	out.Source = out.parts.source()
	return out
}

// familySize is how many claims there are with that of one more route at a
// percentile: P50 over routes, others over routes × percentiles.
func (r varyingRoute) familySize(percent int) int {
	routes := len(r.session.Routes)
	if percent == 50 {
		return routes
	}
	return routes * len(r.measured.of(record.LatencyDistribution))
}

// zone is that of the metric that a percentile belongs to, widened by the
// floor in microseconds.
func (r varyingRoute) zone(pt point) float64 {
	metric := record.LatencyDistribution
	switch pt.p {
	case 50:
		metric = record.LatencyP50
	case 99:
		metric = record.LatencyP99
	}
	return r.zoneAt(r.session.Rules.Metrics[metric], pt)
}

// widen is by how much an interval is wider than the spread makes it: by the
// clock's tick, and by a drift between arms that took no turns.
func (r varyingRoute) widen(pt point) float64 {
	return float64(r.measured.tick)/float64(max(pt.values[0], 1)) + r.drift(pt)
}

// addEffects counts what a comparison without intervals would have said of
// P50; that of a single block knows nothing of blocks that are set aside.
func (m *ModeVariance) addEffects(r varyingRoute, pt point) {
	size := math.Abs(math.Expm1(stats.Describe(pt.effects).Mean))
	largest := size
	if m.Largest != nil {
		largest = max(*m.Largest, size)
	}
	m.Largest = &largest
	m.Rows++
	if size >= loneEffect {
		m.Beyond++
	}
	i := placeOf(pt.p)
	for _, b := range r.blocks {
		if !b.effects[i].enough {
			continue
		}
		m.AllBlocks++
		if math.Abs(math.Expm1(b.effects[i].median)) >= loneEffect {
			m.LoneBlocks++
		}
	}
}

// sumUp takes the medians over routes.
func (m *ModeVariance) sumUp() {
	if m.Largest != nil {
		*m.Largest = digits(6, *m.Largest)
	}
	var all parts
	for _, percent := range variancePercentiles() {
		var floors []float64
		for _, r := range m.Routes {
			for _, pt := range r.Points {
				if pt.P != percent {
					continue
				}
				floors = append(floors, pt.Floor)
				if percent == 50 && pt.Source != nil {
					all.between += pt.parts.between
					all.within += pt.parts.within
				}
			}
		}
		if len(floors) > 0 {
			m.Floors = append(m.Floors, MedianFloor{P: percent, Floor: digits(6, stats.Median(floors))})
		}
	}
	m.Source = all.source()
	m.medians()
}

// medians puts together what the routes' P50 can see.
func (m *ModeVariance) medians() {
	var points []PointVariance
	for _, r := range m.Routes {
		for _, pt := range r.Points {
			if pt.P != 50 {
				continue
			}
			if len(points) == 0 || pt.Floor > slices.MaxFunc(points, byFloor).Floor {
				m.Noisiest = r.Route
			}
			points = append(points, pt)
		}
	}
	if len(points) == 0 {
		return
	}
	for i, n := range varianceBlocks() {
		median := func(of func(Sees) float64) float64 {
			var values []float64
			for _, pt := range points {
				values = append(values, of(pt.Sees[i]))
			}
			return digits(6, stats.Median(values))
		}
		m.Sees = append(m.Sees, Sees{
			Blocks: n,
			Floor:  median(func(s Sees) float64 { return s.Floor }),
			Noise:  median(func(s Sees) float64 { return s.Noise }),
			Zone:   median(func(s Sees) float64 { return s.Zone }),
		})
	}
}

func byFloor(a, b PointVariance) int { return cmp.Compare(a.Floor, b.Floor) }

// halves are the effects of the two halves of each block, at a percentile: of
// every second slice pair, or where a run is one piece, of every second
// twentieth. Blocks in which a half has too few requests are left out.
func (r varyingRoute) halves(percent int) (all [][2]float64) {
	for b, runs := range r.pairing.blocks {
		if !r.speeds.keeps(b) {
			continue
		}
		parts := r.parts(runs)
		var pair [2]float64
		enough := true
		for h := range pair {
			var half samples
			for i := h; i < len(parts.parts[0]); i += 2 {
				for side := range half.parts {
					half.parts[side] = append(half.parts[side], parts.parts[side][i])
					half.n[side] += len(parts.parts[side][i])
				}
			}
			if enough = enough && half.enough(percent); enough {
				pair[h] = half.effect(percent, logRatio(percent, half.parts[0], half.parts[1]))
			}
		}
		if enough {
			all = append(all, pair)
		}
	}
	return all
}

// parts are a block's slice pairs. A run in one piece is cut, in the order in
// which its requests were sent, and each half becomes one sample, as the whole
// run is one.
func (r varyingRoute) parts(runs [2]*record.Run) samples {
	if !r.unsliced() {
		return pairSlices(runs, r.name)
	}
	var out samples
	for side, run := range runs {
		halves := make([][]int64, 2)
		for _, slice := range slicesByNumber(run, r.name) { // there is one
			for i := range pieces {
				halves[i%2] = append(halves[i%2], slice[i*len(slice)/pieces:(i+1)*len(slice)/pieces]...)
			}
		}
		for _, half := range halves {
			slices.Sort(half)
		}
		out.parts[side] = halves
	}
	return out
}

// share turns ln of a ratio into a fraction, as it is shown.
func share(x float64) float64 { return digits(6, math.Expm1(x)) }

// JSON is the content of variance.json: indented, with a newline at the end.
func (v *Variance) JSON() ([]byte, error) { return indented(v, "the variance") }
