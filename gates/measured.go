package gates

import (
	"math"
	"slices"

	"plumbline/gates/stats"
	"plumbline/record"
)

// Measured is what the runs of a session say, arm by arm, without comparing
// them and without a verdict.
type Measured struct {
	Format      int           `json:"format"`
	Percentiles []float64     `json:"percentiles"` // 0 to 100
	Arms        []MeasuredArm `json:"arms"`
	Rows        []MeasuredRow `json:"rows"`      // route by route, in the session's order, then by arm
	SetAside    []SetAside    `json:"set_aside"` // runs whose latencies do not count
}

// MeasuredArm is one arm, or one file.
type MeasuredArm struct {
	Name string `json:"name"`
	Runs int    `json:"runs"` // those that count
	// IdleMemory is the median over these runs, in bytes; null where it was not measured.
	IdleMemory *int64 `json:"idle_memory_bytes"`
	// Delivered is the share of the due requests that was sent, 0 to 1; null in a closed loop.
	Delivered *float64 `json:"delivered"`
}

// MeasuredRow is one route of one arm.
type MeasuredRow struct {
	Route    string `json:"route"`
	Arm      string `json:"arm"`
	Requests int    `json:"requests"` // all that were sent, also by runs that were set aside
	// Errors is the share of requests with another status than an expected one
	// or no answer, 0 to 1; null without a request or without an expected status.
	Errors  *float64 `json:"errors"`
	Counted int      `json:"counted"` // requests behind the percentiles
	// Latency holds a value for each of Measured.Percentiles, in seconds, exact
	// and by nearest rank over all counted requests; null without any.
	Latency   []float64 `json:"latency_s"`
	BodyBytes *float64  `json:"body_bytes"` // mean of the counted requests; null without any
}

// Measure reduces the session's runs to percentiles, each from 0 (the
// smallest value) to 100, with three decimals at most.
func Measure(s *record.Session, percentiles []float64) *Measured {
	runs, aside := sound(s)
	expected := expectedStatuses(s.Routes, runs)
	m := &Measured{Format: Format, Percentiles: percentiles, SetAside: append([]SetAside{}, aside...), Arms: []MeasuredArm{}, Rows: []MeasuredRow{}}
	counts := func(r *record.Run) bool {
		return !slices.ContainsFunc(aside, func(a SetAside) bool { return a.Run == r.ID })
	}
	shares := delivered(s)
	for _, a := range s.Arms {
		arm := MeasuredArm{Name: a.Name}
		var memory []float64
		for _, r := range runs {
			if r.Arm == a.Name && counts(r) {
				arm.Runs++
				if r.IdleMemory > 0 {
					memory = append(memory, float64(r.IdleMemory))
				}
			}
		}
		if len(memory) > 0 {
			median := int64(stats.Median(memory))
			arm.IdleMemory = &median
		}
		if share, ok := shares[a.Name]; ok {
			arm.Delivered = &share
		}
		m.Arms = append(m.Arms, arm)
	}
	for _, route := range s.Routes {
		for _, a := range s.Arms {
			row := MeasuredRow{Route: route.Name, Arm: a.Name}
			codes := map[int]int{}
			var latency []int64
			bytes := 0.0
			for _, r := range runs {
				if r.Arm != a.Name {
					continue
				}
				addCodes(codes, r, route.Name)
				// A run counts what its own preflight was answered, which may be an error.
				if a, ok := answer(r, route.Name); ok && !slices.Contains(expected[route.Name], a.Status) {
					continue
				}
				if sm := r.Samples[route.Name]; sm != nil && counts(r) {
					latency = append(latency, sm.Latency...)
					bytes += float64(sm.BodyBytes)
				}
			}
			row.fill(codes, expected[route.Name], latency, bytes, percentiles)
			m.Rows = append(m.Rows, row)
		}
	}
	return m
}

func (r *MeasuredRow) fill(codes map[int]int, expected []int, latency []int64, bytes float64, percentiles []float64) {
	wrong := unexpected(codes, expected)
	r.Requests = wrong.N
	if r.Route == record.NoTarget { // failures, whatever is expected
		expected = []int{0}
	}
	if wrong.N > 0 && len(expected) > 0 {
		share := digits(9, wrong.Share())
		r.Errors = &share
	}
	r.Counted = len(latency)
	if len(latency) == 0 {
		return
	}
	slices.Sort(latency)
	for _, p := range percentiles {
		r.Latency = append(r.Latency, seconds(stats.Percentile(int(math.Round(p*1000)), latency)))
	}
	mean := digits(3, bytes/float64(len(latency)))
	r.BodyBytes = &mean
}

// JSON is the measurement for machines: indented, with a newline at the end.
func (m *Measured) JSON() ([]byte, error) { return indented(m, "what was measured") }
