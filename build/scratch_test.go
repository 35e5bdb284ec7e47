package build

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// scratch is a repository that a test may do anything to. Its path has a
// space and a letter beyond ASCII, as users' paths do.
type scratch struct {
	t   *testing.T
	dir string
}

// isolate keeps the developer's git settings out of a test and gives it a
// temporary folder of its own, which it returns.
func isolate(t *testing.T) (tmp string) {
	t.Helper()
	tmp, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", tmp)
	t.Setenv("GIT_CONFIG_GLOBAL", "/dev/null")
	t.Setenv("GIT_CONFIG_NOSYSTEM", "1")
	return tmp
}

func newRepo(t *testing.T) scratch {
	t.Helper()
	isolate(t)
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s := scratch{t, filepath.Join(base, "dépôt of mine")}
	s.must("", "git", "init", "--quiet", "--initial-branch=main", s.dir)
	return s
}

// must runs a command as a user with a name would, in a folder of the repository.
func (s scratch) must(sub string, args ...string) string {
	s.t.Helper()
	cmd := exec.Command(args[0], args[1:]...)
	if sub != "" {
		cmd.Dir = filepath.Join(s.dir, sub)
	}
	cmd.Env = append(environ(), "GIT_AUTHOR_NAME=user", "GIT_AUTHOR_EMAIL=user@localhost",
		"GIT_COMMITTER_NAME=user", "GIT_COMMITTER_EMAIL=user@localhost", "GIT_OPTIONAL_LOCKS=0")
	out, err := cmd.CombinedOutput()
	if err != nil {
		s.t.Fatalf("%q: %v\n%s", args, err, out)
	}
	return strings.TrimSuffix(string(out), "\n")
}

func (s scratch) git(args ...string) string {
	s.t.Helper()
	return s.must(".", append([]string{"git"}, args...)...)
}

func (s scratch) write(name, content string) {
	s.t.Helper()
	path := filepath.Join(s.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		s.t.Fatal(err)
	}
}

// commit writes a file, commits everything and returns the commit.
func (s scratch) commit(name, content string) string {
	s.t.Helper()
	s.write(name, content)
	s.git("add", "--all")
	s.git("commit", "--quiet", "--message=change "+name)
	return s.git("rev-parse", "HEAD")
}

// state is everything of the user's that must be left alone, as text.
func (s scratch) state() string {
	s.t.Helper()
	var b strings.Builder
	for _, file := range []string{"index", "config", "HEAD", "logs/HEAD"} {
		data, err := os.ReadFile(filepath.Join(s.dir, ".git", file))
		if err != nil {
			s.t.Fatal(err)
		}
		fmt.Fprintf(&b, "%s: %q\n", file, data)
	}
	entries, err := os.ReadDir(filepath.Join(s.dir, ".git"))
	if err != nil {
		s.t.Fatal(err)
	}
	for _, e := range entries {
		b.WriteString(e.Name() + "\n")
	}
	for _, args := range [][]string{{"status", "--porcelain"}, {"for-each-ref"}, {"stash", "list"}, {"worktree", "list"}} {
		b.WriteString(s.git(args...) + "\n")
	}
	err = filepath.WalkDir(s.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.Name() == ".git" {
			return fs.SkipDir
		}
		info, err := d.Info()
		if err == nil {
			fmt.Fprintf(&b, "%q %v %d %v\n", path, info.Mode(), info.Size(), info.ModTime())
		}
		return err
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return b.String()
}

func (s scratch) open(sub string) *Workspace {
	s.t.Helper()
	return openAt(s.t, filepath.Join(s.dir, sub))
}

func openAt(t *testing.T, dir string) *Workspace {
	t.Helper()
	w, err := Open(context.Background(), dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

func checkout(t *testing.T, w *Workspace, ref string) Source {
	t.Helper()
	src, err := w.Checkout(context.Background(), ref)
	if err != nil {
		t.Fatal(err)
	}
	return src
}

func read(t *testing.T, path ...string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func isThere(path ...string) bool {
	_, err := os.Lstat(filepath.Join(path...))
	return err == nil
}

// checkError compares a whole error text: users see it.
func checkError(t *testing.T, err error, want string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, want:\n%s", want)
	}
	if err.Error() != want {
		t.Errorf("got error:\n%v\nwant:\n%s", err, want)
	}
}
