package monitor

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"plumbline/record"
)

// start runs a shell script and waits for its first line.
func start(t testing.TB, script string) (c *exec.Cmd, line string) {
	t.Helper()
	return started(t, exec.Command("sh", "-c", script))
}

func started(t testing.TB, c *exec.Cmd) (_ *exec.Cmd, line string) {
	t.Helper()
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { end(c) })
	line, err = bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return c, strings.TrimSpace(line)
}

func end(c *exec.Cmd) {
	_ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL)
	_ = c.Wait()
}

func open(t *testing.T, pid int, tree bool) *Process {
	t.Helper()
	p, err := Open(pid, tree)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// watch samples until the process ends.
func watch(t *testing.T, p *Process, interval time.Duration, row func(rows []record.Usage)) ([]record.Usage, End) {
	t.Helper()
	var rows []record.Usage
	end, err := p.Watch(t.Context(), interval, 0, func(u record.Usage) error {
		rows = append(rows, u)
		if row != nil {
			row(rows)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return rows, end
}

const burn = `burn() { i=0; while [ $i -lt $1 ]; do i=$((i+1)); done; }; `

// used is the CPU time that the rows come to.
func used(rows []record.Usage) time.Duration {
	s := 0.0
	for i := 1; i < len(rows); i++ {
		x, _ := rows[i].Get(record.CPUPercent)
		s += x / 100 * (rows[i].ElapsedS - rows[i-1].ElapsedS)
	}
	return time.Duration(s * float64(time.Second))
}

// The rows add up to what the kernel says at the end, but for what was used
// before the first row and after the last.
func TestWatchCountsTheCPU(t *testing.T) {
	for _, tt := range []struct {
		name, script string
		tree         bool
	}{
		{"one process", burn + "echo; burn 300000", false},
		{"children, one after the other", burn + "echo; for k in 1 2 3 4 5; do (burn 60000); done; :", true},
		{"children and grandchildren at once", burn + "echo; (burn 100000; (burn 100000); :) & burn 100000; wait", true},
	} {
		c, _ := start(t, tt.script)
		p := open(t, c.Process.Pid, tt.tree)
		before := treeTime(c.Process.Pid)
		rows, ended := watch(t, p, 20*time.Millisecond, nil)
		if ended != Ended {
			t.Errorf("%s: %q", tt.name, ended)
		}
		_ = c.Wait()
		all := c.ProcessState.SystemTime() + c.ProcessState.UserTime()
		got := used(rows)
		// The clock of rusage goes in ticks where the kernel counts so.
		if got > all-before+5*tick || got < (all-before)/4 {
			t.Errorf("%s: the rows come to %s, the kernel to %s (%s of them before the first row)", tt.name, got, all, before)
		}
		for i, u := range rows {
			x, known := u.Get(record.CPUPercent)
			if known != (i > 0) || x < 0 {
				t.Errorf("%s: row %d says %v %% (%v)", tt.name, i, x, known)
			}
		}
	}
}

func treeTime(pid int) time.Duration {
	own, _ := cpuTime(pid)
	return own
}

// Without the tree, what children use is not the process's.
func TestWatchLeavesChildrenOut(t *testing.T) {
	c, _ := start(t, burn+"echo; (burn 300000); :")
	rows, _ := watch(t, open(t, c.Process.Pid, false), 20*time.Millisecond, nil)
	_ = c.Wait()
	all := c.ProcessState.SystemTime() + c.ProcessState.UserTime()
	if got := used(rows); len(rows) < 3 || got > all/10 {
		t.Errorf("%d rows come to %s, but it is the child that used %s", len(rows), got, all)
	}
}

// A child whose parent ends is still of the tree.
func TestTreeKeepsOrphans(t *testing.T) {
	c, _ := start(t, `sh -c 'sleep 1000 & echo; wait' & wait`)
	p := open(t, c.Process.Pid, true)
	if u, end := p.sample(); end != "" || value(t, u, record.Threads) != 3 {
		t.Fatalf("%v %q, want three processes", u, end)
	}
	middle, err := childrenOf(c.Process.Pid)
	if err != nil || len(middle) != 1 {
		t.Fatalf("%v, %v", middle, err)
	}
	// Else the outer shell would wait for it, and end, too.
	if err := errors.Join(syscall.Kill(c.Process.Pid, syscall.SIGSTOP), syscall.Kill(middle[0], syscall.SIGKILL)); err != nil {
		t.Fatal(err)
	}
	for s, err := readStat(middle[0]); !s.ended; s, err = readStat(middle[0]) {
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Millisecond)
	}
	if u, end := p.sample(); end != "" || value(t, u, record.Threads) != 2 || value(t, u, record.RSSMiB) <= 0 {
		t.Errorf("%v %q, want the outer shell and the orphan", u, end)
	}
}

func value(t *testing.T, u record.Usage, q record.Quantity) float64 {
	t.Helper()
	x, known := u.Get(q)
	if !known {
		t.Errorf("%s is not known", q)
	}
	return x
}

// Levels and counters are the kernel's.
func TestSampleHasAllColumns(t *testing.T) {
	c, _ := start(t, `exec 7</dev/null 8</dev/null 9</dev/null; echo; while :; do read x </dev/null; done`)
	p := open(t, c.Process.Pid, false)
	first, _ := p.sample()
	fds := value(t, first, record.FDs)
	names, err := os.ReadDir("/proc/" + strconv.Itoa(c.Process.Pid) + "/fd")
	if err != nil {
		t.Fatal(err)
	}
	if fds < 6 || fds > float64(len(names))+1 {
		t.Errorf("%v descriptors, want about %d", fds, len(names))
	}
	rss, pss := value(t, first, record.RSSMiB), value(t, first, record.PSSMiB)
	if rss <= 0 || pss <= 0 || pss > rss || rss > 100 {
		t.Errorf("RSS %v, PSS %v MiB", rss, pss)
	}
	if n := value(t, first, record.Threads); n != 1 {
		t.Errorf("%v threads", n)
	}
	for _, q := range record.Quantities() {
		if x, known := first.Get(q); q.Kind() == record.Counter && known && x != 0 {
			t.Errorf("%s begins with %v", q, x)
		}
	}
	value(t, first, record.ReadBytes)
	value(t, first, record.CtxVoluntary)
}

func TestOpenRefuses(t *testing.T) {
	c, _ := start(t, "echo")
	for s, err := readStat(c.Process.Pid); err == nil && !s.ended; s, err = readStat(c.Process.Pid) {
		time.Sleep(time.Millisecond)
	}
	if _, err := Open(c.Process.Pid, false); !errors.Is(err, ErrNoProcess) { // it has ended, and nobody has waited for it
		t.Errorf("%v", err)
	}
	_ = c.Wait()
	if _, err := Open(c.Process.Pid, false); !errors.Is(err, ErrNoProcess) {
		t.Errorf("%v", err)
	}
}

// The number of a process that has ended is given to others: of them no row.
func TestReusedNumberIsNoticed(t *testing.T) {
	c, _ := start(t, "echo; sleep 1000")
	p := open(t, c.Process.Pid, false)
	if _, end := p.sample(); end != "" {
		t.Fatal(end)
	}
	p.start-- // as if it had begun at another time
	rows, end := watch(t, p, time.Hour, nil)
	if len(rows) != 0 || end != Reused {
		t.Errorf("%d rows, %q", len(rows), end)
	}
}

// missing fails in CI, and skips elsewhere.
func missing(t *testing.T, msg string) {
	t.Helper()
	if os.Getenv("CI") != "" {
		t.Fatal(msg)
	}
	t.Skip(msg)
}

// The same with a number that the kernel really gives again, which root can
// ask for.
func TestNumberGivenAgainIsNoticed(t *testing.T) {
	const lastPID = "/proc/sys/kernel/ns_last_pid"
	if f, err := os.OpenFile(lastPID, os.O_WRONLY, 0); err != nil {
		missing(t, fmt.Sprintf("choosing the number of a process takes root: %v; TestReusedNumberIsNoticed does without", err))
	} else {
		f.Close()
	}
	for range 200 { // others start processes, too
		c, _ := start(t, "echo; sleep 1000")
		p := open(t, c.Process.Pid, false)
		if _, ended := p.sample(); ended != "" {
			t.Fatal(ended)
		}
		end(c)
		time.Sleep(tick) // starts are told apart in ticks
		if err := os.WriteFile(lastPID, []byte(strconv.Itoa(c.Process.Pid-1)), 0); err != nil {
			t.Fatal(err)
		}
		again, _ := start(t, "echo; sleep 1000")
		if again.Process.Pid != c.Process.Pid {
			end(again)
			continue
		}
		if rows, ended := watch(t, p, time.Hour, nil); len(rows) != 0 || ended != Reused {
			t.Errorf("%d rows, %q", len(rows), ended)
		}
		return
	}
	t.Error("the kernel gave no number again")
}

// The end is noticed when it comes, not with the next row.
func TestWatchEnds(t *testing.T) {
	c, _ := start(t, "echo; sleep 1000")
	rows, ended := watch(t, open(t, c.Process.Pid, false), time.Hour, func([]record.Usage) { go end(c) })
	if len(rows) != 1 || ended != Ended {
		t.Errorf("%d rows, %q", len(rows), ended)
	}

	c, _ = start(t, "echo; sleep 1000")
	var rows2 []record.Usage
	ended, err := open(t, c.Process.Pid, false).Watch(t.Context(), 40*time.Millisecond, 100*time.Millisecond, func(u record.Usage) error {
		rows2 = append(rows2, u)
		return nil
	})
	if last := rows2[len(rows2)-1].ElapsedS; err != nil || ended != TimeUp || len(rows2) < 2 || last < 0.1 {
		t.Errorf("%q, %v, %d rows, the last at %v s", ended, err, len(rows2), last)
	}

	cause := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	_, err = open(t, c.Process.Pid, false).Watch(ctx, time.Hour, 0, func(record.Usage) error { cancel(cause); return nil })
	if !errors.Is(err, cause) {
		t.Errorf("%v", err)
	}
	_, err = open(t, c.Process.Pid, false).Watch(t.Context(), time.Hour, 0, func(record.Usage) error { return cause })
	if !errors.Is(err, cause) {
		t.Errorf("%v", err)
	}
}

func TestCheckNamesWhatItIs(t *testing.T) {
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		t.Fatal(err)
	}
	real, err := filepath.EvalSymlinks(sleep)
	if err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(t.TempDir(), "linked")
	if err := os.Symlink(sleep, link); err != nil {
		t.Fatal(err)
	}
	c, line := start(t, `sleep 1000 & echo $!; wait`)
	child, _ := strconv.Atoi(line)
	for s, _ := os.Readlink("/proc/" + line + "/exe"); s != real; s, _ = os.Readlink("/proc/" + line + "/exe") {
		time.Sleep(time.Millisecond) // the child is still a shell
	}
	for _, exe := range []string{sleep, real, link, filepath.Base(real)} {
		if err := open(t, child, false).Check(exe); err != nil {
			t.Errorf("%s: %v", exe, err)
		}
		err := open(t, c.Process.Pid, false).Check(exe)
		var wrong *ExeError
		if !errors.As(err, &wrong) || wrong.Child != child || !strings.Contains(err.Error(), "; its child "+line+" does") {
			t.Errorf("%s: %v, want one that names the child %s", exe, err, line)
		}
	}
	if err := open(t, c.Process.Pid, false).Check("nginx-of-nowhere"); err == nil || !strings.HasSuffix(err.Error(), ", not nginx-of-nowhere; none of its children does") {
		t.Errorf("%v", err)
	}
	if err := open(t, child, false).Check("/nowhere/sleep"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v", err)
	}
}

// A process that its quota makes wait: by whatever version of cgroups has the
// CPU here, if one may be made.
func TestSampleSeesAQuota(t *testing.T) {
	own, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		t.Fatal(err)
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	top, path, ok := cpuCgroup(string(own), string(mounts))
	dir := filepath.Join(top, path, "plumbline-test-"+strconv.Itoa(os.Getpid()))
	if ok {
		err = os.Mkdir(dir, 0o755)
	}
	if !ok || err != nil {
		missing(t, fmt.Sprintf("no cgroup for the CPU can be made here (%v); TestThrottleOf reads recorded ones", err))
	}
	t.Cleanup(func() { // once the process is gone, after a moment
		for os.Remove(dir) != nil {
			time.Sleep(time.Millisecond)
		}
	})
	err = os.WriteFile(filepath.Join(dir, "cpu.max"), []byte("5000 100000"), 0)
	if err != nil {
		err = os.WriteFile(filepath.Join(dir, "cpu.cfs_quota_us"), []byte("5000"), 0)
	}
	if err != nil {
		missing(t, fmt.Sprintf("no quota can be set here: %v; TestThrottleOf reads recorded ones", err))
	}
	c, _ := start(t, "echo; while :; do :; done")
	if err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(c.Process.Pid)), 0); err != nil {
		t.Fatal(err)
	}
	rows, _ := watch(t, open(t, c.Process.Pid, false), 100*time.Millisecond, func(rows []record.Usage) {
		if x, _ := rows[len(rows)-1].Get(record.ThrottledPeriods); x >= 3 {
			_ = c.Process.Kill()
		}
	})
	last := rows[len(rows)-1]
	periods, throttled, seconds := value(t, last, record.Periods), value(t, last, record.ThrottledPeriods), value(t, last, record.ThrottledS)
	if throttled < 3 || periods < throttled || seconds <= 0 {
		t.Errorf("%v periods, %v throttled, for %v s", periods, throttled, seconds)
	}
}
