package build

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestCheckoutFindsEveryKindOfRef(t *testing.T) {
	s := newRepo(t)
	one := s.commit("deploy/which", "one")
	s.git("tag", "light")
	two := s.commit("deploy/which", "two")
	s.git("tag", "--annotate", "--message=release", "v1.0")
	s.git("branch", "a/x")
	s.git("branch", "b/x", one)
	three := s.commit("deploy/which", "three")
	s.git("update-ref", "refs/remotes/origin/far/away", two)
	s.git("update-ref", "refs/remotes/origin/trunk", two) // no local branch of this name
	s.git("update-ref", "refs/remotes/origin/main", one)  // a local one wins

	w := s.open("deploy")
	dirs := map[string]string{}
	for _, c := range []struct{ ref, commit, content string }{
		{"main", three, "three"},
		{"main", three, "three"}, // the same again gets its own folder
		{"HEAD", three, "three"},
		{"HEAD~2", one, "one"},
		{"a/x", two, "two"},
		{"b/x", one, "one"},
		{"light", one, "one"},
		{"v1.0", two, "two"},
		{"origin/far/away", two, "two"},
		{"trunk", two, "two"},
		{one[:9], one, "one"},
		{three, three, "three"},
	} {
		src := checkout(t, w, c.ref)
		if src.Ref != c.ref || src.Label != c.ref || src.Commit != c.commit || src.Dirty || src.Untracked != nil {
			t.Errorf("%s: got %+v, want commit %s", c.ref, src, c.commit)
		}
		if want := s.git("rev-parse", c.commit+"^{tree}"); src.Tree != want {
			t.Errorf("%s: tree %s, want %s", c.ref, src.Tree, want)
		}
		if got := read(t, src.Dir, "which"); got != c.content {
			t.Errorf("%s: content %q, want %q", c.ref, got, c.content)
		}
		if other, taken := dirs[src.Dir]; taken {
			t.Errorf("%s and %s share %s", c.ref, other, src.Dir)
		}
		dirs[src.Dir] = c.ref
	}
}

// dirty makes every kind of change there is.
func dirty(t *testing.T, s scratch) {
	t.Helper()
	s.write("a/modified", "old")
	s.write("a/deleted", "here")
	s.write("tool.sh", "#!/bin/sh\n")
	s.write("half", "old")
	s.write("with spaces/é\nline", "old")
	s.write(".gitignore", "*.o\n")
	s.commit("kept", "kept")

	s.write("a/modified", "new")
	s.write("with spaces/é\nline", "new")
	s.write("staged", "staged")
	s.write("half", "staged half")
	s.git("add", "staged", "half")
	s.write("half", "on disk")
	if err := os.Remove(filepath.Join(s.dir, "a/deleted")); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(s.dir, "tool.sh"), 0o755); err != nil {
		t.Fatal(err)
	}
	s.write("ignored.o", "")
	s.write("a/un\ntracked", "")
	s.write("untracked é", "")
}

func TestWorkingTreeWithTrackedChanges(t *testing.T) {
	s := newRepo(t)
	dirty(t, s)
	w := s.open("a") // changes above the plan's folder count as well
	src := checkout(t, w, "")

	head := s.git("rev-parse", "HEAD")
	if src.Ref != "" || src.Label != "HEAD+dirty" || !src.Dirty || src.Commit != head || src.Tree == s.git("rev-parse", "HEAD^{tree}") {
		t.Errorf("got %+v", src)
	}
	if want := []string{"a/un\ntracked", "untracked é"}; !slices.Equal(src.Untracked, want) {
		t.Errorf("untracked %q, want %q", src.Untracked, want)
	}
	if filepath.Base(src.Dir) != "a" {
		t.Errorf("dir %s is not the plan's folder", src.Dir)
	}
	top := filepath.Dir(src.Dir)
	for name, want := range map[string]string{
		"a/modified": "new", "staged": "staged", "half": "on disk", "with spaces/é\nline": "new", "kept": "kept",
	} {
		if got := read(t, top, name); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
	for _, name := range []string{"a/deleted", "ignored.o", "a/un\ntracked", "untracked é"} {
		if isThere(top, name) {
			t.Errorf("%q is in the checkout", name)
		}
	}
	if info, err := os.Stat(filepath.Join(top, "tool.sh")); err != nil || info.Mode()&0o100 == 0 {
		t.Errorf("tool.sh is not executable: %v, %v", info, err)
	}
	if got := s.must("../", "git", "-C", top, "rev-parse", "HEAD^{tree}"); got != src.Tree {
		t.Errorf("checked out tree %s, told %s", got, src.Tree)
	}
}

func TestWorkingTreeWithoutChanges(t *testing.T) {
	s := newRepo(t)
	head := s.commit("a", "a")
	s.write("new", "")
	src := checkout(t, s.open("."), "")
	if src.Label != "HEAD" || src.Dirty || src.Commit != head || src.Tree != s.git("rev-parse", "HEAD^{tree}") {
		t.Errorf("got %+v", src)
	}
}

func TestEqualWorkingTreesAreOneCommit(t *testing.T) {
	s := newRepo(t)
	s.commit("a", "a")
	s.write("a", "b")
	w := s.open(".")
	one, two := checkout(t, w, ""), checkout(t, w, "")
	head := func(src Source) string { return s.must(".", "git", "-C", src.Dir, "rev-parse", "HEAD") }
	if head(one) != head(two) || one.Tree != two.Tree {
		t.Errorf("%s %s, %s %s", head(one), one.Tree, head(two), two.Tree)
	}
}

// An edit in the same clock tick as the index, of the same length, is only
// seen by git because the index is not younger than the file.
func TestWorkingTreeSeesAnEditInTheInstantAfterAdd(t *testing.T) {
	s := newRepo(t)
	s.git("config", "core.trustctime", "false") // a test cannot set ctime
	tick := time.Now().Add(-time.Hour).Truncate(time.Second)
	touch := func(name string) {
		if err := os.Chtimes(filepath.Join(s.dir, name), tick, tick); err != nil {
			t.Fatal(err)
		}
	}
	s.write("f", "old")
	touch("f")
	s.git("add", "f")
	s.git("commit", "--quiet", "--message=one")
	s.write("f", "new")
	touch("f")
	touch(".git/index")
	if status := s.git("status", "--porcelain"); status != " M f" {
		t.Fatalf("the setting is wrong, git itself says %q", status)
	}
	src := checkout(t, s.open("."), "")
	if got := read(t, src.Dir, "f"); got != "new" || !src.Dirty {
		t.Errorf("got %q, dirty %v", got, src.Dirty)
	}
}

func TestUntrackedNamesAreLimited(t *testing.T) {
	s := newRepo(t)
	s.commit("a", "a")
	for i := range 30 {
		s.write(fmt.Sprintf("new-%02d", i), "")
	}
	src := checkout(t, s.open("."), "")
	if len(src.Untracked) != 20 || src.Untracked[19] != "new-19" {
		t.Errorf("got %q", src.Untracked)
	}
}

func TestCheckoutLeavesTheUserAlone(t *testing.T) {
	for _, config := range []string{"", "core.splitIndex=true", "core.safecrlf=true", "worktree.useRelativePaths=true", "core.untrackedCache=true"} {
		t.Run(config, func(t *testing.T) {
			s := newRepo(t)
			s.commit("crlf", "a\n")
			s.write("crlf", "b\n")
			s.git("stash", "--quiet")
			dirty(t, s)
			s.write("crlf", "a\r\n")
			if key, value, ok := strings.Cut(config, "="); ok {
				s.git("config", key, value)
				s.git("config", "core.autocrlf", "input")
				s.git("config", "splitIndex.maxPercentChange", "0")
				s.write("staged", "again")
				s.git("add", "staged") // writes the index in the way of the setting
			}
			before := s.state()
			w := s.open("a")
			checkout(t, w, "")
			checkout(t, w, "HEAD~1")
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			if after := s.state(); after != before {
				t.Errorf("before:\n%s\nafter:\n%s", before, after)
			}
		})
	}
}

func TestCheckoutRunsNoHook(t *testing.T) {
	s := newRepo(t)
	s.commit("a", "a")
	for _, hook := range []string{"post-checkout", "post-index-change", "reference-transaction"} {
		s.write(".git/hooks/"+hook, "#!/bin/sh\ntouch '"+s.dir+"/hook-ran'\n")
		if err := os.Chmod(filepath.Join(s.dir, ".git/hooks", hook), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	s.write("a", "b")
	w := s.open(".")
	checkout(t, w, "")
	checkout(t, w, "main")
	if isThere(s.dir, "hook-ran") {
		t.Error("a hook ran")
	}
	s.git("checkout", "--quiet", "--detach")
	if !isThere(s.dir, "hook-ran") {
		t.Error("the hooks of this test do not work")
	}
}

// Git sets these variables for hooks; they name another repository here.
func TestEnvironmentDoesNotLeadAstray(t *testing.T) {
	other := newRepo(t)
	other.commit("which", "other")
	s := newRepo(t)
	s.commit("which", "mine")
	s.commit("only here", "")
	t.Setenv("GIT_DIR", filepath.Join(other.dir, ".git"))
	t.Setenv("GIT_WORK_TREE", other.dir)
	t.Setenv("GIT_INDEX_FILE", filepath.Join(other.dir, ".git/index"))
	t.Setenv("GIT_PREFIX", "deep/")
	w := s.open(".")
	src := checkout(t, w, "")
	if got := read(t, src.Dir, "which"); got != "mine" || src.Dirty {
		t.Errorf("got %q, dirty %v", got, src.Dirty)
	}
	out, err := w.Build(context.Background(), "candidate", src, `git show HEAD:which >"$OUT/which"`, nil, filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	if got := read(t, out, "which"); got != "mine" {
		t.Errorf("the build's git saw %q", got)
	}
	if got := CompleteRefs(context.Background(), s.dir, ""); !slices.Equal(got, []string{"main"}) {
		t.Errorf("refs %q", got)
	}
}

func TestPlanInALinkedWorktree(t *testing.T) {
	s := newRepo(t)
	s.commit("which", "main")
	linked := filepath.Join(t.TempDir(), "linked")
	s.git("worktree", "add", "--quiet", "-b", "side", linked)
	if err := os.WriteFile(filepath.Join(linked, "which"), []byte("edited"), 0o644); err != nil {
		t.Fatal(err)
	}
	w := openAt(t, linked)
	if src := checkout(t, w, ""); read(t, src.Dir, "which") != "edited" {
		t.Errorf("got %+v", src)
	}
	if src := checkout(t, w, "main"); read(t, src.Dir, "which") != "main" {
		t.Errorf("got %+v", src)
	}
	// Close must not depend on the worktree it was started in.
	s.git("worktree", "remove", "--force", linked)
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	if got := s.git("worktree", "list"); strings.Contains(got, folderPrefix) {
		t.Errorf("left: %s", got)
	}
}

func TestUnknownRefs(t *testing.T) {
	s := newRepo(t)
	s.commit("a", "a")
	s.git("branch", "feature/login")
	s.git("tag", "v1.2.0")
	s.git("tag", "tree", "HEAD^{tree}")
	w := s.open(".")
	for _, c := range []struct{ ref, meant string }{
		{"v1.2", "v1.2.0"},
		{"v1.3.0", "v1.2.0"},
		{"Mian", "main"},
		{"login", "feature/login"},
		{"ma", ""},
		{"--force", ""},
		{"-q", ""},
		{"^main", "main"},
		{"main..tree", ""},
		{"HEAD~9", ""},
		{"tree", ""},
	} {
		t.Run(c.ref, func(t *testing.T) {
			want := fmt.Sprintf("checking out %s: %q names no commit", c.ref, c.ref)
			if c.meant != "" {
				want += "\nhint: did you mean " + c.meant + "?"
			}
			_, err := w.Checkout(context.Background(), c.ref)
			checkError(t, err, want)
		})
	}
}

func TestUnknownRefInAShallowClone(t *testing.T) {
	s := newRepo(t)
	s.commit("a", "a")
	s.commit("a", "b")
	clone := filepath.Join(t.TempDir(), "clone")
	s.git("clone", "--quiet", "--depth=1", "file://"+s.dir, clone)
	w := openAt(t, clone)
	_, err := w.Checkout(context.Background(), "HEAD~1")
	checkError(t, err, "checking out HEAD~1: \"HEAD~1\" names no commit\n"+
		"hint: this clone is shallow, older commits and other branches are missing: run `git fetch --unshallow`, or set `fetch-depth: 0` for the checkout step of your CI")
}

func TestAmbiguousHashIsExplainedByGit(t *testing.T) {
	s := newRepo(t)
	s.commit("a", "a")
	// Commits until two share the four digits that git asks for: about 300.
	seen := map[string]bool{}
	digits := ""
	for i := 0; digits == "" || !seen[digits]; i++ {
		seen[digits] = digits != ""
		digits = s.git("commit-tree", "-m", fmt.Sprint(i), "HEAD^{tree}")[:4]
	}
	_, err := s.open(".").Checkout(context.Background(), digits)
	if err == nil || !strings.Contains(err.Error(), "short object ID "+digits+" is ambiguous") {
		t.Errorf("got %v", err)
	}
}

func TestNoPlaceToCheckOut(t *testing.T) {
	isolate(t)
	plain := t.TempDir()
	unborn := newRepo(t)
	bare := filepath.Join(t.TempDir(), "bare")
	unborn.must("", "git", "init", "--quiet", "--bare", bare)
	for name, c := range map[string]struct{ dir, want string }{
		"no repository": {plain, plain + " is not in a git repository\nhint: comparing refs needs the plan inside the repository of the server"},
		"no commits":    {unborn.dir, "HEAD of " + unborn.dir + " has no commit yet\nhint: commit once, a comparison needs something to compare with"},
		"bare":          {bare, bare + " is in a bare repository, which has no working tree\nhint: clone it, or `git worktree add` a working tree, and run there"},
		"git folder":    {filepath.Join(unborn.dir, ".git"), unborn.dir + "/.git is inside a git folder, not in a working tree\nhint: run in the folder that holds the sources"},
	} {
		t.Run(name, func(t *testing.T) {
			w := openAt(t, c.dir)
			_, err := w.Checkout(context.Background(), "")
			checkError(t, err, "checking out the working tree: "+c.want)
			_, err = w.Checkout(context.Background(), "main")
			checkError(t, err, "checking out main: "+c.want)
		})
	}
}

func TestGitsAdviceOnOwnershipIsPassedOn(t *testing.T) {
	s := newRepo(t)
	s.commit("a", "a")
	t.Setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
	_, err := s.open(".").Checkout(context.Background(), "main")
	if err == nil || !strings.Contains(err.Error(), "dubious ownership") || !strings.Contains(err.Error(), "git config --global --add safe.directory") {
		t.Errorf("got %v", err)
	}
}

func TestGitIsMissing(t *testing.T) {
	s := newRepo(t)
	t.Setenv("PATH", t.TempDir())
	_, err := s.open(".").Checkout(context.Background(), "main")
	checkError(t, err, "checking out main: git rev-parse: exec: \"git\": executable file not found in $PATH\nhint: install git, the worktrees are made with it")
}
