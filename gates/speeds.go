package gates

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"plumbline/gates/stats"
)

// This file is about processes that choose their speed at their start: where
// the kernel puts them in memory, say, may cost them a fifth for all their
// life. Then P50 of a block is not a little off but lies apart from the others.

const (
	speedGap     = 0.05 // smallest gap between two speeds
	leastToDrop  = 6    // blocks that a session must have before one is set aside
	mostDropped  = 0.25 // share of the blocks that may be set aside
	mostOneSided = 2    // more blocks with a slow candidate than with a slow baseline, or fewer
)

// speeds is what a route's blocks say of the speeds of its processes.
type speeds struct {
	groups []Speed // fastest first; one: all blocks agree
	stray  []int   // blocks outside the largest group, indices of pairing.blocks
	slow   int     // of these, the ones in which the candidate was slower
	aside  bool    // the stray blocks are set aside
	apart  string  // two speeds: why the row is not comparable
	named  []string
}

// keeps says whether a block counts for the route's latencies.
func (s *speeds) keeps(block int) bool { return !s.aside || !slices.Contains(s.stray, block) }

// findSpeeds looks for speeds in the P50 effects of every route. A single block
// apart from the others is an outlier; a few of them may be set aside in a
// sliced session, where the host's level cancels and it was the process, as
// long as both arms have them about as often. Otherwise there are two speeds.
func (p *pairing) findSpeeds() {
	p.speeds = make([]*speeds, len(p.effects))
	for i, blocks := range p.effects {
		p.speeds[i] = p.speedsOf(p.session.Routes[i].Name, blocks)
	}
}

func (p *pairing) speedsOf(route string, blocks []blockEffects) *speeds {
	s := &speeds{}
	middle := slices.Index(percentiles(), 50)
	var effects []float64
	var at []int
	for i, b := range blocks {
		if e := b.effects[middle]; e.enough {
			effects, at = append(effects, e.median), append(at, i)
		}
	}
	of, n, main := stats.Groups(effects, math.Log1p(speedGap))
	sums := make([]float64, n)
	s.groups = make([]Speed, n)
	for i, g := range of {
		s.groups[g].Blocks++
		sums[g] += effects[i]
		if g != main {
			s.stray = append(s.stray, at[i])
			if g > main {
				s.slow++
			}
		}
	}
	for g := range s.groups {
		s.groups[g].Effect = digits(6, math.Expm1(sums[g]/float64(max(1, s.groups[g].Blocks))))
	}
	if len(s.stray) == 0 {
		return s
	}
	slices.Sort(s.stray)
	oneSided := max(s.slow-(len(s.stray)-s.slow), len(s.stray)-2*s.slow)
	switch few := float64(len(s.stray)) <= mostDropped*float64(len(effects)); {
	case few && oneSided <= mostOneSided && len(effects) >= leastToDrop && !p.unsliced():
		s.aside = true
	case len(s.stray) > 1:
		s.apart = "two speeds: " + speedNames(s.groups)
		return s
	}
	for _, b := range s.stray {
		reason := p.strayBlock(route, blocks, b, s)
		if !s.aside {
			s.named = append(s.named, reason)
		}
	}
	if s.aside {
		s.named = []string{"outlier: judged without " + p.blockNames(s.stray)}
	}
	return s
}

// rareStart is Verdict.RareStart: the more blocks, the rarer what may have gone
// unseen.
func (p *pairing) rareStart() float64 {
	if len(p.blocks) < minBlocks {
		return 0
	}
	seen := 0
	for _, s := range p.speeds {
		seen = max(seen, s.slow)
	}
	return digits(6, stats.RareShare(seen, len(p.blocks)))
}

// speedNames: "9 blocks at −0.2 %, 11 at +29.7 %".
func speedNames(groups []Speed) string {
	var parts []string
	for i, g := range groups {
		noun := ""
		if i == 0 {
			noun = " blocks"
		}
		parts = append(parts, fmt.Sprintf("%d%s at %s", g.Blocks, noun, percent(g.Effect)))
	}
	return strings.Join(parts, ", ")
}

// blockNames: "block 4, which lies apart", "blocks 4 and 9, which lie apart".
func (p *pairing) blockNames(blocks []int) string {
	var names []string
	for _, b := range blocks {
		names = append(names, strconv.Itoa(p.blocks[b][0].Block))
	}
	last := len(names) - 1
	if last == 0 {
		return "block " + names[0] + ", which lies apart"
	}
	return "blocks " + strings.Join(names[:last], ", ") + " and " + names[last] + ", which lie apart"
}

// strayBlock says how a block lies apart and whose process it was: the one
// that is farther from its arm's median in the blocks that agree.
func (p *pairing) strayBlock(route string, blocks []blockEffects, b int, s *speeds) string {
	var values [2]int64
	var usual [2]float64
	off, who := 0.0, 0
	for side := range values {
		var others []float64
		for i, block := range blocks {
			if !slices.Contains(s.stray, i) && len(block.sorted[side]) > 0 {
				others = append(others, float64(stats.NearestRank(50, block.sorted[side])))
			}
		}
		usual[side] = stats.Median(others)
		values[side] = stats.NearestRank(50, blocks[b].sorted[side])
		if far := math.Abs(math.Log(max(1, float64(values[side])) / max(1, usual[side]))); far > off {
			off, who = far, side
		}
	}
	run := p.blocks[b][who]
	reason := fmt.Sprintf("outlier: block %d lies apart; P50 of %s was %s there, in its other runs %s", run.Block, p.arms[who], duration(values[who]), duration(int64(usual[who])))
	if s.aside {
		p.aside = append(p.aside, SetAside{Run: run.ID, Route: route, Reason: reason})
	}
	return reason
}

// duration shows a latency with three digits.
func duration(ns int64) string {
	switch x := float64(ns); {
	case x >= 1e9:
		return fmt.Sprintf("%.3g s", x/1e9)
	case x >= 1e6:
		return fmt.Sprintf("%.3g ms", x/1e6)
	default:
		return fmt.Sprintf("%.3g µs", x/1e3)
	}
}
