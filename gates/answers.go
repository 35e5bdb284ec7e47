package gates

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"plumbline/gates/stats"
	"plumbline/record"
)

// expectedStatuses says by route which statuses count as an answer: those that
// the plan names, else that of the route's first preflight. A 401 or 403, or
// no answer at all, is expected only where the plan names it; such a route has
// none.
func expectedStatuses(routes []record.Route, runs []*record.Run) map[string][]int {
	expected := map[string][]int{}
	for _, route := range routes {
		if len(route.Status) > 0 {
			expected[route.Name] = route.Status
		}
	}
	seen := map[string]bool{}
	for _, r := range runs {
		for _, a := range r.Preflight {
			if seen[a.Route] {
				continue
			}
			seen[a.Route] = true
			if expected[a.Route] == nil && a.Status != 0 && a.Status != 401 && a.Status != 403 {
				expected[a.Route] = []int{a.Status}
			}
		}
	}
	return expected
}

// ruledOut says by route why its latencies are not comparable: the arms did
// not do the same work. It notes the runs in p.aside.
func (p *pairing) ruledOut() map[string][]string {
	out := map[string][]string{}
	carryOver := p.carryOver()
	for _, route := range p.session.Routes {
		if carryOver != "" {
			out[route.Name] = append(out[route.Name], carryOver)
		}
		if len(p.expected[route.Name]) == 0 {
			if len(p.blocks) > 0 {
				out[route.Name] = append(out[route.Name], p.noStatus(route.Name))
			}
			continue
		}
		for _, find := range []func(record.Route) (run, reason string){p.oneSided, p.preflightStatus, p.preflightBody, p.meanBody, p.statusMix} {
			run, reason := find(route)
			if reason == "" {
				continue
			}
			out[route.Name] = append(out[route.Name], reason)
			if run != "" {
				p.aside = append(p.aside, SetAside{Run: run, Route: route.Name, Reason: reason})
			}
		}
	}
	return out
}

// acceptBodies says what to do where bodies of different sizes are no mistake.
func (p *pairing) acceptBodies() string {
	if p.session.Loose {
		return "" // there is no plan
	}
	return "; body: any in the plan's expect accepts it"
}

// noStatus says why a route has no expected status.
func (p *pairing) noStatus(route string) string {
	switch {
	case route == record.NoTarget:
		return "requests without a target, which vegeta could not make (an attack with -lazy ends like that without -duration)"
	case p.session.Loose:
		return "no expected status: the first file with this route holds nothing but 401, 403, 5xx or no answer"
	}
	return "no expected status: the plan names none and no preflight gives one"
}

// oneSided finds a route that only one side has.
func (p *pairing) oneSided(route record.Route) (run, reason string) {
	if !p.session.Loose {
		return "", "" // all runs of a session are sent the same targets
	}
	for side, arm := range p.arms {
		n := 0
		for _, block := range p.blocks {
			n += len(block[side].Samples[route.Name].Codes)
		}
		if n == 0 {
			return "", "no file of " + arm + " has this route"
		}
	}
	return "", ""
}

func (p *pairing) preflightStatus(route record.Route) (run, reason string) {
	for _, block := range p.blocks {
		for _, r := range block {
			if a, ok := answer(r, route.Name); ok && !slices.Contains(p.expected[route.Name], a.Status) {
				return r.ID, fmt.Sprintf("the preflight answered %s, expected was %s", statusName(a.Status), statusNames(p.expected[route.Name]))
			}
		}
	}
	return "", ""
}

func (p *pairing) preflightBody(route record.Route) (run, reason string) {
	if route.BodyAny {
		return "", ""
	}
	for _, block := range p.blocks {
		base, ok := answer(block[0], route.Name)
		cand, ok2 := answer(block[1], route.Name)
		if ok && ok2 && base.BodyBytes != cand.BodyBytes {
			return block[1].ID, fmt.Sprintf("bodies differ: %d against %d bytes in the preflight%s", base.BodyBytes, cand.BodyBytes, p.acceptBodies())
		}
	}
	return "", ""
}

// meanBody compares what was sent under load: a router that answers less once
// it is busy would look fast.
func (p *pairing) meanBody(route record.Route) (run, reason string) {
	if route.BodyAny {
		return "", ""
	}
	var mean [2]float64
	for side := range mean {
		bytes, n := 0.0, 0
		for _, block := range p.blocks {
			if s := block[side].Samples[route.Name]; s != nil {
				bytes += float64(s.BodyBytes)
				n += len(s.Latency)
			}
		}
		if n == 0 {
			return "", ""
		}
		mean[side] = bytes / float64(n)
	}
	if math.Abs(mean[1]-mean[0]) <= 0.01*mean[0] {
		return "", ""
	}
	return "", fmt.Sprintf("bodies differ: %.1f against %.1f bytes on average%s", mean[0], mean[1], p.acceptBodies())
}

// statusMix compares what the requests behind the latencies were answered:
// unexpected statuses by their share, expected ones (where the plan names
// several) by an interval, because keys drawn at random may move them a little.
func (p *pairing) statusMix(route record.Route) (run, reason string) {
	zone := p.rateZone()
	var codes [2]map[int]int
	var total [2]int
	var wrong [2]stats.Count
	for side := range codes {
		codes[side] = map[int]int{}
		for _, block := range p.blocks {
			addCodes(codes[side], block[side], route.Name)
		}
		wrong[side] = unexpected(codes[side], p.expected[route.Name])
		total[side] = wrong[side].N
	}
	if total[0] == 0 || total[1] == 0 {
		return "", ""
	}
	changed := math.Abs(wrong[1].Share()-wrong[0].Share()) > zone
	if names := p.expected[route.Name]; len(names) > 1 {
		for _, code := range names {
			low, high := stats.Newcombe(stats.Count{X: codes[0][code], N: total[0]}, stats.Count{X: codes[1][code], N: total[1]}, 0.001)
			changed = changed || low > zone || high < -zone
		}
	}
	if !changed {
		return "", ""
	}
	return "", fmt.Sprintf("status mix changed: %s: %s; %s: %s", p.arms[0], mixNames(codes[0]), p.arms[1], mixNames(codes[1]))
}

// rateZone is the error rate's zone, also where its rows are left out.
func (p *pairing) rateZone() float64 {
	if rule, ok := p.session.Rules.Metrics[record.ErrorRate]; ok {
		return rule.Zone
	}
	return record.DefaultRules().Metrics[record.ErrorRate].Zone
}

func addCodes(to map[int]int, r *record.Run, route string) {
	if s := r.Samples[route]; s != nil {
		for code, n := range s.Codes {
			to[code] += n
		}
	}
}

// unexpected counts the requests with another status, or no answer, among all.
func unexpected(codes map[int]int, expected []int) stats.Count {
	var c stats.Count
	for code, n := range codes {
		c.N += n
		if !slices.Contains(expected, code) {
			c.X += n
		}
	}
	return c
}

func answer(r *record.Run, route string) (record.Answer, bool) {
	i := slices.IndexFunc(r.Preflight, func(a record.Answer) bool { return a.Route == route })
	if i < 0 {
		return record.Answer{}, false
	}
	return r.Preflight[i], true
}

func mixNames(codes map[int]int) string {
	var parts []string
	for _, code := range slices.Sorted(maps.Keys(codes)) {
		parts = append(parts, fmt.Sprintf("%s ×%d", statusName(code), codes[code]))
	}
	return strings.Join(parts, ", ")
}

func statusNames(codes []int) string {
	var parts []string
	for _, code := range codes {
		parts = append(parts, statusName(code))
	}
	return strings.Join(parts, " or ")
}

func statusName(code int) string {
	if code == 0 {
		return "nothing"
	}
	return fmt.Sprint(code)
}
