package targets

import (
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"plumbline/targets/keys"
)

// FieldError says what is wrong with a field of a Spec.
type FieldError struct {
	Field string // as a plan calls it: kind, count, base_time, rsa_bits …
	Err   error
}

func (e *FieldError) Error() string { return e.Field + ": " + e.Err.Error() }
func (e *FieldError) Unwrap() error { return e.Err }

// LeastDuration is the shortest run that tokens can expire in. A load withholds
// a token in the last two seconds before it is refused, by a clock that shows
// up to one second more: of a set for a shorter run next to nothing would be sent.
const LeastDuration = 5 * time.Second

// maxExpires bounds Duration and Leeway.
const maxExpires = 24 * time.Hour

// unsaid is a Leeway that nobody has given.
const unsaid time.Duration = -1

// Check says what is wrong with a spec, as a FieldError. It does not read From.
func (s Spec) Check() error {
	if !slices.Contains(Kinds(), s.Kind) {
		return &FieldError{"kind", unknown(string(s.Kind), "kind", Kinds())}
	}
	checks := []struct {
		field string
		check func() error
	}{
		{"count", s.checkCount}, {"base_time", s.checkBaseTime}, {"method", s.checkMethod}, {"algs", s.checkAlgs}, {"rsa_bits", s.checkRSABits},
		{"url", s.checkURL}, {"duration", s.checkDuration}, {"leeway", s.checkLeeway}, {"claims", s.checkClaims},
	}
	if s.Kind == Mixed {
		return s.checkMixed()
	}
	if s.From != "" {
		return &FieldError{"from", fmt.Errorf("only kind %s copies a file; leave it out", Mixed)}
	}
	for _, c := range checks {
		if err := c.check(); err != nil {
			return &FieldError{c.field, err}
		}
	}
	return s.checkSize()
}

// checkMixed refuses what only tokens have.
func (s Spec) checkMixed() error {
	for _, f := range []struct {
		name  string
		given bool
	}{
		{"seed", s.Seed != 0}, {"base_time", !s.BaseTime.IsZero()}, {"count", s.Count != 0}, {"method", s.Method != ""}, {"url", s.URL != ""},
		{"algs", len(s.Algs) > 0}, {"rsa_bits", s.RSABits != 0}, {"claims", len(s.Claims) > 0}, {"duration", s.Duration != 0}, {"leeway", s.Leeway != 0},
	} {
		if f.given {
			return &FieldError{f.name, fmt.Errorf("kind %s takes its requests from a file as they are; leave it out", Mixed)}
		}
	}
	if s.From == "" {
		return &FieldError{"from", fmt.Errorf("kind %s needs the file to copy", Mixed)}
	}
	return nil
}

func (s Spec) checkCount() error {
	switch {
	case s.Count <= 0:
		return fmt.Errorf("%d requests; ask for 1 or more", s.Count)
	case s.Count < len(s.Algs):
		return fmt.Errorf("%d for %d algorithms; ask for one request each at least, or name fewer algorithms", s.Count, len(s.Algs))
	}
	return nil
}

func (s Spec) checkBaseTime() error {
	switch t := s.BaseTime; {
	case t.Location() != time.UTC:
		return errors.New("wants UTC, such as 2000-01-01T00:00:00Z")
	case t.Nanosecond() != 0:
		return fmt.Errorf("%s: tokens tell time in whole seconds", t.Format(time.RFC3339Nano))
	case t.Year() < 1970 || t.Year() > 2200:
		return fmt.Errorf("%s lies outside of the years 1970 to 2200", t.Format(time.RFC3339))
	}
	if t := s.times(); t.iat < 0 {
		return fmt.Errorf("%s: the tokens would have been made before 1970, %s earlier; choose a later time", s.BaseTime.Format(time.RFC3339), s.Leeway+head)
	}
	return nil
}

func (s Spec) checkMethod() error {
	if strings.HasPrefix(s.Method, "#") {
		return fmt.Errorf("invalid method %s: its line would be a comment", excerpt(s.Method))
	}
	return checkMethod(s.Method)
}

func (s Spec) checkAlgs() error {
	if len(s.Algs) == 0 {
		return fmt.Errorf("names no algorithm; known are %s", list(keys.Algs()))
	}
	for i, alg := range s.Algs {
		if !slices.Contains(keys.Algs(), alg) {
			return unknown(string(alg), "algorithm", keys.Algs())
		}
		if slices.Contains(s.Algs[:i], alg) {
			return fmt.Errorf("%s is there twice; write it once", alg)
		}
	}
	return nil
}

func (s Spec) checkRSABits() error {
	if s.RSABits < 2048 || s.RSABits > 16384 || s.RSABits%8 != 0 {
		return fmt.Errorf("%d; an RSA key has 2048 to 16384 bits, a multiple of 8", s.RSABits)
	}
	return nil
}

func (s Spec) checkURL() error {
	for _, alg := range s.Algs {
		url, err := s.RequestURL(alg)
		if err == nil {
			err = checkURLFrom(url, s.URL)
		}
		if err == nil && len(s.Method)+1+len(url) > maxLine {
			err = errLong
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (s Spec) checkDuration() error {
	if s.Kind != JWTCacheWorst {
		return s.onlyWorst(s.Duration)
	}
	switch {
	case s.Duration < LeastDuration:
		return fmt.Errorf("%s; say how long a router runs, from its start to its last request: %s or more, as no token is sent in its last seconds", s.Duration, LeastDuration)
	case s.Duration > maxExpires:
		return fmt.Errorf("%s is longer than a day", s.Duration)
	case s.Duration%time.Second != 0:
		return fmt.Errorf("%s: tokens tell time in whole seconds", s.Duration)
	}
	return nil
}

func (s Spec) checkLeeway() error {
	if s.Kind != JWTCacheWorst {
		return s.onlyWorst(s.Leeway)
	}
	switch {
	case s.Leeway == unsaid:
		return errors.New("say how long after exp the server still takes a token: 30s for PostgREST, 0s for one that takes none")
	case s.Leeway < 0:
		return fmt.Errorf("%s is negative; a server that refuses tokens before their exp cannot be asked this way", s.Leeway)
	case s.Leeway > maxExpires:
		return fmt.Errorf("%s is longer than a day", s.Leeway)
	case s.Leeway%time.Second != 0:
		return fmt.Errorf("%s: tokens tell time in whole seconds", s.Leeway)
	}
	return nil
}

func (s Spec) onlyWorst(given time.Duration) error {
	if given != 0 {
		return fmt.Errorf("only tokens of kind %s expire while a router runs; leave it out", JWTCacheWorst)
	}
	return nil
}

func (s Spec) checkClaims() error {
	c, err := newClaims(s.Claims, s.Seed)
	if err != nil {
		return err
	}
	if one := len(s.longest(c)); one > maxClaims {
		return fmt.Errorf("%d bytes in a token, more than the %d that fit into a header", one, maxClaims)
	}
	return nil
}

// longest are the claims of the last token.
func (s Spec) longest(c *claims) []byte {
	t := s.times()
	return c.append(nil, token{n: s.Count, alg: s.Algs[0], iat: t.iat, exp: t.last})
}

// checkSize refuses before it is made what Read would refuse.
func (s Spec) checkSize() error {
	c, err := newClaims(s.Claims, s.Seed)
	if err != nil {
		return err
	}
	round := 0 // a request of each algorithm
	for _, alg := range s.Algs {
		round += s.size(alg, len(s.longest(c)))
	}
	if most := maxFile * len(s.Algs) / round; s.Count > most {
		return &FieldError{"count", fmt.Errorf("%d requests do not fit into the %d MiB that a file may hold; ask for at most about %d of this size", s.Count, maxFile>>20, twoDigits(most))}
	}
	return nil
}

// twoDigits rounds down.
func twoDigits(n int) int {
	unit := 1
	for n/unit >= 100 {
		unit *= 10
	}
	return n / unit * unit
}

// size is that of a request in the file, in bytes.
func (s Spec) size(alg keys.Alg, claims int) int {
	signature := map[keys.Alg]int{keys.HS256: 32, keys.RS256: s.RSABits / 8, keys.PS256: s.RSABits / 8, keys.ES256: 64, keys.EdDSA: 64}[alg]
	const header = 64 // of the token, in base64; a little more than it has
	return len(s.head(alg)) + header + len("..\n\n") + base64.RawURLEncoding.EncodedLen(claims) + base64.RawURLEncoding.EncodedLen(signature)
}

// unknown says which words there are, and which was meant.
func unknown[T ~string](word, what string, known []T) error {
	if word == "" {
		return fmt.Errorf("is missing; known are %s", list(known))
	}
	meant, most := "", 0
	for _, k := range known {
		if n := alike(word, string(k)); n > most && 2*n >= len(k) {
			meant, most = " did you mean "+string(k)+"?", n
		}
	}
	return fmt.Errorf("unknown %s %s;%s known are %s", what, excerpt(word), meant, list(known))
}

// alike counts the letters that two words have in common at their ends,
// whatever their case.
func alike(a, b string) (n int) {
	a, b = strings.ToLower(a), strings.ToLower(b)
	for a != "" && b != "" && a[0] == b[0] {
		a, b, n = a[1:], b[1:], n+1
	}
	for a != "" && b != "" && a[len(a)-1] == b[len(b)-1] {
		a, b, n = a[:len(a)-1], b[:len(b)-1], n+1
	}
	return n
}

func list[T ~string](words []T) string {
	var all []string
	for _, w := range words {
		all = append(all, string(w))
	}
	return strings.Join(all, ", ")
}
