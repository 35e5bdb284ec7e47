package gates_test

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"plumbline/gates"
	"plumbline/record"
)

// quick is a session of one metric whose blocks scatter and whose requests
// hardly do, so that a thousand can be judged in seconds. The block effects of
// P50 have the given standard deviation, half of the variance common to all routes.
func quick(seed uint64, blocks, routes int, sd float64, change func(route int) float64) *record.Session {
	rng := rand.New(rand.NewPCG(seed, 3))
	s := world{blocks: blocks, routes: routes, slices: 1, perSlice: 40}.session()
	s.Rules.Metrics = map[record.Metric]record.Rule{record.LatencyP50: s.Rules.Metrics[record.LatencyP50]}
	for i := 1; i < len(s.Runs); i += 2 {
		common := rng.NormFloat64()
		for route := range routes {
			effect := change(route) + sd*math.Sqrt(0.5)*(common+rng.NormFloat64())
			samples := [2]*record.Samples{s.Runs[i-1].Samples[routeName(route)], s.Runs[i].Samples[routeName(route)]}
			samples[0].BodyBytes, samples[1].BodyBytes = 1, 1
			for j := range samples[0].Latency {
				base := 1e6 * (1 + 0.001*float64(j))
				samples[0].Latency[j], samples[1].Latency[j] = int64(base), int64(base*math.Exp(effect))
			}
		}
	}
	return s
}

// noisy is a session that may grow to 20 blocks, with P50 alone judged within ±zone.
func noisy(seed uint64, blocks int, sd, zone float64, change func(route int) float64) *record.Session {
	s := growing(quick(seed, blocks, 2, sd, change), 6, 20)
	s.Rules.Metrics[record.LatencyP50] = record.Rule{Zone: zone}
	s.Rules.FloorS = 0
	return s
}

// endOf is after how many blocks a session would stop: because it is
// decided, because it is hopeless, or at its maximum.
func endOf(s *record.Session) (blocks int, v *gates.Verdict) {
	for _, blocks = range []int{6, 7, 8, 10, 12, 15, 20} { // not after each, to be quick
		if v = gates.Judge(prefix(s, blocks)); v.Decided() || v.Hopeless() != "" {
			break
		}
	}
	return blocks, v
}

func none(int) float64 { return 0 }

// TestZoneBelowTheFloor: a session whose blocks scatter so much that its zone
// cannot be judged within 20 of them says so before it has measured them all.
func TestZoneBelowTheFloor(t *testing.T) {
	gaveUp, blocks := 0, 0
	const sessions = 20
	for seed := range uint64(sessions) {
		n, v := endOf(noisy(seed, 20, 0.08, 0.01, none))
		blocks += n
		why := v.Hopeless()
		if why == "" {
			continue
		}
		gaveUp++
		if !strings.HasPrefix(why, "The zone of 1 % is below the noise floor met here: after 20 blocks P50 of GET /") ||
			!strings.HasSuffix(why, " %. `plumbline variance` shows what this machine can see.") {
			t.Errorf("seed %d: %s", seed, why)
		}
		for _, c := range v.Comparisons {
			if c.Verdict != gates.RowInconclusive {
				continue
			}
			if c.Floor == nil || c.Floor.Percentile != 50 || c.Floor.Zone != 0.01 || *c.Floor.HalfWidth < 0.012 || *c.Floor.HalfWidth > 0.08 {
				t.Errorf("seed %d: %s has the floor %+v", seed, c.Route, c.Floor)
			}
		}
	}
	if mean := float64(blocks) / sessions; gaveUp < sessions/2 || mean > 16 {
		t.Errorf("%d of %d sessions were given up, after %.1f blocks", gaveUp, sessions, mean)
	}
}

// TestNotGivenUp: what may still be decided goes on.
func TestNotGivenUp(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name     string
		sd, zone float64
		change   func(int) float64
		largest  int // sessions of 15 that may be given up
	}{
		{"decided by the twentieth block", 0.02, 0.015, none, 0},
		{"a possible regression", 0.05, 0.01, func(int) float64 { return math.Log(1.08) }, 1},
		{"at the edge", 0.015, 0.05, func(int) float64 { return math.Log(1.05) }, 0},
	} {
		gaveUp := 0
		for seed := range uint64(15) {
			if _, v := endOf(noisy(seed, 20, tt.sd, tt.zone, tt.change)); v.Hopeless() != "" {
				gaveUp++
			}
		}
		if gaveUp > tt.largest {
			t.Errorf("%s: %d of 15 sessions were given up", tt.name, gaveUp)
		}
	}
}

// TestHopelessIsAboutAllOpenRows: one that may be decided keeps the session
// going, one that is decided does not.
func TestHopelessIsAboutAllOpenRows(t *testing.T) {
	s := noisy(1, 6, 0.08, 0.01, none)
	if gates.Judge(s).Hopeless() == "" {
		t.Fatal("not hopeless; the case shows nothing")
	}
	for name, change := range map[string]func(*record.Session){
		"a fixed length":        func(s *record.Session) { s.Schedule.MaxBlocks = 0 },
		"before the first look": func(s *record.Session) { s.Schedule.Blocks = 7 },
		"nothing left":          func(s *record.Session) { s.Schedule.MaxBlocks = 6 },
		"only watched":          func(s *record.Session) { s.Rules.Metrics[record.LatencyP50] = record.Rule{Zone: 0.01, Watch: true} },
		"a wide zone":           func(s *record.Session) { s.Rules.Metrics[record.LatencyP50] = record.Rule{Zone: 0.5} },
	} {
		s := noisy(1, 6, 0.08, 0.01, none)
		change(s)
		if why := gates.Judge(s).Hopeless(); why != "" {
			t.Errorf("%s: %s", name, why)
		}
	}
	// A row that waits for nothing but a control does not keep the others going.
	s = noisy(1, 6, 0.08, 0.01, none)
	for i := 1; i < len(s.Runs); i += 2 {
		s.Runs[i].Samples["GET /b"] = s.Runs[i-1].Samples["GET /b"]
	}
	s.State, s.Schedule.Controls = record.Running, &record.Controls{Delay: 0.075, Zone: 0.05}
	v := gates.Judge(s)
	if b := find(t, v, "GET /b", record.LatencyP50); b.Verdict != gates.RowInconclusive || b.Floor != nil || v.Hopeless() == "" {
		t.Errorf("%s, floor %+v, hopeless %q", b.Verdict, b.Floor, v.Hopeless())
	}
	// A metric with few requests: too few up to the last block.
	s = noisy(1, 6, 0.001, 0.05, none)
	s.Rules.Metrics[record.ErrorRate] = record.Rule{Zone: 0.0001}
	want := "The zone of 0.01 points needs more requests than 20 blocks have: too few to exclude errors of GET /a. Longer blocks have more."
	if why := gates.Judge(s).Hopeless(); why != want {
		t.Errorf("%q, want %q", why, want)
	}
}

// TestWhyItEnded: what the session noted when it was given up is said again.
func TestWhyItEnded(t *testing.T) {
	s := noisy(1, 6, 0.08, 0.01, none)
	s.Reason = gates.Judge(s).Hopeless()
	v := gates.Judge(s)
	wantOutcome(t, v, gates.Inconclusive, 4)
	if !v.Complete || v.Reasons[len(v.Reasons)-1] != s.Reason {
		t.Errorf("complete %v, reasons %q", v.Complete, v.Reasons)
	}
}
