package build

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// Workspace owns the worktrees and outputs of one session, all in a private
// temporary folder. Its methods may be called from several goroutines, but
// Close only when no Build is running.
type Workspace struct {
	root    string   // real path of the private folder
	env     []string // what everything that is started gets in its environment
	repo    repository
	repoErr error // why there is no repo; told when a checkout is asked for

	mu    sync.Mutex
	lock  *os.File // held while the workspace is open; nil after Close
	trees []string // worktrees that git may know
	outs  int      // output folders so far
}

const (
	folderPrefix = "plumbline-"
	lockName     = "plumbline.lock"
)

// Open makes a workspace for the plan in the folder dir, and removes what
// sessions that were killed left in the repository. A dir outside of any
// repository is no error before [Workspace.Checkout]. env (NAME=VALUE) is added
// to the environment of every build, and of git.
func Open(ctx context.Context, dir string, env ...string) (*Workspace, error) {
	root, err := os.MkdirTemp("", folderPrefix)
	if err != nil {
		return nil, fmt.Errorf("making a workspace: %w", err)
	}
	w := &Workspace{root: root, env: env}
	if err := w.open(ctx, dir); err != nil {
		return nil, errors.Join(fmt.Errorf("making a workspace: %w", err), os.RemoveAll(root))
	}
	return w, nil
}

func (w *Workspace) open(ctx context.Context, dir string) (err error) {
	// Git lists worktrees by their real path; on macOS TMPDIR is behind a link.
	if w.root, err = filepath.EvalSymlinks(w.root); err != nil {
		return err
	}
	lock, err := os.OpenFile(filepath.Join(w.root, lockName), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if !tryLock(lock) {
		lock.Close()
		return fmt.Errorf("cannot lock %s\nhint: set TMPDIR to a local folder whose file system has flock", lock.Name())
	}
	if w.repo, w.repoErr = locate(ctx, dir); w.repoErr == nil {
		w.repo.env = w.env
		// A courtesy: what cannot be removed does not stop this session.
		_ = errors.Join(w.repo.sweep(ctx), sweepFolders())
	}
	if err := ctx.Err(); err != nil {
		lock.Close()
		return err
	}
	w.lock = lock
	return nil
}

// Close removes every worktree, git's records of them, and the folder. It
// goes on after an error and returns all of them. It needs no live context;
// calling it again does nothing.
func (w *Workspace) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.lock == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var errs []error
	if len(w.trees) > 0 {
		unlock := w.repo.serialise(ctx)
		errs = append(errs, w.repo.removeTrees(ctx, w.trees))
		unlock()
	}
	// The lock goes last: until then no other session takes this one for dead.
	errs = append(errs, removeAll(w.root), w.lock.Close())
	w.lock = nil
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("removing the workspace %s: %w", w.root, err)
	}
	return nil
}

// removeAll is os.RemoveAll that also gets rid of read-only folders, such as
// a Go module cache that a build put below its output.
func removeAll(path string) error {
	makeWritable(path)
	return os.RemoveAll(path)
}

func makeWritable(path string) {
	// Whatever cannot be changed here is reported by RemoveAll.
	_ = filepath.WalkDir(path, func(p string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			if info, err := d.Info(); err == nil && info.Mode()&0o700 != 0o700 {
				_ = os.Chmod(p, info.Mode().Perm()|0o700)
			}
		}
		return nil
	})
}
