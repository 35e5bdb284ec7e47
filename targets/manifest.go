package targets

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// manifestFormat is that of the manifests that this version writes and reads.
const manifestFormat = 1

// JSON is the content of manifest.json: indented, with a newline at the end.
func (m *Manifest) JSON() ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	if err := enc.Encode(m); err != nil {
		return nil, fmt.Errorf("writing %s: %w", ManifestName, err)
	}
	return b.Bytes(), nil
}

// readManifest reads a folder's manifest.json; nil if it has none, or one of
// something else: other programs also have files of that name.
func readManifest(dir string) (*Manifest, []byte, error) {
	name := filepath.Join(dir, ManifestName)
	info, err := os.Stat(name)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !info.Mode().IsRegular() {
		return nil, nil, nil
	}
	data, err := readFile(name)
	if err != nil {
		return nil, nil, err
	}
	m, err := parseManifest(data)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", name, err)
	}
	return m, data, nil
}

func parseManifest(data []byte) (*Manifest, error) {
	var has map[string]json.RawMessage
	if err := json.Unmarshal(data, &has); err != nil {
		var other any
		if json.Unmarshal(data, &other) == nil { // JSON, but no object
			return nil, nil
		}
		return nil, err
	}
	for _, key := range []string{"format", "kind", "files"} {
		if has[key] == nil {
			return nil, nil
		}
	}
	var format int
	if err := json.Unmarshal(has["format"], &format); err != nil || format != manifestFormat {
		return nil, fmt.Errorf("format %.20s is not the one that this version knows, %d", has["format"], manifestFormat)
	}
	m := new(Manifest)
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(m); err != nil {
		return nil, err
	}
	return m, m.check()
}

// check refuses what Generate never writes.
func (m *Manifest) check() error {
	switch {
	case !slices.Contains(Kinds(), m.Kind):
		return unknown(string(m.Kind), "kind", Kinds())
	case m.Requests < 1 || m.Reserve < 0 || m.Requests > maxFile || m.Reserve > maxFile: // each takes a byte and more
		return fmt.Errorf("holds %d requests and a reserve of %d", m.Requests, m.Reserve)
	case m.Once != m.Kind.Once():
		return fmt.Errorf("once is %t for kind %s", m.Once, m.Kind)
	case m.Once != (m.Reserve > 0): // else the preflight would send what the load is to be the first to send
		return fmt.Errorf("has a reserve of %d for kind %s", m.Reserve, m.Kind)
	case (m.Expiry != nil) != (m.Kind == JWTCacheWorst):
		return fmt.Errorf("expiry is for kind %s, and only for that", JWTCacheWorst)
	case m.Expiry != nil && (outside(m.Expiry.DurationS, LeastDuration) || outside(m.Expiry.LeewayS, 0)):
		return fmt.Errorf("expiry has a duration of %d s and a leeway of %d s", m.Expiry.DurationS, m.Expiry.LeewayS)
	case m.file(TargetsFile) == nil:
		return fmt.Errorf("does not name %s", TargetsFile)
	case m.Expiry != nil && m.file(ExpiredFile) == nil:
		return fmt.Errorf("does not name %s", ExpiredFile)
	}
	for i, f := range m.Files {
		sum, err := hex.DecodeString(f.SHA256)
		if err != nil || len(sum) != 32 || !filepath.IsLocal(f.Path) || path.Clean(f.Path) != f.Path || f.Path == ManifestName ||
			i > 0 && m.Files[i-1].Path >= f.Path {
			return fmt.Errorf("file %s is not named as plumbline does it", excerpt(f.Path))
		}
	}
	return nil
}

// outside says whether so many seconds are less than least, or more than a spec
// may ask for: as a time.Duration they might overflow.
func outside(seconds int, least time.Duration) bool {
	return seconds < int(least/time.Second) || seconds > int(maxExpires/time.Second)
}

func (m *Manifest) file(name string) *ManifestFile {
	if i := slices.IndexFunc(m.Files, func(f ManifestFile) bool { return f.Path == name }); i >= 0 {
		return &m.Files[i]
	}
	return nil
}

// addManifest fills in what the manifest beside a target file says of it.
func (s *Set) addManifest(name string) error {
	if filepath.Base(name) != TargetsFile {
		return nil
	}
	dir := filepath.Dir(name)
	m, data, err := readManifest(dir)
	if err != nil {
		return fmt.Errorf("%w; make the folder again, or remove %s to use the targets without it", err, ManifestName)
	}
	if m == nil {
		return nil
	}
	s.Manifest = m
	if err := s.addFiles(dir); err != nil {
		return err
	}
	s.Inputs = append(s.Inputs, input(ManifestName, data))
	n := len(s.Targets) - m.Reserve
	if n != m.Requests {
		return fmt.Errorf("%s: holds %d requests, but %s says %d and a reserve of %d; make the folder again", name, len(s.Targets), ManifestName, m.Requests, m.Reserve)
	}
	s.Targets, s.Reserve = s.Targets[:n:n], s.Targets[n:]
	if m.Expiry == nil {
		return nil
	}
	for _, some := range [][]Target{s.Targets, s.Reserve, s.Expired} {
		if err := fillUntil(some, time.Duration(m.Expiry.LeewayS)*time.Second); err != nil {
			return err
		}
	}
	return nil
}

// addFiles looks whether every file is the one that was made, and adds those
// to the inputs that the target file does not name.
func (s *Set) addFiles(dir string) error {
	known := map[string]string{TargetsFile: s.Inputs[0].SHA256}
	for _, in := range s.Inputs[1:] {
		known[path.Clean(filepath.ToSlash(in.Path))] = in.SHA256
	}
	for _, f := range s.Manifest.Files {
		full := filepath.Join(dir, filepath.FromSlash(f.Path))
		sum, read := known[f.Path]
		if !read {
			data, err := readFile(full)
			if err != nil {
				return fmt.Errorf("%w; %s names it: make the folder again", err, ManifestName)
			}
			in := input(f.Path, data)
			s.Inputs = append(s.Inputs, in)
			sum = in.SHA256
			if f.Path == ExpiredFile {
				expired, err := Parse(full, data, func(string) ([]byte, error) { return nil, errors.New("a generated request has none") })
				if err != nil {
					return err
				}
				s.Expired = expired.Targets
			}
		}
		if sum != f.SHA256 {
			return fmt.Errorf("%s is not the file that %s names: it was edited since; make the folder again, or remove %s to use it as it is", full, ManifestName, ManifestName)
		}
	}
	return nil
}

// fillUntil finds out until when the server takes the requests' tokens.
func fillUntil(all []Target, leeway time.Duration) error {
	for i := range all {
		t := &all[i]
		token, found := strings.CutPrefix(strings.Join(t.Header[authorization], ""), bearer)
		if !found {
			return fmt.Errorf("%s:%d: has no token; make the folder again", t.File, t.Line)
		}
		exp, err := expOf(token)
		if err != nil {
			return fmt.Errorf("%s:%d: %w; make the folder again", t.File, t.Line, err)
		}
		t.Until = time.Unix(exp, 0).Add(leeway).UTC()
	}
	return nil
}
