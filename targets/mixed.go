package targets

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
)

// copied is a file that a set of kind Mixed takes over.
type copied struct {
	name string // in the set, with slashes
	data []byte
}

// copy writes a set of kind Mixed.
func (r *recipe) copy(ctx context.Context, p *place) (*Manifest, error) {
	m := &Manifest{Kind: Mixed, Requests: r.targets}
	for _, f := range r.files {
		made, err := p.create(ctx, f.name, bytesOf(f.data))
		if err != nil {
			return nil, err
		}
		m.Files = append(m.Files, made)
	}
	return m, nil
}

// source reads the target file that is to be copied, and lists it first, then
// what it names. The copy is called TargetsFile in either format: which one it
// is, the content tells.
func (s Spec) source() (targets int, files []copied, err error) {
	data, err := readFile(s.From)
	if err != nil {
		return 0, nil, fmt.Errorf("reading targets: %w", err)
	}
	files = []copied{{TargetsFile, data}}
	folder := filepath.Dir(s.From)
	set, err := Parse(s.From, data, func(name string) ([]byte, error) {
		clean := filepath.Clean(name)
		if !filepath.IsLocal(clean) {
			return nil, fmt.Errorf("lies outside of the folder of %s, so it cannot be copied with it; move it there, and write its path from there", filepath.Base(s.From))
		}
		if slices.Contains([]string{TargetsFile, ManifestName}, clean) {
			return nil, fmt.Errorf("is the name of a file of every set; rename it")
		}
		body, err := readFile(filepath.Join(folder, clean))
		if err == nil && !slices.ContainsFunc(files, func(f copied) bool { return f.name == filepath.ToSlash(clean) }) {
			files = append(files, copied{filepath.ToSlash(clean), body})
		}
		return body, err
	})
	if err != nil {
		return 0, nil, err
	}
	if filepath.Base(s.From) != TargetsFile {
		return len(set.Targets), files, nil
	}
	switch m, _, err := readManifest(folder); {
	case err != nil:
		return 0, nil, fmt.Errorf("%w; remove it if the targets were not generated", err)
	case m != nil && m.Kind != Mixed:
		return 0, nil, fmt.Errorf("%s was made as %s, with keys and a reserve that a copy would lose; use its folder as it is", s.From, m.Kind)
	}
	return len(set.Targets), files, nil
}
