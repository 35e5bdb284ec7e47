package gates_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"plumbline/record"
)

// world makes sessions whose truth is known.
type world struct {
	seed             uint64
	blocks, routes   int
	slices, perSlice int
	runSD            float64 // of a run's own offset, ln; half of its variance is shared by all routes
	change           map[string]float64
	// latency replaces the router, if set: ln of the latency beyond the route's base.
	latency func(rng *rand.Rand, cand bool, slice int) float64
}

// small is large enough for every percentile but P99, and for error rates.
func small(seed uint64) world {
	return world{seed: seed, blocks: 6, routes: 3, slices: 30, perSlice: 25, runSD: 0.007}
}

func routeName(i int) string { return fmt.Sprintf("GET /%c", 'a'+i) }

// blank is a session of two builds without a run.
func blank(seed uint64, blocks, routes int) *record.Session {
	s := &record.Session{Meta: record.Meta{
		Format: record.Format, State: record.Complete, Seed: seed,
		Arms: []record.Arm{
			{Name: "baseline", Role: record.Baseline, Tree: "aaa", Run: []string{"{build}/server"}},
			{Name: "candidate", Role: record.Candidate, Tree: "bbb", Run: []string{"{build}/server"}},
		},
		Schedule: record.Schedule{Mode: record.Sliced, Blocks: blocks},
		Rules:    record.DefaultRules(),
	}}
	for i := range routes {
		s.Routes = append(s.Routes, record.Route{Name: routeName(i)})
	}
	return s
}

// add gives the session another run, which has no samples yet.
func add(s *record.Session, block, side, slices int) *record.Run {
	n := 2*(block-1) + side
	arm := s.Arms[side].Name
	run := &record.Run{
		ID: fmt.Sprintf("%03d-%s", n+1, arm), Block: block, Arm: arm, State: record.Complete,
		Started: time.Date(2026, 1, 1, 0, 0, n, 0, time.UTC), Samples: map[string]*record.Samples{},
	}
	for i := range slices {
		run.Slices = append(run.Slices, record.Slice{N: i + 1})
	}
	for _, route := range s.Routes {
		run.Preflight = append(run.Preflight, record.Answer{Route: route.Name, Status: 200, BodyBytes: 512})
	}
	s.Order = append(s.Order, record.RunRef{ID: run.ID, Block: block, Arm: arm})
	s.Runs = append(s.Runs, run)
	return run
}

func (w world) session() *record.Session {
	rng := rand.New(rand.NewPCG(w.seed, 1))
	s := blank(w.seed, w.blocks, w.routes)
	for b := 1; b <= w.blocks; b++ {
		host := make([]float64, w.slices) // the host's mood: a walk that both arms share
		for i := 1; i < w.slices; i++ {
			host[i] = host[i-1] + 0.03*rng.NormFloat64()
		}
		for side := range 2 {
			run := add(s, b, side, w.slices)
			common := w.runSD * math.Sqrt(0.5) * rng.NormFloat64()
			for r := range w.routes {
				route := routeName(r)
				offset := common + w.runSD*math.Sqrt(0.5)*rng.NormFloat64()
				if side == 1 {
					offset += w.change[route]
				}
				base := math.Log(200e3 * float64(r+1))
				samples := &record.Samples{}
				for i := range w.slices {
					for range w.perSlice {
						x := 0.15 * rng.NormFloat64()
						if w.latency != nil {
							x = w.latency(rng, side == 1, i)
						}
						samples.Latency = append(samples.Latency, int64(math.Exp(base+offset+host[i]+x)))
					}
					samples.Ends = append(samples.Ends, len(samples.Latency))
				}
				samples.BodyBytes = 512 * int64(len(samples.Latency))
				samples.Codes = map[int]int{200: len(samples.Latency) * 11 / 10}
				run.Samples[route] = samples
			}
		}
	}
	return s
}

// each calls f on every run of an arm.
func each(s *record.Session, arm string, f func(*record.Run)) {
	for _, r := range s.Runs {
		if r.Arm == arm {
			f(r)
		}
	}
}
