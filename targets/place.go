package targets

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// place is where a folder comes to be. Everything is written into a hidden
// folder beside it, which then gets its name: whoever looks sees all or nothing.
type place struct {
	dir     string   // where it is to be
	temp    string   // where it is meanwhile, hidden
	lock    *os.File // of temp: it is being worked in
	parents []string // folders that were made on the way, outermost first
	old     bool     // there is an earlier one in dir, to be replaced
}

// DirError says that a name can be no set's folder, whatever stands there.
type DirError struct{ Err error }

func (e *DirError) Error() string { return e.Err.Error() }
func (e *DirError) Unwrap() error { return e.Err }

func noDir(format string, args ...any) error { return &DirError{fmt.Errorf(format, args...)} }

// newPlace looks whether dir can be made, and may be: it is new or empty, or
// with force a folder in which every file is plumbline's own.
func newPlace(dir string, force bool) (*place, error) {
	if dir == "" {
		return nil, noDir("the folder's name is empty; is a variable not set?")
	}
	full, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	p := &place{dir: full}
	switch info, err := os.Lstat(full); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, err
	default:
		if info.Mode()&fs.ModeSymlink != 0 {
			if p.dir, err = filepath.EvalSymlinks(full); err != nil {
				return nil, fmt.Errorf("%s is a symbolic link to nothing: %w", dir, err)
			}
		}
		if p.old, err = mayReplace(p.dir, dir, force); err != nil {
			return nil, err
		}
	}
	return p, p.begin()
}

// mayReplace says whether there is something in a folder, or why it must stay.
func mayReplace(full, dir string, force bool) (old bool, err error) {
	info, err := os.Stat(full)
	if err != nil {
		return false, err
	}
	if !info.IsDir() {
		return false, noDir("%s is a file; name a new folder", dir)
	}
	if here, err := os.Stat("."); err == nil && os.SameFile(info, here) {
		return false, noDir("%s is the folder you are in, which cannot be replaced as a whole; name one in it, or another", dir)
	}
	if parent, err := os.Stat(filepath.Dir(full)); err == nil && deviceOf(parent) != deviceOf(info) {
		return false, errMount(dir)
	}
	entries, err := os.ReadDir(full)
	switch {
	case err != nil:
		return false, err
	case len(entries) == 0:
		return false, nil
	case !force:
		return false, fmt.Errorf("%s is not empty; name another folder, or replace what plumbline has made there with --force", dir)
	}
	m, _, err := readManifest(full)
	if err != nil {
		return false, fmt.Errorf("%w, so it cannot be told which files of %s are ours to replace; remove the folder yourself", err, dir)
	}
	if m == nil {
		return false, fmt.Errorf("%s has no %s of plumbline, so it is not ours to replace; name another folder, or remove this one yourself", dir, ManifestName)
	}
	return true, onlyOurs(full, dir, m)
}

// errMount: what is written beside a mount point cannot be renamed to it.
func errMount(dir string) error {
	return noDir("%s is a mount point, or the root of a file system, which cannot be replaced in place; name a folder in it", dir)
}

func deviceOf(info fs.FileInfo) uint64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(st.Dev)
	}
	return 0
}

// onlyOurs refuses a folder that holds more, or something else, than what the
// manifest names.
func onlyOurs(full, dir string, m *Manifest) error {
	files, folders := map[string]string{ManifestName: ""}, map[string]bool{".": true}
	for _, f := range m.Files {
		files[f.Path] = f.SHA256
		for at := path.Dir(f.Path); !folders[at]; at = path.Dir(at) {
			folders[at] = true
		}
	}
	const instead = "move it away, or remove the folder yourself"
	return filepath.WalkDir(full, func(at string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		local, err := filepath.Rel(full, at)
		if err != nil {
			return err
		}
		name := filepath.ToSlash(local)
		made, named := files[name]
		switch {
		case d.IsDir() && folders[name]:
			return nil
		case !d.Type().IsRegular() || !named:
			return fmt.Errorf("%s also holds %s, which plumbline did not make; %s", dir, local, instead)
		case made == "": // the manifest, which was read
			return nil
		}
		if sum, err := hashFile(at); err != nil || sum != made {
			return errors.Join(err, fmt.Errorf("%s was edited since plumbline made it; %s", filepath.Join(dir, local), instead))
		}
		return nil
	})
}

// hidden begins the names of the folders in which sets are made.
const hidden = ".plumbline-new-"

func (p *place) begin() (err error) {
	parent := filepath.Dir(p.dir)
	for at := parent; ; at = filepath.Dir(at) {
		if _, err := os.Stat(at); !errors.Is(err, fs.ErrNotExist) {
			break
		}
		p.parents = append([]string{at}, p.parents...)
	}
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return errors.Join(err, p.discard())
	}
	sweep(parent)
	if p.temp, p.lock, err = lockedTemp(parent); err != nil {
		return errors.Join(fmt.Errorf("%w; the folder is made beside its place, and then named", err), p.discard())
	}
	return nil
}

// lockedTemp makes a hidden folder that says by a lock that somebody is at work
// in it. A sweep may come between the making and the lock: then there is another.
func lockedTemp(parent string) (temp string, lock *os.File, err error) {
	const tries = 100 // some file systems call no file the same
	for range tries {
		if temp, err = os.MkdirTemp(parent, hidden); err != nil {
			return "", nil, err
		}
		lock, err := os.Open(temp)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return "", nil, errors.Join(err, os.Remove(temp))
		}
		// Where a file system knows no locks there are no sweeps, either.
		held := !errors.Is(tryLock(lock), unix.EWOULDBLOCK)
		if there, err := os.Stat(temp); held && err == nil && sameFile(lock, there) {
			return temp, lock, nil
		}
		lock.Close()
	}
	return "", nil, fmt.Errorf("%s: others remove what is made there", parent)
}

func tryLock(dir *os.File) error { return unix.Flock(int(dir.Fd()), unix.LOCK_EX|unix.LOCK_NB) }

func sameFile(f *os.File, there fs.FileInfo) bool {
	info, err := f.Stat()
	return err == nil && os.SameFile(info, there)
}

// sweep removes what a killed plumbline has left: hidden folders that nobody
// has locked. What cannot be removed stays; nothing depends on it.
func sweep(parent string) {
	entries, _ := os.ReadDir(parent)
	for _, e := range entries {
		if !e.IsDir() || !strings.HasPrefix(e.Name(), hidden) {
			continue
		}
		dir := filepath.Join(parent, e.Name())
		if f, err := os.Open(dir); err == nil {
			if tryLock(f) == nil {
				os.RemoveAll(dir)
			}
			f.Close()
		}
	}
}

// discard removes what was made.
func (p *place) discard() error {
	var errs []error
	if p.temp != "" {
		errs = append(errs, os.RemoveAll(p.temp), p.lock.Close())
	}
	for i := len(p.parents) - 1; i >= 0; i-- {
		// Somebody else may have put something there by now.
		if os.Remove(p.parents[i]) != nil {
			break
		}
	}
	return errors.Join(errs...)
}

// put gives the folder its name.
func (p *place) put() error {
	if err := os.Chmod(p.temp, 0o755); err != nil {
		return err
	}
	aside, moved := strings.Replace(p.temp, hidden, ".plumbline-old-", 1), false
	if p.old {
		err := os.Rename(p.dir, aside)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return p.unnamed(err)
		}
		moved = err == nil
	}
	// Not os.Rename, which refuses a folder even if it is empty.
	if err := syscall.Rename(p.temp, p.dir); err != nil {
		err := p.unnamed(&os.LinkError{Op: "rename", Old: p.temp, New: p.dir, Err: err})
		if moved && !errors.Is(err, fs.ErrExist) {
			return errors.Join(err, os.Rename(aside, p.dir))
		}
		return errors.Join(err, os.RemoveAll(aside))
	}
	return os.RemoveAll(aside)
}

// unnamed says why the folder did not get its name.
func (p *place) unnamed(err error) error {
	switch {
	case errors.Is(err, fs.ErrExist):
		return &lateError{p.dir, err}
	case errors.Is(err, syscall.EBUSY):
		return errMount(p.dir)
	}
	return err
}

// lateError: while a set was made, something came to be in its place.
type lateError struct {
	dir string
	err error
}

func (e *lateError) Error() string {
	return fmt.Sprintf("another run made %s meanwhile, or put something there; name another folder, or replace what plumbline has made there with --force", e.dir)
}

func (e *lateError) Unwrap() error { return e.err }

// create writes a file and hashes it.
func (p *place) create(ctx context.Context, name string, fill func(io.Writer) error) (f ManifestFile, err error) {
	full := filepath.Join(p.temp, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
		return f, err
	}
	file, err := os.OpenFile(full, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return f, err
	}
	sum := sha256.New()
	count := &counter{}
	err = fill(io.MultiWriter(file, sum, count))
	if err == nil {
		err = file.Chmod(0o644) // also where the umask is strict: a router may run as another user
	}
	if err == nil {
		err = context.Cause(ctx)
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return f, err
	}
	return ManifestFile{Path: name, SHA256: hex.EncodeToString(sum.Sum(nil)), Bytes: count.bytes}, nil
}

// bytesOf fills a file with data.
func bytesOf(data []byte) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	}
}

type counter struct{ bytes int64 }

func (c *counter) Write(b []byte) (int, error) {
	c.bytes += int64(len(b))
	return len(b), nil
}
