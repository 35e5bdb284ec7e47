package gates_test

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"

	"plumbline/gates"
	"plumbline/record"

	"github.com/google/go-cmp/cmp"
)

// growing gives the session a minimum and a maximum of blocks.
func growing(s *record.Session, least, most int) *record.Session {
	s.Schedule.Blocks, s.Schedule.MaxBlocks = least, most
	return s
}

// prefix is the session as it stood after its first blocks.
func prefix(s *record.Session, blocks int) *record.Session {
	p := *s
	p.Runs, p.Order = nil, nil
	for _, r := range s.Runs {
		if r.Block <= blocks {
			p.Runs = append(p.Runs, r)
		}
	}
	for _, ref := range s.Order {
		if ref.Block <= blocks {
			p.Order = append(p.Order, ref)
		}
	}
	return &p
}

// slow makes the candidate's requests slower from a block on.
func slow(s *record.Session, route string, from int, factor float64) {
	each(s, "candidate", func(r *record.Run) {
		if r.Block < from {
			return
		}
		for i, l := range r.Samples[route].Latency {
			r.Samples[route].Latency[i] = int64(float64(l) * factor)
		}
	})
}

// creep slows the candidate's route down from a block on, block by block.
func creep(s *record.Session, route string, from int, factor float64) {
	for block := from; block <= s.Runs[len(s.Runs)-1].Block; block++ {
		slow(s, route, block, factor)
	}
}

// TestLooksArePrefixes: what was seen stays seen. Judging the record as it
// stood after each block gives the looks that the whole record gives, in any
// order of its runs.
func TestLooksArePrefixes(t *testing.T) {
	w := world{seed: 1, blocks: 12, routes: 3, slices: 10, perSlice: 45, runSD: 0.02, change: map[string]float64{"GET /b": 0.06, "GET /c": 0.12}}
	s := growing(w.session(), 5, 14)
	s.Runs[6].State = record.Died // the baseline's run in block 4: its errors count, the block does not
	s.Runs[6].Samples["GET /a"].Codes[0] = 40
	whole := gates.Judge(s)
	data, _ := whole.JSON()
	rng := rand.New(rand.NewPCG(1, 2))
	rng.Shuffle(len(s.Runs), func(i, j int) { s.Runs[i], s.Runs[j] = s.Runs[j], s.Runs[i] })
	if again, _ := gates.Judge(s).JSON(); !bytes.Equal(data, again) {
		t.Error("another order of runs, another verdict")
	}
	if whole.Blocks != 11 || whole.Planned != 12 || whole.MaxBlocks != 14 {
		t.Errorf("%d of %d blocks, at most %d; want 11 of 12, at most 14", whole.Blocks, whole.Planned, whole.MaxBlocks)
	}
	decided := 0
	for i, c := range whole.Comparisons {
		if len(c.Looks) != 7 || c.Looks[0].Blocks != 5 || c.Looks[6].Blocks != 11 {
			t.Fatalf("%s of %s has looks %v, want seven after 5 to 11 blocks", c.Metric, c.Route, c.Looks)
		}
		if c.Blocks < 11 && c.Verdict != gates.RowNotComparable {
			decided++
		}
		for blocks := 5; blocks <= 12; blocks++ { // block 4 is not complete
			row := gates.Judge(prefix(s, blocks)).Comparisons[i]
			if diff := cmp.Diff(c.Looks[:max(0, blocks-5)], row.Looks, cmp.Transformer("none", func(l []gates.Look) []gates.Look { return slices.Clip(l) })); diff != "" && blocks > 5 {
				t.Errorf("%s of %s after %d blocks has other looks:\n%s", c.Metric, c.Route, blocks, diff)
			}
			if blocks == 5 && row.Looks != nil {
				t.Errorf("a look at %d complete blocks, the first is due after 5", 4)
			}
		}
	}
	if decided == 0 {
		t.Error("no row was decided before the last look; the case shows nothing")
	}
}

// TestDecidedRowsLatch changes the truth after a look has decided, which only
// a test can, and holds what may change a row then.
func TestDecidedRowsLatch(t *testing.T) {
	const a = "GET /a"
	for _, tt := range []struct {
		name   string
		change func(*record.Session)
		metric record.Metric
		want   gates.RowVerdict
		blocks int // of the look that decided
	}{
		{"equivalent stays", func(s *record.Session) { creep(s, a, 7, 1.04) }, record.LatencyP50, gates.RowEquivalent, 6},
		{"regression stays", func(s *record.Session) { slow(s, a, 1, 1.4); slow(s, a, 7, 0.6) }, record.LatencyP50, gates.RowRegression, 6},
		{"improvement stays", func(s *record.Session) { slow(s, a, 1, 0.7); creep(s, a, 7, 1.04) }, record.LatencyP50, gates.RowImprovement, 6},
		{"other work is not comparable any more", func(s *record.Session) { s.Runs[23].Preflight[0].BodyBytes = 1 }, record.LatencyP50, gates.RowNotComparable, 12},
		{"two speeds that show later are not comparable any more", func(s *record.Session) { slow(s, a, 10, 1.5) }, record.LatencyP50, gates.RowNotComparable, 9},
		{"but a regression stays", func(s *record.Session) { slow(s, a, 1, 1.4); s.Runs[23].Preflight[0].BodyBytes = 1 }, record.LatencyDistribution, gates.RowRegression, 6},
		{"errors that come later count", func(s *record.Session) {
			each(s, "candidate", func(r *record.Run) {
				if r.Block > 9 {
					r.Samples[a].Codes[500] = 50
				}
			})
		}, record.ErrorRate, gates.RowInconclusive, 12},
		{"also those of a run that died after the last look", func(s *record.Session) {
			s.Runs[23].State = record.Died
			s.Runs[23].Samples[a].Codes[0] = 400
		}, record.ErrorRate, gates.RowInconclusive, 12},
		{"an error rate beyond the zone stays", func(s *record.Session) {
			each(s, "candidate", func(r *record.Run) {
				if r.Block <= 6 {
					r.Samples[a].Codes[500] = 40
				}
			})
		}, record.ErrorRate, gates.RowRegression, 6},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := small(2)
			w.blocks = 12
			w.latency = func(rng *rand.Rand, _ bool, _ int) float64 { return 0.05 * rng.NormFloat64() }
			s := growing(w.session(), 6, 20)
			for _, r := range s.Runs {
				for _, samples := range r.Samples {
					samples.Codes[200] = 4000
				}
			}
			tt.change(s)
			c := find(t, gates.Judge(s), a, tt.metric)
			if c.Verdict != tt.want || c.Blocks != tt.blocks {
				t.Fatalf("%s after %d blocks, want %s after %d; looks %+v", c.Verdict, c.Blocks, tt.want, tt.blocks, c.Looks)
			}
			if tt.blocks == 6 && (*c.Effect != *c.Looks[0].Effect || *c.Low != *c.Looks[0].Low || *c.High != *c.Looks[0].High) {
				t.Errorf("the row shows other numbers than the look that decided it")
			}
		})
	}
}

// TestMaximumThatIsTheMinimum is a session of fixed length.
func TestMaximumThatIsTheMinimum(t *testing.T) {
	s := small(1).session()
	want := gates.Judge(s)
	if diff := cmp.Diff(want, gates.Judge(growing(s, 6, 6))); diff != "" {
		t.Error(diff)
	}
}

func TestStoppedBecauseDecided(t *testing.T) {
	session := func() *record.Session {
		s := growing(small(1).session(), 6, 20)
		for _, r := range s.Runs {
			for _, samples := range r.Samples {
				samples.Codes[200] = 2000 // the first look needs more requests to exclude errors than a fixed length
			}
		}
		return s
	}
	v := gates.Judge(session())
	if !v.Decided() || !v.Complete || v.Blocks != 6 || v.Planned != 6 {
		t.Fatalf("decided %v, complete %v, %d of %d blocks", v.Decided(), v.Complete, v.Blocks, v.Planned)
	}
	wantOutcome(t, v, gates.Pass, 0)
	if len(v.Reasons) > 0 {
		t.Errorf("a plain pass has reasons: %q", v.Reasons)
	}
	for _, tt := range []struct {
		name   string
		change func(*record.Session) *record.Session
		want   bool
	}{
		{"before the first look", func(s *record.Session) *record.Session { return prefix(s, 5) }, false},
		{"a fixed length has no looks", func(s *record.Session) *record.Session { s.Schedule.MaxBlocks = 0; return s }, true},
		{"nothing measured", func(s *record.Session) *record.Session { s.Runs = nil; return s }, false},
		{"no judged row", func(s *record.Session) *record.Session { s.Routes = nil; return s }, false},
		{"a row that may be anything", func(s *record.Session) *record.Session { slow(s, "GET /a", 1, 1.05); return s }, false},
		{"other work", func(s *record.Session) *record.Session { s.Runs[1].Preflight[0].BodyBytes = 1; return s }, true},
		{"two of three blocks with enough requests", func(s *record.Session) *record.Session {
			for _, r := range s.Runs[4:] {
				thin(r, "GET /a", 1)
			}
			return s
		}, false},
		{"no block with enough requests", func(s *record.Session) *record.Session {
			for _, r := range s.Runs {
				thin(r, "GET /a", 1)
			}
			return s
		}, true},
	} {
		v := gates.Judge(tt.change(session()))
		if v.Decided() != tt.want {
			t.Errorf("%s: decided is %v, want %v", tt.name, v.Decided(), tt.want)
		}
	}
}

// TestMoreBlocksKeepToTheMaximum: what the maximum does not allow is not promised.
func TestMoreBlocksKeepToTheMaximum(t *testing.T) {
	promised, none := 0, 0
	for seed := range uint64(40) {
		w := small(seed)
		w.routes, w.runSD, w.slices, w.perSlice, w.blocks = 1, 0.03, 3, 40, 8
		c := find(t, gates.Judge(growing(w.session(), 6, 12)), "GET /a", record.LatencyP50)
		switch {
		case c.Verdict != gates.RowInconclusive:
		case c.MoreBlocks > 4:
			t.Errorf("seed %d: %d more blocks after 8 of at most 12", seed, c.MoreBlocks)
		case c.MoreBlocks > 0:
			promised++
		default:
			none++
		}
	}
	if promised == 0 || none == 0 {
		t.Errorf("%d rows had a promise, %d none; the case shows nothing", promised, none)
	}
}

// TestOnlyLostRuns: no block is complete, but what the runs left unanswered is
// in their error rates.
func TestOnlyLostRuns(t *testing.T) {
	s := growing(small(1).session(), 3, 8)
	each(s, "candidate", func(r *record.Run) {
		r.State = record.Died
		r.Samples["GET /a"].Codes[0] = 400
	})
	v := gates.Judge(s)
	if _, err := v.JSON(); err != nil {
		t.Fatal(err)
	}
	c := find(t, v, "GET /a", record.ErrorRate)
	if c.Looks != nil || v.Decided() || *c.Low > *c.Effect || *c.High < *c.Effect {
		t.Errorf("%s [%v, %v], looks %v, decided %v", c.Verdict, *c.Low, *c.High, c.Looks, v.Decided())
	}
}

// TestMoreBlocksThanTheMaximum: with several baselines a pair of arms may have
// a block more than the maximum, as another arm lost a run. What the look at the
// maximum decided stays all the same.
func TestMoreBlocksThanTheMaximum(t *testing.T) {
	w := small(3)
	w.blocks, w.slices, w.routes = 9, 6, 1
	v := gates.Judge(growing(w.session(), 6, 8))
	var at []int
	for _, l := range v.Comparisons[0].Looks {
		at = append(at, l.Blocks)
	}
	if !slices.Equal(at, []int{6, 7, 8, 9}) {
		t.Errorf("looks after %v blocks", at)
	}
}
