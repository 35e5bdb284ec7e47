package build

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// list returns the paths of all worktrees git knows in the repository.
func (r repository) list(ctx context.Context) ([]string, error) {
	out, err := r.worktree(ctx, "list", "--porcelain")
	if err != nil {
		return nil, err
	}
	var paths []string
	for line := range strings.Lines(out) {
		if path, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "worktree "); ok {
			paths = append(paths, path)
		}
	}
	return paths, nil
}

// removeTrees deletes worktrees and git's records of them, but never a record
// of anybody else's, as `git worktree prune` would.
func (r repository) removeTrees(ctx context.Context, trees []string) error {
	var errs []error
	for _, tree := range trees {
		errs = append(errs, removeAll(tree))
	}
	if _, err := os.Stat(r.common); errors.Is(err, os.ErrNotExist) {
		return errors.Join(errs...) // the repository is gone, and the records with it
	}
	for _, tree := range trees {
		// Without its folder a worktree is never too dirty to go, and it may
		// hold submodules. The second --force is for one whose `add` was
		// killed: git leaves it locked.
		if _, err := r.worktree(ctx, "remove", "--force", "--force", tree); err != nil {
			// Git also refuses what it does not know, which is as good as removed.
			if left, e := r.list(ctx); e != nil || slices.Contains(left, tree) {
				errs = append(errs, err)
			}
		}
	}
	return errors.Join(errs...)
}

// Sweep removes what sessions that were killed have left: their worktrees in
// the repository around dir, if it is in one, and their private folders, but
// for those that hold a worktree of another repository.
func Sweep(ctx context.Context, dir string) error {
	var err error
	if r, e := locate(ctx, dir); e == nil {
		err = r.sweep(ctx)
	}
	return errors.Join(err, sweepFolders())
}

// sweep removes the worktrees of sessions that were killed.
func (r repository) sweep(ctx context.Context) error {
	defer r.serialise(ctx)()
	paths, err := r.list(ctx)
	if err != nil {
		return err
	}
	var errs []error
	byRoot := map[string][]string{}
	for _, path := range paths {
		root := filepath.Dir(path)
		if strings.HasPrefix(filepath.Base(root), folderPrefix) && strings.HasPrefix(filepath.Base(path), filepath.Base(root)+"-") {
			byRoot[root] = append(byRoot[root], path)
		}
	}
	for root, trees := range byRoot {
		lock, err := os.OpenFile(filepath.Join(root, lockName), os.O_RDWR, 0)
		if err != nil {
			errs = append(errs, r.removeTrees(ctx, slices.DeleteFunc(trees, func(tree string) bool { return !r.lost(tree) })))
			continue
		}
		if tryLock(lock) {
			errs = append(errs, r.removeTrees(ctx, trees), removeAll(root))
		}
		lock.Close()
	}
	return errors.Join(errs...)
}

// sweepFolders removes the private folders of sessions that were killed
// before their first worktree, or after their last.
func sweepFolders() error {
	var errs []error
	locks, _ := filepath.Glob(filepath.Join(os.TempDir(), folderPrefix+"*", lockName))
	for _, path := range locks {
		root := filepath.Dir(path)
		trees, _ := filepath.Glob(filepath.Join(root, filepath.Base(root)+"-*"))
		lock, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			continue // another user's
		}
		if len(trees) == 0 && tryLock(lock) {
			errs = append(errs, removeAll(root))
		}
		lock.Close()
	}
	return errors.Join(errs...)
}

// lost says that a worktree's folder has been gone for good, as after a
// reboot that emptied the temporary folder. A missing folder alone proves
// nothing: the session may live in a container or on another machine that
// shares only the repository. But none lives for a day.
func (r repository) lost(tree string) bool {
	if _, err := os.Lstat(tree); !errors.Is(err, os.ErrNotExist) {
		return false
	}
	record, err := os.Stat(filepath.Join(r.common, "worktrees", filepath.Base(tree), "gitdir"))
	return err == nil && time.Since(record.ModTime()) > 24*time.Hour
}

// serialise lets one session at a time add and remove worktrees, and returns
// the function that lets the next one in. Git removes the folder of its
// records with the last of them, which breaks an `add` at that moment. The
// lock is on the git folder itself, so no file appears in it. Where it cannot
// be had (NFS, an ended context) the small risk is taken.
func (r repository) serialise(ctx context.Context) (unlock func()) {
	dir, err := os.Open(r.common)
	if err != nil {
		return func() {}
	}
	for {
		err := syscall.Flock(int(dir.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err != syscall.EWOULDBLOCK && err != syscall.EINTR {
			break
		}
		select {
		case <-ctx.Done():
			return func() { dir.Close() }
		case <-time.After(10 * time.Millisecond):
		}
	}
	return func() { dir.Close() }
}

// tryLock takes the lock on an open file, which lasts until it is closed or
// its process ends, and reports whether it was free.
func tryLock(f *os.File) bool {
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err != syscall.EINTR {
			return err == nil
		}
	}
}
