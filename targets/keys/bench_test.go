package keys

import (
	"fmt"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// go test -run '^$' -bench RSA4096 -benchtime 51x ./targets/keys
func BenchmarkRSA4096(b *testing.B) {
	var ms []float64
	for seed := uint64(0); b.Loop(); seed++ {
		start := time.Now()
		if _, err := New(b.Context(), seed, 4096, []Alg{RS256}); err != nil {
			b.Fatal(err)
		}
		ms = append(ms, time.Since(start).Seconds()*1000)
	}
	b.ReportMetric(median(ms), "median-ms")
	b.ReportMetric(slices.Max(ms), "max-ms")
}

// go test -run '^$' -bench Sign ./targets/keys
func BenchmarkSign(b *testing.B) {
	r := ring(b, 1, 4096, Algs()...)
	for _, alg := range Algs() {
		b.Run(string(alg), func(b *testing.B) {
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if _, err := r.Sign(alg, claims); err != nil {
						b.Error(err)
						return
					}
				}
			})
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "tokens/s")
		})
	}
}

// BenchmarkOpenSSL compares signing on all CPUs with what openssl does there,
// in turns of a second; a ratio above 1 means that more tokens are signed here.
//
// go test -run '^$' -bench OpenSSL -benchtime 9x ./targets/keys
func BenchmarkOpenSSL(b *testing.B) {
	needs(b, "openssl")
	for _, bits := range []int{2048, 4096} {
		b.Run(fmt.Sprint(bits), func(b *testing.B) {
			r := ring(b, 1, bits, RS256, PS256)
			var rs, ps, openssl []float64
			for b.Loop() {
				openssl = append(openssl, opensslSpeed(b, bits))
				rs = append(rs, speed(b, r, RS256)/openssl[len(openssl)-1])
				ps = append(ps, speed(b, r, PS256)/openssl[len(openssl)-1])
			}
			b.ReportMetric(median(openssl), "openssl-signatures/s")
			b.ReportMetric(median(rs), "RS256-ratio")
			b.ReportMetric(median(ps), "PS256-ratio")
		})
	}
}

// speed is how many tokens are signed in a second on all CPUs.
func speed(b *testing.B, r *Ring, alg Alg) float64 {
	var done atomic.Int64
	var workers sync.WaitGroup
	start := time.Now()
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for time.Since(start) < time.Second {
				if _, err := r.Sign(alg, claims); err != nil {
					b.Error(err)
					return
				}
				done.Add(1)
			}
		})
	}
	workers.Wait()
	return float64(done.Load()) / time.Since(start).Seconds()
}

func opensslSpeed(b *testing.B, bits int) float64 {
	args := []string{"speed", "-seconds", "1", "-multi", strconv.Itoa(runtime.GOMAXPROCS(0)), fmt.Sprintf("rsa%d", bits)}
	out, err := exec.CommandContext(b.Context(), "openssl", args...).Output()
	if err != nil {
		b.Fatal(err)
	}
	for line := range strings.Lines(string(out)) { // rsa 4096 bits 0.004184s 0.000062s    239.0  16144.0
		if f := strings.Fields(line); len(f) == 7 && f[0] == "rsa" {
			if perSecond, err := strconv.ParseFloat(f[5], 64); err == nil {
				return perSecond
			}
		}
	}
	b.Fatalf("openssl speed gives no figure:\n%s", out)
	return 0
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}
