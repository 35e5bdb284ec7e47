package gates

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"plumbline/record"
)

// Merged holds monitor files side by side.
type Merged struct {
	Format  int               `json:"format"`
	Metrics []record.Quantity `json:"metrics"`
	Files   []MergedFile      `json:"files"`
	Seconds []MergedSecond    `json:"seconds"` // those of which a file has a sample
}

// MergeInput is one file to be merged.
type MergeInput struct {
	Name     string
	File     *record.UsageFile
	Requests int64 // that the process was sent meanwhile; 0: not known
}

// MergedFile sums one file up. What is not known is not there.
type MergedFile struct {
	Name       string              `json:"name"`
	Path       string              `json:"path"`
	Samples    int                 `json:"samples"`
	LengthS    float64             `json:"length_s"`              // from the first sample to the last
	CPUSeconds *float64            `json:"cpu_seconds,omitempty"` // from the first sample to the last
	Requests   int64               `json:"requests,omitempty"`
	CPUPer1000 *float64            `json:"cpu_seconds_per_1000_requests,omitempty"`
	Metrics    []MergedMetric      `json:"metrics"` // in the order of Merged.Metrics
	Aside      []record.UsageFault `json:"set_aside,omitempty"`
	Notes      []string            `json:"notes,omitempty"`
}

// MergedMetric sums one metric up. A rate has a mean, over time, and a maximum;
// a level also the values at the start, where the process was idle, on the
// plateau and at the end; a counter only what it grew by.
type MergedMetric struct {
	SetAside bool     `json:"set_aside,omitempty"`
	Start    *float64 `json:"start,omitempty"`   // first value
	Plateau  *float64 `json:"plateau,omitempty"` // mean over the second half of the time
	End      *float64 `json:"end,omitempty"`     // last value
	Mean     *float64 `json:"mean,omitempty"`
	Max      *float64 `json:"max,omitempty"`
	Growth   *float64 `json:"growth,omitempty"`
}

// MergedSecond is one second since each file's start: by metric and file the
// mean of the second's samples, of a counter the last; nil where there is none.
type MergedSecond struct {
	Second int          `json:"second"`
	Values [][]*float64 `json:"values"`
}

// JSON is m for machines.
func (m *Merged) JSON() ([]byte, error) { return indented(m, "the merged samples") }

// leastPlateau is how many samples the second half must have to be a plateau.
const leastPlateau = 2

// Merge puts files side by side. What was set aside when they were read enters
// no cell, mean or maximum.
func Merge(in []MergeInput, metrics []record.Quantity) *Merged {
	m := &Merged{Format: Format, Metrics: metrics}
	for _, f := range in {
		m.Files = append(m.Files, summed(f, metrics))
	}
	m.Seconds = bySecond(in, metrics)
	return m
}

func summed(in MergeInput, metrics []record.Quantity) MergedFile {
	f := MergedFile{Name: in.Name, Path: in.File.Path, Samples: len(in.File.Rows), Requests: in.Requests, Aside: in.File.Aside, Notes: in.File.Notes}
	if rows := in.File.Rows; len(rows) > 0 {
		f.LengthS = digits(9, rows[len(rows)-1].ElapsedS-rows[0].ElapsedS)
	}
	f.CPUSeconds = cpuSeconds(in.File.Rows)
	if f.CPUSeconds != nil && f.Requests > 0 {
		f.CPUPer1000 = kept(*f.CPUSeconds / float64(f.Requests) * 1000)
	}
	for _, q := range metrics {
		metric := summedMetric(in.File.Rows, q)
		for _, a := range in.File.Aside {
			metric.SetAside = metric.SetAside || slices.Contains(a.Quantities, q)
		}
		f.Metrics = append(f.Metrics, metric)
	}
	return f
}

// cpuSeconds are those from the first row to the last: a percentage is over the
// time since the row before. One that is missing makes the sum unknown.
func cpuSeconds(rows []record.Usage) *float64 {
	if len(rows) < 2 {
		return nil
	}
	total := 0.0
	for i := 1; i < len(rows); i++ {
		x, known := rows[i].Get(record.CPUPercent)
		if !known {
			return nil
		}
		total += x / 100 * (rows[i].ElapsedS - rows[i-1].ElapsedS)
	}
	return kept(total)
}

func kept(x float64) *float64 {
	x = digits(9, x)
	return &x
}

// usedAt is a known value, and the time that it stands for.
type usedAt struct{ at, length, x float64 }

func valuesOf(rows []record.Usage, q record.Quantity) (all []usedAt) {
	for i := range rows {
		x, known := rows[i].Get(q)
		length := 0.0
		if i > 0 {
			length = rows[i].ElapsedS - rows[i-1].ElapsedS
		}
		if known {
			all = append(all, usedAt{rows[i].ElapsedS, length, x})
		}
	}
	return all
}

func summedMetric(rows []record.Usage, q record.Quantity) (m MergedMetric) {
	all := valuesOf(rows, q)
	if len(all) == 0 {
		return m
	}
	first, last := all[0], all[len(all)-1]
	if q.Kind() == record.Counter {
		m.Growth = kept(last.x - first.x)
		return m
	}
	m.Max = kept(slices.MaxFunc(all, func(a, b usedAt) int { return cmp.Compare(a.x, b.x) }).x)
	m.Mean = kept(mean(all, q.Kind() == record.Rate))
	if q.Kind() == record.Level {
		m.Start, m.End = kept(first.x), kept(last.x)
		half := rows[0].ElapsedS + (rows[len(rows)-1].ElapsedS-rows[0].ElapsedS)/2
		late := slices.DeleteFunc(slices.Clone(all), func(p usedAt) bool { return p.at < half })
		if len(late) >= leastPlateau {
			m.Plateau = kept(mean(late, false))
		}
	}
	return m
}

// mean is that of the values, or weighted with the time that each stands for
// (the first row's is not known).
func mean(all []usedAt, overTime bool) float64 {
	sum, weights := 0.0, 0.0
	for _, p := range all {
		w := 1.0
		if overTime && len(all) > 1 {
			w = p.length
		}
		sum += w * p.x
		weights += w
	}
	if weights == 0 {
		return all[0].x
	}
	return sum / weights
}

// bySecond makes the table. A sample of 1.9996 s is of second 2: times are
// kept, and by other tools rounded, to milliseconds.
func bySecond(in []MergeInput, metrics []record.Quantity) (table []MergedSecond) {
	const rounding = 0.0005
	all := map[int][][][]float64{} // by second, metric, file
	for k, f := range in {
		for _, row := range f.File.Rows {
			second := int(math.Floor(row.ElapsedS + rounding))
			cells := all[second]
			if cells == nil {
				cells = make([][][]float64, len(metrics))
				for i := range cells {
					cells[i] = make([][]float64, len(in))
				}
				all[second] = cells
			}
			for i, q := range metrics {
				if x, known := row.Get(q); known {
					cells[i][k] = append(cells[i][k], x)
				}
			}
		}
	}
	for _, s := range slices.Sorted(maps.Keys(all)) {
		row := MergedSecond{Second: s}
		for i, q := range metrics {
			var values []*float64
			for _, xs := range all[s][i] {
				values = append(values, cell(q, xs))
			}
			row.Values = append(row.Values, values)
		}
		table = append(table, row)
	}
	return table
}

func cell(q record.Quantity, xs []float64) *float64 {
	switch {
	case len(xs) == 0:
		return nil
	case q.Kind() == record.Counter:
		return kept(xs[len(xs)-1])
	}
	sum := 0.0
	for _, x := range xs {
		sum += x
	}
	return kept(sum / float64(len(xs)))
}
