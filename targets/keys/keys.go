// Package keys owns the key material of generated targets: one key for each
// JWS algorithm, made from a seed, and the tokens that it signs.
//
// The same seed gives the same bytes on every machine, so that a key is made
// once and two builds are asked the very same things. It also means that
// anyone can make these keys again: they are for tests only.
package keys

import (
	"context"
	"errors"
)

// Alg is a JWS algorithm by its name in RFC 7518 and RFC 8037.
type Alg string

// The algorithms that tokens can be signed with.
const (
	HS256 Alg = "HS256" // HMAC with SHA-256
	RS256 Alg = "RS256" // RSASSA-PKCS1-v1_5 with SHA-256
	PS256 Alg = "PS256" // RSASSA-PSS with SHA-256, on the key of RS256
	ES256 Alg = "ES256" // ECDSA on P-256 with SHA-256
	EdDSA Alg = "EdDSA" // Ed25519
)

// Algs are all of them, in the order in which files list them.
func Algs() []Alg { return []Alg{HS256, RS256, PS256, ES256, EdDSA} }

// Ring is a key for each of some algorithms. It may be used by several
// goroutines at once.
type Ring struct{}

// File is one of the files that hold a ring's keys.
type File struct {
	Name string
	Data []byte
}

// New makes the keys of algs from the seed; an RSA modulus has rsaBits bits
// (2,048 to 16,384). It ends early, with its cause, when ctx ends.
func New(ctx context.Context, seed uint64, rsaBits int, algs []Alg) (*Ring, error) {
	return nil, errors.New("not built yet")
}

// Sign returns a compact JWS (RFC 7515) of the claims, a JSON object, as a
// JWT. The same claims give the same token.
func (r *Ring) Sign(alg Alg, claims []byte) (string, error) {
	return "", errors.New("not built yet")
}

// KID is the key's identifier, in the header of its tokens and in the sets.
func (r *Ring) KID(alg Alg) string { return "" }

// Files are jwks.json (a JWKSet with all keys, private ones too),
// jwks.public.json (the public keys; none of HS256, and not there if there are
// no others) and for each kind of key that there is: hs.secret; rsa.pem and
// rsa.public.pem; ec.pem and ec.public.pem; ed.pem and ed.public.pem.
func (r *Ring) Files() ([]File, error) { return nil, errors.New("not built yet") }
