package build

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// holdEnv makes the test binary a session: it checks out main of the
// repository the variable names, says where, and lives until it is killed.
const holdEnv = "PLUMBLINE_TEST_HOLD"

func TestMain(m *testing.M) {
	if dir := os.Getenv(holdEnv); dir != "" {
		w, err := Open(context.Background(), dir)
		if err == nil {
			_, err = w.Checkout(context.Background(), "main")
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		fmt.Println(w.root)
		_, _ = io.Copy(io.Discard, os.Stdin) // ends when the test does
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// hold starts such a session and returns its folder and what kills it.
func hold(t *testing.T, dir string) (root string, kill func()) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), holdEnv+"="+dir)
	cmd.Stderr = os.Stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	kill = sync.OnceFunc(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	t.Cleanup(kill)
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(line), kill
}

func TestCloseRemovesEverything(t *testing.T) {
	s := newRepo(t)
	s.commit("a", "a")
	s.write("a", "b")
	before := s.state()
	ctx, cancel := context.WithCancel(context.Background())
	w, err := Open(ctx, s.dir)
	if err != nil {
		t.Fatal(err)
	}
	one, err := w.Checkout(ctx, "")
	if err != nil {
		t.Fatal(err)
	}
	two, err := w.Checkout(ctx, "main")
	if err != nil {
		t.Fatal(err)
	}
	// What builds do: read-only module caches, generated files, even a lost .git.
	command := `mkdir -p "$OUT/mod/x" gen && touch "$OUT/mod/x/f" gen/f && chmod -R a-w "$OUT/mod" gen && rm .git`
	if _, err := w.Build(ctx, "candidate", one, command, nil, filepath.Join(t.TempDir(), "log")); err != nil {
		t.Fatal(err)
	}
	s.git("worktree", "lock", two.Dir)
	cancel()
	for range 2 {
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if isThere(w.root) || isThere(s.dir, ".git/worktrees") {
		t.Error("something is left")
	}
	if after := s.state(); after != before {
		t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
	if _, err := w.Checkout(context.Background(), "main"); err == nil || err.Error() != "checking out main: the workspace is closed" {
		t.Errorf("checkout after close: %v", err)
	}
	if _, err := w.Build(context.Background(), "a", two, "true", nil, "log"); err == nil || err.Error() != "building a (main): the workspace is closed" {
		t.Errorf("build after close: %v", err)
	}
}

// Deleting works for root whatever the modes, so the modes are looked at.
func TestReadOnlyFoldersAreMadeWritable(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a")
	elsewhere := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "b"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(elsewhere, filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	for _, d := range []string{filepath.Join(dir, "b"), dir, elsewhere} {
		if err := os.Chmod(d, 0o500); err != nil {
			t.Fatal(err)
		}
	}
	defer os.Chmod(elsewhere, 0o700)
	makeWritable(dir)
	for d, want := range map[string]os.FileMode{dir: 0o700, filepath.Join(dir, "b"): 0o700, elsewhere: 0o500} {
		info, err := os.Stat(d)
		if err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v %v, want %v", d, info.Mode(), err, want)
		}
	}
}

func TestCloseAfterTheRepositoryIsGone(t *testing.T) {
	s := newRepo(t)
	s.commit("a", "a")
	w := s.open(".")
	checkout(t, w, "main")
	if err := os.RemoveAll(s.dir); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil || isThere(w.root) {
		t.Error(err)
	}
}

// A worktree of the user's whose folder is away, on a disk that is not
// plugged in, must keep its record: `git worktree prune` would drop it.
func TestCloseKeepsTheUsersRecords(t *testing.T) {
	s := newRepo(t)
	s.commit("a", "a")
	away := filepath.Join(t.TempDir(), "away")
	s.git("worktree", "add", "--quiet", "-b", "side", away)
	if err := os.RemoveAll(away); err != nil {
		t.Fatal(err)
	}
	before := s.git("worktree", "list")
	w := s.open(".")
	checkout(t, w, "main")
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if after := s.git("worktree", "list"); after != before {
		t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
}

func TestOpenAfterCancelLeavesNothing(t *testing.T) {
	s := newRepo(t)
	s.commit("a", "a")
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Open(ctx, s.dir); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if left, err := os.ReadDir(os.Getenv("TMPDIR")); err != nil || len(left) > 0 {
		t.Errorf("left %v, %v", left, err)
	}
}

// Ctrl-C in the middle of a checkout: a filter holds git up there.
func TestCancelledCheckoutLeavesNothing(t *testing.T) {
	s := newRepo(t)
	s.write(".gitattributes", "slow filter=slow\n")
	s.commit("slow", "slow")
	alive := fifo(t)
	s.git("config", "filter.slow.smudge", "echo up >'"+alive+"'; sleep 1000")
	before := s.git("worktree", "list")
	ctx, cancel := context.WithCancel(context.Background())
	w := s.open(".")
	go func() {
		read, err := os.Open(alive) // opens when the filter runs
		if err == nil {
			read.Close()
		}
		cancel()
	}()
	_, err := w.Checkout(ctx, "main")
	checkError(t, err, "checking out main: context canceled")
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if after := s.git("worktree", "list"); after != before || isThere(w.root) {
		t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
	// Git itself leaves the folder of its records, but no record.
	if left, err := os.ReadDir(filepath.Join(s.dir, ".git/worktrees")); len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

func TestSessionsDoNotDisturbOneAnother(t *testing.T) {
	s := newRepo(t)
	s.commit("which", "main")
	s.git("branch", "side")
	s.write("which", "edited")
	var sessions sync.WaitGroup
	for range 4 {
		sessions.Go(func() {
			for range 4 {
				w, err := Open(context.Background(), s.dir)
				if err != nil {
					t.Error(err)
					return
				}
				for _, ref := range []string{"side", ""} {
					src, err := w.Checkout(context.Background(), ref)
					if err != nil {
						t.Error(err)
					} else if data, err := os.ReadFile(filepath.Join(src.Dir, "which")); err != nil || string(data) != map[string]string{"side": "main", "": "edited"}[ref] {
						t.Errorf("%q: %q, %v", ref, data, err)
					}
				}
				if err := w.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	sessions.Wait()
	if isThere(s.dir, ".git/worktrees") {
		t.Error("worktrees are left")
	}
}

func TestLeftoversOfAKilledSessionGo(t *testing.T) {
	s := newRepo(t)
	s.commit("a", "a")
	dead, kill := hold(t, s.dir)
	living, _ := hold(t, s.dir)
	user := filepath.Join(t.TempDir(), "plumbline-fix", "plumbline-fix-1") // looks like ours, but has no lock
	s.git("worktree", "add", "--quiet", "-b", "fix", user)
	kill()
	s.open(".")

	list := s.git("worktree", "list")
	if isThere(dead) || strings.Contains(list, dead) {
		t.Errorf("the dead session's %s is left:\n%s", dead, list)
	}
	for _, dir := range []string{living, user} {
		if !isThere(dir) || !strings.Contains(list, dir) {
			t.Errorf("%s was removed:\n%s", dir, list)
		}
	}
	if !isThere(living, filepath.Base(living)+"-01", "a") {
		t.Error("the living session lost its files")
	}
}

// After a reboot the temporary folder is empty and only git's records stay.
func TestRecordsOfLostFoldersGoAfterADay(t *testing.T) {
	s := newRepo(t)
	s.commit("a", "a")
	var roots []string
	for range 2 {
		root, kill := hold(t, s.dir)
		kill()
		roots = append(roots, root)
		if err := os.Rename(root, root+".away"); err != nil { // so that the next one does not sweep it
			t.Fatal(err)
		}
	}
	old := time.Now().Add(-25 * time.Hour)
	if err := os.Chtimes(filepath.Join(s.dir, ".git/worktrees", filepath.Base(roots[0])+"-01", "gitdir"), old, old); err != nil {
		t.Fatal(err)
	}
	s.open(".")
	list := strings.Fields(s.git("worktree", "list"))
	has := func(root string) bool { return slices.Contains(list, filepath.Join(root, filepath.Base(root)+"-01")) }
	if has(roots[0]) || !has(roots[1]) {
		t.Errorf("old, new: %s\ngot %s", roots, list)
	}
}
