package gates

import (
	"fmt"
	"slices"

	"plumbline/record"
)

// overlaps says which of loose files were measured at the same time, by their
// time stamps. Nothing passes then: the runs are not those of one machine with
// nothing else on it.
func overlaps(s *record.Session) (notes []string) {
	for _, pairs := range [][][2]*record.Run{sameBlock(s.Runs), sameArm(s.Runs)} {
		i := slices.IndexFunc(pairs, func(p [2]*record.Run) bool {
			return p[0].Started.Before(p[1].Ended) && p[1].Started.Before(p[0].Ended)
		})
		if i < 0 {
			continue
		}
		a, b := pairs[i][0], pairs[i][1]
		note := fmt.Sprintf("Files of a block overlap in time (%s and %s): measured at once, they disturbed each other, or ran on two machines.", a.ID, b.ID)
		if a.Arm == b.Arm {
			note = fmt.Sprintf("Files of one side overlap in time (%s and %s): they may be parts of one run, and would count as several.", a.ID, b.ID)
		}
		notes = append(notes, note)
	}
	return notes
}

// looseNote says what loose files leave open: whether the arms took turns on
// one machine.
func looseNote(s *record.Session) string {
	if s.Schedule.Mode == record.Sequential {
		return "Sequential: the files of one side end before the other side's begin, so drift of the host is not told apart from a change."
	}
	return "The files do not tell whether they were measured in turns on one machine: drift of the host is not told apart from a change."
}

func sameBlock(runs []*record.Run) [][2]*record.Run {
	return pairsOf(runs, func(a, b *record.Run) bool { return a.Block == b.Block && a.Arm != b.Arm })
}

func sameArm(runs []*record.Run) [][2]*record.Run {
	return pairsOf(runs, func(a, b *record.Run) bool { return a.Arm == b.Arm })
}

func pairsOf(runs []*record.Run, match func(a, b *record.Run) bool) (pairs [][2]*record.Run) {
	for i, a := range runs {
		for _, b := range runs[i+1:] {
			if match(a, b) {
				pairs = append(pairs, [2]*record.Run{a, b})
			}
		}
	}
	return pairs
}

// tooFewFiles says why nothing can be judged from one or two files a side.
func tooFewFiles(blocks int) string {
	files := fmt.Sprintf("%d files", blocks)
	if blocks == 1 {
		files = "1 file"
	}
	return fmt.Sprintf("%s a side cannot be judged: each file is one run, the k-th of each side form a block, and an interval over blocks needs at least %d.", files, minBlocks)
}
