package session

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"plumbline/record"
)

// group is the runs that live at the same time, in the order they are started.
type group struct {
	block int
	runs  []record.RunRef
}

// order draws the session's runs, block by block: a session may turn out to
// need more blocks than it begins with, and that must not change the first ones.
//
// Sliced: a group per block, arms in random order. Interleaved: a group per
// run, the order of the arms turning from block to block, the seed picks the
// first. Sequential: all runs of an arm, then all of the next, in one piece.
type order struct {
	rng    *rand.Rand
	mode   record.Mode
	arms   []record.Arm
	first  []int // interleaved: the order of the first block
	blocks int   // drawn so far
	runs   int   // drawn so far
}

func newOrder(seed uint64, mode record.Mode, arms []record.Arm) *order {
	o := &order{rng: rand.New(rand.NewPCG(seed, 0)), mode: mode, arms: arms}
	if mode == record.Interleaved {
		o.first = o.rng.Perm(len(arms))
	}
	return o
}

// add draws n further blocks.
func (o *order) add(n int) (all []group) {
	from := o.blocks + 1
	o.blocks += n
	if o.mode == record.Sequential {
		for a := range o.arms {
			for b := from; b <= o.blocks; b++ {
				all = append(all, o.group(b, a))
			}
		}
		return all
	}
	for b := from; b <= o.blocks; b++ {
		if o.mode == record.Sliced {
			all = append(all, o.group(b, o.rng.Perm(len(o.arms))...))
			continue
		}
		for i := range o.first {
			all = append(all, o.group(b, o.first[turn(i, b-1, len(o.first))]))
		}
	}
	return all
}

func (o *order) group(block int, arms ...int) group {
	g := group{block: block}
	for _, a := range arms {
		o.runs++
		name := o.arms[a].Name
		g.runs = append(g.runs, record.RunRef{ID: fmt.Sprintf("%03d-%s", o.runs, name), Block: block, Arm: name})
	}
	return g
}

// turn is the place in the first order of the i-th run of a block: forwards
// and backwards for two arms, through all rotations and back for more, so that
// each arm comes first equally often.
func turn(i, block, n int) int {
	rotation, back := block/2%n, block%2 == 1
	if n == 2 {
		rotation = 0
	}
	if back {
		i = n - 1 - i
	}
	return (i + rotation) % n
}

// rounds draws, for each round of a block, the order in which its n runs get
// their slice. It is balanced within every 2n rounds: each run is equally
// often first and last, so that what the slice before leaves behind cancels.
func rounds(seed uint64, block, n, count int) [][]int {
	rng := rand.New(rand.NewPCG(seed, uint64(block)))
	orders := make([][]int, 0, count+2*n)
	for len(orders) < count {
		base := rng.Perm(n)
		var set [][]int
		for rotation := range n {
			forth, back := make([]int, n), make([]int, n)
			for i := range n {
				forth[i] = base[(i+rotation)%n]
				back[n-1-i] = forth[i]
			}
			set = append(set, forth, back)
		}
		rng.Shuffle(len(set), func(i, j int) { set[i], set[j] = set[j], set[i] })
		orders = append(orders, set...)
	}
	return orders[:count]
}

// roundCount is how many rounds of slices a block holds.
func roundCount(s record.Schedule, arms int) int {
	if s.Mode != record.Sliced {
		return 1
	}
	return max(1, int(math.Round(float64(s.BlockS)/(float64(s.SliceS)*float64(arms)))))
}

// stretchOf is the load that one run gets in one round, in seconds.
func stretchOf(s record.Schedule, arms int) record.Seconds {
	if s.Mode == record.Sliced {
		return s.SliceS
	}
	return s.BlockS / record.Seconds(arms)
}

// lengthOf is the time that so many blocks take by the schedule itself,
// without builds, starts and stops.
func lengthOf(s record.Schedule, arms, blocks int) time.Duration {
	load := float64(roundCount(s, arms)*arms) * float64(stretchOf(s, arms))
	idle := float64(s.IdleS)
	if s.Mode != record.Sliced {
		idle *= float64(arms)
	}
	perBlock := load + float64(controlTime(s, arms)) + float64(arms)*float64(s.WarmupS) + idle
	return record.Seconds(perBlock * float64(blocks)).Duration()
}
