package plan

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"plumbline/targets"
	"plumbline/targets/keys"
)

// generate reads what a request set is made from. Its base time may still be
// missing: it is the router's clock, which may stand below.
func (d *decoder) generate(name, dir string, v value) *targets.Spec {
	kind := targets.Kind(name)
	for _, p := range v.pairs {
		if p.key == "kind" { // it decides what is said of the rest by default
			kind = targets.Kind(p.value.text)
		}
	}
	s := targets.DefaultSpec(kind)
	s.BaseTime = time.Time{}
	d.keys(v, d.specFields(&s, dir)...)
	if !slices.Contains(generated(), string(kind)) {
		d.fail(v, "has no kind; write kind: %s", alternatives(generated()))
	}
	return &s
}

// specFields are the keys of generate.
func (d *decoder) specFields(s *targets.Spec, dir string) []field {
	return []field{
		{"kind", func(v value) { d.choice(v, generated()...) }},
		{"count", func(v value) { s.Count = int(min(d.whole(v, 0, math.MaxUint64), math.MaxInt)) }},
		{"method", func(v value) { s.Method = d.text(v) }},
		{"url", func(v value) { s.URL = d.text(v) }},
		{"algs", func(v value) { s.Algs = d.algs(v) }},
		{"rsa_bits", func(v value) { s.RSABits = int(d.whole(v, 1, math.MaxInt32)) }},
		{"seed", func(v value) { s.Seed = d.whole(v, 0, math.MaxUint64) }},
		{"base_time", func(v value) { s.BaseTime = d.moment(v) }},
		{"claims", func(v value) { s.Claims = d.claims(dir, v) }},
		{"duration", func(v value) { s.Duration = d.duration(v, false) }},
		{"leeway", func(v value) { s.Leeway = d.duration(v, true) }},
	}
}

// misplaced refuses a key of generate that stands beside it.
func (d *decoder) misplaced(v value) {
	inside := d.specFields(new(targets.Spec), "")
	for _, p := range v.pairs {
		if slices.ContainsFunc(inside, func(f field) bool { return f.key == p.key }) {
			d.fail(value{p.value, join(v.path, p.key), p.line}, "belongs inside generate; write generate: {%s: …}", p.key)
		}
	}
}

// generated are the kinds that a plan can have made: all but those of a file
// written by hand, which it names.
func generated() (names []string) {
	for _, k := range targets.Kinds() {
		if k != targets.Mixed {
			names = append(names, string(k))
		}
	}
	return names
}

// alternatives writes a, b or c.
func alternatives(words []string) string {
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

func (d *decoder) algs(v value) (algs []keys.Alg) {
	var known []string
	for _, a := range keys.Algs() {
		known = append(known, string(a))
	}
	d.elements(v, "[HS256, RS256]", func(v value) { algs = append(algs, keys.Alg(d.choice(v, known...))) })
	return algs
}

// claims are those that stand in the plan, or in a file with a JSON object.
func (d *decoder) claims(dir string, v value) json.RawMessage {
	if v.shape == mapping {
		return d.asJSON(v)
	}
	if v.shape != text {
		d.fail(v, "wants a map of claims or the path of a file with them, not %s; write {role: author}", v.describe())
		return nil
	}
	path := d.text(v)
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	const most = maxSize
	info, err := os.Stat(path)
	switch {
	case err != nil:
		d.fail(v, "%w; the path is relative to the plan's folder", err)
		return nil
	case !info.Mode().IsRegular():
		d.fail(v, "%s is not a regular file; name one that holds a JSON object", path)
		return nil
	case info.Size() > most:
		d.fail(v, "%s holds more than %d KiB; no server takes a token of that size", path, most>>10)
		return nil
	}
	data, err := os.ReadFile(path)
	if err != nil {
		d.fail(v, "%w", err)
		return nil
	}
	claims, err := targets.ParseClaims(path, data)
	if err != nil {
		d.fail(v, "%w", err)
	}
	return claims
}

// asJSON writes a value as JSON, the keys of maps in the file's order.
func (d *decoder) asJSON(v value) json.RawMessage {
	var out bytes.Buffer
	d.writeJSON(&out, v)
	return out.Bytes()
}

func (d *decoder) writeJSON(out *bytes.Buffer, v value) {
	switch v.shape {
	case empty:
		out.WriteString("null")
	case boolean:
		out.WriteString(strings.ToLower(v.text))
	case number:
		if !json.Valid([]byte(v.text)) {
			d.fail(v, "JSON has no number %s; write it in decimal, or put it in quotes", v.text)
		}
		out.WriteString(v.text)
	case text:
		quoted, err := json.Marshal(v.text)
		if err != nil {
			d.fail(v, "%w", err)
		}
		out.Write(quoted)
	case items:
		out.WriteByte('[')
		for i, item := range v.items {
			if i > 0 {
				out.WriteByte(',')
			}
			d.writeJSON(out, value{item, v.path, item.line})
		}
		out.WriteByte(']')
	case mapping:
		out.WriteByte('{')
		first := true
		d.each(v, func(key string, item value) {
			if !first {
				out.WriteByte(',')
			}
			first = false
			name, _ := json.Marshal(key) // a string always can be
			out.Write(append(name, ':'))
			d.writeJSON(out, item)
		})
		out.WriteByte('}')
	}
}

// checkGenerated completes the kinds that are made, now that the whole file is
// read, and looks whether they can be.
func (d *decoder) checkGenerated(p *Plan) {
	for _, k := range p.Kinds {
		s := k.Generate
		if s == nil {
			continue
		}
		if s.BaseTime.IsZero() {
			if s.BaseTime = p.Router.Clock.Start; s.BaseTime.IsZero() {
				s.BaseTime = targets.DefaultSpec(s.Kind).BaseTime
			}
		}
		whole := *s
		if whole.Kind == targets.JWTCacheWorst && whole.Duration == 0 {
			whole.Duration = time.Minute // the session knows how long a run is
		}
		at := join("kinds", k.Name) + ".generate"
		var of *targets.FieldError
		switch err := whole.Check(); {
		case errors.As(err, &of):
			d.failAt(at+"."+of.Field, "%w", of.Err)
		case err != nil:
			d.failAt(at, "%w", err)
		}
	}
}

// checkClock looks whether tokens that expire in a run can: only a router
// whose clock starts where they were counted from tells when that is.
func (d *decoder) checkClock(k Kind, at string, r Router) {
	s := k.Generate
	if s == nil || s.Kind != targets.JWTCacheWorst || r.Clock.Start.Equal(s.BaseTime) {
		return
	}
	base := s.BaseTime.Format(time.RFC3339)
	if r.Clock.Start.IsZero() {
		d.failAt(join("kinds", k.Name)+".generate", "its tokens expire while a run goes on, as counted from the router's start at %s on its clock; write router: {clock: %s}, or kind: %s", base, base, targets.JWTUnique)
		return
	}
	d.failAt(at+".clock", "is %s, but the tokens of kind %s expire as counted from %s; make clock and base_time the same", r.Clock.Start.Format(time.RFC3339), k.Name, base)
}
