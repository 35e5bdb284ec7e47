package main

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"plumbline/gates"
	"plumbline/session/router"
)

// The stories in testdata/script run plumbline as people do: a process with
// arguments, an exit code and two streams. Beside testscript's own commands
// they know those of storyCommands; the server that they weigh is in
// router_test.go.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"plumbline": main, "router": routerMain})
}

func TestStories(t *testing.T) {
	cache, err := exec.Command("go", "env", "GOCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	testscript.RunT(inOrder{t}, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		UpdateScripts:       os.Getenv("UPDATE") != "",
		Cmds:                storyCommands(),
		Condition: func(name string) (bool, error) {
			switch name {
			case "root": // who may write everywhere
				return os.Geteuid() == 0, nil
			case "clock": // a server whose clock can be moved
				return canMoveClocks(), nil
			case "ci": // where every server is there
				return os.Getenv("CI") != "", nil
			}
			return false, fmt.Errorf("unknown condition %q", name)
		},
		Setup: func(e *testscript.Env) error {
			// Short, because the path of a unix socket is; of this story alone,
			// so that what is left behind can be seen, by its name also in the
			// environment of every process that the story has started.
			temp, err := os.MkdirTemp("", "story")
			if err != nil {
				return err
			}
			e.Defer(func() { os.RemoveAll(temp) })
			e.Vars = append(e.Vars, "TMPDIR="+temp, "HOME="+e.WorkDir,
				"GOCACHE="+strings.TrimSpace(string(cache)), "GOPATH="+filepath.Join(temp, "go"), "GOPROXY=off", "GOTOOLCHAIN=local", "GOFLAGS=",
				"GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1",
				"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@localhost", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@localhost")
			e.Values[signalled{}] = &[]*exec.Cmd{}
			e.Values[storyBegun{}] = time.Now()
			return nil
		},
	})
}

// canMoveClocks: in CI it must, and a story fails where it does not.
func canMoveClocks() bool {
	node, err := exec.LookPath("node")
	if err == nil {
		_, err = router.FindClockLibrary(node, "")
	}
	return err == nil || os.Getenv("CI") != ""
}

// inOrder runs the stories one after the other: they measure.
type inOrder struct{ *testing.T }

func (t inOrder) Parallel() {}
func (t inOrder) Run(name string, f func(testscript.T)) {
	t.T.Run(name, func(t *testing.T) { f(inOrder{t}) })
}
func (t inOrder) Verbose() bool { return testing.Verbose() }

// signalled is the key of the processes that got a signal.
type signalled struct{}

// storyBegun is the key of the moment at which a story began.
type storyBegun struct{}

func storyCommands() map[string]func(ts *testscript.TestScript, neg bool, args []string) {
	commands := map[string]func(ts *testscript.TestScript, neg bool, args []string){
		"exits":        exits,
		"commit":       commit,
		"await":        await,
		"signal":       sendSignal,
		"ended":        ended,
		"kill-process": killProcess,
		"as-nobody":    asNobody,
		"take-port":    takePort,
		"tiny-disk":    tinyDisk,
		"nothing-left": nothingLeft,
		"results":      writeResults,
		"verdict":      verdictIs,
		"row":          rowIs,
	}
	for name, run := range commands {
		commands[name] = func(ts *testscript.TestScript, neg bool, args []string) {
			if neg && name != "verdict" && name != "row" {
				ts.Fatalf("unsupported: ! %s", name)
			}
			run(ts, neg, args)
		}
	}
	return commands
}

// exits CODE[|CODE...] PROGRAM ARGS...: it ends with one of these codes.
func exits(ts *testscript.TestScript, _ bool, args []string) {
	err := ts.Exec(args[1], args[2:]...)
	var exit *exec.ExitError
	code := 0
	if errors.As(err, &exit) {
		code = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if !slices.Contains(strings.Split(args[0], "|"), fmt.Sprint(code)) {
		ts.Fatalf("%s ended with %d, want %s", args[1], code, args[0])
	}
}

// commit MESSAGE: everything in the current folder, in a repository of its own.
func commit(ts *testscript.TestScript, _ bool, args []string) {
	if _, err := os.Stat(ts.MkAbs(".git")); err != nil {
		ts.Check(ts.Exec("git", "init", "-q", "-b", "main"))
	}
	ts.Check(ts.Exec("git", "add", "--all"))
	ts.Check(ts.Exec("git", "commit", "-q", "--message", args[0]))
}

// patience is for what happens sooner or later. Nothing is asserted about when.
const patience = 30 * time.Second

// await FILE-PATTERN [REGEXP]: a file that matches is there (and holds a line
// that matches).
func await(ts *testscript.TestScript, _ bool, args []string) {
	want, err := regexp.Compile("(?m)" + strings.Join(args[1:], ""))
	ts.Check(err)
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		files, err := filepath.Glob(ts.MkAbs(args[0]))
		ts.Check(err)
		for _, f := range files {
			if data, err := os.ReadFile(f); len(args) == 1 || err == nil && want.Match(data) {
				return
			}
		}
	}
	ts.Fatalf("no file %s within %s", strings.Join(args, " with "), patience)
}

// signal NAME: to all that runs in the background.
func sendSignal(ts *testscript.TestScript, _ bool, args []string) {
	number, ok := map[string]syscall.Signal{"INT": syscall.SIGINT, "TERM": syscall.SIGTERM, "HUP": syscall.SIGHUP, "KILL": syscall.SIGKILL}[args[0]]
	if !ok {
		ts.Fatalf("unknown signal %s", args[0])
	}
	all := ts.Value(signalled{}).(*[]*exec.Cmd)
	*all = ts.BackgroundCmds()
	for _, c := range *all {
		ts.Check(c.Process.Signal(number))
	}
}

// ended CODE: so did, by the time of this, what was sent a signal; after `wait`.
func ended(ts *testscript.TestScript, _ bool, args []string) {
	all := *ts.Value(signalled{}).(*[]*exec.Cmd)
	if len(all) == 0 {
		ts.Fatalf("nothing was sent a signal")
	}
	for _, c := range all {
		if code := fmt.Sprint(c.ProcessState.ExitCode()); code != args[0] {
			ts.Fatalf("%s ended with %s (%s), want %s", c.Args[0], code, c.ProcessState, args[0])
		}
	}
}

// take-port VARIABLE: a port of 127.0.0.1 on which somebody listens.
func takePort(ts *testscript.TestScript, _ bool, args []string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	ts.Check(err)
	ts.Defer(func() { l.Close() })
	_, port, err := net.SplitHostPort(l.Addr().String())
	ts.Check(err)
	ts.Setenv(args[0], port)
}

// tiny-disk FOLDER SIZE: a file system of its own that is soon full; as root.
func tinyDisk(ts *testscript.TestScript, _ bool, args []string) {
	dir := ts.MkAbs(args[0])
	ts.Check(os.MkdirAll(dir, 0o755))
	ts.Check(ts.Exec("mount", "-t", "tmpfs", "-o", "size="+args[1], "none", dir))
	ts.Defer(func() { _ = exec.Command("umount", "--lazy", dir).Run() })
}

// kill-process REGEXP: every process of this story whose command line matches.
func killProcess(ts *testscript.TestScript, _ bool, args []string) {
	want, err := regexp.Compile(args[0])
	ts.Check(err)
	found := false
	for _, p := range processesOf(ts.Getenv("TMPDIR")) {
		number, cmdline, _ := strings.Cut(p, " ")
		if pid, err := strconv.Atoi(number); err == nil && want.MatchString(cmdline) {
			ts.Check(syscall.Kill(pid, syscall.SIGKILL))
			found = true
		}
	}
	if !found {
		ts.Fatalf("no process matches %s; there are: %s", args[0], strings.Join(processesOf(ts.Getenv("TMPDIR")), ", "))
	}
}

// as-nobody: gives the story's files to an ordinary user, and puts the
// programs where that user can reach them.
func asNobody(ts *testscript.TestScript, _ bool, _ []string) {
	const nobody = 65534
	bin := ts.MkAbs("bin")
	ts.Check(os.Mkdir(bin, 0o755))
	for _, name := range []string{"plumbline", "router"} {
		path, err := exec.LookPath(name)
		ts.Check(err)
		data, err := os.ReadFile(path)
		ts.Check(err)
		ts.Check(os.WriteFile(filepath.Join(bin, name), data, 0o755))
	}
	ts.Setenv("PATH", bin+string(filepath.ListSeparator)+ts.Getenv("PATH"))
	for _, dir := range []string{ts.Getenv("WORK"), ts.Getenv("TMPDIR")} {
		ts.Check(filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
			return errors.Join(err, os.Lchown(path, nobody, nobody))
		}))
	}
	ts.Check(os.Chmod(filepath.Dir(ts.Getenv("WORK")), 0o755))
}

// nothing-left [processes|temp|worktrees|clocks|cgroups...]: no process of this
// story runs, its folder for temporary files is empty, git knows only the
// user's own worktree, libfaketime has left nothing, and there is no cgroup of
// what was sent a signal. Without arguments all of them. Immediately: `wait` returns when nobody holds the
// story's stderr any more, and a guard does as long as it works.
func nothingLeft(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) == 0 {
		args = []string{"processes", "temp", "worktrees", "clocks", "cgroups"}
	}
	for _, what := range args {
		var left []string
		switch what {
		case "processes":
			left = processesOf(ts.Getenv("TMPDIR"))
			// Who was killed a moment ago may still be listed.
			for end := time.Now().Add(2 * time.Second); len(left) > 0 && time.Now().Before(end); left = processesOf(ts.Getenv("TMPDIR")) {
				time.Sleep(10 * time.Millisecond)
			}
		case "temp":
			ts.Check(filepath.WalkDir(ts.Getenv("TMPDIR"), func(path string, _ os.DirEntry, err error) error {
				if path != ts.Getenv("TMPDIR") {
					left = append(left, path)
				}
				return err
			}))
		case "worktrees":
			if _, err := os.Stat(ts.MkAbs(".git")); err != nil {
				ts.Fatalf("worktrees: run this at the top of the repository")
			}
			known, err := filepath.Glob(ts.MkAbs(".git/worktrees/*"))
			ts.Check(err)
			left = known
		case "clocks":
			left = clocksOfTheDead(ts)
		case "cgroups":
			for _, c := range *ts.Value(signalled{}).(*[]*exec.Cmd) {
				left = append(left, cgroupsOf(c.Process.Pid)...)
			}
		default:
			ts.Fatalf("what is %q?", what)
		}
		if len(left) > 0 {
			ts.Fatalf("left behind: %s: %s", what, strings.Join(left, ", "))
		}
	}
}

// clocksOfTheDead lists what libfaketime has made since the story began, for
// processes that do not run any more.
func clocksOfTheDead(ts *testscript.TestScript) (found []string) {
	begun := ts.Value(storyBegun{}).(time.Time)
	all, _ := filepath.Glob("/dev/shm/*faketime_s*")
	for _, path := range all {
		pid := path[strings.LastIndexByte(path, '_')+1:]
		cmdline, _ := os.ReadFile("/proc/" + pid + "/cmdline") // empty: it is dead, if not yet waited for
		info, err := os.Stat(path)
		if len(cmdline) == 0 && err == nil && info.ModTime().After(begun) {
			found = append(found, path)
		}
	}
	return found
}

// cgroupsOf lists the cgroups that a plumbline has made.
func cgroupsOf(pid int) (found []string) {
	mounts, _ := os.ReadFile("/proc/self/mounts")
	for line := range strings.Lines(string(mounts)) {
		if f := strings.Fields(line); len(f) > 2 && f[2] == "cgroup2" {
			_ = filepath.WalkDir(f[1], func(path string, d os.DirEntry, err error) error {
				if err == nil && d.IsDir() && strings.HasPrefix(d.Name(), fmt.Sprintf("plumbline-%d-", pid)) {
					found = append(found, path)
				}
				return nil
			})
		}
	}
	return found
}

// processesOf lists the processes that were started with a TMPDIR.
func processesOf(temp string) (found []string) {
	all, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, path := range all {
		environ, err := os.ReadFile(path)
		if err == nil && slices.ContainsFunc(bytes.Split(environ, []byte{0}), func(v []byte) bool { return string(v) == "TMPDIR="+temp }) {
			cmdline, _ := os.ReadFile(filepath.Join(filepath.Dir(path), "cmdline"))
			found = append(found, filepath.Base(filepath.Dir(path))+" "+strings.ReplaceAll(string(cmdline), "\x00", " "))
		}
	}
	return found
}

func readVerdictFile(ts *testscript.TestScript, file string) *gates.Verdict {
	v, err := gates.ReadVerdict([]byte(ts.ReadFile(file)))
	ts.Check(err)
	return v
}

// [!] verdict FILE VERDICT...: it is one of these; FILE may be stdout. "aa" and
// "incomplete" are words for those properties.
func verdictIs(ts *testscript.TestScript, neg bool, args []string) {
	v := readVerdictFile(ts, args[0])
	is := []string{string(v.Verdict)}
	if v.AA {
		is = append(is, "aa")
	}
	if !v.Complete {
		is = append(is, "incomplete")
	}
	if slices.ContainsFunc(args[1:], func(want string) bool { return slices.Contains(is, want) }) == neg {
		ts.Fatalf("%s: the verdict is %s, because: %s", args[0], strings.Join(is, ", "), strings.Join(v.Reasons, " "))
	}
}

// [!] row FILE ROUTE METRIC BASELINE VERDICT [REASON]: so one metric of one
// route was judged against one baseline, and a reason holds that text.
func rowIs(ts *testscript.TestScript, neg bool, args []string) {
	for _, c := range readVerdictFile(ts, args[0]).Comparisons {
		if c.Route != args[1] || string(c.Metric) != args[2] || c.Arms[0] != args[3] {
			continue
		}
		reasons := strings.Join(c.Reasons, "; ")
		good := string(c.Verdict) == args[4] && (len(args) < 6 || strings.Contains(reasons, args[5]))
		if good == neg {
			ts.Fatalf("%s: %s of %s is %s (%s)", args[0], args[2], args[1], c.Verdict, reasons)
		}
		return
	}
	ts.Fatalf("%s: no row for %s of %s against %s", args[0], args[2], args[1], args[3])
}
