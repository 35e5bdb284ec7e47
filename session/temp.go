package session

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// tempDir is a private folder for sockets and the runs' own folders. It is
// locked while its session lives, so that a later one can tell what a killed
// session has left behind.
type tempDir struct {
	path string
	lock *os.File
}

const (
	tempPrefix = "plumbline-run-"
	tempLock   = "lock"
)

// tempBase is where such folders are. Where TMPDIR is too deep for a unix
// socket's path, the system's is used.
func tempBase() string {
	const longest = 60 // leaves room for /NNN.sock and the random part in 104 bytes
	if base := os.TempDir(); len(base) <= longest {
		return base
	}
	return "/tmp"
}

// newTempDir makes the folder, and removes those of sessions that were killed.
func newTempDir() (*tempDir, error) {
	base := tempBase()
	removeLeftovers(base)
	dir, err := os.MkdirTemp(base, tempPrefix)
	if err != nil {
		return nil, fmt.Errorf("making a private folder: %w", err)
	}
	t := &tempDir{path: dir}
	// Open to all: a server started by root may drop its rights.
	if err = os.Chmod(dir, 0o755); err == nil {
		// Locked before it has its name: a lock that can be had means a dead owner.
		fresh := filepath.Join(dir, tempLock+".new")
		if t.lock, err = os.Create(fresh); err == nil {
			if err = unix.Flock(int(t.lock.Fd()), unix.LOCK_EX); err == nil {
				err = os.Rename(fresh, filepath.Join(dir, tempLock))
			}
		}
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("making a private folder: %w", err), t.remove())
	}
	return t, nil
}

func (t *tempDir) remove() error {
	err := os.RemoveAll(t.path)
	if t.lock != nil {
		t.lock.Close()
	}
	return err
}

// removeLeftovers takes away what nobody holds a lock on any more. What it may
// not remove is somebody else's.
func removeLeftovers(base string) {
	all, _ := filepath.Glob(filepath.Join(base, tempPrefix+"*", tempLock))
	for _, path := range all {
		f, err := os.Open(path)
		if err != nil {
			continue
		}
		if unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil {
			_ = os.RemoveAll(filepath.Dir(path))
		}
		f.Close()
	}
}
