package build

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// sources is a workspace with a checkout of a small repository, and a path
// for the log in a folder that does not exist yet.
func sources(t *testing.T) (w *Workspace, src Source, log string) {
	t.Helper()
	s := newRepo(t)
	s.commit("deploy/greeting", "hello")
	w = s.open("deploy")
	return w, checkout(t, w, "main"), filepath.Join(t.TempDir(), "logs", "build.log")
}

func TestBuild(t *testing.T) {
	w, src, log := sources(t)
	t.Setenv("FROM_USER", "user")
	t.Setenv("BOTH", "user")
	env := map[string]string{"BOTH": "plan", "OUT": "not this"}
	command := `cp greeting "$OUT/" && echo "$FROM_USER $BOTH $PWD"; echo warning >&2`
	out, err := w.Build(context.Background(), "baseline", src, command, env, log)
	if err != nil {
		t.Fatal(err)
	}
	if got := read(t, out, "greeting"); got != "hello" {
		t.Errorf("got %q", got)
	}
	if got, want := read(t, log), "user plan "+src.Dir+"\nwarning\n"; got != want {
		t.Errorf("log %q, want %q", got, want)
	}
	again, err := w.Build(context.Background(), "baseline", src, command, env, log)
	if err != nil || again == out || len(again) != len(out) {
		t.Errorf("second build: %s after %s, %v", again, out, err)
	}
}

func TestBuildOfNothing(t *testing.T) {
	w, src, log := sources(t)
	out, err := w.Build(context.Background(), "baseline", src, "", nil, log)
	if out != "" || err != nil || isThere(log) {
		t.Errorf("got %q, %v", out, err)
	}
}

func TestBuildOfARefWithoutThePlansFolder(t *testing.T) {
	s := newRepo(t)
	s.commit("a", "a")
	s.commit("deploy/plan", "")
	w := s.open("deploy")
	src := checkout(t, w, "HEAD~1")
	out, err := w.Build(context.Background(), "baseline", src, `cp ../a "$OUT/"`, nil, filepath.Join(t.TempDir(), "log"))
	if err != nil || read(t, out, "a") != "a" {
		t.Error(err)
	}
}

func TestFailedBuilds(t *testing.T) {
	s := newRepo(t)
	s.commit("a", "a")
	s.git("branch", "plain")
	s.commit(".gitmodules", "[submodule \"x\"]\n\tpath = x\n\turl = ../x\n")
	w := s.open(".")
	plain, modules := checkout(t, w, "plain"), checkout(t, w, "main")
	log := filepath.Join(t.TempDir(), "build.log")

	var numbers strings.Builder
	for _, n := range strings.Fields("6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25") {
		numbers.WriteString("\n    line " + n)
	}
	for _, c := range []struct {
		name    string
		src     Source
		command string
		want    string
	}{
		{"status", plain, "echo why >&2; exit 3",
			"building candidate (plain): echo why >&2; exit 3: exit status 3\n    why\nlog: " + log},
		{"signal", plain, "kill -9 $$",
			"building candidate (plain): kill -9 $$: signal: killed\nlog: " + log},
		{"long log", plain, "for n in $(seq 25); do echo line $n; done; false",
			"building candidate (plain): for n in $(seq 25); do echo line $n; done; false: exit status 1" + numbers.String() + "\nlog: " + log},
		{"progress bar", plain, `printf '1%%\r50%%\r100%%\r\ndone\r\n'; false`,
			`building candidate (plain): printf '1%%\r50%%\r100%%\r\ndone\r\n'; false: exit status 1` + "\n    100%\n    done\nlog: " + log},
		{"empty", plain, "echo built",
			"building candidate (plain): echo built: ended well, but $OUT is empty\n    built\nlog: " + log +
				"\nhint: write what run needs to \"$OUT\", as in: go build -o \"$OUT/server\""},
		{"submodules", modules, "false",
			"building candidate (main): false: exit status 1\nlog: " + log +
				"\nhint: this revision has submodules, which are not checked out; begin the build command with: git submodule update --init --recursive &&"},
		{"no label", Source{Dir: plain.Dir}, "false", "building candidate: false: exit status 1\nlog: " + log},
	} {
		t.Run(c.name, func(t *testing.T) {
			out, err := w.Build(context.Background(), "candidate", c.src, c.command, nil, log)
			checkError(t, err, c.want)
			if out != "" {
				t.Errorf("out %q", out)
			}
		})
	}
}

// The hint about submodules must be one that works.
func TestSubmodulesAsTheHintSays(t *testing.T) {
	sub := newRepo(t)
	sub.commit("inner", "inner")
	s := newRepo(t)
	t.Setenv("GIT_ALLOW_PROTOCOL", "file") // the user's own setting, which builds keep
	s.git("submodule", "--quiet", "add", sub.dir, "lib")
	s.git("commit", "--quiet", "--message=with lib")
	before := s.state()
	w := s.open(".")
	src := checkout(t, w, "")
	if src.Dirty || isThere(src.Dir, "lib/inner") {
		t.Errorf("got %+v", src)
	}
	out, err := w.Build(context.Background(), "candidate", src,
		`git submodule update --init --recursive && cp lib/inner "$OUT/"`, nil, filepath.Join(t.TempDir(), "log"))
	if err != nil || read(t, out, "inner") != "inner" {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if after := s.state(); after != before {
		t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
}

func TestAVeryLongLineIsCut(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(path, []byte(strings.Repeat("é", 1<<20)+"x\nlast\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	lines := tail(path)
	if len(lines) != 2 || lines[1] != "last" || len(lines[0]) > tailBytes || !strings.HasPrefix(lines[0], "…é") {
		t.Errorf("%d lines, the first of %d bytes", len(lines), len(lines[0]))
	}
}

// fifo makes a named pipe. A process that holds its writing end is alive: the
// reader gets no end of file before the last of them is gone.
func fifo(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "alive")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestCancelStopsABuildAndItsChildren(t *testing.T) {
	for name, command := range map[string]string{
		"grandchild":                    `exec 3>"$ALIVE"; echo up >&3; sleep 1000 & wait`,
		"grandchild that ignores TERM":  `exec 3>"$ALIVE"; (trap "" TERM; echo up >&3; while :; do sleep 1; done) & wait`,
		"grandchild that outlives head": `exec 3>"$ALIVE"; (trap "sleep 0.1; exit" TERM; echo up >&3; while :; do sleep 0.01; done) & wait`,
	} {
		t.Run(name, func(t *testing.T) {
			w, src, log := sources(t)
			alive := fifo(t)
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			built := make(chan error, 1)
			go func() {
				_, err := w.Build(ctx, "candidate", src, command, map[string]string{"ALIVE": alive}, log)
				built <- err
			}()
			r, err := os.Open(alive)
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			if _, err := io.ReadFull(r, make([]byte, len("up\n"))); err != nil {
				t.Fatal(err)
			}
			cancel()
			err = <-built
			checkError(t, err, "building candidate (main): stopped: context canceled")
			if !errors.Is(err, context.Canceled) {
				t.Errorf("not a cancellation: %v", err)
			}
			if _, err := io.ReadAll(r); err != nil { // returns when nobody holds the pipe
				t.Fatal(err)
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			if isThere(w.root) {
				t.Errorf("%s is still there", w.root)
			}
		})
	}
}

func TestBuildLeavesNothingRunning(t *testing.T) {
	w, src, log := sources(t)
	alive := fifo(t)
	r, err := os.OpenFile(alive, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	command := `exec 3>"$ALIVE"; echo up >&3; sleep 1000 & touch "$OUT/server"`
	if _, err := w.Build(context.Background(), "candidate", src, command, map[string]string{"ALIVE": alive}, log); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(r); err != nil || string(got) != "up\n" {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestBuildAfterCancelStartsNothing(t *testing.T) {
	w, src, log := sources(t)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := w.Build(ctx, "candidate", src, `touch "$OUT/x" ran`, nil, log)
	if !errors.Is(err, context.Canceled) || isThere(src.Dir, "ran") {
		t.Errorf("got %v", err)
	}
}
