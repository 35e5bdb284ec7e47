package keys

import (
	"crypto"
	"testing"

	"github.com/golang-jwt/jwt/v5"
)

func TestTokensVerify(t *testing.T) {
	r, err := New(t.Context(), 1, 2048, Algs())
	if err != nil {
		t.Fatal(err)
	}
	for _, alg := range Algs() {
		token, err := r.Sign(alg, []byte(`{"sub":"1"}`))
		if err != nil {
			t.Fatal(err)
		}
		_, err = jwt.Parse(token, func(*jwt.Token) (any, error) {
			if s, ok := r.key(alg).private.(crypto.Signer); ok {
				return s.Public(), nil
			}
			return r.hs, nil
		}, jwt.WithValidMethods([]string{string(alg)}))
		if err != nil {
			t.Errorf("%s: %v", alg, err)
		}
	}
}
