package targets

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"plumbline/targets/keys"
)

// progressKey is that of what WithProgress keeps in a context.
type progressKey struct{}

// WithProgress has Generate and Cached tell how many of the requests are
// written, a few times a second, before they return.
func WithProgress(ctx context.Context, tell func(done, total int)) context.Context {
	return context.WithValue(ctx, progressKey{}, tell)
}

// Generate makes the folder dir, which must be new or empty unless force is
// set; with force it may also hold an earlier set and nothing else. It comes to
// be as a whole or not at all. tool is plumbline's version, for the manifest;
// no other byte depends on it.
//
// A spec that cannot be is a FieldError, and nothing is written.
func Generate(ctx context.Context, dir string, s Spec, tool string, force bool) (*Manifest, error) {
	r, err := newRecipe(s)
	if err != nil {
		return nil, err
	}
	p, err := newPlace(dir, force)
	if err != nil {
		return nil, fmt.Errorf("making targets: %w", err)
	}
	return p.make(ctx, r, tool)
}

// recipe is a spec with what can be done, and can go wrong, before anything is written.
type recipe struct {
	spec    Spec
	claims  *claims  // of tokens
	targets int      // Mixed: how many there are
	files   []copied // Mixed
}

func newRecipe(s Spec) (r *recipe, err error) {
	if err := s.Check(); err != nil {
		return nil, err
	}
	r = &recipe{spec: s}
	if s.Kind == Mixed {
		if r.targets, r.files, err = s.source(); err != nil {
			return nil, &FieldError{"from", err}
		}
		return r, nil
	}
	r.claims, err = newClaims(s.Claims, s.Seed)
	return r, err
}

// make fills the place; after an error nothing of it is left.
func (p *place) make(ctx context.Context, r *recipe, tool string) (m *Manifest, err error) {
	defer func() {
		if err != nil {
			m, err = nil, errors.Join(fmt.Errorf("making targets: %w", err), p.discard())
			return
		}
		p.lock.Close()
	}()
	if r.spec.Kind == Mixed {
		m, err = r.copy(ctx, p)
	} else {
		m, err = r.generate(ctx, p)
	}
	if err != nil {
		return nil, err
	}
	m.Tool = tool
	if err := p.writeManifest(ctx, m); err != nil {
		return nil, err
	}
	return m, p.put()
}

const warning = "For tests only: anyone can make these keys and tokens again, from the seed. Made by plumbline targets."

// generate writes the keys and the requests of a set with tokens; of the
// manifest it returns what is known then.
func (r *recipe) generate(ctx context.Context, p *place) (*Manifest, error) {
	s := r.spec
	set, err := newMaker(ctx, s, r.claims)
	if err != nil {
		return nil, err
	}
	m := &Manifest{
		Warning: warning, Kind: s.Kind, Seed: &s.Seed, BaseTime: s.BaseTime,
		Requests: s.Count, Reserve: set.reserve(), Once: s.Kind.Once(), Requested: map[keys.Alg]int{},
	}
	m.RSABits = s.rsaBits()
	if m.Files, err = writeKeys(ctx, p, set.ring); err != nil {
		return nil, err
	}
	end := s.Count + set.reserve()
	sum, err := set.file(ctx, p, m, TargetsFile, 0, end)
	if err != nil {
		return nil, err
	}
	for place, alg := range set.algs {
		m.Requested[alg] = sum.requests[alg]
		if place < set.reserve() {
			m.Requested[alg]--
		}
	}
	if s.Kind == JWTCacheWorst {
		t := set.times
		m.Expiry = &Expiry{DurationS: int(t.duration), LeewayS: int(t.leeway), FirstS: int(t.first), Expire: sum.expire}
		if _, err := set.file(ctx, p, m, ExpiredFile, end, end+len(set.algs)); err != nil {
			return nil, err
		}
	}
	return m, nil
}

func writeKeys(ctx context.Context, p *place, ring *keys.Ring) (written []ManifestFile, err error) {
	files, err := ring.Files()
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		file, err := p.create(ctx, f.Name, bytesOf(f.Data))
		if err != nil {
			return nil, err
		}
		written = append(written, file)
	}
	return written, nil
}

// file writes requests into a file of their own, which the manifest then names.
func (m *maker) file(ctx context.Context, p *place, in *Manifest, name string, from, to int) (sum *tally, err error) {
	tell, _ := ctx.Value(progressKey{}).(func(done, total int))
	last := time.Now()
	done := func(requests int) {
		if tell != nil && time.Since(last) > 200*time.Millisecond {
			last = time.Now()
			tell(min(requests, m.spec.Count), m.spec.Count)
		}
	}
	f, err := p.create(ctx, name, func(w io.Writer) (err error) {
		sum, err = m.write(ctx, w, from, to, done)
		return err
	})
	in.Files = append(in.Files, f)
	return sum, err
}

// writeManifest writes it as the last of the files.
func (p *place) writeManifest(ctx context.Context, m *Manifest) error {
	m.Format = manifestFormat
	slices.SortFunc(m.Files, func(a, b ManifestFile) int { return cmp.Compare(a.Path, b.Path) })
	data, err := m.JSON()
	if err != nil {
		return err
	}
	_, err = p.create(ctx, ManifestName, bytesOf(data))
	return err
}
