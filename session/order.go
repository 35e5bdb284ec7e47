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

// groups draws the order of the session's runs.
//
// Sliced: a group per block, arms in random order. Interleaved: a group per
// run, the order of the arms turning from block to block, the seed picks the
// first. Sequential: all runs of an arm, then all of the next.
func groups(seed uint64, s record.Schedule, arms []record.Arm) []group {
	rng := rand.New(rand.NewPCG(seed, 0))
	var all []group
	add := func(block int, order ...int) {
		g := group{block: block}
		for _, a := range order {
			g.runs = append(g.runs, record.RunRef{Block: block, Arm: arms[a].Name})
		}
		all = append(all, g)
	}
	switch s.Mode {
	case record.Sliced:
		for b := 1; b <= s.Blocks; b++ {
			add(b, rng.Perm(len(arms))...)
		}
	case record.Interleaved:
		first := rng.Perm(len(arms))
		for b := 1; b <= s.Blocks; b++ {
			for i := range first {
				add(b, first[turn(i, b-1, len(first))])
			}
		}
	default:
		for a := range arms {
			for b := 1; b <= s.Blocks; b++ {
				add(b, a)
			}
		}
	}
	n := 0
	for _, g := range all {
		for i := range g.runs {
			n++
			g.runs[i].ID = fmt.Sprintf("%03d-%s", n, g.runs[i].Arm)
		}
	}
	return all
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

// lengthOf is the time that the schedule itself takes, without builds, starts
// and stops.
func lengthOf(s record.Schedule, arms int) time.Duration {
	load := float64(roundCount(s, arms)*arms) * float64(stretchOf(s, arms))
	idle := float64(s.IdleS)
	if s.Mode != record.Sliced {
		idle *= float64(arms)
	}
	perBlock := load + float64(arms)*float64(s.WarmupS) + idle
	return record.Seconds(perBlock * float64(s.Blocks)).Duration()
}
