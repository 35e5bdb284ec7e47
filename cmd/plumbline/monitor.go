package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"plumbline/monitor"
	"plumbline/record"
)

func newMonitor() *cobra.Command {
	var f monitorFlags
	c := &cobra.Command{
		Use:   "monitor PID",
		Short: "Sample what a process uses, as CSV, until it ends",
		Long: `Writes a row at once and then one every --interval: CPU in percent of one CPU
over the time since the row before, memory, threads, descriptors, and, counted
from the first row on, context switches, bytes read from and written to storage,
and what the CPU quota of its cgroup took away (periods, throttled_periods,
throttled_s). elapsed_s is since the first row, by a clock that nobody can set.

What cannot be read is blank, never 0; a moment that was missed has no row.
What the kernel has to search for (pss_mib, fds, the context switches of all
threads, the tree of --children) is read so seldom that each costs at most 0.1 %
of one CPU, and is blank between. pss_mib counts memory that processes share in
parts; rss_mib counts it for each of them.

It ends with the process, after --for, or with Ctrl-C. Each row is written at
once and whole, so that nothing but the end is missing from the file of a
monitor that was killed. "plumbline merge" puts files side by side.`,
		Example: `  plumbline monitor 4711 -o main.csv
  plumbline monitor 4711 --for 30s --interval 500ms > main.csv
  plumbline monitor "$(pgrep --oldest nginx)" --children --exe nginx -o nginx.csv`,
		Args: args(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, a []string) error {
			pid, err := parsePID(a[0])
			if err == nil {
				err = f.check(c)
			}
			if err != nil {
				return usage(err)
			}
			return f.run(c, pid)
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	flags := c.Flags()
	flags.StringVarP(&f.out, "out", "o", "", "write to this `file` instead of stdout")
	flags.BoolVar(&f.force, "force", false, "write over a file of an earlier monitor")
	flags.DurationVar(&f.interval, "interval", time.Second, "time from row to row, "+leastInterval.String()+" or more")
	flags.DurationVar(&f.total, "for", 0, "end after this time (default: when the process ends)")
	flags.BoolVar(&f.children, "children", false, "sum the process and all that it has started")
	flags.StringVar(&f.exe, "exe", "", "refuse a process that runs another program than `PATH`, or the name of a file; of a script it is the interpreter")
	_ = c.MarkFlagFilename("out", "csv")
	return c
}

const leastInterval = 10 * time.Millisecond

type monitorFlags struct {
	out, exe        string
	force, children bool
	interval, total time.Duration
}

func parsePID(s string) (int, error) {
	if s == "" {
		return 0, errors.New("the PID is empty; is a variable not set?")
	}
	pid, err := strconv.ParseInt(s, 10, 32)
	if err != nil || pid <= 0 || s[0] == '+' {
		return 0, fmt.Errorf("%q is no PID: want the number of a process; pgrep finds it by name", s)
	}
	return int(pid), nil
}

func (f *monitorFlags) check(c *cobra.Command) error {
	given := c.Flags().Changed
	switch {
	case f.interval < leastInterval:
		return fmt.Errorf("--interval: %s is too short, want %s or more", f.interval, leastInterval)
	case given("for") && f.total <= 0:
		return fmt.Errorf("--for: %s is no time to sample for", f.total)
	case given("out") && f.out == "":
		return errors.New("--out: names no file; is a variable not set?")
	case given("exe") && f.exe == "":
		return errors.New("--exe: names no program; is a variable not set?")
	case f.force && f.out == "":
		return errors.New("--force goes with --out")
	}
	return nil
}

func (f *monitorFlags) run(c *cobra.Command, pid int) error {
	p, err := monitor.Open(pid, f.children)
	if errors.Is(err, monitor.ErrNoProcess) {
		return usage(err)
	}
	if err != nil {
		return err
	}
	if f.exe != "" {
		if err := p.Check(f.exe); err != nil {
			return usage(fmt.Errorf("--exe: %w", err))
		}
	}
	out := c.OutOrStdout()
	if f.out != "" {
		file, err := openUsage(f.out, f.force)
		if err != nil {
			return err
		}
		defer file.Close()
		out = file
	}
	return f.watch(c.Context(), p, pid, out, c.ErrOrStderr())
}

// watch writes rows until the end, and says what they come to.
func (f *monitorFlags) watch(ctx context.Context, p *monitor.Process, pid int, out, talk io.Writer) error {
	w, err := record.NewUsageWriter(out)
	if err != nil {
		return err
	}
	var sum usageSum
	end, err := p.Watch(ctx, f.interval, f.total, func(u record.Usage) error {
		if sum.samples == 0 {
			warnDenied(talk, p)
		}
		sum.add(u)
		return w.Write(u)
	})
	why := string(end)
	var sig *signalError
	if errors.As(err, &sig) {
		why = sig.Error()
	}
	if why != "" {
		fmt.Fprintf(talk, "process %d: %s; %s\n", pid, why, &sum)
	}
	return err
}

func warnDenied(talk io.Writer, p *monitor.Process) {
	if denied := p.Denied(); len(denied) > 0 {
		var names []string
		for _, q := range denied {
			names = append(names, q.String())
		}
		fmt.Fprintf(talk, "warning: of another user's process these are not readable, and stay blank: %s\n", strings.Join(names, ", "))
	}
}

// openUsage makes the file, or with force takes one that an earlier monitor has
// made. Nobody else writes it meanwhile.
func openUsage(path string, force bool) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	old := errors.Is(err, fs.ErrExist)
	switch {
	case old && !force:
		return nil, usage(fmt.Errorf("%s exists; name another file, or write over a monitor's with --force", path))
	case old:
		file, err = os.OpenFile(path, os.O_RDWR, 0)
	}
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB); errors.Is(err, unix.EWOULDBLOCK) {
		file.Close()
		return nil, usage(fmt.Errorf("%s is being written by another monitor", path))
	}
	if !old {
		return file, nil
	}
	line, _ := bufio.NewReader(file).ReadString('\n')
	if line != "" && strings.TrimSuffix(line, "\n") != record.UsageHeader() {
		file.Close()
		return nil, usage(fmt.Errorf("%s is no file of plumbline monitor, so it is not ours to write over", path))
	}
	if err = file.Truncate(0); err == nil {
		_, err = file.Seek(0, io.SeekStart)
	}
	if err != nil {
		file.Close()
		return nil, fmt.Errorf("writing over %s: %w", filepath.Clean(path), err)
	}
	return file, nil
}

// usageSum is the line at the end.
type usageSum struct {
	samples            int
	elapsed, rated     float64 // s; the second is that for which the CPU is known
	cpu, most          float64
	memory, mostMemory float64
	memories           int
}

func (s *usageSum) add(u record.Usage) {
	if x, known := u.Get(record.CPUPercent); known {
		s.cpu += x * (u.ElapsedS - s.elapsed)
		s.rated += u.ElapsedS - s.elapsed
		s.most = max(s.most, x)
	}
	if x, known := u.Get(record.RSSMiB); known {
		s.memory += x
		s.mostMemory = max(s.mostMemory, x)
		s.memories++
	}
	s.samples++
	s.elapsed = u.ElapsedS
}

func (s *usageSum) String() string {
	text := fmt.Sprintf("%s in %.1f s", numbered(s.samples, "sample"), s.elapsed)
	if s.rated > 0 {
		text += fmt.Sprintf(", CPU mean %.1f %%, max %.1f %%", s.cpu/s.rated, s.most)
	}
	if s.memories > 0 {
		text += fmt.Sprintf(", RSS mean %.1f MiB, max %.1f MiB", s.memory/float64(s.memories), s.mostMemory)
	}
	return text
}
