package gates_test

import (
	"bytes"
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"plumbline/gates"
	"plumbline/record"

	"github.com/google/go-cmp/cmp"
)

func find(t *testing.T, v *gates.Verdict, route string, metric record.Metric) gates.Comparison {
	t.Helper()
	for _, c := range v.Comparisons {
		if c.Route == route && c.Metric == metric {
			return c
		}
	}
	t.Fatalf("no %s of %s", metric, route)
	return gates.Comparison{}
}

func wantOutcome(t *testing.T, v *gates.Verdict, want gates.Outcome, code int) {
	t.Helper()
	if v.Verdict != want || v.ExitCode != code {
		t.Errorf("verdict %s (%d), want %s (%d); reasons: %q", v.Verdict, v.ExitCode, want, code, v.Reasons)
	}
}

func wantReason(t *testing.T, reasons []string, want string) {
	t.Helper()
	if !strings.Contains(strings.Join(reasons, "\n"), want) {
		t.Errorf("reasons %q do not say %q", reasons, want)
	}
}

func TestSlowerRouteIsFoundThereAndOnlyThere(t *testing.T) {
	for seed := range uint64(20) {
		w := small(seed)
		w.change = map[string]float64{"GET /b": math.Log(1.3)}
		v := gates.Judge(w.session())
		wantOutcome(t, v, gates.Regression, 3)
		wantReason(t, v.Reasons, "Regression: P50 of GET /b, latency distribution of GET /b.")
		for _, c := range v.Comparisons {
			want := gates.RowEquivalent
			switch {
			case c.Metric == record.LatencyP99:
				want = gates.RowNotComparable // 750 requests a block are too few
			case c.Route == "GET /b" && c.Metric != record.ErrorRate:
				want = gates.RowRegression
				if *c.Effect < 0.27 || *c.Effect > 0.34 || *c.Low > *c.Effect || *c.High < *c.Effect {
					t.Errorf("seed %d: effect %.3f [%.3f, %.3f], the truth is 0.3", seed, *c.Effect, *c.Low, *c.High)
				}
			}
			if c.Verdict != want {
				t.Errorf("seed %d: %s of %s is %s, want %s", seed, c.Metric, c.Route, c.Verdict, want)
			}
		}
	}
}

func TestImprovementPasses(t *testing.T) {
	w := small(1)
	w.change = map[string]float64{"GET /b": math.Log(0.7)}
	v := gates.Judge(w.session())
	wantOutcome(t, v, gates.Pass, 0)
	if c := find(t, v, "GET /b", record.LatencyDistribution); c.Verdict != gates.RowImprovement || c.Percentile == 0 {
		t.Errorf("distribution is %s at P%d, want an improvement", c.Verdict, c.Percentile)
	}
}

// TestNotSlowerPasses: whether the candidate is 5 % faster or not is open, that
// it is not slower is sure.
func TestNotSlowerPasses(t *testing.T) {
	w := small(2)
	w.change = map[string]float64{"GET /b": -math.Log1p(0.05)}
	v := gates.Judge(w.session())
	c := find(t, v, "GET /b", record.LatencyP50)
	if c.Verdict != gates.RowInconclusive || !c.NotSlower {
		t.Errorf("P50 is %s, not slower: %v", c.Verdict, c.NotSlower)
	}
	wantOutcome(t, v, gates.Pass, 0)
}

// TestTail is a tail that only P99 sees; it is watched, and its regression
// counts all the same.
func TestTail(t *testing.T) {
	w := world{seed: 1, blocks: 6, routes: 1, slices: 30, perSlice: 200, runSD: 0.005}
	w.latency = func(rng *rand.Rand, cand bool, _ int) float64 {
		x := 0.1 * rng.NormFloat64()
		if rng.Float64() < 0.03 {
			x += 0.5
			if cand {
				x += 0.3
			}
		}
		return x
	}
	s := w.session()
	v := gates.Judge(s)
	wantOutcome(t, v, gates.Regression, 3)
	wantReason(t, v.Reasons, "Regression: P99 of GET /a.")
	c := find(t, v, "GET /a", record.LatencyP99)
	if c.Judged || c.Verdict != gates.RowRegression || c.Blocks != 6 || c.Percentiles != nil {
		t.Errorf("P99: judged %v, %s over %d blocks", c.Judged, c.Verdict, c.Blocks)
	}
	for _, r := range s.Runs[:4] {
		thin(r, "GET /a", 166) // 4,980 in a block: 49 beyond P99
	}
	c = find(t, gates.Judge(s), "GET /a", record.LatencyP99)
	if c.Blocks != 4 {
		t.Errorf("P99 rests on %d blocks, want the 4 that have 50 requests beyond it", c.Blocks)
	}
	wantReason(t, c.Reasons, "4 of 6 blocks had enough requests beyond P99")
}

// TestWholeRuns is a session that is not sliced: one slice is the whole run.
func TestWholeRuns(t *testing.T) {
	w := world{seed: 1, blocks: 6, routes: 2, slices: 1, perSlice: 1000, runSD: 0.005, change: map[string]float64{"GET /b": math.Log(1.3)}}
	s := w.session()
	s.Schedule.Mode = record.Interleaved
	v := gates.Judge(s)
	if a, b := find(t, v, "GET /a", record.LatencyP50), find(t, v, "GET /b", record.LatencyP50); a.Verdict != gates.RowEquivalent || b.Verdict != gates.RowRegression {
		t.Errorf("P50: %s and %s, want equivalent and regression", a.Verdict, b.Verdict)
	}
}

// TestOneOfManyRoutes: beyond the zone on its own is no regression yet among many.
func TestOneOfManyRoutes(t *testing.T) {
	for seed := range uint64(100) {
		w := world{seed: seed, blocks: 4, routes: 6, slices: 5, perSlice: 60, runSD: 0.02, change: map[string]float64{"GET /a": 0.1}}
		c := find(t, gates.Judge(w.session()), "GET /a", record.LatencyP50)
		if *c.Low > c.Zone && c.Verdict != gates.RowRegression {
			if c.Verdict != gates.RowInconclusive {
				t.Errorf("seed %d: %s", seed, c.Verdict)
			}
			wantReason(t, c.Reasons, "beyond the zone on its own, but not beyond doubt among all rows of its kind")
			return
		}
	}
	t.Error("no seed shows the case")
}

// TestFloor: 2 µs on 20 µs are 10 %, whatever the plan's zone.
func TestFloor(t *testing.T) {
	w := small(1)
	w.change = map[string]float64{"GET /a": math.Log1p(0.07)}
	s := w.session()
	s.Rules.FloorS = 2e-6
	for _, r := range s.Runs {
		for i := range r.Samples["GET /a"].Latency {
			r.Samples["GET /a"].Latency[i] /= 10
		}
	}
	c := find(t, gates.Judge(s), "GET /a", record.LatencyP50)
	if c.Verdict != gates.RowEquivalent || math.Abs(c.Zone-0.1) > 0.01 {
		t.Errorf("+7 %% of 20 µs is %s in a zone of %.3f, want equivalent in about 0.1", c.Verdict, c.Zone)
	}
}

// TestSessions is what else may be wrong or odd with a session.
func TestSessions(t *testing.T) {
	const a = "GET /a"
	noRow := record.Metric("")
	for _, tt := range []struct {
		name    string
		change  func(*record.Session)
		verdict gates.Outcome
		reason  string // of the session
		metric  record.Metric
		row     gates.RowVerdict
		because string // of the row
	}{
		{"untouched", func(s *record.Session) {}, gates.Pass, "", record.LatencyP50, gates.RowEquivalent, ""},
		{"no runs", func(s *record.Session) { s.Runs = nil },
			gates.Invalid, "No row could be judged: needs at least 3 blocks, has 0.", record.ErrorRate, gates.RowNotComparable, "nothing was measured"},
		{"nothing at all", func(s *record.Session) { *s = record.Session{} }, gates.Invalid, "at least one baseline", noRow, "", ""},
		{"no routes", func(s *record.Session) { s.Routes = nil }, gates.Invalid, "names no route or no metric", noRow, "", ""},
		{"no rules", func(s *record.Session) { s.Rules.Metrics = nil }, gates.Invalid, "names no route or no metric", noRow, "", ""},
		{"no candidate", func(s *record.Session) { s.Arms = s.Arms[:1] }, gates.Invalid, "one arm", noRow, "", ""},
		{"candidate never ran", func(s *record.Session) {
			s.Runs = slices.DeleteFunc(s.Runs, func(r *record.Run) bool { return r.Arm == "candidate" })
		}, gates.Invalid, "No row could be judged", record.LatencyP50, gates.RowNotComparable, "needs at least 3 blocks, has 0"},
		{"only watched", func(s *record.Session) {
			for m, rule := range s.Rules.Metrics {
				rule.Watch = true
				s.Rules.Metrics[m] = rule
			}
		}, gates.Invalid, "the rules only watch", noRow, "", ""},
		{"unknown metric", func(s *record.Session) { s.Rules.Metrics["memory"] = record.Rule{Zone: 0.05} },
			gates.Inconclusive, `The rules name "memory", which this version does not judge.`, noRow, "", ""},
		{"two blocks", func(s *record.Session) { s.Runs = s.Runs[:4]; s.Order = s.Order[:4] },
			gates.Invalid, "No row could be judged: needs at least 3 blocks, has 2.", record.LatencyP50, gates.RowNotComparable, "needs at least 3 blocks, has 2"},
		{"runs missing", func(s *record.Session) { s.Runs = s.Runs[:10] },
			gates.Inconclusive, "Data are missing: the record holds nothing of 2 of 12 planned runs.", record.LatencyP50, gates.RowEquivalent, ""},
		{"samples missing", func(s *record.Session) {
			each(s, "candidate", func(r *record.Run) { delete(r.Samples, a) })
		}, gates.Inconclusive, "Not comparable: P50 of GET /a", record.LatencyP50, gates.RowNotComparable, "too few requests: 0 of 6 blocks had 20 beyond P50"},
		{"interrupted", func(s *record.Session) { s.State, s.Reason = record.Interrupted, "signal: interrupt" },
			gates.Inconclusive, "The session is not complete (interrupted: signal: interrupt): 6 of 6 planned blocks.", noRow, "", ""},
		{"stopped at once", func(s *record.Session) {
			s.State, s.Reason, s.Runs = record.Stopped, "candidate was not ready within 30 s", s.Runs[:1]
			s.Runs[0].State = record.Stopped
		}, gates.Invalid, "candidate was not ready within 30 s\nThe session stopped with 0 complete blocks; a verdict needs 3.", noRow, "", ""},
		{"one run died", func(s *record.Session) { s.Runs[1].State, s.Runs[1].Reason = record.Died, "signal: killed" },
			gates.Inconclusive, "The candidate lost 1 of its runs, the baseline 0: it cannot pass.", record.LatencyP50, gates.RowEquivalent, ""},
		{"a run of the baseline died", func(s *record.Session) { s.Runs[0].State = record.Died },
			gates.Pass, "5 of 6 planned blocks were judged.", record.LatencyP50, gates.RowEquivalent, ""},
		{"two runs died", func(s *record.Session) { s.Runs[1].State = record.Died; s.Runs[5].State = record.Died },
			gates.Inconclusive, "The candidate lost 2 of its runs, the baseline 0: it cannot pass.", record.LatencyP50, gates.RowEquivalent, ""},
		{"both arms died", func(s *record.Session) {
			for _, i := range []int{0, 1, 4, 5} {
				s.Runs[i].State = record.Died
			}
		}, gates.Pass, "4 of 6 planned blocks", record.LatencyP50, gates.RowEquivalent, ""},
		{"errors of a run that died count", func(s *record.Session) {
			for _, i := range []int{1, 3, 5, 7} {
				s.Runs[i].State = record.Died
				s.Runs[i].Samples[a].Codes[0] = 300 + 10*i
			}
		}, gates.Inconclusive, "", record.ErrorRate, gates.RowInconclusive, "of candidate: nothing ×1360, 200 ×"},
		{"A/A", func(s *record.Session) { s.Arms[1].Tree = s.Arms[0].Tree },
			gates.Pass, "A/A: both arms are the same build with the same configuration.", noRow, "", ""},
		{"same tree, other flags", func(s *record.Session) {
			s.Arms[1].Tree = s.Arms[0].Tree
			s.Arms[1].Env = map[string]string{"NEW": "1"}
		},
			gates.Pass, "", noRow, "", ""},
		{"sequential", func(s *record.Session) { s.Schedule.Mode = record.Sequential },
			gates.Inconclusive, "Sequential: drift of the host is not told apart from a change.", record.LatencyDistribution, gates.RowNotComparable,
			"the repeats of baseline do not agree: two runs are 4.7 % of the median apart, two halves of one 0.7 %"},
		{"interleaved", func(s *record.Session) { s.Schedule.Mode = record.Interleaved }, gates.Pass, "", noRow, "", ""},
		{"too few requests", func(s *record.Session) {
			for _, r := range s.Runs {
				thin(r, a, 1)
			}
		}, gates.Inconclusive, "Not comparable: P50 of GET /a, latency distribution of GET /a.", record.LatencyP50, gates.RowNotComparable,
			"too few requests: 0 of 6 blocks had 20 beyond P50 in each arm, 3 must; lengthen block (and slice, where it holds few requests of each route: the first does not count)"},
		{"few requests", func(s *record.Session) {
			for _, r := range s.Runs {
				thin(r, a, 5)
			}
		}, gates.Pass, "", record.LatencyDistribution, gates.RowEquivalent, "judged from P15 to P85: too few requests beyond"},
		{"one speed only", func(s *record.Session) {
			for _, r := range s.Runs {
				stepClock(r, a, 1e9)
			}
		}, gates.Inconclusive, "Not comparable: P50 of GET /a", record.LatencyP50, gates.RowNotComparable, "resolution: the clock shows nothing but 1s"},
		{"coarse clock", func(s *record.Session) {
			for _, r := range s.Runs {
				stepClock(r, a, 4_000)
			}
		}, gates.Inconclusive, "Not comparable: P50 of GET /a", record.LatencyP50, gates.RowNotComparable, "resolution: the clock's tick of 4µs is more than a quarter of the zone at P50 ("},
		{"clock just fine enough", func(s *record.Session) {
			for _, r := range s.Runs {
				stepClock(r, a, 2_000)
			}
		}, gates.Pass, "", record.LatencyP50, gates.RowEquivalent, ""},
		{"coarse clock and slower", func(s *record.Session) {
			for _, r := range s.Runs {
				if r.Arm == "candidate" {
					for i := range r.Samples[a].Latency {
						r.Samples[a].Latency[i] += r.Samples[a].Latency[i] / 2
					}
				}
				stepClock(r, a, 20_000)
			}
		}, gates.Inconclusive, "Not comparable: P50 of GET /a", record.LatencyP50, gates.RowNotComparable, "resolution: the clock's tick of 20µs"},
		{"500s", func(s *record.Session) {
			each(s, "candidate", func(r *record.Run) { r.Samples[a].Codes[200] -= 50; r.Samples[a].Codes[500] = 50 })
		}, gates.Regression, "Regression: error rate of GET /a.", record.LatencyP50, gates.RowNotComparable,
			"status mix changed: baseline: 200 ×4950; candidate: 200 ×4650, 500 ×300"},
		{"other expected status", func(s *record.Session) {
			s.Routes[0].Status = []int{200, 404}
			each(s, "candidate", func(r *record.Run) { r.Samples[a].Codes[200] -= 100; r.Samples[a].Codes[404] = 100 })
		}, gates.Inconclusive, "", record.LatencyDistribution, gates.RowNotComparable, "status mix changed: baseline: 200 ×4950; candidate: 200 ×4350, 404 ×600"},
		{"body in the preflight", func(s *record.Session) { s.Runs[3].Preflight[0].BodyBytes = 498 },
			gates.Inconclusive, "", record.LatencyP50, gates.RowNotComparable, "bodies differ: 512 against 498 bytes in the preflight; body: any in the plan's expect accepts it"},
		{"body any", func(s *record.Session) { s.Runs[3].Preflight[0].BodyBytes = 498; s.Routes[0].BodyAny = true },
			gates.Pass, "", record.LatencyP50, gates.RowEquivalent, ""},
		{"body under load", func(s *record.Session) {
			each(s, "candidate", func(r *record.Run) { r.Samples[a].BodyBytes = r.Samples[a].BodyBytes * 98 / 100 })
		}, gates.Inconclusive, "", record.LatencyP50, gates.RowNotComparable, "bodies differ: 512.0 against 501.8 bytes on average"},
		{"preflight status", func(s *record.Session) { s.Runs[5].Preflight[0].Status = 503 },
			gates.Inconclusive, "", record.LatencyDistribution, gates.RowNotComparable, "the preflight answered 503, expected was 200"},
		{"nobody expected a 401", func(s *record.Session) {
			for _, r := range s.Runs {
				r.Preflight[0].Status = 401
				r.Samples[a].Codes = map[int]int{401: 825}
			}
		}, gates.Inconclusive, "Not comparable: P50 of GET /a, latency distribution of GET /a, error rate of GET /a.", record.ErrorRate, gates.RowNotComparable, "no expected status"},
		{"a 401 that the plan names", func(s *record.Session) {
			s.Routes[0].Status = []int{401}
			for _, r := range s.Runs {
				r.Preflight[0].Status = 401
				r.Samples[a].Codes = map[int]int{401: 825}
			}
		}, gates.Pass, "", record.LatencyP50, gates.RowEquivalent, ""},
		{"implausibly fast", func(s *record.Session) {
			each(s, "candidate", func(r *record.Run) {
				for i := range r.Samples[a].Latency {
					r.Samples[a].Latency[i] /= 3
				}
			})
		}, gates.Inconclusive, "Not comparable: P50 of GET /a", record.LatencyP50, gates.RowNotComparable, "implausible: more than twice as fast"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := small(7)
			w.latency = func(rng *rand.Rand, _ bool, _ int) float64 { return 0.08 * rng.NormFloat64() }
			s := w.session()
			tt.change(s)
			v := gates.Judge(s)
			wantOutcome(t, v, tt.verdict, tt.verdict.ExitCode())
			wantReason(t, v.Reasons, tt.reason)
			if tt.reason == "" && tt.verdict == gates.Pass && len(v.Reasons) > 0 {
				t.Errorf("a plain pass has reasons: %q", v.Reasons)
			}
			if tt.metric == noRow {
				return
			}
			c := find(t, v, a, tt.metric)
			if c.Verdict != tt.row {
				t.Errorf("%s is %s, want %s; %q", tt.metric, c.Verdict, tt.row, c.Reasons)
			}
			wantReason(t, c.Reasons, tt.because)
			if _, err := v.JSON(); err != nil {
				t.Error(err)
			}
		})
	}
}

// thin keeps the first n samples of every slice.
func thin(r *record.Run, route string, n int) {
	s := r.Samples[route]
	var kept []int64
	var ends []int
	for i := range s.Ends {
		kept = append(kept, s.Slice(i)[:n]...)
		ends = append(ends, len(kept))
	}
	s.BodyBytes = 512 * int64(len(kept))
	s.Latency, s.Ends = kept, ends
}

// stepClock rounds latencies up to a clock's step.
func stepClock(r *record.Run, route string, step int64) {
	for i, l := range r.Samples[route].Latency {
		r.Samples[route].Latency[i] = (l + step - 1) / step * step
	}
}

func TestErrorRates(t *testing.T) {
	const blocks = 6
	for _, tt := range []struct {
		name       string
		requests   int // in each arm and block
		base, cand [blocks]int
		want       gates.RowVerdict
		notSlower  bool
		reason     string
	}{
		{"0:0", 20_000, [6]int{}, [6]int{}, gates.RowEquivalent, false, ""},
		{"0:0 in 4,200", 700, [6]int{}, [6]int{}, gates.RowEquivalent, false, ""},
		{"0:0 in 3,000", 500, [6]int{}, [6]int{}, gates.RowInconclusive, false, "too few requests to exclude errors: 4000 in each arm are needed"},
		{"0:3 in 100,000", 20_000, [6]int{}, [6]int{0, 0, 3, 0, 0, 0}, gates.RowEquivalent, false, "answers of baseline: 200 ×120000; of candidate: 200 ×119997, 500 ×3"},
		{"3:0 in 100,000", 20_000, [6]int{1, 0, 0, 2, 0, 0}, [6]int{}, gates.RowEquivalent, false, ""},
		{"0:500", 20_000, [6]int{}, [6]int{81, 85, 79, 90, 86, 79}, gates.RowRegression, false, ""},
		{"0:500 at once", 20_000, [6]int{}, [6]int{0, 0, 500, 0, 0, 0}, gates.RowInconclusive, false, ""},
		{"500:0", 20_000, [6]int{81, 85, 79, 90, 86, 79}, [6]int{}, gates.RowImprovement, false, ""},
		{"300:300 in clusters", 20_000, [6]int{300, 0, 0, 0, 0, 0}, [6]int{0, 0, 0, 0, 300, 0}, gates.RowInconclusive, false, ""},
		{"500:10 in clusters", 20_000, [6]int{500, 0, 0, 0, 0, 0}, [6]int{2, 2, 1, 2, 1, 2}, gates.RowInconclusive, false, ""},
		{"all fail in both", 20_000, [6]int{20_000, 20_000, 20_000, 20_000, 20_000, 20_000}, [6]int{20_000, 20_000, 20_000, 20_000, 20_000, 20_000}, gates.RowEquivalent, false, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := world{seed: 1, blocks: blocks, routes: 1, slices: 1, perSlice: 1}.session()
			for _, r := range s.Runs {
				errs := tt.base[r.Block-1]
				if r.Arm == "candidate" {
					errs = tt.cand[r.Block-1]
				}
				r.Samples["GET /a"].Codes = map[int]int{200: tt.requests - errs}
				if errs > 0 {
					r.Samples["GET /a"].Codes[500] = errs
				}
			}
			c := find(t, gates.Judge(s), "GET /a", record.ErrorRate)
			if c.Verdict != tt.want || c.NotSlower != tt.notSlower {
				t.Errorf("%s (not slower: %v), want %s (%v): %+.5f [%+.5f, %+.5f]", c.Verdict, c.NotSlower, tt.want, tt.notSlower, *c.Effect, *c.Low, *c.High)
			}
			wantReason(t, c.Reasons, tt.reason)
		})
	}
}

// TestNoErrorsNeedsRequests: no errors among a few requests say nothing of a
// rate at the zone's edge.
func TestNoErrorsNeedsRequests(t *testing.T) {
	for _, tt := range []struct {
		zone float64
		want gates.RowVerdict
		more int
	}{
		{0.001, gates.RowInconclusive, 2}, // needs 4,000, has 3,000
		{0.002, gates.RowEquivalent, 0},   // needs 2,000
		{0.0001, gates.RowInconclusive, 74},
	} {
		s := world{seed: 1, blocks: 6, routes: 1, slices: 1, perSlice: 1}.session()
		s.Rules.Metrics[record.ErrorRate] = record.Rule{Zone: tt.zone}
		for _, r := range s.Runs {
			r.Samples["GET /a"].Codes = map[int]int{200: 500}
		}
		if c := find(t, gates.Judge(s), "GET /a", record.ErrorRate); c.Verdict != tt.want || c.NotSlower || c.MoreBlocks != tt.more {
			t.Errorf("zone %v, 3,000 requests: %s, not slower %v, %d more blocks; want %s and %d more", tt.zone, c.Verdict, c.NotSlower, c.MoreBlocks, tt.want, tt.more)
		}
	}
}

func TestRoutesWithoutErrorsArePooled(t *testing.T) {
	s := world{seed: 1, blocks: 6, routes: 3, slices: 1, perSlice: 1}.session()
	for _, r := range s.Runs {
		for _, samples := range r.Samples {
			samples.Codes = map[int]int{200: 250}
		}
		r.Samples["GET /c"].Codes[500] = 1 // does not join
	}
	v := gates.Judge(s)
	c := find(t, v, "GET /a", record.ErrorRate)
	if c.Verdict != gates.RowInconclusive || c.Requests != [2]int{1500, 1500} {
		t.Errorf("two routes with 1,500 requests each: %s, %v", c.Verdict, c.Requests)
	}
	wantReason(t, c.Reasons, "judged together with all 2 routes that have none: 3000 against 3000 requests")
	if c.MoreBlocks != 2 {
		t.Errorf("%d more blocks, want 2: 500 requests a block, 4,000 are needed", c.MoreBlocks)
	}
	for _, r := range s.Runs {
		r.Samples["GET /b"].Codes[200] = 500
	}
	if c := find(t, gates.Judge(s), "GET /a", record.ErrorRate); c.Verdict != gates.RowEquivalent {
		t.Errorf("4,500 requests in all: %s", c.Verdict)
	}
	for _, r := range s.Runs {
		r.Samples["GET /b"].Codes[500] = 1
	}
	if c := find(t, gates.Judge(s), "GET /a", record.ErrorRate); strings.Contains(strings.Join(c.Reasons, " "), "together") {
		t.Errorf("alone without errors: %q", c.Reasons)
	}
}

// TestMixtureHiddenBySlices is a router with two speeds. In 28 of 30 slice
// pairs both arms have the same one, so the median over pairs sees no change;
// but the candidate is slow a little more often than not, the baseline a
// little less, and the medians of the blocks are 80 % apart.
func TestMixtureHiddenBySlices(t *testing.T) {
	w := small(3)
	w.routes = 1
	w.latency = func(rng *rand.Rand, cand bool, slice int) float64 {
		x := 0.02 * rng.NormFloat64()
		if slice%2 == 1 && slice < 28 || slice >= 28 && cand {
			x += 0.6
		}
		return x
	}
	v := gates.Judge(w.session())
	c := find(t, v, "GET /a", record.LatencyP50)
	if *c.Low < -0.04 || *c.High > 0.04 {
		t.Fatalf("the slices should see nothing, got [%+.3f, %+.3f]", *c.Low, *c.High)
	}
	if c.Verdict != gates.RowInconclusive || c.NotSlower || c.MoreBlocks != 0 {
		t.Errorf("P50 is %s, want inconclusive and no way out by more blocks", c.Verdict)
	}
	wantReason(t, c.Reasons, "the pooled percentiles disagree with the slices: +")
	wantOutcome(t, v, gates.Inconclusive, 4)
}

// TestEverySampleTenTimes: more of the same is not more evidence.
func TestEverySampleTenTimes(t *testing.T) {
	for seed := range uint64(5) {
		s := small(seed).session()
		before := gates.Judge(s)
		for _, r := range s.Runs {
			for _, samples := range r.Samples {
				var tenfold []int64
				for _, l := range samples.Latency {
					tenfold = append(tenfold, slices.Repeat([]int64{l}, 10)...)
				}
				samples.Latency = tenfold
				samples.BodyBytes *= 10
				for i := range samples.Ends {
					samples.Ends[i] *= 10
				}
			}
		}
		after := gates.Judge(s)
		for i, c := range after.Comparisons {
			if b := before.Comparisons[i]; c.Metric == record.LatencyP50 && (c.Verdict != b.Verdict || *c.High-*c.Low < 0.5*(*b.High-*b.Low)) {
				t.Errorf("seed %d: P50 of %s went from %s to %s, width from %.4f to %.4f", seed, c.Route, b.Verdict, c.Verdict, *b.High-*b.Low, *c.High-*c.Low)
			}
		}
	}
}

func TestSlicesPairByNumber(t *testing.T) {
	s := small(1).session()
	want := gates.Judge(s)
	for _, r := range s.Runs {
		if r.Arm == "baseline" {
			continue
		}
		// The candidate's slice 31 has no partner and must not move anything.
		r.Slices = append(r.Slices, record.Slice{N: 31})
		for _, samples := range r.Samples {
			n := len(samples.Latency)
			samples.Latency = append(samples.Latency, slices.Repeat([]int64{9_999_999}, 25)...)
			samples.Ends = append(samples.Ends, n+25)
			samples.BodyBytes = 512 * int64(n+25)
		}
	}
	got := gates.Judge(s)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("a slice without partner changed the verdict:\n%s", diff)
	}
}

func TestSeveralBaselines(t *testing.T) {
	w := small(4)
	s := w.session()
	w.change = map[string]float64{"GET /b": math.Log(1.3)} // the candidate is slower than the older release only
	older := w.session()
	s.Arms = []record.Arm{s.Arms[0], {Name: "baseline-2", Role: record.Baseline, Tree: "ccc"}, s.Arms[1]}
	for i, r := range older.Runs {
		if r.Arm == "candidate" {
			// Ratios are symmetric: a baseline that is faster by the same factor.
			r.Arm, r.ID = "baseline-2", "9"+r.ID
			for route, samples := range r.Samples {
				for j := range samples.Latency {
					if route == "GET /b" {
						samples.Latency[j] = int64(float64(samples.Latency[j]) / 1.3 / 1.3)
					}
				}
			}
			s.Runs = append(s.Runs, older.Runs[i])
		}
	}
	v := gates.Judge(s)
	wantOutcome(t, v, gates.Regression, 3)
	wantReason(t, v.Reasons, "Regression: P50 of GET /b against baseline-2, latency distribution of GET /b against baseline-2.")
	if len(v.Comparisons) != 24 {
		t.Fatalf("%d comparisons, want 4 metrics × 3 routes × 2 baselines", len(v.Comparisons))
	}
	for i, c := range v.Comparisons {
		deciding := i < 12
		if deciding != (c.Arms[0] == "baseline") || c.Judged != (deciding && c.Metric != record.LatencyP99) {
			t.Errorf("comparison %d: arms %v, judged %v", i, c.Arms, c.Judged)
		}
	}
}

func TestSetAside(t *testing.T) {
	s := small(5).session()
	s.Runs[2].State, s.Runs[2].Reason = record.Died, "signal: killed"
	s.Runs[7].State = record.Running
	again := *s.Runs[8]
	again.ID, again.Started = "000-again", again.Started.Add(time.Hour) // the first to start counts, whatever its name
	s.Runs = append(s.Runs, &again)
	s.Runs[11].Preflight[1].BodyBytes = 1
	want := []gates.SetAside{
		{Run: "003-baseline", Reason: "died: signal: killed"},
		{Run: "008-candidate", Reason: "not finished: its writer was killed, or is still at work"},
		{Run: "000-again", Reason: "the block already has a complete run of this arm: 009-baseline"},
		{Run: "012-candidate", Route: "GET /b", Reason: "bodies differ: 512 against 1 bytes in the preflight; body: any in the plan's expect accepts it"},
	}
	v := gates.Judge(s)
	if diff := cmp.Diff(want, v.SetAside); diff != "" {
		t.Error(diff)
	}
	if v.Blocks != 4 || v.Planned != 6 {
		t.Errorf("%d of %d blocks, want 4 of 6", v.Blocks, v.Planned)
	}
}

// TestSameRecordSameBytes shuffles what has no order and checks that the
// record is left as it was.
func TestSameRecordSameBytes(t *testing.T) {
	w := small(6)
	w.change = map[string]float64{"GET /c": 0.08}
	s := w.session()
	before, _ := json.Marshal(s.Runs[0].Samples)
	want, err := gates.Judge(s).JSON()
	if err != nil {
		t.Fatal(err)
	}
	if after, _ := json.Marshal(s.Runs[0].Samples); !bytes.Equal(before, after) {
		t.Error("judging changed the record")
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for range 5 {
		rng.Shuffle(len(s.Runs), func(i, j int) { s.Runs[i], s.Runs[j] = s.Runs[j], s.Runs[i] })
		got, err := gates.Judge(s).JSON()
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(want, got) {
			t.Fatalf("another order of runs, another verdict:\n%s", cmp.Diff(string(want), string(got)))
		}
	}
}

// TestGolden pins the form of verdict.json. UPDATE_GOLDEN=1 writes it anew.
func TestGolden(t *testing.T) {
	w := small(8)
	w.routes = 2
	w.change = map[string]float64{"GET /b": math.Log(1.3)}
	s := w.session()
	s.Runs[3].State, s.Runs[3].Reason = record.Died, "signal: killed"
	got, err := gates.Judge(s).JSON()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join("testdata", "verdict.json")
	if os.Getenv("UPDATE_GOLDEN") != "" {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Error(diff)
	}
	v, err := gates.ReadVerdict(want)
	if err != nil {
		t.Fatal(err)
	}
	again, _ := v.JSON()
	if !bytes.Equal(want, again) {
		t.Error("reading and writing changed the verdict")
	}
}

func TestReadVerdictRefuses(t *testing.T) {
	for _, tt := range []struct{ data, want string }{
		{``, "reading the verdict: unexpected end of JSON input"},
		{`{}`, "reading the verdict: format is 0, this version reads 1; judge the session again"},
		{`{"format":2,"verdict":"pass"}`, "format is 2, this version reads 1"},
		{`{"format":1,"verdict":"fine"}`, `unknown verdict "fine"`},
		{`{"format":1,"verdict":"regression","exit_code":0}`, `exit_code 0 does not belong to "regression"`},
		{`{"format":1,"verdict":"pass"} {}`, "invalid character"},
	} {
		if _, err := gates.ReadVerdict([]byte(tt.data)); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: error %v, want %q", tt.data, err, tt.want)
		}
	}
}

func TestWorst(t *testing.T) {
	if c, ok := gates.Judge(&record.Session{}).Worst(); ok {
		t.Errorf("nothing was measured, yet %v is the worst", c)
	}
	w := small(9)
	w.change = map[string]float64{"GET /b": 0.04}
	v := gates.Judge(w.session())
	c, ok := v.Worst()
	if !ok || c.Route != "GET /b" || c.Metric != record.LatencyP50 {
		t.Errorf("worst is %s of %s, want P50 of GET /b, 4 %% slower in a zone of 5 %%", c.Metric, c.Route)
	}
}

// TestTickWidensTheInterval: with a clock of 1 %, +5.7 % is not surely beyond 5 %.
func TestTickWidensTheInterval(t *testing.T) {
	w := world{seed: 1, blocks: 6, routes: 1, slices: 30, perSlice: 100, change: map[string]float64{"GET /a": math.Log(1.057)}}
	w.latency = func(rng *rand.Rand, _ bool, _ int) float64 { return 0.03 * rng.NormFloat64() }
	s := w.session()
	if c := find(t, gates.Judge(s), "GET /a", record.LatencyP50); c.Verdict != gates.RowRegression {
		t.Fatalf("without a tick it is %s", c.Verdict)
	}
	for _, r := range s.Runs {
		stepClock(r, "GET /a", 2_000)
	}
	if c := find(t, gates.Judge(s), "GET /a", record.LatencyP50); c.Verdict != gates.RowInconclusive || *c.Low > 0.05 || *c.High-*c.Low < 0.02 {
		t.Errorf("with a tick of 1 %%: %s [%+.4f, %+.4f]", c.Verdict, *c.Low, *c.High)
	}
}

// TestNoPromiseAtTheEdge: the estimate is within a standard error of the edge.
func TestNoPromiseAtTheEdge(t *testing.T) {
	seen := 0
	for seed := range uint64(40) {
		w := small(seed)
		w.routes, w.runSD, w.blocks, w.change = 1, 0.03, 5, map[string]float64{"GET /a": math.Log1p(0.05)}
		c := find(t, gates.Judge(w.session()), "GET /a", record.LatencyP50)
		if d := math.Abs(*c.Effect - 0.05); c.Verdict != gates.RowInconclusive || d > (*c.High-*c.Low)/8 {
			continue
		}
		seen++
		if c.MoreBlocks != 0 {
			t.Errorf("seed %d: %d more blocks are promised for %+.3f [%+.3f, %+.3f]", seed, c.MoreBlocks, *c.Effect, *c.Low, *c.High)
		}
	}
	if seen < 5 {
		t.Errorf("only %d cases", seen)
	}
}

func TestMoreBlocks(t *testing.T) {
	decided, promised := 0, 0
	for seed := range uint64(20) {
		w := small(seed)
		w.routes, w.runSD, w.blocks = 1, 0.03, 5
		c := find(t, gates.Judge(w.session()), "GET /a", record.LatencyP50)
		if c.Verdict != gates.RowInconclusive || c.MoreBlocks == 0 {
			continue
		}
		promised++
		w.blocks += 2 * c.MoreBlocks // "about": twice as many should nearly always do
		if find(t, gates.Judge(w.session()), "GET /a", record.LatencyP50).Verdict != gates.RowInconclusive {
			decided++
		}
	}
	t.Logf("%d of %d rows were decided", decided, promised)
	if promised < 10 || decided < promised*3/4 {
		t.Errorf("%d of %d inconclusive rows were decided with twice the promised blocks", decided, promised)
	}
}

// BenchmarkJudge judges 20 blocks of 15 routes with 100,000 requests each, which
// were read before: once, and look by look.
func BenchmarkJudge(b *testing.B) {
	s := world{seed: 1, blocks: 20, routes: 15, slices: 25, perSlice: 2000, runSD: 0.01}.session()
	looked := *s
	for name, s := range map[string]*record.Session{"once": s, "look by look": growing(&looked, 6, 20)} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				gates.Judge(s)
			}
		})
	}
}
