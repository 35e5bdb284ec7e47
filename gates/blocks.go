package gates

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"plumbline/record"
)

// minBlocks is how many blocks an interval needs: with two, Student's t says
// next to nothing.
const minBlocks = 3

// sound sorts the runs, whatever order they were read in, and names those that
// do not count. The runs it returns are all of them: error rates use also the
// ones that were set aside.
func sound(s *record.Session) (runs []*record.Run, aside []SetAside) {
	runs = slices.Clone(s.Runs)
	slices.SortFunc(runs, func(a, b *record.Run) int {
		return cmp.Or(cmp.Compare(a.Block, b.Block), a.Started.Compare(b.Started), cmp.Compare(a.ID, b.ID))
	})
	type place struct {
		block int
		arm   string
	}
	first := map[place]string{}
	for _, r := range runs {
		at := place{r.Block, r.Arm}
		switch {
		case !slices.ContainsFunc(s.Arms, func(a record.Arm) bool { return a.Name == r.Arm }):
			aside = append(aside, SetAside{Run: r.ID, Reason: fmt.Sprintf("no arm of the session is called %q", r.Arm)})
		case fault(s, r) != "":
			aside = append(aside, SetAside{Run: r.ID, Reason: fault(s, r)})
		case first[at] != "":
			aside = append(aside, SetAside{Run: r.ID, Reason: "the block already has a complete run of this arm: " + first[at]})
		default:
			first[at] = r.ID
		}
	}
	return runs, aside
}

// fault says why a run does not count; nothing if it does.
func fault(s *record.Session, r *record.Run) string {
	if r.State != record.Complete {
		return stateReason(r)
	}
	return shortfall(s, r)
}

func stateReason(r *record.Run) string {
	reason := string(r.State)
	if r.State == record.Running {
		reason = "not finished: its writer was killed, or is still at work"
	}
	if r.Reason != "" {
		reason += ": " + r.Reason
	}
	return reason
}

// missingRuns counts planned runs of which the record holds nothing.
func missingRuns(s *record.Session) int {
	have := map[string]bool{}
	for _, r := range s.Runs {
		have[r.ID] = true
	}
	n := 0
	for _, ref := range s.Order {
		if !have[ref.ID] {
			n++
		}
	}
	return n
}

// pairing is the candidate against one baseline. Index 0 is the baseline in
// every pair of this package.
type pairing struct {
	session  *record.Session
	levels   *levels
	past     bool          // an earlier look, not the newest
	runs     []*record.Run // every run of the session, sorted
	arms     [2]string
	blocks   [][2]*record.Run // both runs complete, in order
	all      [2][]*record.Run // every run of each arm, also those that were set aside
	expected map[string][]int // statuses that count as an answer, by route
	aside    []SetAside       // routes that answers.go ruled out
	effects  [][]blockEffects // by route, in the session's order, and block
	speeds   []*speeds        // by route: Gate 2
	routes   []*measured      // the effects put together, once for all metrics
	repeats  []Repeat
	pooled   []Pooled
}

func newPairing(s *record.Session, runs []*record.Run, arms [2]string, levels *levels) *pairing {
	p := &pairing{session: s, levels: levels, runs: runs, arms: arms, expected: expectedStatuses(s.Routes, runs)}
	complete := map[int]*[2]*record.Run{}
	for _, r := range runs {
		side := slices.Index(arms[:], r.Arm)
		if side < 0 {
			continue
		}
		p.all[side] = append(p.all[side], r)
		if fault(s, r) != "" {
			continue
		}
		if complete[r.Block] == nil {
			complete[r.Block] = new([2]*record.Run)
		}
		if complete[r.Block][side] == nil {
			complete[r.Block][side] = r
		}
	}
	for _, b := range slices.Sorted(maps.Keys(complete)) {
		if pair := complete[b]; pair[0] != nil && pair[1] != nil {
			p.blocks = append(p.blocks, *pair)
		}
	}
	return p
}

// row starts a comparison; every row is made here, so that no field is
// forgotten in one branch.
func (p *pairing) row(route string, metric record.Metric, unit string, rule record.Rule, judged bool) Comparison {
	return Comparison{
		Route: route, Metric: metric, Judged: judged, Arms: p.arms, Unit: unit, Zone: rule.Zone,
		Verdict: RowNotComparable, Reasons: []string{},
	}
}

// sameBuild says whether a comparison is an A/A: the same sources or the same
// bytes, started in the same way.
func sameBuild(a, b record.Arm) bool {
	same := a.Tree != "" && a.Tree == b.Tree || a.BinarySHA256 != "" && a.BinarySHA256 == b.BinarySHA256
	byName := slices.ContainsFunc(slices.Concat(a.Run, slices.Collect(maps.Values(a.Env))), func(text string) bool {
		return strings.Contains(text, "{arm}") // what it is started with depends on which arm it is
	})
	return same && !byName && slices.Equal(a.Run, b.Run) && maps.Equal(a.Env, b.Env) && a.Clock.Equal(b.Clock) && a.ClockLibrary == b.ClockLibrary
}
