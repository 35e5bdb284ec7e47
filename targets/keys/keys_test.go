package keys

import (
	"bytes"
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

var claims = []byte(`{"iss":"plumbline","sub":"user-1","role":"author","iat":946684800,"nbf":946684800,"exp":4102358400}`)

func ring(t testing.TB, seed uint64, rsaBits int, algs ...Alg) *Ring {
	t.Helper()
	r, err := New(t.Context(), seed, rsaBits, algs)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func sign(t testing.TB, r *Ring, alg Alg) string {
	t.Helper()
	token, err := r.Sign(alg, claims)
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// contents are a ring's files by name.
func contents(t testing.TB, r *Ring) map[string][]byte {
	t.Helper()
	files, err := r.Files()
	if err != nil {
		t.Fatal(err)
	}
	byName := map[string][]byte{}
	for _, f := range files {
		byName[f.Name] = f.Data
	}
	return byName
}

func TestAKeyDoesNotDependOnTheOthers(t *testing.T) {
	full := ring(t, 7, 2048, Algs()...)
	all := contents(t, full)
	for _, alg := range Algs() {
		alone := ring(t, 7, 2048, alg)
		for name, data := range contents(t, alone) {
			if !strings.HasPrefix(name, "jwks") && !bytes.Equal(data, all[name]) {
				t.Errorf("%s: %s is another one when no other key is made", alg, name)
			}
		}
		if sign(t, alone, alg) != sign(t, full, alg) {
			t.Errorf("%s: another token when no other key is made", alg)
		}
	}
}

func TestRS256AndPS256ShareAKey(t *testing.T) {
	r := ring(t, 7, 2048, PS256, RS256)
	if r.key(RS256).private != r.key(PS256).private {
		t.Error("the key was made twice")
	}
}

func TestTheOrderOfAlgorithmsDoesNotMatter(t *testing.T) {
	backwards := Algs()
	slices.Reverse(backwards)
	sameFiles(t, contents(t, ring(t, 7, 2048, Algs()...)), contents(t, ring(t, 7, 2048, backwards...)))
}

func TestTheNumberOfCPUsDoesNotMatter(t *testing.T) {
	before := runtime.GOMAXPROCS(1)
	defer runtime.GOMAXPROCS(before)
	one := contents(t, ring(t, 7, 2048, Algs()...))
	runtime.GOMAXPROCS(8)
	sameFiles(t, one, contents(t, ring(t, 7, 2048, Algs()...)))
}

func sameFiles(t *testing.T, want, got map[string][]byte) {
	t.Helper()
	if len(want) != len(got) {
		t.Errorf("%d files and %d files", len(want), len(got))
	}
	for name := range want {
		if !bytes.Equal(want[name], got[name]) {
			t.Errorf("%s differs", name)
		}
	}
}

func TestEverySeedHasItsOwnKeys(t *testing.T) {
	seen := map[string]string{}
	for _, seed := range []uint64{0, 1, 2, 1 << 63} {
		for name, data := range contents(t, ring(t, seed, 2048, Algs()...)) {
			if of := seen[string(data)]; of != "" {
				t.Errorf("%s is the same as %s of another seed", name, of)
			}
			seen[string(data)] = name
		}
	}
}

func TestTheLengthOfRSAChangesNoOtherKey(t *testing.T) {
	short, long := contents(t, ring(t, 7, 2048, Algs()...)), contents(t, ring(t, 7, 2056, Algs()...))
	for name := range short {
		ofRSA := strings.HasPrefix(name, "rsa") || strings.HasPrefix(name, "jwks")
		if bytes.Equal(short[name], long[name]) == ofRSA {
			t.Errorf("%s: the same for both lengths: %v", name, !ofRSA)
		}
	}
}

func TestOnlyWhatWasAskedForIsThere(t *testing.T) {
	r := ring(t, 1, 0, HS256) // no RSA, so that its length is of no account
	got := contents(t, r)
	if len(got) != 2 || got["jwks.json"] == nil || len(got["hs.secret"]) != 64 {
		t.Errorf("files of HS256 alone: %d, a secret of %d bytes", len(got), len(got["hs.secret"]))
	}
	if r.KID(HS256) != "hs256" || r.KID(RS256) != "" {
		t.Errorf("kids %q and %q", r.KID(HS256), r.KID(RS256))
	}
	if _, err := r.Sign(RS256, claims); err == nil || !strings.Contains(err.Error(), `"RS256"`) {
		t.Errorf("signing without a key: %v", err)
	}
}

func TestFilesCannotChangeTheRing(t *testing.T) {
	r := ring(t, 1, 0, HS256)
	before := sign(t, r, HS256)
	contents(t, r)["hs.secret"][0] ^= 1
	if sign(t, r, HS256) != before {
		t.Error("a change in a file's bytes changed the key")
	}
}

func TestBadInput(t *testing.T) {
	for _, c := range []struct {
		bits int
		algs []Alg
		want string
	}{
		{4096, nil, "no algorithm to make a key for: name at least one of HS256, RS256, PS256, ES256, EdDSA"},
		{4096, []Alg{HS256, "none"}, `unknown algorithm "none": want one of HS256, RS256, PS256, ES256, EdDSA`},
		{4096, []Alg{"hs256"}, `unknown algorithm "hs256"`},
		{4096, []Alg{HS256, RS256, HS256}, "algorithm HS256 is named twice"},
		{1024, []Alg{RS256}, "an RSA modulus of 1024 bits for RS256: want a multiple of 8 from 2048 to 16384"},
		{2047, []Alg{PS256}, "an RSA modulus of 2047 bits for PS256"},
		{2050, []Alg{PS256}, "a multiple of 8"},
		{16392, []Alg{HS256, RS256}, "an RSA modulus of 16392 bits"},
		{-4096, []Alg{RS256}, "an RSA modulus of -4096 bits"},
	} {
		if r, err := New(t.Context(), 1, c.bits, c.algs); err == nil || !strings.Contains(err.Error(), c.want) || r != nil {
			t.Errorf("New(%d, %v): %v, want %q", c.bits, c.algs, err, c.want)
		}
	}
}

func TestClaimsMustBeAnObject(t *testing.T) {
	r := ring(t, 1, 0, HS256)
	for _, bad := range []string{"", "null", "[]", `"{}"`, "{", `{"a":1}}`, `{"a":}`, "{} {}", "\ufeff{}"} {
		if token, err := r.Sign(HS256, []byte(bad)); err == nil || token != "" {
			t.Errorf("claims %q were signed", bad)
		}
	}
	for _, good := range []string{"{}", ` {"a": {"b": [1]}}` + "\n"} {
		token, err := r.Sign(HS256, []byte(good))
		if err != nil {
			t.Errorf("claims %q: %v", good, err)
		} else if parts := strings.Split(token, "."); parts[1] != encode([]byte(good)) {
			t.Errorf("claims %q were changed", good)
		}
	}
}

func TestTheSearchEndsWithItsContext(t *testing.T) {
	cause := errors.New("the user has gone")
	ctx, cancel := context.WithCancelCause(t.Context())
	// Such a key takes minutes: if the search did not look at ctx, the test would time out.
	time.AfterFunc(20*time.Millisecond, func() { cancel(cause) })
	if r, err := New(ctx, 1, 16384, []Alg{RS256}); !errors.Is(err, cause) || r != nil {
		t.Errorf("New ended with %v, want the context's cause", err)
	}
	if _, err := New(ctx, 1, 0, []Alg{HS256}); !errors.Is(err, cause) {
		t.Errorf("New began with %v, though its context had ended", err)
	}
}

func TestSigningAtOnce(t *testing.T) {
	r := ring(t, 1, 2048, Algs()...)
	for _, alg := range Algs() {
		want := sign(t, r, alg)
		var signers sync.WaitGroup
		for range 8 {
			signers.Go(func() {
				for range 5 {
					if got, err := r.Sign(alg, claims); err != nil || got != want {
						t.Errorf("%s: another token (%v)", alg, err)
					}
				}
			})
		}
		signers.Wait()
	}
}
