// Package keys owns the key material of generated targets: one key for each
// JWS algorithm, made from a seed, and the tokens that it signs.
//
// The same seed gives the same bytes on every machine, so that a key is made
// once and two builds are asked the very same things. It also means that
// anyone can make these keys again: they are for tests only.
package keys

import (
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/golang-jwt/jwt/v5"
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
type Ring struct {
	keys []key // in the order of Algs
	hs   []byte
	rsa  *rsa.PrivateKey
	ec   *ecdsa.PrivateKey
	ed   ed25519.PrivateKey
}

// key is what signs one algorithm's tokens.
type key struct {
	alg     Alg
	kid     string
	method  jwt.SigningMethod
	private any    // as the method takes it
	header  string // of the tokens, encoded, with the dot that ends it
}

// File is one of the files that hold a ring's keys.
type File struct {
	Name string
	Data []byte
}

// New makes the keys of algs from the seed; an RSA modulus has rsaBits bits
// (2,048 to 16,384, a multiple of 8). It ends early, with its cause, when ctx
// ends.
//
// A key depends on its kind, the seed and, if it is an RSA key, on rsaBits;
// not on what other keys are asked for.
func New(ctx context.Context, seed uint64, rsaBits int, algs []Alg) (*Ring, error) {
	if err := check(rsaBits, algs); err != nil {
		return nil, err
	}
	r := &Ring{}
	for _, alg := range Algs() {
		if !slices.Contains(algs, alg) {
			continue
		}
		method, private, err := r.generate(ctx, seed, rsaBits, alg)
		if err != nil {
			return nil, fmt.Errorf("making the key of %s: %w", alg, err)
		}
		k := key{alg: alg, kid: strings.ToLower(string(alg)), method: method, private: private}
		k.header = encode(fmt.Appendf(nil, `{"alg":%q,"kid":%q,"typ":"JWT"}`, alg, k.kid)) + "."
		r.keys = append(r.keys, k)
	}
	return r, nil
}

func check(rsaBits int, algs []Alg) error {
	if len(algs) == 0 {
		return fmt.Errorf("no algorithm to make a key for: name at least one of %s", known())
	}
	for i, alg := range algs {
		if !slices.Contains(Algs(), alg) {
			return fmt.Errorf("unknown algorithm %q: want one of %s", alg, known())
		}
		if slices.Contains(algs[:i], alg) {
			return fmt.Errorf("algorithm %s is named twice: name each once", alg)
		}
		if (alg == RS256 || alg == PS256) && (rsaBits < 2048 || rsaBits > 16384 || rsaBits%8 != 0) {
			return fmt.Errorf("an RSA modulus of %d bits for %s: want a multiple of 8 from 2048 to 16384, such as 4096", rsaBits, alg)
		}
	}
	return nil
}

func known() string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(Algs()), " ", ", "), "[]")
}

// generate makes an algorithm's key, once for those that share one.
func (r *Ring) generate(ctx context.Context, seed uint64, rsaBits int, alg Alg) (method jwt.SigningMethod, private any, err error) {
	if ctx.Err() != nil {
		return nil, nil, context.Cause(ctx)
	}
	switch alg {
	case HS256:
		r.hs = newSecret(stream("hs", seed))
		return jwt.SigningMethodHS256, r.hs, nil
	case ES256:
		r.ec, err = newEC(stream("ec", seed))
		return es256{}, r.ec, err
	case EdDSA:
		r.ed = newEd(stream("ed", seed))
		return jwt.SigningMethodEdDSA, r.ed, nil
	}
	if r.rsa == nil {
		r.rsa, err = newRSA(ctx, seed, rsaBits)
	}
	if alg == PS256 {
		return ps256{}, r.rsa, err
	}
	return jwt.SigningMethodRS256, r.rsa, err
}

// stream is the random bytes that a key is made of: ChaCha8 as specified by
// https://c2sp.org/chacha8rand, keyed with the SHA-256 of what they are for.
// Every key has a stream of its own, so that none shifts another's. It is to be
// read with Read only. A change of it is a change of all keys: a new version.
func stream(name string, seed uint64) *rand.ChaCha8 {
	return rand.NewChaCha8(sha256.Sum256(fmt.Appendf(nil, "plumbline keys v1 / %s / %d", name, seed)))
}

// newSecret makes 64 printable characters that hold 384 bits: a secret is
// often handed over in an environment variable or typed into a configuration.
func newSecret(random *rand.ChaCha8) []byte {
	raw := make([]byte, 48)
	random.Read(raw)
	return []byte(encode(raw))
}

// newEC takes the first scalar of the stream that is in range (FIPS 186-5
// A.2.2, rejection sampling).
func newEC(random *rand.ChaCha8) (*ecdsa.PrivateKey, error) {
	scalar := make([]byte, 32)
	for range 100 { // one in 2^32 is out of range
		random.Read(scalar)
		if k, err := ecdsa.ParseRawPrivateKey(elliptic.P256(), scalar); err == nil {
			return k, nil
		}
	}
	return nil, errors.New("no scalar of P-256 in 100 tries: crypto/ecdsa refuses them all")
}

func newEd(random *rand.ChaCha8) ed25519.PrivateKey {
	seed := make([]byte, ed25519.SeedSize)
	random.Read(seed)
	return ed25519.NewKeyFromSeed(seed)
}

func encode(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }
