package keys

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/asn1"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math/big"

	"github.com/golang-jwt/jwt/v5"
)

// Sign returns a compact JWS (RFC 7515) of the claims, a JSON object that is
// taken as it stands, as a JWT. The same claims give the same token.
func (r *Ring) Sign(alg Alg, claims []byte) (string, error) {
	k := r.key(alg)
	if k == nil {
		return "", fmt.Errorf("no key for algorithm %q in the ring: name it when the keys are made", alg)
	}
	if !bytes.HasPrefix(bytes.TrimLeft(claims, " \t\r\n"), []byte("{")) || !json.Valid(claims) {
		return "", fmt.Errorf("claims are not a JSON object: %.60q", claims)
	}
	signed := k.header + encode(claims)
	signature, err := k.method.Sign(signed, k.private)
	if err != nil {
		return "", fmt.Errorf("signing with %s: %w", alg, err)
	}
	return signed + "." + encode(signature), nil
}

// KID is the key's identifier, in the header of its tokens and in the sets;
// empty if the ring has no key of the algorithm.
func (r *Ring) KID(alg Alg) string {
	if k := r.key(alg); k != nil {
		return k.kid
	}
	return ""
}

func (r *Ring) key(alg Alg) *key {
	for i := range r.keys {
		if r.keys[i].alg == alg {
			return &r.keys[i]
		}
	}
	return nil
}

// es256 signs as RFC 6979 says: the nonce comes from the key and the message.
// That of golang-jwt draws it at random.
type es256 struct{ jwt.SigningMethod }

func (es256) Alg() string { return string(ES256) }

func (es256) Sign(signed string, private any) ([]byte, error) {
	digest := sha256.Sum256([]byte(signed))
	// No source of random numbers stands for RFC 6979 (crypto/ecdsa.PrivateKey.Sign).
	der, err := private.(*ecdsa.PrivateKey).Sign(nil, digest[:], crypto.SHA256)
	if err != nil {
		return nil, err
	}
	var sig struct{ R, S *big.Int }
	if _, err := asn1.Unmarshal(der, &sig); err != nil {
		return nil, err
	}
	raw := make([]byte, 64) // RFC 7518 3.4: r and s, 32 bytes each
	sig.R.FillBytes(raw[:32])
	sig.S.FillBytes(raw[32:])
	return raw, nil
}

// ps256 signs with a salt that is the SHA-256 of the message, 32 bytes long as
// RFC 7518 3.5 demands. crypto/rsa.SignPSS takes its salt from a reader, but
// does not promise to: Go 1.26 stopped to heed such readers in most of crypto.
// A token is to be the same in every version, so the encoding is done here.
type ps256 struct{ jwt.SigningMethod }

func (ps256) Alg() string { return string(PS256) }

func (ps256) Sign(signed string, private any) ([]byte, error) {
	k := private.(*rsa.PrivateKey)
	digest := sha256.Sum256([]byte(signed))
	return decrypt(k, encodePSS(digest[:], digest[:], k.N.BitLen()-1)), nil
}

// encodePSS is EMSA-PSS-ENCODE of RFC 8017 9.1.1 with SHA-256 and MGF1, from
// the message's digest on. emBits is one less than the modulus has, which is
// far more than what is to be put in.
func encodePSS(digest, salt []byte, emBits int) []byte {
	em := make([]byte, (emBits+7)/8)
	dbLen := len(em) - sha256.Size - 1
	h := sha256.New()
	h.Write(make([]byte, 8))
	h.Write(digest)
	h.Write(salt)
	hash := h.Sum(nil)

	db := em[:dbLen]
	db[dbLen-len(salt)-1] = 1
	copy(db[dbLen-len(salt):], salt)
	maskWith(db, hash)
	db[0] &= 0xff >> (8*len(em) - emBits)
	copy(em[dbLen:], hash)
	em[len(em)-1] = 0xbc
	return em
}

// maskWith adds MGF1 (RFC 8017 B.2.1) of seed to db.
func maskWith(db, seed []byte) {
	for i := uint32(0); len(db) > 0; i++ {
		block := sha256.Sum256(binary.BigEndian.AppendUint32(bytes.Clone(seed), i))
		db = db[subtle.XORBytes(db, db, block[:]):]
	}
}

// decrypt is RSADP of RFC 8017 5.1.2 (2b), by the Chinese remainder theorem.
// It takes no care that its time tells nothing of the key: the key is public.
func decrypt(k *rsa.PrivateKey, encoded []byte) []byte {
	c := new(big.Int).SetBytes(encoded)
	p, q := k.Primes[0], k.Primes[1]
	m1 := new(big.Int).Exp(c, k.Precomputed.Dp, p)
	m2 := new(big.Int).Exp(c, k.Precomputed.Dq, q)
	h := m1.Sub(m1, m2)
	h.Mod(h.Mul(h, k.Precomputed.Qinv), p)
	return m2.Add(m2, h.Mul(h, q)).FillBytes(make([]byte, k.Size()))
}
