package keys

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/x509"
	"encoding/asn1"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-jose/go-jose/v4"
	"github.com/golang-jwt/jwt/v5"
)

// needs skips a test whose program is not installed, but not in CI.
func needs(t testing.TB, program string) {
	t.Helper()
	if _, err := exec.LookPath(program); err == nil {
		return
	}
	if os.Getenv("CI") != "" {
		t.Fatalf("%s is not installed; on Debian: apt-get install %s", program, program)
	}
	t.Skipf("%s is not installed; on Debian: apt-get install %s", program, program)
}

// The vectors of RFC 6979 A.2.5 for SHA-256.
func TestES256FollowsRFC6979(t *testing.T) {
	scalar, _ := hex.DecodeString("C9AFA9D845BA75166B5C215767B1D6934E50C3DB36E89B127B8A622B120F6721")
	key, err := ecdsa.ParseRawPrivateKey(elliptic.P256(), scalar)
	if err != nil {
		t.Fatal(err)
	}
	for message, want := range map[string]string{
		"sample": "EFD48B2AACB6A8FD1140DD9CD45E81D69D2C877B56AAF991C34D0EA84EAF3716" +
			"F7CB1C942D657C41D436C7A1B6E29F65F3E900DBB9AFF4064DC4AB2F843ACDA8",
		"test": "F1ABB023518351CD71D881567B1EA663ED3EFCF6C5132B354F28D3B0B7D38367" +
			"019F4113742A2B14BD25926B49C649155F267E60D3814B4C0CC84250E46F0083",
	} {
		got, err := es256{}.Sign(message, key)
		if err != nil || !strings.EqualFold(hex.EncodeToString(got), want) {
			t.Errorf("%q: %X (%v), want %s", message, got, err, want)
		}
	}
}

func TestTheHeaderNamesAlgorithmAndKey(t *testing.T) {
	r := ring(t, 1, 2048, Algs()...)
	for _, alg := range Algs() {
		head, _, _ := strings.Cut(sign(t, r, alg), ".")
		raw, err := base64.RawURLEncoding.DecodeString(head)
		want := `{"alg":"` + string(alg) + `","kid":"` + strings.ToLower(string(alg)) + `","typ":"JWT"}`
		if err != nil || string(raw) != want {
			t.Errorf("header %s (%v), want %s", raw, err, want)
		}
	}
}

// tampered are tokens made from a good one that must not be taken.
func tampered(token string) map[string]string {
	parts := strings.Split(token, ".")
	other := strings.Replace(string(claims), "author", "editor", 1)
	sig, _ := base64.RawURLEncoding.DecodeString(parts[2])
	flipped := bytes.Clone(sig)
	flipped[len(flipped)-1] ^= 1
	return map[string]string{
		"other claims":          parts[0] + "." + encode([]byte(other)) + "." + parts[2],
		"a flipped bit":         parts[0] + "." + parts[1] + "." + encode(flipped),
		"a shortened signature": parts[0] + "." + parts[1] + "." + encode(sig[:len(sig)-1]),
		"another algorithm":     encode([]byte(`{"alg":"HS512","typ":"JWT"}`)) + "." + parts[1] + "." + parts[2],
	}
}

// verify tries a check, which says of a token whether it is good for a ring's
// files, on good tokens and bad ones.
func verify(t *testing.T, check func(t *testing.T, files map[string][]byte, alg Alg, token string) error) {
	r := ring(t, 1, 2048, Algs()...)
	files := contents(t, r)
	for _, alg := range Algs() {
		t.Run(string(alg), func(t *testing.T) {
			token := sign(t, r, alg)
			if err := check(t, files, alg, token); err != nil {
				t.Errorf("a good token is refused: %v", err)
			}
			for what, bad := range tampered(token) {
				if check(t, files, alg, bad) == nil {
					t.Errorf("a token with %s is taken", what)
				}
			}
			if other := sign(t, ring(t, 2, 2048, alg), alg); check(t, files, alg, other) == nil {
				t.Error("a token of another seed's key is taken")
			}
		})
	}
}

// TestGolangJWTVerifies reads the PEM files.
func TestGolangJWTVerifies(t *testing.T) {
	verify(t, func(t *testing.T, files map[string][]byte, alg Alg, token string) error {
		var key any
		var err error
		switch alg {
		case HS256:
			key = files["hs.secret"]
		case RS256, PS256:
			key, err = jwt.ParseRSAPublicKeyFromPEM(files["rsa.public.pem"])
		case ES256:
			key, err = jwt.ParseECPublicKeyFromPEM(files["ec.public.pem"])
		case EdDSA:
			key, err = jwt.ParseEdPublicKeyFromPEM(files["ed.public.pem"])
		}
		if err != nil {
			t.Fatal(err)
		}
		parsed, err := jwt.Parse(token, func(*jwt.Token) (any, error) { return key, nil },
			jwt.WithValidMethods([]string{string(alg)}), jwt.WithIssuer("plumbline"))
		if err == nil && parsed.Header["kid"] != strings.ToLower(string(alg)) {
			t.Errorf("kid %v", parsed.Header["kid"])
		}
		return err
	})
}

// TestManyTokensVerify: an encoding that is wrong only for some messages (a
// number that starts with a zero byte, a bit to be cleared) shows here.
func TestManyTokensVerify(t *testing.T) {
	r := ring(t, 1, 2048, Algs()...)
	for alg, count := range map[Alg]int{HS256: 100, RS256: 50, PS256: 100, ES256: 2000, EdDSA: 100} {
		var key any = r.hs
		if signer, ok := r.key(alg).private.(crypto.Signer); ok {
			key = signer.Public()
		}
		for i := range count {
			token, err := r.Sign(alg, fmt.Appendf(nil, `{"sub":"user-%d"}`, i))
			if err != nil {
				t.Fatal(err)
			}
			_, err = jwt.Parse(token, func(*jwt.Token) (any, error) { return key, nil }, jwt.WithValidMethods([]string{string(alg)}))
			if err != nil {
				t.Errorf("%s, token %d: %v", alg, i, err)
			}
		}
	}
}

// TestGoJoseVerifies reads the sets: the private one, the public one if the
// key has a public part.
func TestGoJoseVerifies(t *testing.T) {
	verify(t, func(t *testing.T, files map[string][]byte, alg Alg, token string) error {
		name := "jwks.public.json"
		if alg == HS256 {
			name = "jwks.json"
		}
		key := inSet(t, files[name], alg)
		if alg != HS256 {
			private := inSet(t, files["jwks.json"], alg)
			if private.IsPublic() || !key.IsPublic() {
				t.Errorf("%s: private parts belong into jwks.json only", alg)
			}
			if signer := private.Key.(crypto.Signer); !signer.Public().(interface{ Equal(crypto.PublicKey) bool }).Equal(key.Key) {
				t.Errorf("%s: the sets hold different keys", alg)
			}
		}
		jws, err := jose.ParseSigned(token, []jose.SignatureAlgorithm{jose.SignatureAlgorithm(alg)})
		if err != nil {
			return err
		}
		payload, err := jws.Verify(key)
		if err == nil && !bytes.Equal(payload, claims) {
			t.Errorf("payload %s", payload)
		}
		return err
	})
}

// inSet is the one key of an algorithm in a set. Valid is for key pairs only.
func inSet(t *testing.T, data []byte, alg Alg) jose.JSONWebKey {
	t.Helper()
	var set jose.JSONWebKeySet
	if err := json.Unmarshal(data, &set); err != nil {
		t.Fatal(err)
	}
	found := set.Key(strings.ToLower(string(alg)))
	if len(found) != 1 || found[0].Algorithm != string(alg) || found[0].Use != "sig" || alg != HS256 && !found[0].Valid() {
		t.Fatalf("%s in the set: %+v", alg, found)
	}
	return found[0]
}

// TestOpenSSLVerifies reads the files with openssl.
func TestOpenSSLVerifies(t *testing.T) {
	needs(t, "openssl")
	verify(t, func(t *testing.T, files map[string][]byte, alg Alg, token string) error {
		dir := write(t, files)
		cut := strings.LastIndex(token, ".")
		sig, err := base64.RawURLEncoding.DecodeString(token[cut+1:])
		if err != nil {
			t.Fatal(err)
		}
		if alg == HS256 {
			mac, err := openssl(t, dir, token[:cut], "dgst", "-sha256", "-binary", "-mac", "HMAC", "-macopt", "key:"+string(files["hs.secret"]))
			if err == nil && !bytes.Equal(mac, sig) {
				return jwt.ErrSignatureInvalid
			}
			return err
		}
		if alg == ES256 {
			half := (len(sig) + 1) / 2
			sig, err = asn1.Marshal(struct{ R, S *big.Int }{new(big.Int).SetBytes(sig[:half]), new(big.Int).SetBytes(sig[half:])})
			if err != nil {
				t.Fatal(err)
			}
		}
		writeTo(t, dir, "signature", sig)
		writeTo(t, dir, "message", []byte(token[:cut]))
		_, err = openssl(t, dir, token[:cut], map[Alg][]string{
			RS256: {"dgst", "-sha256", "-verify", "rsa.public.pem", "-signature", "signature"},
			PS256: {"dgst", "-sha256", "-verify", "rsa.public.pem", "-signature", "signature", "-sigopt", "rsa_padding_mode:pss", "-sigopt", "rsa_pss_saltlen:32"},
			ES256: {"dgst", "-sha256", "-verify", "ec.public.pem", "-signature", "signature"},
			EdDSA: {"pkeyutl", "-verify", "-pubin", "-inkey", "ed.public.pem", "-rawin", "-in", "message", "-sigfile", "signature"},
		}[alg]...)
		return err
	})
}

func TestOpenSSLTakesTheKeys(t *testing.T) {
	needs(t, "openssl")
	r := ring(t, 1, 4096, Algs()...)
	files := contents(t, r)
	dir := write(t, files)
	for _, name := range []string{"rsa", "ec", "ed"} {
		if name != "ed" { // openssl 3.0 has no check for Ed25519
			if _, err := openssl(t, dir, "", "pkey", "-in", name+".pem", "-check", "-noout"); err != nil {
				t.Error(err)
			}
		}
		public, err := openssl(t, dir, "", "pkey", "-in", name+".pem", "-pubout")
		if err != nil || !bytes.Equal(public, files[name+".public.pem"]) {
			t.Errorf("%s.public.pem is not the public part of %s.pem: %v", name, name, err)
		}
	}
	if out, err := openssl(t, dir, "", "rsa", "-check", "-noout", "-in", "rsa.pem"); err != nil || !strings.Contains(string(out), "RSA key ok") {
		t.Errorf("openssl rsa -check: %s %v", out, err)
	}
	for _, prime := range r.rsa.Primes {
		if out, err := openssl(t, dir, "", "prime", "-hex", prime.Text(16)); err != nil || !strings.Contains(string(out), "is prime") {
			t.Errorf("openssl prime: %s %v", out, err)
		}
	}
}

func write(t *testing.T, files map[string][]byte) string {
	t.Helper()
	dir := t.TempDir()
	for name, data := range files {
		writeTo(t, dir, name, data)
	}
	return dir
}

func writeTo(t *testing.T, dir, name string, data []byte) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
		t.Fatal(err)
	}
}

func openssl(t *testing.T, dir, stdin string, args ...string) ([]byte, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "openssl", args...)
	cmd.Dir = dir
	cmd.Stdin = strings.NewReader(stdin)
	return cmd.Output()
}

// TestFilesAreOfTheirFormat: PKCS #8 and SubjectPublicKeyInfo, one block and a
// newline; sets that end with a newline; a secret that does not.
func TestFilesAreOfTheirFormat(t *testing.T) {
	for name, data := range contents(t, ring(t, 1, 2048, Algs()...)) {
		if ends := data[len(data)-1] == '\n'; ends != (name != "hs.secret") {
			t.Errorf("%s ends with a newline: %v", name, ends)
		}
		switch {
		case name == "hs.secret":
			if raw, err := base64.RawURLEncoding.DecodeString(string(data)); err != nil || len(raw) != 48 {
				t.Errorf("a secret of %d bytes (%v)", len(raw), err)
			}
		case strings.HasSuffix(name, ".pem"):
			block, rest := pem.Decode(data)
			if block == nil || len(rest) > 0 || len(block.Headers) > 0 {
				t.Errorf("%s is not one PEM block", name)
				continue
			}
			kind, parse := "PRIVATE KEY", x509.ParsePKCS8PrivateKey
			if strings.HasSuffix(name, ".public.pem") {
				kind, parse = "PUBLIC KEY", x509.ParsePKIXPublicKey
			}
			if _, err := parse(block.Bytes); err != nil || block.Type != kind {
				t.Errorf("%s is a %s (%v)", name, block.Type, err)
			}
		default:
			if !json.Valid(data) || !bytes.HasPrefix(data, []byte("{\n  \"keys\": [\n")) {
				t.Errorf("%s is not indented JSON", name)
			}
		}
	}
}

func TestThePublicSetHoldsNoSecret(t *testing.T) {
	var set struct{ Keys []map[string]any }
	if err := json.Unmarshal(contents(t, ring(t, 1, 2048, Algs()...))["jwks.public.json"], &set); err != nil {
		t.Fatal(err)
	}
	if len(set.Keys) != 4 {
		t.Errorf("%d public keys, want 4", len(set.Keys))
	}
	for _, key := range set.Keys {
		for _, private := range []string{"k", "d", "p", "q", "dp", "dq", "qi", "oth"} {
			if key[private] != nil {
				t.Errorf("%v has its %q in the public set", key["kid"], private)
			}
		}
	}
}
