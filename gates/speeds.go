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
	speedGap    = 0.05 // smallest gap between two speeds
	speedTimes  = 4    // and in standard deviations, more of them for few blocks
	namedTimes  = 2.5  // the same for one block that is named and stays
	leastToDrop = 6    // blocks that a session must have before one is set aside
	mostDropped = 0.25 // share of the blocks that may be set aside
)

// speeds is what a route's blocks say of the speeds of its processes.
type speeds struct {
	groups []Speed // fastest first; one or none: all blocks agree
	stray  []int   // blocks outside the largest group, indices of pairing.blocks
	slow   int     // of these, the ones in which the candidate was slower
	aside  bool    // the stray blocks are set aside
	apart  string  // two speeds, or perhaps two: why the row can be nothing but a regression
	needs  int     // blocks that may show all but one speed to be rare; 0: it is so
	named  []string
}

// keeps says whether a block counts for the route's latencies.
func (s *speeds) keeps(block int) bool { return !s.aside || !slices.Contains(s.stray, block) }

// findSpeeds looks for speeds in the P50 effects of every route. A single block
// apart from the others is an outlier; a few of them may be set aside in a
// sliced session, where the host's level cancels and it was the process.
// Otherwise there are two speeds.
func (p *pairing) findSpeeds() {
	p.speeds = make([]*speeds, len(p.effects))
	for i, blocks := range p.effects {
		p.speeds[i] = p.speedsOf(p.session.Routes[i].Name, blocks)
	}
}

func (p *pairing) speedsOf(route string, blocks []blockEffects) *speeds {
	s := &speeds{}
	middle := placeOf(50)
	var effects []float64
	var at []int
	for i, b := range blocks {
		if e := b.effects[middle]; e.enough {
			effects, at = append(effects, e.median), append(at, i)
		}
	}
	gap := math.Log1p(speedGap)
	of, n, main := stats.Groups(effects, gap, speedTimes)
	if n == 1 { // an outlier that is none beyond doubt is still worth its name
		if named, m, largest := stats.Groups(effects, gap, namedTimes); m == 2 && alone(named, largest) >= 0 {
			b := at[alone(named, largest)]
			_, reason := p.strayBlock(blocks, b, []int{b})
			s.named = []string{reason}
			return s
		}
	}
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
	few := float64(len(s.stray)) <= mostDropped*float64(len(effects))
	s.aside = few && len(effects) >= leastToDrop && !p.unsliced()
	switch {
	case !s.aside && len(s.stray) > 1:
		s.apart = "two speeds: " + speedNames(s.groups)
		s.needs = max(int(math.Ceil(float64(len(s.stray))/mostDropped)), blocksFor(s.slow))
		return s
	case s.aside && stats.RareShare(s.slow, len(effects)) > rarest():
		s.needs = blocksFor(s.slow)
		s.apart = fmt.Sprintf("the candidate was slow in %d of %d blocks: a slow start may be no exception; %d blocks without another would show that it is", s.slow, len(effects), s.needs)
	}
	for _, b := range s.stray {
		run, reason := p.strayBlock(blocks, b, s.stray)
		if s.aside {
			p.aside = append(p.aside, SetAside{Run: run, Route: route, Reason: reason})
		} else {
			s.named = append(s.named, reason)
		}
	}
	if s.aside {
		s.named = []string{"outlier: judged without " + p.blockNames(s.stray)}
	}
	return s
}

// rarest is the share of starts whose speed may go unseen in a session that
// passes: that of the fewest blocks which may set one aside, with none of them
// slow. A slow start that was seen makes more blocks necessary.
func rarest() float64 { return stats.RareShare(0, leastToDrop) }

// blocksFor is how many blocks leave no more than that unseen beside so many slow ones.
func blocksFor(slow int) int {
	n := leastToDrop
	for stats.RareShare(slow, n) > rarest() {
		n++
	}
	return n
}

// alone is the index of the one value outside the largest of two groups; −1 if
// it is not one.
func alone(of []int, largest int) int {
	found := -1
	for i, g := range of {
		if g == largest {
			continue
		}
		if found >= 0 {
			return -1
		}
		found = i
	}
	return found
}

// rareStart is Verdict.RareStart and RareGap: the more blocks, the rarer what may
// have gone unseen, and the less they scatter, the nearer.
func (p *pairing) rareStart() (share, gap float64) {
	if len(p.blocks) < minBlocks {
		return 0, 0
	}
	seen, middle := 0, placeOf(50)
	for i, s := range p.speeds {
		seen = max(seen, s.slow)
		var usual []float64
		for b, block := range p.effects[i] {
			if block.effects[middle].enough && !slices.Contains(s.stray, b) {
				usual = append(usual, block.effects[middle].median)
			}
		}
		if n := len(usual); n > 1 {
			gap = max(gap, math.Log1p(speedGap), stats.Apart(n, speedTimes)*stats.Describe(usual).SD)
		}
	}
	return digits(6, stats.RareShare(seen, len(p.blocks))), digits(6, math.Expm1(gap))
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
func (p *pairing) strayBlock(blocks []blockEffects, b int, stray []int) (run, reason string) {
	var values [2]int64
	var usual [2]float64
	off, who := 0.0, 0
	for side := range values {
		var others []float64
		for i, block := range blocks {
			if !slices.Contains(stray, i) && len(block.sorted[side]) > 0 {
				others = append(others, float64(stats.NearestRank(50, block.sorted[side])))
			}
		}
		usual[side] = stats.Median(others)
		values[side] = stats.NearestRank(50, blocks[b].sorted[side])
		if far := math.Abs(math.Log(max(1, float64(values[side])) / max(1, usual[side]))); far > off {
			off, who = far, side
		}
	}
	r := p.blocks[b][who]
	return r.ID, fmt.Sprintf("outlier: block %d lies apart; P50 of %s was %s there, in its other runs %s", r.Block, p.arms[who], duration(values[who]), duration(int64(usual[who])))
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
