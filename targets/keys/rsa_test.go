package keys

import (
	"crypto"
	"crypto/rsa"
	"crypto/sha256"
	"math/big"
	"testing"

	"pgregory.net/rapid"
)

func TestRSAKeysAreSound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nlen := 8 * rapid.IntRange(1024/8, 1152/8).Draw(t, "bytes") // short ones are quick
		k, err := newRSA(t.Context(), rapid.Uint64().Draw(t, "seed"), nlen)
		if err != nil {
			t.Fatal(err)
		}
		soundRSA(t, k, nlen)
		digest := sha256.Sum256([]byte(rapid.String().Draw(t, "message")))
		sig := decrypt(k, encodePSS(digest[:], digest[:], nlen-1))
		opts := &rsa.PSSOptions{SaltLength: 32}
		if err := rsa.VerifyPSS(&k.PublicKey, crypto.SHA256, digest[:], sig, opts); err != nil {
			t.Fatalf("PSS: %v", err)
		}
	})
}

func TestLongRSAKeysAreSound(t *testing.T) {
	for seed, nlen := range []int{2048, 2056, 3072, 4096} {
		soundRSA(t, ring(t, uint64(seed), nlen, RS256).rsa, nlen)
	}
}

// soundRSA demands what FIPS 186-5 A.1.1 and A.1.3 do.
func soundRSA(t rapid.TB, k *rsa.PrivateKey, nlen int) {
	t.Helper()
	if err := k.Validate(); err != nil {
		t.Fatal(err)
	}
	p, q := k.Primes[0], k.Primes[1]
	if k.N.BitLen() != nlen || p.BitLen() != nlen/2 || q.BitLen() != nlen/2 || k.E != 65537 {
		t.Fatalf("%d = %d + %d bits, e = %d; want %d", k.N.BitLen(), p.BitLen(), q.BitLen(), k.E, nlen)
	}
	if !p.ProbablyPrime(64) || !q.ProbablyPrime(64) {
		t.Fatal("p or q is no prime")
	}
	if d := new(big.Int).Sub(p, q); d.Abs(d).BitLen() <= nlen/2-100 {
		t.Fatal("p and q are too close")
	}
	if k.D.BitLen() <= nlen/2 {
		t.Fatal("d is too short")
	}
	p1, q1, e := new(big.Int).Sub(p, one), new(big.Int).Sub(q, one), big.NewInt(65537)
	lcm := new(big.Int).Div(new(big.Int).Mul(p1, q1), new(big.Int).GCD(nil, nil, p1, q1))
	if k.D.Cmp(lcm) >= 0 || new(big.Int).Mod(new(big.Int).Mul(e, k.D), lcm).Cmp(one) != 0 {
		t.Fatal("d is not the inverse of e")
	}
}

// TestThePrimeIsTheFirstOfItsStream searches again without a sieve: the keys
// must not change when the search is made faster.
func TestThePrimeIsTheFirstOfItsStream(t *testing.T) {
	for seed := range uint64(20) {
		got := nextPrime(t.Context(), stream("test", seed), 252)
		candidates := stream("test", seed)
		for raw := make([]byte, 32); ; {
			candidates.Read(raw)
			raw[0] = raw[0]&0x0f | 0x0c // 252 bits, the top two of them set
			raw[31] |= 1
			n := new(big.Int).SetBytes(raw)
			if n.ProbablyPrime(20) && new(big.Int).Mod(n, big.NewInt(exponent)).Cmp(one) != 0 {
				if n.Cmp(got) != 0 {
					t.Errorf("seed %d: %x is not the first prime, %x", seed, got, n)
				}
				break
			}
		}
	}
}

func TestAPrimeThatFitsNoExponentIsPassedOver(t *testing.T) {
	const seed = 44578 // found by trying: the first prime of this stream is 1 mod 65537
	unfit := new(big.Int).SetUint64(18261700275175927373)
	e := big.NewInt(exponent)
	if new(big.Int).Mod(unfit, e).Cmp(one) != 0 || !unfit.ProbablyPrime(20) {
		t.Fatal("the example is wrong")
	}
	got := nextPrime(t.Context(), stream("test", seed), 64)
	if got.Cmp(unfit) == 0 || new(big.Int).Mod(got, e).Cmp(one) == 0 {
		t.Errorf("65537 divides %d − 1", got)
	}
}

func TestBadPairsOfPrimesAreRefused(t *testing.T) {
	const nlen = 1024
	p := nextPrime(t.Context(), stream("test", 1), nlen/2)
	if d := privateExponent(p, p, nlen); d != nil {
		t.Error("p = q makes a key")
	}
	near := new(big.Int).Add(p, power2(nlen/2-100))
	if d := privateExponent(near, p, nlen); d != nil {
		t.Error("p and q that differ by 2^(nlen/2-100) make a key")
	}
	if d := privateExponent(p, nextPrime(t.Context(), stream("test", 2), nlen/2), nlen); d == nil {
		t.Error("a good pair makes no key")
	}
}

func TestSmallFactors(t *testing.T) {
	count := 0
	beyond := new(big.Int).Add(power2(521), big.NewInt(-1)) // a Mersenne prime
	for _, group := range smallPrimes() {
		product := big.NewInt(1)
		for _, prime := range group.primes {
			factor := new(big.Int).SetUint64(prime)
			if !factor.ProbablyPrime(0) {
				t.Errorf("%d is no prime", prime)
			}
			if !hasSmallFactor(new(big.Int).Mul(factor, beyond)) {
				t.Errorf("%d is not found", prime)
			}
			product.Mul(product, factor)
			count++
		}
		if !product.IsUint64() || product.Uint64() != group.product {
			t.Errorf("the product of %d does not fit in a word", group.primes)
		}
	}
	if count != 1899 { // π(2^14) = 1,900, and 2 is not among them
		t.Errorf("%d small primes", count)
	}
	if hasSmallFactor(beyond) {
		t.Error("a prime has a small factor")
	}
}
