package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"plumbline/record"
)

// sideFlags are --baseline and --candidate. A shell makes several words of a
// pattern, of which the parser gives only the first to the flag. The others
// are arguments; since each flag notes how many there were before it, it is
// known to which flag they belong.
type sideFlags struct {
	c     *cobra.Command
	marks []sideMark
}

type sideMark struct {
	side   int // 0: baseline, 1: candidate
	before int // arguments that came before the flag
	file   string
}

func sideNames() [2]string { return [2]string{"baseline", "candidate"} }

func (f *sideFlags) add(c *cobra.Command) {
	f.c = c
	for side, name := range sideNames() {
		c.Flags().Var(&sideFlag{f, side}, name, "result files of the "+name+", one for each run: all words up to the next flag")
		_ = c.MarkFlagFilename(name)
	}
}

// sideFlag is a pflag.Value.
type sideFlag struct {
	all  *sideFlags
	side int
}

func (f *sideFlag) String() string { return "" }
func (f *sideFlag) Type() string   { return "FILE..." }
func (f *sideFlag) Set(word string) error {
	if word == "" {
		return errors.New("the name of a file is empty; is a variable not set?")
	}
	f.all.marks = append(f.all.marks, sideMark{side: f.side, before: f.all.c.Flags().NArg(), file: word})
	return nil
}

// split gives each side its files; rest are the arguments before any of the flags.
func (f *sideFlags) split(args []string) (rest []string, files [2][]string) {
	if len(f.marks) == 0 {
		return args, files
	}
	for i, m := range f.marks {
		end := len(args)
		if i+1 < len(f.marks) {
			end = f.marks[i+1].before
		}
		files[m.side] = append(files[m.side], m.file)
		files[m.side] = append(files[m.side], args[m.before:end]...)
	}
	return args[:f.marks[0].before], files
}

// check refuses what is neither other arguments, which the command checks
// itself, nor files for both sides.
func (f *sideFlags) check(others cobra.PositionalArgs) cobra.PositionalArgs {
	return args(func(c *cobra.Command, a []string) error {
		rest, files := f.split(a)
		switch {
		case len(f.marks) == 0:
			return others(c, a)
		case len(rest) > 0:
			return fmt.Errorf("%q does not go with --baseline and --candidate", rest[0])
		case len(files[0]) == 0 || len(files[1]) == 0:
			return errors.New("--baseline and --candidate go together")
		case slices.Contains(slices.Concat(files[0], files[1]), ""):
			return errors.New("the name of a file is empty; is a variable not set?")
		case len(files[0]) != len(files[1]):
			return fmt.Errorf("%d files of the baseline and %d of the candidate: the k-th of each side form a block, so there must be as many", len(files[0]), len(files[1]))
		}
		return nil
	})
}

// given says whether the flags were used.
func (f *sideFlags) given() bool { return len(f.marks) > 0 }

// read makes a session of the two sides.
func (f *sideFlags) read(args []string) (*record.Session, error) {
	_, files := f.split(args)
	sides := sideNames()
	return readLoose(
		record.LooseArm{Arm: record.Arm{Name: sides[0], Role: record.Baseline}, Files: files[0]},
		record.LooseArm{Arm: record.Arm{Name: sides[1], Role: record.Candidate}, Files: files[1]})
}

// readFiles makes a session in which each file stands for itself.
func readFiles(files []string) (*record.Session, error) {
	var arms []record.LooseArm
	for _, file := range files {
		arms = append(arms, record.LooseArm{Arm: record.Arm{Name: file, Role: record.Baseline}, Files: []string{file}})
	}
	return readLoose(arms...)
}

func readLoose(arms ...record.LooseArm) (*record.Session, error) {
	s, err := record.ReadLoose(arms...)
	if errors.Is(err, record.ErrGivenTwice) {
		return nil, usage(err)
	}
	if err != nil {
		return nil, err
	}
	s.Command = os.Args[1:]
	return s, nil
}

// isFile says that there is a file of that name, and no folder.
func isFile(name string) bool {
	info, err := os.Stat(name)
	return err == nil && !info.IsDir()
}

// percentilesFlag is -p: a pflag.Value.
type percentilesFlag []float64

const mostPercentiles = 20

func (f *percentilesFlag) Type() string { return "P,..." }
func (f *percentilesFlag) String() string {
	var words []string
	for _, p := range *f {
		words = append(words, strconv.FormatFloat(p, 'f', -1, 64))
	}
	return strings.Join(words, ",")
}

func (f *percentilesFlag) Set(text string) error {
	var all []float64
	for _, word := range strings.Split(text, ",") {
		word = strings.TrimSpace(word)
		p, err := strconv.ParseFloat(word, 64)
		_, decimals, _ := strings.Cut(word, ".")
		plain := strings.Trim(word, "0123456789.") == ""
		switch {
		case err != nil || !plain || p < 0 || p > 100:
			return fmt.Errorf("%q is no percentile: want numbers from 0 to 100, such as 0,50,90,99.9", word)
		case len(decimals) > 3:
			return fmt.Errorf("%q has more than three decimals", word)
		case slices.Contains(all, p):
			return fmt.Errorf("%s is there twice", word)
		}
		all = append(all, p)
	}
	if len(all) > mostPercentiles {
		return fmt.Errorf("%d are too many for a table, want %d at most", len(all), mostPercentiles)
	}
	*f = all
	return nil
}
