package keys

import (
	"bytes"
	"crypto"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"

	"github.com/go-jose/go-jose/v4"
)

// Files are jwks.json (a JWKSet with all keys, private ones too),
// jwks.public.json (the public keys; none of HS256, and not there if there are
// no others) and for each kind of key that there is: hs.secret; rsa.pem and
// rsa.public.pem; ec.pem and ec.public.pem; ed.pem and ed.public.pem.
//
// A secret is the file's very bytes, 64 printable characters without a newline.
// PEM is PKCS #8 for a private key and SubjectPublicKeyInfo for a public one.
func (r *Ring) Files() ([]File, error) {
	files, err := r.sets()
	if err != nil {
		return nil, err
	}
	if r.hs != nil {
		files = append(files, File{"hs.secret", bytes.Clone(r.hs)})
	}
	if r.rsa != nil {
		files, err = appendPEM(files, "rsa", r.rsa)
	}
	if r.ec != nil && err == nil {
		files, err = appendPEM(files, "ec", r.ec)
	}
	if r.ed != nil && err == nil {
		files, err = appendPEM(files, "ed", r.ed)
	}
	return files, err
}

func (r *Ring) sets() ([]File, error) {
	var all, public jose.JSONWebKeySet
	for _, k := range r.keys {
		jwk := jose.JSONWebKey{Key: k.private, KeyID: k.kid, Algorithm: string(k.alg), Use: "sig"}
		all.Keys = append(all.Keys, jwk)
		if k.alg != HS256 {
			public.Keys = append(public.Keys, jwk.Public())
		}
	}
	files, err := appendSet(nil, "jwks.json", all)
	if err == nil && len(public.Keys) > 0 {
		files, err = appendSet(files, "jwks.public.json", public)
	}
	return files, err
}

func appendSet(files []File, name string, set jose.JSONWebKeySet) ([]File, error) {
	data, err := json.MarshalIndent(set, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("writing %s: %w", name, err)
	}
	return append(files, File{name, append(data, '\n')}), nil
}

func appendPEM(files []File, name string, private crypto.Signer) ([]File, error) {
	pkcs8, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return nil, fmt.Errorf("writing %s.pem: %w", name, err)
	}
	spki, err := x509.MarshalPKIXPublicKey(private.Public())
	if err != nil {
		return nil, fmt.Errorf("writing %s.public.pem: %w", name, err)
	}
	return append(files,
		File{name + ".pem", pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8})},
		File{name + ".public.pem", pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: spki})},
	), nil
}
