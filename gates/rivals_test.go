package gates_test

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"testing"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"plumbline/gates"
	"plumbline/record"
)

// mannWhitney is the two-sided p-value of "the two samples come from one
// distribution": the U test with the normal approximation, corrected for ties
// and continuity (Mann & Whitney 1947; as R's wilcox.test with exact = FALSE).
// Of samples without any spread it is 1.
func mannWhitney(x, y []float64) float64 {
	type value struct {
		v     float64
		first bool
	}
	all := make([]value, 0, len(x)+len(y))
	for _, v := range x {
		all = append(all, value{v, true})
	}
	for _, v := range y {
		all = append(all, value{v, false})
	}
	slices.SortFunc(all, func(a, b value) int { return cmp.Compare(a.v, b.v) })
	ranks, ties := 0.0, 0.0
	for i := 0; i < len(all); {
		j := i
		for j < len(all) && all[j].v == all[i].v {
			j++
		}
		for _, a := range all[i:j] {
			if a.first {
				ranks += float64(i+j+1) / 2
			}
		}
		t := float64(j - i)
		ties += t*t*t - t
		i = j
	}
	n, m := float64(len(x)), float64(len(y))
	sigma := math.Sqrt(n * m / 12 * (n + m + 1 - ties/((n+m)*(n+m-1))))
	if !(sigma > 0) {
		return 1
	}
	away := math.Abs(ranks - n*(n+1)/2 - n*m/2)
	return min(1, 2*distuv.UnitNormal.Survival(max(0, away-0.5)/sigma))
}

// welch is the two-sided p-value of "the two means are the same" (Welch 1947).
func welch(x, y []float64) float64 {
	mx, vx := stat.MeanVariance(x, nil)
	my, vy := stat.MeanVariance(y, nil)
	a, b := vx/float64(len(x)), vy/float64(len(y))
	if !(a+b > 0) {
		return 1
	}
	nu := (a + b) * (a + b) / (a*a/float64(len(x)-1) + b*b/float64(len(y)-1))
	return 2 * distuv.StudentsT{Sigma: 1, Nu: nu}.Survival(math.Abs(mx-my)/math.Sqrt(a+b))
}

// rivals are ways to say whether a route is slower, from the same data. Each
// answers −1 (faster), 0 or 1 (slower).
var rivals = []struct {
	name string
	says func(base, cand [][]float64) int // latencies run by run, in ns
}{
	{"P50 ratio ≥ 5 %, one run each", func(base, cand [][]float64) int {
		return changed(base[:1], cand[:1], 0.05)
	}},
	{"Welch on requests", func(base, cand [][]float64) int {
		return sign(welch(slices.Concat(base...), slices.Concat(cand...)), base, cand, 0)
	}},
	{"Mann–Whitney on requests", func(base, cand [][]float64) int {
		return sign(mannWhitney(slices.Concat(base...), slices.Concat(cand...)), base, cand, 0)
	}},
	{"the same, and P50 ratio ≥ 5 %", func(base, cand [][]float64) int {
		return sign(mannWhitney(slices.Concat(base...), slices.Concat(cand...)), base, cand, 0.05)
	}},
	{"U test on P50s of runs", func(base, cand [][]float64) int {
		return sign(mannWhitney(medians(base), medians(cand)), base, cand, 0)
	}},
}

// sign is the direction of a change that a test finds at 5 %, two-sided, and
// that is at least so large.
func sign(p float64, base, cand [][]float64, least float64) int {
	if p >= 0.05 {
		return 0
	}
	return changed(base, cand, least)
}

func changed(base, cand [][]float64, least float64) int {
	ratio := median(slices.Concat(cand...)) / median(slices.Concat(base...))
	switch {
	case ratio >= 1+least:
		return 1
	case ratio <= 1/(1+least):
		return -1
	}
	return 0
}

func medians(runs [][]float64) []float64 {
	var all []float64
	for _, r := range runs {
		all = append(all, median(slices.Clone(r)))
	}
	return all
}

// median sorts its argument.
func median(values []float64) float64 {
	slices.SortFunc(values, cmp.Compare[float64])
	return values[(len(values)-1)/2]
}

// answer counts what one way said of rows with one truth.
type answer struct {
	slower, faster, same, open, rows float64
}

func (a *answer) count(says int) {
	a.rows++
	switch says {
	case 1:
		a.slower++
	case -1:
		a.faster++
	default:
		a.same++
	}
}

// countOurs takes a row of P50. A row that is not slower passes.
func (a *answer) countOurs(c gates.Comparison) {
	switch {
	case c.Verdict == gates.RowInconclusive && !c.NotSlower, c.Verdict == gates.RowNotComparable:
		a.rows++
		a.open++
	case c.Verdict == gates.RowRegression:
		a.count(1)
	case c.Verdict == gates.RowImprovement:
		a.count(-1)
	default:
		a.count(0)
	}
}

func (a *answer) join(b answer) {
	a.slower += b.slower
	a.faster += b.faster
	a.same += b.same
	a.open += b.open
	a.rows += b.rows
}

// ask asks all rivals, and us (the last), about the P50 of routes of a session.
func ask(s *record.Session, v *gates.Verdict, routes []record.Route) []answer {
	all := make([]answer, len(rivals)+1)
	for _, route := range routes {
		var runs [2][][]float64
		for _, r := range s.Runs {
			var l []float64
			for _, ns := range r.Samples[route.Name].Latency {
				l = append(l, float64(ns))
			}
			side := 0
			if r.Arm == "candidate" {
				side = 1
			}
			runs[side] = append(runs[side], l)
		}
		for i, rival := range rivals {
			all[i].count(rival.says(runs[0], runs[1]))
		}
		for _, c := range v.Comparisons {
			if c.Route == route.Name && c.Metric == record.LatencyP50 {
				all[len(rivals)].countOurs(c)
			}
		}
	}
	return all
}

// rivalry is what all said where nothing has changed, and where the candidate
// is about 8 % slower.
type rivalry struct {
	name         string
	same, slower []answer
}

func sum(all [][]answer) []answer {
	total := make([]answer, len(rivals)+1)
	for _, answers := range all {
		for i, a := range answers {
			total[i].join(a)
		}
	}
	return total
}

const rivalsHead = `
| data | way | no change: slower | faster | cannot say | +8 %: found | missed | cannot say |
| --- | --- | --- | --- | --- | --- | --- | --- |
`

// tell writes one row per way.
func (r rivalry) tell(out io.Writer) {
	for i := range r.same {
		name, data, open := "ours", "", func(a answer) string { return percent(a.open / a.rows) }
		if i < len(rivals) {
			name, open = rivals[i].name, func(answer) string { return "never" }
		}
		if i == 0 {
			data = r.name
		}
		a, b := r.same[i], r.slower[i]
		fmt.Fprintf(out, "| %s | %s | %s | %s | %s | %s | %s | %s |\n", data, name,
			percent(a.slower/a.rows), percent(a.faster/a.rows), open(a),
			percent(b.slower/b.rows), percent((b.faster+b.same)/b.rows), open(b))
	}
}

// tellRivals compares on synthetic sessions of three routes.
func tellRivals(_ *testing.B, out io.Writer) {
	drawn := truth{routes: 3, sd: 0.01, within: 0.15, grid: 1200, request: true}
	unsliced := truth{routes: 3, within: 0.028, grid: 400, level: 0.15}
	tiny := truth{routes: 3, within: 0.028, grid: 10, level: 0.15}
	slower := func(int, float64) float64 { return 0.0770 } // ln 1.08
	fmt.Fprint(out, rivalsHead)
	for _, d := range []struct {
		name string
		truth
	}{
		{"sliced, blocks differ by 1.6 %, 18 blocks", drawn.fixed(18)},
		{"not sliced, runs differ by 15 %, 400 requests a run, 18 blocks", unsliced.fixed(18)},
		{"the same, 6 blocks", unsliced.fixed(6)},
		{"the same, 6 blocks, 10 requests a run", tiny.fixed(6)},
	} {
		many := func(t truth) []answer {
			return sum(judgeMany(*sessions, func(i int) []answer {
				s := t.session(uint64(i))
				return ask(s, gates.Judge(s), s.Routes)
			}))
		}
		rivalry{d.name, many(d.truth), many(d.with(slower))}.tell(out)
	}
}

// TestClassicalTests has its values from R 4.2.2:
//
//	x <- c(11,12,12,13,15,16,18); y <- c(12,14,15,15,17,19,20,24)
//	wilcox.test(x, y, exact = FALSE)$p.value; t.test(x, y)$p.value
//	wilcox.test(c(1,3,5,7,9,11), c(2,8,10,12,14,16), exact = FALSE)$p.value
//	t.test(c(1,3,5,7,9,11), c(2,8,10,12,14,16))$p.value
func TestClassicalTests(t *testing.T) {
	for _, tt := range []struct {
		x, y            []float64
		whitney, welchs float64
	}{
		{[]float64{11, 12, 12, 13, 15, 16, 18}, []float64{12, 14, 15, 15, 17, 19, 20, 24}, 0.11557952208156, 0.083618615106305},
		{[]float64{1, 3, 5, 7, 9, 11}, []float64{2, 8, 10, 12, 14, 16}, 0.12820527503039, 0.12094491077898},
		{[]float64{5, 5, 5}, []float64{5, 5, 5}, 1, 1},
	} {
		if got := mannWhitney(tt.x, tt.y); math.Abs(got-tt.whitney) > 1e-9 {
			t.Errorf("Mann–Whitney of %v and %v: %.12f, want %.12f", tt.x, tt.y, got, tt.whitney)
		}
		if got := welch(tt.x, tt.y); math.Abs(got-tt.welchs) > 1e-9 {
			t.Errorf("Welch of %v and %v: %.12f, want %.12f", tt.x, tt.y, got, tt.welchs)
		}
	}
}
