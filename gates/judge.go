package gates

import "plumbline/record"

// Judge weighs the candidate against each baseline. The first baseline
// decides; comparisons with further ones are watched. A session that cannot be
// judged is Invalid, never a pass and never an error.
func Judge(s *record.Session) *Verdict {
	v := &Verdict{
		Format:      Format,
		Complete:    s.State == record.Complete && missingRuns(s) == 0,
		Planned:     PlannedBlocks(s),
		Delivered:   delivered(s),
		Reasons:     []string{},
		SetAside:    []SetAside{},
		Comparisons: []Comparison{},
	}
	levels := newLevels(s.Schedule)
	v.MaxBlocks = levels.most
	baselines, candidate, ok := sides(s.Arms)
	if !ok {
		if len(s.Arms) == 1 {
			v.invalid(s, "The session has one arm, so there is nothing to compare; `plumbline report` shows what was measured, and a plan with two arms gets a verdict.")
			return v
		}
		v.invalid(s, "A verdict needs at least one baseline and exactly one candidate.")
		return v
	}
	runs, aside := sound(s)
	v.SetAside = append(v.SetAside, aside...)
	v.AA = sameBuild(baselines[0], candidate)
	for i, baseline := range baselines {
		p := newPairing(s, runs, [2]string{baseline.Name, candidate.Name}, levels)
		p.measureAll()
		v.Comparisons = append(v.Comparisons, p.judgeAll(i == 0)...)
		if i == 0 {
			v.Blocks, v.Controls = len(p.blocks), p.controls()
			v.RareStart, v.RareGap = p.rareStart()
		}
		v.SetAside = append(v.SetAside, p.aside...)
		v.Pooled = append(v.Pooled, p.pooled...)
		v.Repeats = append(v.Repeats, p.repeats...)
	}
	v.heedControls()
	v.conclude(s)
	return v
}

// judge gives the rows of the comparison at one look.
func (p *pairing) judge(decides bool) []Comparison {
	p.findSpeeds()
	out := p.ruledOut()
	var rows []Comparison
	for _, metric := range record.Metrics {
		rule, ok := p.session.Rules.Metrics[metric]
		if !ok {
			continue
		}
		judged := decides && !rule.Watch
		if metric == record.ErrorRate {
			rows = append(rows, p.rates(rule, judged)...)
		} else {
			rows = append(rows, p.latencies(metric, rule, judged, out)...)
		}
	}
	p.pooled = p.pool(rows)
	return rows
}

// PlannedBlocks is what the plan asked for; with a maximum, what the session
// began, but the minimum at least. Lost blocks that were measured again may
// make it begin more than the maximum.
func PlannedBlocks(s *record.Session) int {
	n := s.Schedule.Blocks
	for _, ref := range s.Order {
		n = max(n, min(ref.Block, s.Schedule.MaxBlocks))
	}
	return n
}

// sides finds the baselines, in order, and the candidate; false unless there
// is at least one of the former and just one of the latter.
func sides(arms []record.Arm) (baselines []record.Arm, candidate record.Arm, ok bool) {
	candidates := 0
	for _, a := range arms {
		switch a.Role {
		case record.Baseline:
			baselines = append(baselines, a)
		case record.Candidate:
			candidates++
			candidate = a
		}
	}
	return baselines, candidate, len(baselines) > 0 && candidates == 1
}
