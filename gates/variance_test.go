package gates_test

import (
	"bytes"
	"encoding/json"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"plumbline/gates"
	"plumbline/record"
)

// aa is a session of one build against itself.
func aa(w world) *record.Session {
	s := w.session()
	for i := range s.Arms {
		s.Arms[i].Tree = "aaa"
	}
	return s
}

func varied(t *testing.T, s *record.Session) gates.ModeVariance {
	t.Helper()
	v := gates.Vary([]*record.Session{s})
	if _, err := v.JSON(); err != nil {
		t.Fatal(err)
	}
	return v.Modes[0]
}

// The floor is the half-width of the row that the gates judge, and what can be
// seen follows from it.
func TestVarianceFloor(t *testing.T) {
	for _, mode := range []record.Mode{record.Sliced, record.Interleaved, record.Sequential} {
		t.Run(string(mode), func(t *testing.T) {
			s := aa(small(3))
			s.Schedule.Mode = mode
			floorIsOfRow(t, s)
		})
	}
}

func floorIsOfRow(t *testing.T, s *record.Session) {
	m := varied(t, s)
	if !m.Complete || m.Blocks != 6 || len(m.Reasons) > 0 || len(m.Routes) != 3 {
		t.Fatalf("%+v", m)
	}
	for i, r := range m.Routes {
		c := find(t, gates.Judge(s), r.Route, record.LatencyP50)
		half := (math.Log1p(*c.High) - math.Log1p(*c.Low)) / 2
		p := r.Points[0]
		if p.P != 50 || math.Abs(math.Log1p(p.Floor)-half) > 2e-6 || p.Effect != *c.Effect || p.Zone != c.Zone {
			t.Errorf("%s: floor %v, effect %v, zone %v; the row has ±%v, %v, %v", r.Route, p.Floor, p.Effect, p.Zone, half, *c.Effect, c.Zone)
		}
		if p.Sees[0].Blocks != 6 || p.Sees[0].Floor != p.Floor {
			t.Errorf("%s: %+v, want six blocks to have the floor that was measured, %v", r.Route, p.Sees[0], p.Floor)
		}
		for k, see := range p.Sees {
			if both := (1+see.Noise)*(1+p.Zone) - 1; math.Abs(see.Zone-both) > 1e-5 {
				t.Errorf("%s, %d blocks: a regression from %v on, want %v", r.Route, see.Blocks, see.Zone, both)
			}
			if k > 0 && !(see.Noise < p.Sees[k-1].Noise && see.Floor < p.Sees[k-1].Floor) {
				t.Errorf("%s: %d blocks see no more than fewer do", r.Route, see.Blocks)
			}
		}
		if q := m.Routes[i].Points[1]; q.P != 90 || q.Zone != 0.1 || !(q.Floor > 0) {
			t.Errorf("%s: %+v, want a floor at P90, zone 0.1", r.Route, q)
		}
	}
}

// What is said to be seen with 80 % power is: new sessions from the same world
// with so much change have a regression in about 80 %, judged by their own
// spread. 300 sessions have a standard error of 2.3 points; the spread that the
// A/A of 40 blocks found is itself good to 11 %, which is some 8 points of power.
func TestVarianceDetects(t *testing.T) {
	const route = "GET /a"
	w := world{blocks: 40, routes: 1, slices: 4, perSlice: 40, runSD: 0.02, seed: 11}
	p := varied(t, aa(w)).Routes[0].Points[0]
	w.blocks, w.change = 6, map[string]float64{route: math.Log1p(p.Sees[0].Zone)}
	found, sessions := 0, 300
	for i := range sessions {
		w.seed = uint64(1000 + i)
		if find(t, gates.Judge(w.session()), route, record.LatencyP50).Verdict == gates.RowRegression {
			found++
		}
	}
	if power := float64(found) / float64(sessions); power < 0.65 || power > 0.93 {
		t.Errorf("a change of %+.3f is called a regression in %.0f %% of sessions, want about 80 %%", p.Sees[0].Zone, 100*power)
	}
}

// Where the noise comes from is found: from the runs, from within them, or
// from both, also where a run is one piece. The shares of 60 blocks scatter by
// some 15 points; these are means of four sessions.
func TestVarianceSources(t *testing.T) {
	for _, tt := range []struct {
		runSD float64
		mode  record.Mode
		want  float64
		pays  string
	}{
		{0, record.Sliced, 0, "longer blocks"},
		// 2 × 0.0119² between, and within 2 × (1.2533 × 0.15)²/250, the variance of
		// the median of a run's 250 requests: as much.
		{0.0119, record.Sliced, 0.5, ""},
		{0.0119, record.Interleaved, 0.5, ""},
		{0.08, record.Sequential, 0.98, "more blocks"},
	} {
		sum := 0.0
		for seed := range uint64(4) {
			w := world{seed: seed, blocks: 60, routes: 1, slices: 10, perSlice: 25, runSD: tt.runSD, latency: steady}
			if tt.mode != record.Sliced {
				w.slices, w.perSlice = 1, 250
			}
			s := aa(w)
			s.Schedule.Mode = tt.mode
			m := varied(t, s)
			p := m.Routes[0].Points[0]
			if m.Source == nil || p.Source == nil || *m.Source != *p.Source || tt.pays != "" && tt.pays != p.Source.Pays {
				t.Fatalf("%+v: of the only route %+v, in all %+v", tt, p.Source, m.Source)
			}
			sum += p.Source.Between
		}
		if got := sum / 4; math.Abs(got-tt.want) > 0.15 {
			t.Errorf("%s, runs that differ by %v: the share between runs is %.2f, want %v", tt.mode, tt.runSD, got, tt.want)
		}
	}
}

// steady has no host's mood: its drift would be between the parts of a run.
func steady(rng *rand.Rand, _ bool, _ int) float64 { return 0.15 * rng.NormFloat64() }

// Drift within a run is not taken for noise within it: the halves alternate.
func TestVarianceOfDriftingRuns(t *testing.T) {
	w := world{seed: 6, blocks: 20, routes: 1, slices: 1, perSlice: 2000, runSD: 0.03}
	s := aa(w)
	s.Schedule.Mode = record.Interleaved
	for _, r := range s.Runs {
		samples := r.Samples["GET /a"]
		for i := range samples.Latency {
			samples.Latency[i] += samples.Latency[i] * int64(i) / 4000 // half as slow again by the end
		}
	}
	if m := varied(t, s); m.Source == nil || m.Source.Between < 0.8 {
		t.Errorf("%+v, want most of it between runs", m.Source)
	}
}

// Re-labelling finds as many false alarms as the test allows for, and none
// beyond a zone that is far from the noise.
func TestVarianceFalseAlarms(t *testing.T) {
	sum := 0.0
	const sessions = 60
	for seed := range uint64(sessions) {
		m := varied(t, aa(small(seed)))
		f := m.FalseAlarms
		if f.Labellings != 64 || !f.Exact || len(f.Metrics) != 2 {
			t.Fatalf("%+v", f)
		}
		p50 := f.Metrics[0]
		if p50.Metric != record.LatencyP50 || p50.Claims != 3 || p50.Level != 0.025 || f.Metrics[1].Claims != 57 {
			t.Errorf("%+v", f.Metrics)
		}
		if p50.Zone > 0 || f.Any.Zone > 0 {
			t.Errorf("seed %d: %v of labellings are a regression beyond the zone", seed, f.Any.Zone)
		}
		if f.Any.Noise < p50.Noise {
			t.Errorf("seed %d: any is %v, P50 alone %v", seed, f.Any.Noise, p50.Noise)
		}
		sum += p50.Noise
	}
	if mean := sum / sessions; mean > 0.035 {
		t.Errorf("%.1f %% false alarms at P50 of a test that allows for 2.5 %%", 100*mean)
	}
}

// A block that Gate 2 sets aside does not count for the floor, is named, and
// is one that would have misled who had measured nothing else.
func TestVarianceOutlier(t *testing.T) {
	w := small(8)
	w.blocks = 8
	s := aa(w)
	each(s, "baseline", func(r *record.Run) {
		if r.Block == 3 {
			for i, x := range r.Samples["GET /a"].Latency {
				r.Samples["GET /a"].Latency[i] = x * 13 / 10
			}
		}
	})
	m := varied(t, s)
	c := find(t, gates.Judge(s), "GET /a", record.LatencyP50)
	p := m.Routes[0].Points[0]
	if half := (math.Log1p(*c.High) - math.Log1p(*c.Low)) / 2; p.Blocks != 7 || math.Abs(math.Log1p(p.Floor)-half) > 2e-6 {
		t.Errorf("the floor is %v of %d blocks, the row has ±%v of %d", p.Floor, p.Blocks, half, c.Blocks)
	}
	if m.LoneBlocks != 1 || m.AllBlocks != 24 || len(m.Routes[0].Reasons) != 1 || !strings.Contains(m.Routes[0].Reasons[0], "outlier: judged without block 3") {
		t.Errorf("%d of %d blocks are beyond 5 %%; %q", m.LoneBlocks, m.AllBlocks, m.Routes[0].Reasons)
	}
	if p50 := m.FalseAlarms.Metrics[0]; p50.Zone > 0 || m.FalseAlarms.Labellings != 256 {
		t.Errorf("%+v of %d labellings", p50, m.FalseAlarms.Labellings)
	}
}

// The labelling that was measured is one of them.
func TestVarianceSeesItsOwnRegression(t *testing.T) {
	w := small(1)
	w.change = map[string]float64{"GET /b": math.Log1p(0.12)}
	s := aa(w) // the sides claim to be the same
	m := varied(t, s)
	if m.Regressions == 0 || m.FalseAlarms.Any.Zone < 1.0/64 || m.Beyond != 1 || m.Rows != 3 || *m.Largest < 0.08 {
		t.Errorf("%d regressions, %v of labellings, %d of %d routes beyond 5 %%, the largest %v", m.Regressions, m.FalseAlarms.Any.Zone, m.Beyond, m.Rows, *m.Largest)
	}
	if m.LoneBlocks < 4 || m.AllBlocks != 18 {
		t.Errorf("%d of %d blocks are beyond 5 %%", m.LoneBlocks, m.AllBlocks)
	}
}

// What cannot be told is said to be so, and never 0.
func TestVarianceOfTooLittle(t *testing.T) {
	for name, tt := range map[string]struct {
		spoil  func(*record.Session)
		world  func(*world)
		want   string
		silent bool
	}{
		"two blocks":     {world: func(w *world) { w.blocks = 2 }, want: "needs at least 3 blocks, has 2", silent: true},
		"few requests":   {world: func(w *world) { w.slices, w.perSlice = 4, 5 }, want: "too few requests: 0 of 6 blocks had 20 beyond P50", silent: true},
		"few beyond P90": {world: func(w *world) { w.slices = 4 }, want: "too few requests: 0 of 6 blocks had 20 beyond P90"},
		"a coarse clock": {spoil: func(s *record.Session) {
			for _, r := range s.Runs {
				for _, samples := range r.Samples {
					for i := range samples.Latency {
						samples.Latency[i] = 1e6
					}
				}
			}
		}, want: "the clock shows one latency", silent: true},
		"other answers": {spoil: func(s *record.Session) {
			each(s, "candidate", func(r *record.Run) {
				for i := range r.Preflight {
					r.Preflight[i].Status = 404
				}
			})
		}, want: "404", silent: true},
		"named by arm": {spoil: func(s *record.Session) {
			for i := range s.Arms {
				s.Arms[i].Run = append(s.Arms[i].Run, "--name", "{arm}")
			}
		}, want: "not the same build, started in the same way"},
		"another clock": {spoil: func(s *record.Session) {
			s.Arms[1].Clock = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
		}, want: "not the same build, started in the same way"},
		"another libfaketime": {spoil: func(s *record.Session) {
			s.Arms[1].ClockLibrary = "/opt/libfaketime.so.1"
		}, want: "not the same build, started in the same way"},
		"interrupted": {spoil: func(s *record.Session) {
			s.State, s.Reason = record.Interrupted, "by hand"
			s.Runs = s.Runs[:9]
		}, want: "not complete (interrupted: by hand): 4 of 6 planned blocks"},
		"one arm": {spoil: func(s *record.Session) { s.Arms = s.Arms[:1] }, want: "does not have two sides", silent: true},
	} {
		t.Run(name, func(t *testing.T) {
			w := small(2)
			if tt.world != nil {
				tt.world(&w)
			}
			s := aa(w)
			if tt.spoil != nil {
				tt.spoil(s)
			}
			v := gates.Vary([]*record.Session{s})
			data, err := v.JSON()
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(string(data), tt.want) {
				t.Errorf("it does not say %q:\n%s", tt.want, data)
			}
			if v.Empty() != tt.silent {
				t.Errorf("empty: %v, want %v", v.Empty(), tt.silent)
			}
		})
	}
}

// The same record gives the same bytes, in whatever order its runs were read.
func TestVarianceBytes(t *testing.T) {
	s := aa(world{seed: 4, blocks: 22, routes: 2, slices: 4, perSlice: 40, runSD: 0.01})
	first, err := gates.Vary([]*record.Session{s}).JSON()
	if err != nil {
		t.Fatal(err)
	}
	rand.New(rand.NewPCG(1, 1)).Shuffle(len(s.Runs), func(i, j int) { s.Runs[i], s.Runs[j] = s.Runs[j], s.Runs[i] })
	again, err := gates.Vary([]*record.Session{s}).JSON()
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(first, again) {
		t.Error("other bytes")
	}
	var v gates.Variance
	if err := json.Unmarshal(first, &v); err != nil {
		t.Fatal(err)
	}
	if f := v.Modes[0].FalseAlarms; f.Exact || f.Labellings != 1<<16 {
		t.Errorf("of 22 blocks: %d labellings, exact: %v", f.Labellings, f.Exact)
	}
}
