package gates

import "plumbline/record"

// Judge weighs the candidate against each baseline. The first baseline
// decides; comparisons with further ones are watched. A session that cannot be
// judged is Invalid, never a pass and never an error.
func Judge(s *record.Session) *Verdict {
	v := &Verdict{
		Format:      Format,
		Complete:    s.State == record.Complete && missingRuns(s) == 0,
		Planned:     s.Schedule.Blocks,
		Reasons:     []string{},
		SetAside:    []SetAside{},
		Comparisons: []Comparison{},
	}
	baselines, candidate, ok := sides(s.Arms)
	if !ok {
		v.invalid(s, "A verdict needs at least one baseline and exactly one candidate.")
		return v
	}
	runs, aside := sound(s)
	v.SetAside = append(v.SetAside, aside...)
	v.AA = sameBuild(baselines[0], candidate)
	for i, baseline := range baselines {
		p := newPairing(s, runs, [2]string{baseline.Name, candidate.Name})
		if i == 0 {
			v.Blocks = len(p.blocks)
		}
		out := p.ruledOut()
		v.SetAside = append(v.SetAside, p.aside...)
		for _, metric := range record.Metrics {
			rule, ok := s.Rules.Metrics[metric]
			if !ok {
				continue
			}
			judged := i == 0 && !rule.Watch
			if metric == record.ErrorRate {
				v.Comparisons = append(v.Comparisons, p.rates(rule, judged)...)
			} else {
				v.Comparisons = append(v.Comparisons, p.latencies(metric, rule, judged, out)...)
			}
		}
	}
	v.conclude(s)
	return v
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
