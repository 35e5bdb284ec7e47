package report

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"plumbline/gates"
	"plumbline/record"
)

// scheduleLine and hostLine say in a line how and where it was measured.
func scheduleLine(s *record.Session, v *gates.Verdict) string {
	c := s.Schedule
	if s.Loose {
		return fmt.Sprintf("result files, %s: each is one run, the k-th of each side form block k", filesOf(s))
	}
	blocks := count(v.Planned, "block")
	if v.MaxBlocks > 0 {
		blocks = fmt.Sprintf("%d of at most %s", v.Planned, count(v.MaxBlocks, "block"))
	}
	parts := []string{fmt.Sprintf("%s, %s of %s of load", c.Mode, blocks, seconds(c.BlockS))}
	if v.Blocks != v.Planned {
		parts[0] += fmt.Sprintf(" (%d judged)", v.Blocks)
	}
	if c.BudgetS > 0 {
		parts = append(parts, "within a budget of "+seconds(c.BudgetS))
	}
	if v.MaxBlocks > v.Planned && v.Complete && v.Decided() {
		parts = append(parts, "stopped because every judged row is decided")
	}
	if c.Mode == record.Sliced {
		parts = append(parts, "slices of "+seconds(c.SliceS))
		if c.Freeze {
			parts = append(parts, "idle arms frozen")
		}
	}
	switch {
	case s.Load.Rate > 0:
		parts = append(parts, fmt.Sprintf("rate %s/s", strconv.FormatFloat(s.Load.Rate, 'f', -1, 64)))
		if d := deliveredBy(s, v); d != "" {
			parts[len(parts)-1] += ", delivered " + d
		}
		parts = append(parts, fmt.Sprintf("at most %d under way", s.Load.Workers))
	case s.Load.Workers > 0:
		parts = append(parts, count(s.Load.Workers, "worker"))
	}
	if s.Load.Protocol != "" {
		protocol := s.Load.Protocol
		if s.Load.TLS && protocol == "h1" {
			protocol += " over TLS"
		}
		parts = append(parts, protocol)
	}
	if t := s.Load.TimeoutS; t != 0 && t != usualTimeout {
		parts = append(parts, "answers within "+seconds(t))
	}
	return strings.Join(parts, ", ")
}

// usualTimeout needs no words.
const usualTimeout = record.Seconds(30)

// deliveredBy: "100.0 % / 99.8 %", of the due requests, arm by arm.
func deliveredBy(s *record.Session, v *gates.Verdict) string {
	var parts []string
	for _, a := range s.Arms {
		share, ok := v.Delivered[a.Name]
		if !ok {
			continue
		}
		// Never 100 % of what was not all.
		parts = append(parts, strconv.FormatFloat(math.Floor(share*1000+1e-6)/10, 'f', 1, 64)+" %")
	}
	return strings.Join(parts, " / ")
}

// filesOf: "1 file", "3 and 3 files".
func filesOf(s *record.Session) string {
	var parts []string
	for _, a := range s.Arms {
		n := 0
		for _, r := range s.Runs {
			if r.Arm == a.Name {
				n++
			}
		}
		parts = append(parts, strconv.Itoa(n))
	}
	if len(s.Runs) == 1 {
		return "1 file"
	}
	return strings.Join(parts, " and ") + " files"
}

func hostLine(s *record.Session) string {
	if s.Loose {
		return "not known"
	}
	h := s.Host
	parts := []string{h.Hostname, strings.TrimSpace(h.OS + " " + h.Kernel), h.CPU}
	if h.CPUs > 0 {
		parts = append(parts, count(h.CPUs, "CPU"))
	}
	if len(s.Load.CPUs) > 0 || len(s.Load.ArmCPUs) > 0 {
		parts = append(parts, fmt.Sprintf("load on CPU %s, arms on CPU %s", numbers(s.Load.CPUs), numbers(s.Load.ArmCPUs)))
	}
	if s.Load.Awake {
		parts = append(parts, "kept awake")
	}
	parts = slices.DeleteFunc(parts, func(p string) bool { return p == "" })
	if len(parts) == 0 {
		return "not recorded"
	}
	return strings.Join(parts, ", ")
}

// sentLine says what was sent; empty: the record does not.
func sentLine(s *record.Session) string {
	t := s.Targets
	if t == nil {
		return ""
	}
	text := count(t.Count, "target")
	if s.Asked.Kind != "" {
		text = "kind " + s.Asked.Kind + ", " + text
	}
	if t.Set != "" && t.Set != s.Asked.Kind {
		text += " (" + t.Set + ")"
	}
	if len(t.Algs) == 0 {
		return text
	}
	last := len(t.Algs) - 1
	algs := t.Algs[last]
	if last > 0 {
		algs = strings.Join(t.Algs[:last], ", ") + " and " + algs
	}
	parts := []string{text + ": tokens of " + algs, "repeated"}
	if t.Once {
		parts[1] = "each sent once to a process"
	}
	if t.ExpireS > 0 {
		parts = append(parts,
			fmt.Sprintf("at most %d skipped in a run", t.Skipped),
			fmt.Sprintf("they expire within %d s of its start with a leeway of %d s", t.ExpireS, t.LeewayS))
	}
	return strings.Join(parts, ", ")
}

// servicesLine names what ran beside the arms; empty: nothing did.
func servicesLine(s *record.Session) string {
	var parts []string
	for _, one := range s.Services {
		parts = append(parts, fmt.Sprintf("%s (per %s)", one.Name, one.Per))
	}
	return strings.Join(parts, ", ")
}

// clockLine says what the arms' own clocks showed at each start; empty: nobody's
// was moved.
func clockLine(s *record.Session) string {
	var parts []string
	moved, same := false, true
	for _, a := range s.Arms {
		text := "not moved"
		if !a.Clock.IsZero() {
			moved, text = true, a.Clock.UTC().Format(time.RFC3339)+" at each start, by libfaketime"
		}
		same = same && a.Clock.Equal(s.Arms[0].Clock)
		parts = append(parts, labelOf(s, a.Name)+" "+text)
	}
	switch {
	case !moved:
		return ""
	case same:
		return strings.TrimPrefix(parts[0], labelOf(s, s.Arms[0].Name)+" ")
	}
	return strings.Join(parts, ", ")
}

// build says what an arm was made from: a commit, else the hash of what was started.
func build(a record.Arm) string {
	const digits = 12
	text := ""
	switch {
	case a.Commit != "":
		text = a.Commit[:min(digits, len(a.Commit))]
	case a.BinarySHA256 != "":
		text = "binary " + a.BinarySHA256[:min(digits, len(a.BinarySHA256))]
	}
	if a.Dirty {
		text = strings.TrimSpace(text + " with uncommitted changes")
	}
	return text
}

// command is what was typed, quoted for a shell.
func command(s *record.Session) string {
	args := s.Command
	if len(args) == 0 {
		return ""
	}
	if filepath.Base(args[0]) == "plumbline" {
		args = args[1:]
	}
	var out []string
	if s.Asked.In != "" {
		out = append(out, record.PlanVariable+"="+quoted(s.Asked.Plan))
	}
	out = append(out, "plumbline")
	for i, a := range args {
		if named := func(a string) bool { return a == "--out" || a == "-o" }; named(a) || i > 0 && named(args[i-1]) ||
			strings.HasPrefix(a, "--out=") || strings.HasPrefix(a, "-o=") {
			continue // that folder is there now
		}
		out = append(out, quoted(a))
	}
	return strings.Join(out, " ")
}

// quoted is an argument as a shell takes it.
func quoted(arg string) string {
	special := func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./:=@%+,", r))
	}
	if arg == "" || strings.ContainsFunc(arg, special) {
		return "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
	}
	return arg
}

// seconds: "10 s", "200 ms", "2 µs".
func seconds(x record.Seconds) string {
	scale, name := 1.0, "s"
	switch {
	case x > 0 && x < 1e-3:
		scale, name = 1e6, "µs"
	case x > 0 && x < 1:
		scale, name = 1e3, "ms"
	}
	return strconv.FormatFloat(math.Round(float64(x)*scale*1e3)/1e3, 'f', -1, 64) + " " + name
}

func numbers(xs []int) string {
	if len(xs) == 0 {
		return "any"
	}
	return strings.Trim(strings.Join(strings.Fields(fmt.Sprint(xs)), ","), "[]")
}

// stateLine says how a session ended that did not end by itself, and when it
// was gone on with.
func stateLine(s *record.Session) string {
	var parts []string
	if s.State != record.Complete {
		parts = append(parts, string(s.State)) // the verdict's reasons say why
	}
	for _, r := range s.Resumed {
		was := string(r.Was)
		if r.Was == record.Running {
			was = "killed" // nobody was left to write down more
		}
		parts = append(parts, fmt.Sprintf("gone on with at %s, after it was %s", r.At.UTC().Format("2006-01-02 15:04 UTC"), was))
	}
	return strings.Join(parts, ", ")
}

// detail is what the session has to show for its reason, line by line: the
// first says what the others are. Blank lines stay, as they part what is there.
func detail(s *record.Session) (lines []string) {
	if s.Detail == "" {
		return nil
	}
	for _, l := range strings.Split(strings.TrimRight(s.Detail, "\n"), "\n") {
		if l != "" {
			l = clean(l)
		}
		lines = append(lines, l)
	}
	return lines
}

// nothing stands in the place of the tables.
func nothing(s *record.Session) string {
	if len(s.Arms) == 1 {
		return "Nothing was compared."
	}
	return "Nothing was measured."
}

// silent says that nothing was measured that a table could show.
func silent(v *gates.Verdict) bool {
	return !slices.ContainsFunc(v.Comparisons, func(c gates.Comparison) bool { return c.Values != nil || c.Effect != nil })
}
