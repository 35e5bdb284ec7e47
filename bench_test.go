package plumbline_test

import (
	"fmt"
	"math"
	"slices"
	"testing"
)

// BenchmarkAwake compares sessions whose CPUs are kept awake with sessions
// whose CPUs may sleep, in turns on the same routers (docs/METHOD.md, "Why
// slices"; figures in docs/BENCHMARKS.md):
//
//	go test -run '^$' -bench Awake -benchtime 3x -timeout 2h .
//
// It reports, per router and way, the median half-width of the intervals of
// an A/A in percent (P50 and the deciding percentile of the distribution), and
// the largest P50 effect, in percent, on a route that was not slowed while
// another one was.
func BenchmarkAwake(b *testing.B) {
	plumbline := binary(b)
	for _, l := range routers(plumbline) {
		if l.program != "" {
			needs(b, l.program)
		}
		b.Run(l.name, func(b *testing.B) {
			ways := []bool{true, false}
			p50, spread, neighbour := map[bool][]float64{}, map[bool][]float64{}, map[bool]float64{}
			for b.Loop() {
				for _, awake := range ways {
					extra := fmt.Sprintf("%scpus: {awake: %v}\n", short, awake)
					for _, r := range weigh(b, plumbline, l.plan(b, usual, usual, extra)).Comparisons {
						if r.Low == nil {
							continue
						}
						half := 50 * (math.Log1p(*r.High) - math.Log1p(*r.Low))
						switch r.Metric {
						case "latency_p50":
							p50[awake] = append(p50[awake], half)
						case "latency_distribution":
							spread[awake] = append(spread[awake], half)
						}
					}
					for _, r := range weigh(b, plumbline, l.plan(b, usual, slowOnce, extra)).Comparisons {
						if r.Metric == "latency_p50" && r.Route != l.routes[1] && r.Effect != nil {
							neighbour[awake] = max(neighbour[awake], 100*math.Abs(*r.Effect))
						}
					}
				}
				slices.Reverse(ways) // neither way always goes first
			}
			for _, awake := range []bool{true, false} {
				name := map[bool]string{true: "awake", false: "asleep"}[awake]
				b.ReportMetric(median(p50[awake]), name+"-±%P50")
				b.ReportMetric(median(spread[awake]), name+"-±%distribution")
				b.ReportMetric(neighbour[awake], name+"-neighbour%")
			}
			b.ReportMetric(0, "ns/op") // its time says nothing
		})
	}
}

func median(values []float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	slices.Sort(values)
	return values[len(values)/2]
}
