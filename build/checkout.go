package build

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// Source is one checked-out revision.
type Source struct {
	Ref    string // as the user wrote it; "" for the working tree
	Label  string // for people: the ref; for the working tree HEAD or HEAD+dirty
	Commit string // full hash; that of HEAD for the working tree
	Tree   string // git tree hash of exactly what is checked out
	Dirty  bool   // the tree holds changes that no commit has
	Dir    string // the folder in the checkout that corresponds to the plan's folder; the ref may lack it
	// Untracked names files that git neither tracks nor ignores, from the top
	// of the repository: they are NOT part of the build. Working tree only, at
	// most 20 names.
	Untracked []string
}

const maxUntracked = 20

// Checkout puts ref (a branch, tag, remote branch or any other name of a
// commit) into a new worktree. The ref "" is the working tree: the files git
// tracks, as they are on disk, and those that are staged. A branch that only
// exists on the remote origin is found by its short name.
func (w *Workspace) Checkout(ctx context.Context, ref string) (Source, error) {
	src, err := w.checkout(ctx, ref)
	if err != nil {
		what := ref
		if ref == "" {
			what = "the working tree"
		}
		return Source{}, fmt.Errorf("checking out %s: %w", what, err)
	}
	return src, nil
}

func (w *Workspace) checkout(ctx context.Context, ref string) (Source, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.lock == nil {
		return Source{}, errors.New("the workspace is closed")
	}
	if w.repoErr != nil {
		return Source{}, w.repoErr
	}
	var (
		src    Source
		commit string // what the worktree gets: for a dirty tree not src.Commit
		err    error
	)
	if ref == "" {
		src, commit, err = w.repo.snapshot(ctx, filepath.Join(w.root, "index"))
	} else {
		src, err = w.repo.resolve(ctx, ref)
		commit = src.Commit
	}
	if err != nil {
		return Source{}, err
	}
	// Numbered, so refs cannot collide, and all of one length: a compiler
	// writes the path into the binary, and arms should differ in nothing else.
	// The name starts with the folder's, so git's record of it is recognised.
	path := filepath.Join(w.root, fmt.Sprintf("%s-%02d", filepath.Base(w.root), len(w.trees)+1))
	w.trees = append(w.trees, path)
	defer w.repo.serialise(ctx)()
	if _, err := w.repo.git(ctx, nil, "worktree", "add", "--detach", "--force", path, commit); err != nil {
		return Source{}, err
	}
	src.Dir = filepath.Join(path, filepath.FromSlash(w.repo.prefix))
	return src, nil
}

// resolve finds the commit of a ref.
func (r repository) resolve(ctx context.Context, ref string) (Source, error) {
	commit, err := r.commit(ctx, ref)
	if err != nil && ctx.Err() == nil {
		// CI checks out a detached HEAD and has other branches as remote ones only.
		if c, e := r.commit(ctx, "refs/remotes/origin/"+ref); e == nil {
			commit, err = c, nil
		}
	}
	if err != nil {
		return Source{}, r.unknown(ctx, ref, err)
	}
	tree, err := r.git(ctx, nil, "rev-parse", "--verify", commit+"^{tree}")
	if err != nil {
		return Source{}, err
	}
	return Source{Ref: ref, Label: ref, Commit: commit, Tree: tree}, nil
}

var fullHash = regexp.MustCompile(`^[0-9a-f]{40,64}$`)

// commit peels a name to the full hash of one commit.
func (r repository) commit(ctx context.Context, name string) (string, error) {
	hash, err := r.git(ctx, nil, "rev-parse", "--verify", "--end-of-options", name+"^{commit}")
	if err == nil && !fullHash.MatchString(hash) {
		return "", errors.New("not one commit") // such as ^main
	}
	return hash, err
}

// unknown says what is wrong with a ref that has no commit, and what to do.
func (r repository) unknown(ctx context.Context, ref string, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var ge *gitError
	if errors.As(err, &ge) && strings.Contains(ge.stderr, "ambiguous") {
		return err // git lists the candidates
	}
	if _, err := r.head(ctx); err != nil {
		return err
	}
	msg := fmt.Sprintf("%q names no commit", ref)
	if near := closest(ref, r.refs(ctx)); len(near) > 0 {
		msg += "\nhint: did you mean " + strings.Join(near, " or ") + "?"
	}
	if shallow, err := r.git(ctx, nil, "rev-parse", "--is-shallow-repository"); err == nil && shallow == "true" {
		msg += "\nhint: this clone is shallow, older commits and other branches are missing: run `git fetch --unshallow`, or set `fetch-depth: 0` for the checkout step of your CI"
	}
	return errors.New(msg)
}

// head is the commit of HEAD.
func (r repository) head(ctx context.Context) (string, error) {
	head, err := r.commit(ctx, "HEAD")
	var ge *gitError
	if errors.As(err, &ge) {
		return "", fmt.Errorf("HEAD of %s has no commit yet\nhint: commit once, a comparison needs something to compare with", r.top)
	}
	return head, err
}

// snapshot writes the tracked content of the working tree into git's object
// store, by way of a private copy of the index in the file index, and returns
// the commit to check out: HEAD where nothing has changed.
func (r repository) snapshot(ctx context.Context, index string) (src Source, commit string, err error) {
	head, err := r.head(ctx)
	if err != nil {
		return Source{}, "", err
	}
	headTree, err := r.git(ctx, nil, "rev-parse", "--verify", head+"^{tree}")
	if err != nil {
		return Source{}, "", err
	}
	if err := r.copyIndex(ctx, index); err != nil {
		return Source{}, "", fmt.Errorf("copying the index: %w", err)
	}
	defer os.Remove(index)
	private := []string{"GIT_INDEX_FILE=" + index}
	if _, err := r.git(ctx, private, "add", "--update"); err != nil {
		return Source{}, "", err
	}
	tree, err := r.git(ctx, private, "write-tree")
	if err != nil {
		return Source{}, "", err
	}
	untracked, err := r.git(ctx, private, "ls-files", "--others", "--exclude-standard", "-z")
	if err != nil {
		return Source{}, "", err
	}
	src = Source{Label: "HEAD", Commit: head, Tree: tree}
	if untracked != "" {
		names := strings.Split(strings.TrimSuffix(untracked, "\x00"), "\x00")
		src.Untracked = names[:min(len(names), maxUntracked)]
	}
	if tree == headTree {
		return src, head, nil
	}
	src.Label, src.Dirty = "HEAD+dirty", true
	commit, err = r.git(ctx, identity[:], "commit-tree", "-p", head, "-m", "working tree, as weighed by plumbline", tree)
	return src, commit, err
}

// identity signs the commit of a dirty tree, so that it works where the user
// has none; the fixed date gives equal trees equal commits.
var identity = [...]string{
	"GIT_AUTHOR_NAME=plumbline", "GIT_AUTHOR_EMAIL=plumbline@localhost", "GIT_AUTHOR_DATE=2000-01-01T00:00:00Z",
	"GIT_COMMITTER_NAME=plumbline", "GIT_COMMITTER_EMAIL=plumbline@localhost", "GIT_COMMITTER_DATE=2000-01-01T00:00:00Z",
}

// copyIndex copies the user's index. The copy keeps the time stamp: git takes
// a file for unchanged if it looks the same and is older than the index, so a
// younger index would hide an edit made in the instant after `git add`.
func (r repository) copyIndex(ctx context.Context, to string) error {
	from, err := r.git(ctx, nil, "rev-parse", "--git-path", "index")
	if err != nil {
		return err
	}
	if !filepath.IsAbs(from) {
		from = filepath.Join(r.top, from)
	}
	in, err := os.Open(from)
	if errors.Is(err, os.ErrNotExist) {
		return nil // a clone without a checkout: an empty index
	}
	if err != nil {
		return err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	if err := errors.Join(err, out.Close()); err != nil {
		return err
	}
	return os.Chtimes(to, info.ModTime(), info.ModTime())
}
