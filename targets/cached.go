package targets

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"time"
)

// generation is raised with every change of a byte that Generate writes for
// some spec, so that no earlier set is taken for a new one. The golden tests
// notice such a change.
const generation = 1

// Cached returns a folder below root that holds what Generate makes of s,
// made now if it is not there yet or not whole; making is called before that,
// and sets below root that nobody has asked for in a month are removed. Its
// name is that of the spec; processes may do this at once.
//
// The manifest in it names no tool: which version of plumbline happened to be
// the first must make no difference between two records of the same requests,
// and a session's record names its own.
func Cached(ctx context.Context, root string, s Spec, making func()) (dir string, err error) {
	r, err := newRecipe(s)
	if err != nil {
		return "", err
	}
	dir = filepath.Join(root, r.name())
	// Touched before it is looked at, so that nobody takes it for unused now.
	now := time.Now()
	_ = os.Chtimes(dir, now, now) // else it is made again after a month
	if whole(dir) {
		return dir, nil
	}
	making()
	prune(root, now)
	p, err := newCachedPlace(dir)
	if err != nil {
		return "", fmt.Errorf("making targets: %w", err)
	}
	_, err = p.make(ctx, r, "")
	if errors.Is(err, fs.ErrExist) && whole(dir) { // somebody else was faster
		return dir, nil
	}
	if err != nil {
		return "", err
	}
	return dir, nil
}

// unused is how long a set is kept that nobody asks for.
const unused = 30 * 24 * time.Hour

// setName is what Cached names a folder.
var setName = regexp.MustCompile(`^(jwt|mixed)[a-z-]*-[0-9a-f]{16}$`)

// prune removes the sets that were not used for long. What cannot be removed
// stays; nothing depends on it.
func prune(root string, now time.Time) {
	entries, _ := os.ReadDir(root)
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || !e.IsDir() || !setName.MatchString(e.Name()) || now.Sub(info.ModTime()) < unused {
			continue
		}
		// Renamed first, so that no file of a new set in its place is removed;
		// if we are killed meanwhile, a sweep removes the rest.
		aside := filepath.Join(root, hidden+"unused-"+e.Name())
		if os.Rename(filepath.Join(root, e.Name()), aside) == nil {
			_ = os.RemoveAll(aside)
		}
	}
}

// newCachedPlace is one in which whatever is there is ours, and not whole.
func newCachedPlace(dir string) (*place, error) {
	full, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	p := &place{dir: full}
	_, err = os.Lstat(full)
	p.old = err == nil
	return p, p.begin()
}

// whole says whether a folder holds all that its manifest names.
func whole(dir string) bool {
	m, _, err := readManifest(dir)
	if err != nil || m == nil {
		return false
	}
	for _, f := range m.Files {
		if sum, err := hashFile(filepath.Join(dir, filepath.FromSlash(f.Path))); err != nil || sum != f.SHA256 {
			return false
		}
	}
	return true
}

func hashFile(path string) (string, error) {
	data, err := readFile(path)
	return input("", data).SHA256, err
}

// name is the kind with a hash of all that decides the set's bytes.
func (r *recipe) name() string {
	s, h := r.spec, sha256.New()
	fmt.Fprintf(h, "%d %s\n", generation, s.Kind)
	for _, f := range r.files {
		fmt.Fprintf(h, "%q %s\n", f.name, input("", f.data).SHA256)
	}
	if s.Kind != Mixed {
		fmt.Fprintf(h, "%d %d %+v\n%q\n", s.Seed, s.Count, s.times(), r.claims.pieces)
		for _, alg := range s.algs() {
			fmt.Fprintf(h, "%s %q\n", alg, s.head(alg))
		}
		fmt.Fprintln(h, s.rsaBits())
	}
	return fmt.Sprintf("%s-%x", s.Kind, h.Sum(nil)[:8])
}
