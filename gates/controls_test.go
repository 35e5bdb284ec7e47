package gates_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"plumbline/gates"
	"plumbline/record"
)

// controlled adds controls to a session: what the responder shows beside the
// candidate, and what comes of the delay, with the scatter of their blocks.
func controlled(s *record.Session, nothing, delay, sd float64) *record.Session {
	s.Schedule.Controls = &record.Controls{ResponderS: 0.01, Pairs: 4, Delay: 0.075, Zone: 0.05}
	rng := rand.New(rand.NewPCG(s.Seed, 7))
	latencies := func(n int, base, offset float64) []int64 {
		out := make([]int64, n)
		for i := range out {
			out[i] = int64(base * math.Exp(offset+0.1*(float64(i)/float64(n)-0.5)))
		}
		rng.Shuffle(n, func(i, j int) { out[i], out[j] = out[j], out[i] })
		return out
	}
	for i, r := range s.Runs {
		off := sd * rng.NormFloat64()
		if i%2 == 1 {
			off += nothing
		}
		for _, sl := range r.Slices {
			r.Controls = append(r.Controls, record.ControlSlice{Kind: record.Responder, N: sl.N, Latency: [][]int64{latencies(40, 400e3, off)}})
		}
		if i%2 == 1 {
			continue
		}
		off = sd*rng.NormFloat64() + delay
		for n := 1; n <= 4; n++ {
			for kind, change := range map[record.ControlKind]float64{record.Undelayed: 0, record.Delayed: off} {
				c := record.ControlSlice{Kind: kind, N: n}
				for route := range s.Routes {
					c.Latency = append(c.Latency, latencies(50, 200e3*float64(route+1), change))
				}
				r.Controls = append(r.Controls, c)
			}
		}
	}
	return s
}

func TestControls(t *testing.T) {
	full := math.Log1p(0.075)
	for _, tt := range []struct {
		name               string
		nothing, delay, sd float64
		change             func(*record.Session)
		negative, positive gates.ControlVerdict
		verdict            gates.Outcome
		reason             string
	}{
		{"both hold", 0, full, 0.003, nil, gates.ControlHeld, gates.ControlHeld, gates.Pass, ""},
		{"something where nothing is", 0.03, full, 0.003, nil, gates.ControlFailed, gates.ControlHeld, gates.Invalid,
			"The negative control failed: a responder that no arm can touch was 3.0 % slower beside the candidate (between +2.6 % and +3.4 %)."},
		{"little where nothing is", 0.008, full, 0.003, nil, gates.ControlHeld, gates.ControlHeld, gates.Pass, ""},
		{"below the floor", 0.03, full, 0.003, func(s *record.Session) {
			for _, r := range s.Runs {
				for _, c := range r.Controls {
					if c.Kind == record.Responder {
						for i := range c.Latency[0] {
							c.Latency[0][i] /= 20 // 3 % of 20 µs
						}
					}
				}
			}
		}, gates.ControlHeld, gates.ControlHeld, gates.Pass, ""},
		{"cannot tell", 0, full, 0.04, nil, gates.ControlOpen, gates.ControlBlind, gates.Inconclusive, "The negative control is undecided: where nothing differs it may be anything from −"},
		{"blind", 0, 0.02, 0.003, nil, gates.ControlHeld, gates.ControlBlind, gates.Inconclusive,
			"The session is blind: a delay of +7.5 % that was there came out as anything from +1.6 % to +2.3 %, and must come out beyond +5.0 %."},
		{"were not measured", 0, full, 0.003, func(s *record.Session) {
			for _, r := range s.Runs {
				r.Controls = nil
			}
		}, gates.ControlOpen, gates.ControlBlind, gates.Inconclusive, "The positive control was not measured in three blocks"},
		{"were measured twice", 0, full, 0.003, func(s *record.Session) {
			for _, r := range s.Runs[4:] {
				r.Controls = nil
			}
		}, gates.ControlOpen, gates.ControlBlind, gates.Inconclusive, "The negative control was not measured in three blocks."},
		{"of a session that was cut off", 0, full, 0.04, func(s *record.Session) { s.State = record.Interrupted }, gates.ControlOpen, gates.ControlOpen, gates.Inconclusive, "The session is not complete"},
		{"do not hide a regression", 0, 0.02, 0.003, func(s *record.Session) { slow(s, "GET /a", 1, 1.2) }, gates.ControlHeld, gates.ControlBlind, gates.Regression, "Regression: P50 of GET /a"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := controlled(small(7).session(), tt.nothing, tt.delay, tt.sd)
			if tt.change != nil {
				tt.change(s)
			}
			v := gates.Judge(s)
			wantOutcome(t, v, tt.verdict, tt.verdict.ExitCode())
			wantReason(t, v.Reasons, tt.reason)
			if len(v.Controls) != 2 || v.Controls[0].Verdict != tt.negative || v.Controls[1].Verdict != tt.positive {
				t.Fatalf("controls %+v, want %s and %s", v.Controls, tt.negative, tt.positive)
			}
			c := find(t, v, "GET /b", record.LatencyP50)
			if held := tt.positive == gates.ControlHeld; (c.Verdict == gates.RowEquivalent) != held || c.NotSlower {
				t.Errorf("GET /b is %s (not slower: %v) beside a positive control that is %s", c.Verdict, c.NotSlower, tt.positive)
			}
			if rate := find(t, v, "GET /b", record.ErrorRate); rate.Verdict != gates.RowEquivalent {
				t.Errorf("error rates have nothing to do with a delay: %s", rate.Verdict)
			}
		})
	}
}

// TestControlsDecide: a session that may grow goes on until its controls are
// decided, and what a control has shown once it has shown.
func TestControlsDecide(t *testing.T) {
	grown := func(sd float64, change func(*record.Session)) *record.Session {
		w := small(7)
		w.blocks = 10
		s := growing(controlled(w.session(), 0, math.Log1p(0.075), sd), 6, 20)
		for _, r := range s.Runs {
			for _, samples := range r.Samples {
				samples.Codes[200] = 4000
			}
		}
		if change != nil {
			change(s)
		}
		return s
	}
	if v := gates.Judge(grown(0.003, nil)); !v.Decided() {
		t.Errorf("controls %+v leave it open", v.Controls)
	}
	v := gates.Judge(grown(0.03, func(s *record.Session) { s.State = record.Running }))
	if v.Decided() || v.Controls[1].Verdict != gates.ControlOpen {
		t.Errorf("decided with controls %+v", v.Controls)
	}
	late := gates.Judge(grown(0.003, func(s *record.Session) {
		for _, r := range s.Runs {
			for i := range r.Controls {
				if r.Block > 8 && r.Controls[i].Kind == record.Delayed {
					r.Controls[i].Kind = "lost"
				}
			}
		}
	}))
	if c := late.Controls[1]; c.Verdict != gates.ControlHeld || c.Blocks != 6 {
		t.Errorf("%+v, want held after 6 blocks", c)
	}
	failed := gates.Judge(grown(0.003, func(s *record.Session) {
		each(s, "candidate", func(r *record.Run) {
			for _, c := range r.Controls {
				for i := range c.Latency[0] {
					c.Latency[0][i] = c.Latency[0][i] * 11 / 10
				}
			}
		})
	}))
	if !failed.Decided() || failed.Verdict != gates.Invalid {
		t.Errorf("decided %v, %s with controls %+v", failed.Decided(), failed.Verdict, failed.Controls)
	}
}

// TestControlOfManyRoutes: routes that have too few requests to be judged one
// by one have enough together; those that have none are not missed.
func TestControlOfManyRoutes(t *testing.T) {
	w := small(7)
	w.routes = 12
	cut := func(most int) *record.Session {
		s := controlled(w.session(), 0, math.Log1p(0.075), 0.003)
		for _, r := range s.Runs {
			for _, c := range r.Controls {
				if c.Kind != record.Responder {
					for route := range c.Latency {
						c.Latency[route] = c.Latency[route][:min(most, len(c.Latency[route]))]
					}
					c.Latency[0] = nil
				}
			}
		}
		return s
	}
	if c := gates.Judge(cut(3)).Controls[1]; c.Effect == nil || c.Blocks != 6 {
		t.Errorf("12 requests of each of 11 routes: %+v", c)
	}
	if c := gates.Judge(cut(1)).Controls[1]; c.Effect != nil || c.Verdict != gates.ControlBlind {
		t.Errorf("4 requests of each of 11 routes: %+v", c)
	}
}
