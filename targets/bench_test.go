package targets_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"plumbline/targets"
	"plumbline/targets/keys"
)

// BenchmarkGenerate makes a folder as a whole, keys included, and tells the
// rate of its tokens, which BenchmarkSign bounds.
func BenchmarkGenerate(b *testing.B) {
	for _, c := range []struct {
		alg         keys.Alg
		count, bits int
	}{{keys.HS256, 50_000, 2048}, {keys.EdDSA, 20_000, 2048}, {keys.RS256, 2_000, 2048}, {keys.RS256, 500, 4096}} {
		b.Run(fmt.Sprintf("%s-%d-%d", c.alg, c.bits, c.count), func(b *testing.B) {
			s := targets.DefaultSpec(targets.JWTUnique)
			s.Algs, s.Count, s.RSABits = []keys.Alg{c.alg}, c.count, c.bits
			dir := filepath.Join(b.TempDir(), "set")
			for b.Loop() {
				if _, err := targets.Generate(b.Context(), dir, s, "bench", true); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(c.count)*float64(b.N)/b.Elapsed().Seconds(), "tokens/s")
		})
	}
}

// BenchmarkSign is what all CPUs can sign.
func BenchmarkSign(b *testing.B) {
	for _, c := range []struct {
		alg  keys.Alg
		bits int
	}{{keys.HS256, 2048}, {keys.EdDSA, 2048}, {keys.RS256, 2048}, {keys.RS256, 4096}} {
		b.Run(fmt.Sprintf("%s-%d", c.alg, c.bits), func(b *testing.B) {
			ring, err := keys.New(b.Context(), 1, c.bits, []keys.Alg{c.alg})
			if err != nil {
				b.Fatal(err)
			}
			claims := []byte(`{"exp":4102444800,"iat":946684800,"nbf":946684800,"sub":"user-1"}`)
			b.ResetTimer()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if _, err := ring.Sign(c.alg, claims); err != nil {
						b.Error(err)
						return
					}
				}
			})
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "tokens/s")
		})
	}
}

// BenchmarkRead reads 100,000 requests with tokens of some 800 bytes.
func BenchmarkRead(b *testing.B) {
	for _, kind := range []targets.Kind{targets.JWTUnique, targets.JWTCacheWorst} {
		b.Run(string(kind), func(b *testing.B) {
			s := specOf(kind)
			s.Algs, s.Count = []keys.Alg{keys.HS256}, 100_000
			s.Claims = fmt.Appendf(nil, `{"role": "author", "filler": "%0450d"}`, 0)
			dir := filepath.Join(b.TempDir(), "set")
			m, err := targets.Generate(b.Context(), dir, s, "bench", false)
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				readSet(b, dir)
			}
			b.ReportMetric(float64(m.Requests)*float64(b.N)/b.Elapsed().Seconds(), "targets/s")
		})
	}
}
