// Package targets owns the request sets that a session sends: vegeta's HTTP
// and JSON target formats, read strictly and hashed for the record, and the
// folders of requests with tokens that are generated from a seed.
//
// It differs from vegeta's own reader where that one half-accepts a file: a
// comment never hides the target below it, a long line is an error and not a
// lost header, an unknown or repeated JSON key is refused. It never sends
// anything, and of the project it imports its own targets/keys only.
package targets

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Target is one request.
type Target struct {
	Method string      // upper case
	URL    string      // absolute; all targets of a set name the same scheme and host
	Header http.Header // names keep their case, as with vegeta; may be empty, never nil
	Body   []byte      // nil: none; targets that name the same file share the bytes
	File   string      // the target file, as it was given
	Line   int         // where the target starts in File, from 1

	// Until is when the server no longer takes the request's token; zero: no
	// matter when it is sent. Only sets whose manifest has an Expiry have it.
	Until time.Time
}

// Set is the content of a target file, in its order; it holds at least one target.
type Set struct {
	Targets []Target
	Inputs  []Input // the target file, then every body file once, in order of first use; of a generated set then the files of its manifest, and that

	// Of a set with a manifest beside its file (else nil and empty):
	Manifest *Manifest
	Reserve  []Target // requests for the preflight, which are not among Targets
	Expired  []Target // requests whose token the server must refuse
}

// Input is a file that the set was made from.
type Input struct {
	Path   string // as given, or as named in the target file
	SHA256 string // of its bytes, in hex
}

// Read reads a target file in either format; body files that it names are
// relative to its folder. An error names file and line and says what to do.
//
// Where the manifest of a generated folder stands beside it, every file must be
// the one that was made, and the set has the manifest's fields.
func Read(path string) (*Set, error) {
	data, err := readFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading targets: %w", err)
	}
	dir := filepath.Dir(path)
	set, err := Parse(path, data, func(name string) ([]byte, error) {
		if !filepath.IsAbs(name) {
			name = filepath.Join(dir, name)
		}
		return readFile(name)
	})
	if err != nil {
		return nil, err
	}
	if err := set.addManifest(path); err != nil {
		return nil, fmt.Errorf("reading targets: %w", err)
	}
	return set, nil
}

// maxFile bounds a target file and a body: the whole set is held in memory.
const maxFile = 256 << 20

// readFile reads a regular file; a device or a pipe could be read for ever,
// and not a second time for the record.
func readFile(path string) ([]byte, error) {
	st, err := os.Stat(path)
	switch {
	case err != nil:
		return os.ReadFile(path) // says it better
	case !st.Mode().IsRegular():
		return nil, fmt.Errorf("%s is not a regular file", path)
	case st.Size() > maxFile:
		return nil, fmt.Errorf("%s holds %d MiB, more than the %d MiB that one file may", path, st.Size()>>20, maxFile>>20)
	}
	return os.ReadFile(path)
}

// Parse is Read without the file system: name stands in errors and in the
// set, open is asked once for each body file, by its name in the target file.
// The format is told by the first character: JSON starts with a brace.
func Parse(name string, data []byte, open func(string) ([]byte, error)) (*Set, error) {
	r := &reader{
		name:   name,
		open:   open,
		bodies: map[string][]byte{},
		set:    &Set{Inputs: []Input{input(name, data)}},
	}
	text := bytes.TrimPrefix(data, []byte("\ufeff"))
	read := r.readHTTP
	if start := bytes.TrimLeft(text, " \t\r\n"); len(start) > 0 && (start[0] == '{' || start[0] == '[') {
		read = r.readJSON
	}
	if err := read(text); err != nil {
		return nil, err
	}
	if len(r.set.Targets) == 0 {
		return nil, fmt.Errorf("%s: holds no target; write one as GET http://router/path, or METHOD /path", name)
	}
	if err := r.oneHost(); err != nil {
		return nil, err
	}
	return r.set, nil
}

// reader is what both formats share while a set is read.
type reader struct {
	name   string
	open   func(string) ([]byte, error)
	bodies map[string][]byte // by name, so that a shared body is read and recorded once
	set    *Set
}

// errAt is an error at a line of the target file.
func (r *reader) errAt(line int, err error) error {
	return fmt.Errorf("%s:%d: %w", r.name, line, err)
}

func (r *reader) body(name string) ([]byte, error) {
	if name == "" {
		return nil, errors.New("body line names no file; write @ and its path")
	}
	if body, ok := r.bodies[name]; ok {
		return body, nil
	}
	body, err := r.open(name)
	if err != nil {
		return nil, fmt.Errorf("body %s: %w; its path is relative to the target file's folder", excerpt(name), err)
	}
	r.set.Inputs = append(r.set.Inputs, input(name, body))
	if len(body) == 0 {
		body = nil
	}
	r.bodies[name] = body
	return body, nil
}

// oneHost makes all URLs absolute on one scheme and host. The host says
// nothing about where requests go, so a second one would be a silent mistake.
func (r *reader) oneHost() error {
	base, line := "", 0
	for _, t := range r.set.Targets {
		if strings.HasPrefix(t.URL, "/") {
			continue
		}
		u, err := url.Parse(t.URL)
		if err != nil {
			return r.errAt(t.Line, err)
		}
		switch host := u.Scheme + "://" + u.Host; {
		case base == "":
			base, line = host, t.Line
		case !strings.EqualFold(base, host):
			return r.errAt(t.Line, fmt.Errorf("%s is a second host after %s in line %d; every request goes to the arm under load; use a Host header for virtual hosts",
				host, base, line))
		}
	}
	if base == "" {
		base = originBase
	}
	for i := range r.set.Targets {
		if t := &r.set.Targets[i]; strings.HasPrefix(t.URL, "/") {
			t.URL = base + t.URL
		}
	}
	return nil
}

func input(path string, data []byte) Input {
	sum := sha256.Sum256(data)
	return Input{Path: path, SHA256: hex.EncodeToString(sum[:])}
}
