package gates

import (
	"math"
	"slices"

	"plumbline/gates/stats"
	"plumbline/record"
)

// Look is what one look at a session that may grow said of a row, by itself:
// what an earlier look decided does not show in it.
type Look struct {
	Blocks     int        `json:"blocks"` // complete blocks so far
	Verdict    RowVerdict `json:"verdict"`
	Effect     *float64   `json:"effect"` // these as in Comparison, at the levels of this look
	Low        *float64   `json:"low"`
	High       *float64   `json:"high"`
	Percentile int        `json:"percentile,omitempty"`
}

// levels are the one-sided levels of claims. A session that is judged once has
// them in full; one that is judged after every block shares them out over its looks.
type levels struct {
	first, most int // blocks at the first look and at the last; most 0: judged once
	known       map[spend]map[int][]float64
}

// spend is how one kind of claim spends its level.
type spend struct {
	once   float64 // the level where a session is judged once
	looked float64 // with looks: what is spent by the last
	power  float64 // looked · t^power is spent by the look at t = blocks so far / maximum
}

func newLevels(s record.Schedule) *levels {
	l := &levels{known: map[spend]map[int][]float64{}}
	if s.MaxBlocks > s.Blocks {
		l.first, l.most = min(max(s.Blocks, minBlocks), s.MaxBlocks), s.MaxBlocks
	}
	return l
}

// looks are the numbers of complete blocks after which to judge, given how many
// there are. Before the first look is due the record is judged as it is: it may
// be all there will ever be.
func (l *levels) looks(have int) []int {
	if l.most == 0 || have <= l.first {
		return []int{have}
	}
	var at []int
	for n := l.first; n <= min(have-1, l.most); n++ { // lost blocks that were measured again may make it more than the most
		at = append(at, n)
	}
	return append(at, have)
}

// due says whether a judgement after so many blocks is one of the looks.
func (l *levels) due(blocks int) bool { return l.most > 0 && blocks >= l.first }

// percentile is the level of each limit of a percentile, docs/METHOD.md's: a row
// at the zone's edge is called equivalent in ≤ 2.5 % of sessions.
func (l *levels) percentile(blocks int) float64 {
	return l.at(spend{once: 0.0215, looked: 0.0205, power: 1.5}, blocks, 1)
}

// rate is the level of each limit of an error rate. It is one claim, not one
// of nineteen, so judged once it has the usual 2.5 %.
func (l *levels) rate(blocks int) float64 {
	return l.at(spend{once: 0.025, looked: 0.0205, power: 1.5}, blocks, 1)
}

// family is the chance of any false regression in a family of so many claims,
// to be shared out by Holm; improvements have the same.
func (l *levels) family(blocks, claims int) float64 {
	return l.at(spend{once: 0.025, looked: 0.02, power: 3}, blocks, claims)
}

// at is the level at the look after so many blocks, for that many claims
// together: each has the claims-th part of it.
//
// The boundary is that of a single claim with its part of the level, not a part
// of the boundary for the whole: the smaller a level, the less its looks overlap.
func (l *levels) at(s spend, blocks, claims int) float64 {
	switch {
	case l.most == 0:
		return s.once
	case blocks < l.first:
		return s.spent(max(1, blocks), l.most) // error rates may have data without a complete block
	case claims == 0:
		return 0
	}
	nominal := l.known[s][claims]
	if nominal == nil {
		var fractions, spent []float64
		for n := l.first; n <= l.most; n++ {
			fractions = append(fractions, float64(n)/float64(l.most))
			spent = append(spent, s.spent(n, l.most)/float64(claims))
		}
		nominal = stats.NominalLevels(fractions, spent)
		if l.known[s] == nil {
			l.known[s] = map[int][]float64{}
		}
		l.known[s][claims] = nominal
	}
	return float64(claims) * nominal[min(blocks, l.most)-l.first]
}

// spent is what may be spent up to and with the look after so many blocks.
func (s spend) spent(blocks, most int) float64 {
	return s.looked * math.Pow(float64(blocks)/float64(most), s.power)
}

// judgeAll judges every metric of the comparison: once, or look by look.
func (p *pairing) judgeAll(decides bool) []Comparison {
	var rows []Comparison
	for _, n := range p.levels.looks(len(p.blocks)) {
		look := p
		if n < len(p.blocks) {
			look = p.after(n)
		}
		now := look.judge(decides)
		if p.levels.due(n) {
			for i := range now {
				now[i] = latch(rows, i, n, now[i])
			}
		}
		rows = now
	}
	return rows
}

// after is the comparison as it stood after its first n complete blocks. What
// runs of later blocks said, also lost ones, belongs to later looks; the
// newest look, which is not made here, has everything.
func (p *pairing) after(n int) *pairing {
	last := p.blocks[n-1][0].Block
	var runs []*record.Run
	for _, r := range p.runs {
		if r.Block <= last {
			runs = append(runs, r)
		}
	}
	look := newPairing(p.session, runs, p.arms, p.levels)
	look.past = true
	for _, blocks := range p.effects {
		look.effects = append(look.effects, blocks[:n])
	}
	return look
}

// latch is row i after a look: a decided row stays as the look that decided it
// found it, so that its numbers belong to its verdict. There are three
// exceptions, none of which can make a pass of a row that is not one: a row
// whose answers turn out not to be the same work is no longer comparable,
// unless it is a regression; and an error rate stays as it is only as a
// regression, because errors that come later are a result.
func latch(before []Comparison, i, blocks int, now Comparison) Comparison {
	look := Look{Blocks: blocks, Verdict: now.Verdict, Effect: now.Effect, Low: now.Low, High: now.High, Percentile: now.Percentile}
	if before == nil {
		now.Looks = []Look{look}
		return now
	}
	was := before[i]
	looks := append(was.Looks, look)
	switch was.Verdict {
	case RowRegression:
		now = was
	case RowEquivalent, RowImprovement:
		if now.Verdict != RowNotComparable && now.Metric != record.ErrorRate {
			now = was
		}
	}
	now.Looks = looks
	return now
}

// Decided says that further blocks would change no judged row, so that a
// session with a maximum of blocks may stop. An inconclusive row is open, also
// one that is not slower. A row that is not comparable is decided, unless it has
// one or two of the three blocks it needs, or more repeats may show that they
// agree (NeedsRepeats). Before the first look, without a judged row, and with a
// control that is open, nothing is decided.
func (v *Verdict) Decided() bool {
	judged := v.rows(func(c Comparison) bool { return c.Judged })
	known := !slices.ContainsFunc(v.Controls, func(c Control) bool { return c.Verdict == ControlOpen })
	return len(judged) > 0 && len(v.rows(v.isOpen)) == 0 && (known || v.failed())
}

// isOpen says that further blocks may change a judged row.
func (v *Verdict) isOpen(c Comparison) bool {
	return c.Judged && (c.Verdict == RowInconclusive || v.MaxBlocks > 0 && c.Looks == nil ||
		c.Verdict == RowNotComparable && (c.Blocks > 0 && c.Blocks < minBlocks || c.NeedsRepeats > 0))
}
