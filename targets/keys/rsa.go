package keys

import (
	"context"
	"crypto/rsa"
	"fmt"
	"math/big"
	"math/bits"
	"math/rand/v2"
	"sync"
)

const exponent = 65537

// millerRabin is how many rounds (FIPS 186-5 B.3.1) a candidate has to pass,
// beside the Baillie-PSW test of math/big: as many as crypto/rand.Prime takes.
// crypto/rsa takes 5 for primes of 1,024 bits and 4 or 3 for longer ones, which
// is enough for candidates that are drawn at random.
const millerRabin = 20

// newRSA makes an RSA key as FIPS 186-5 says in A.1.1 and A.1.3 (probable
// primes); the standard library's own search takes no seed. The two primes are
// searched for at the same time, each in a stream of its own, so that it is of
// no account which is found first.
func newRSA(ctx context.Context, seed uint64, nlen int) (*rsa.PrivateKey, error) {
	pStream := stream(fmt.Sprintf("rsa-%d p", nlen), seed)
	qStream := stream(fmt.Sprintf("rsa-%d q", nlen), seed)
	var p, q *big.Int
	var search sync.WaitGroup
	search.Go(func() { p = nextPrime(ctx, pStream, nlen/2) })
	search.Go(func() { q = nextPrime(ctx, qStream, nlen/2) })
	search.Wait()
	for ctx.Err() == nil {
		if d := privateExponent(p, q, nlen); d != nil {
			return keyOf(p, q, d)
		}
		q = nextPrime(ctx, qStream, nlen/2)
	}
	return nil, context.Cause(ctx)
}

// privateExponent is e⁻¹ mod lcm(p−1, q−1) (FIPS 186-5 A.1.1 (3)), or nil if p
// and q make no good key, whose chance is below 2⁻⁹⁰.
func privateExponent(p, q *big.Int, nlen int) *big.Int {
	distance := new(big.Int).Sub(p, q)
	if distance.Abs(distance).Cmp(power2(nlen/2-100)) <= 0 { // A.1.3 (5.5)
		return nil
	}
	p1, q1 := new(big.Int).Sub(p, one), new(big.Int).Sub(q, one)
	gcd := new(big.Int).GCD(nil, nil, p1, q1)
	lcm := p1.Mul(p1, q1.Div(q1, gcd))
	d := new(big.Int).ModInverse(big.NewInt(exponent), lcm)
	if d.Cmp(power2(nlen/2)) <= 0 {
		return nil
	}
	return d
}

func keyOf(p, q, d *big.Int) (*rsa.PrivateKey, error) {
	k := &rsa.PrivateKey{
		PublicKey: rsa.PublicKey{N: new(big.Int).Mul(p, q), E: exponent},
		D:         d,
		Primes:    []*big.Int{p, q},
	}
	k.Precompute()
	return k, k.Validate()
}

var one = big.NewInt(1)

func power2(n int) *big.Int { return new(big.Int).Lsh(one, uint(n)) }

// nextPrime is the first candidate of a stream that is prime and whose
// predecessor has no factor in common with the exponent; nil if ctx ends
// first. Each candidate is drawn anew, not counted up from the last one, and has
// its top two bits set: the product of two such primes has its full length.
//
// What is found depends on the candidates alone, not on how they are tested: a
// better sieve changes no key.
func nextPrime(ctx context.Context, random *rand.ChaCha8, length int) *big.Int {
	raw := make([]byte, (length+7)/8)
	n, rest := new(big.Int), new(big.Int)
	for ctx.Err() == nil {
		random.Read(raw)
		raw[0] &= 0xff >> (8*len(raw) - length)
		n.SetBytes(raw)
		n.SetBit(n, length-1, 1).SetBit(n, length-2, 1).SetBit(n, 0, 1)
		if hasSmallFactor(n) || !n.ProbablyPrime(millerRabin) {
			continue
		}
		if rest.Mod(n, big.NewInt(exponent)).Cmp(one) != 0 {
			return n
		}
	}
	return nil
}

// hasSmallFactor sorts out nine of ten odd numbers for a fraction of the cost
// of a Miller-Rabin round. n is to be above the small primes.
func hasSmallFactor(n *big.Int) bool {
	raw := n.Bytes()
	words := make([]uint64, (len(raw)+7)/8)
	for i, b := range raw {
		words[(len(raw)-1-i)/8] |= uint64(b) << (8 * ((len(raw) - 1 - i) % 8))
	}
	for _, group := range smallPrimes() {
		var rest uint64
		for i := len(words) - 1; i >= 0; i-- {
			rest = bits.Rem64(rest, words[i], group.product)
		}
		for _, prime := range group.primes {
			if rest%prime == 0 {
				return true
			}
		}
	}
	return false
}

type primeGroup struct {
	product uint64
	primes  []uint64
}

// smallPrimes are the odd primes below 2^14, in groups whose product fits in a
// word, so that one long division serves a group.
var smallPrimes = sync.OnceValue(func() []primeGroup {
	composite := make([]bool, 1<<14)
	groups := []primeGroup{{product: 1}}
	for n := 3; n < len(composite); n += 2 {
		if composite[n] {
			continue
		}
		for m := n * n; m < len(composite); m += 2 * n {
			composite[m] = true
		}
		last := &groups[len(groups)-1]
		if high, _ := bits.Mul64(last.product, uint64(n)); high != 0 {
			groups = append(groups, primeGroup{product: 1})
			last = &groups[len(groups)-1]
		}
		last.product *= uint64(n)
		last.primes = append(last.primes, uint64(n))
	}
	return groups
})
