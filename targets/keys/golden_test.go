package keys

import (
	"crypto/sha256"
	"flag"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write testdata/golden.txt anew")

// TestTheSameBytesEverywhere holds every file and tokens of each algorithm
// against sums that were taken once. If it fails after an update of Go or of a
// library, then people's targets would change under them: find what changed. Do
// not take the sums anew without a new version in the label of the streams.
func TestTheSameBytesEverywhere(t *testing.T) {
	var got strings.Builder
	for _, c := range []struct {
		seed uint64
		bits int
	}{{0, 2048}, {1, 2048}, {2, 2048}, {math.MaxUint64, 2048}, {42, 3072}, {1, 4096}} {
		r := ring(t, c.seed, c.bits, Algs()...)
		files := contents(t, r)
		for _, name := range slices.Sorted(maps.Keys(files)) {
			fmt.Fprintf(&got, "%d %d %s %x\n", c.seed, c.bits, name, sha256.Sum256(files[name]))
		}
		for _, alg := range Algs() {
			fmt.Fprintf(&got, "%d %d %s %x\n", c.seed, c.bits, alg, sha256.Sum256([]byte(sign(t, r, alg))))
			fmt.Fprintf(&got, "%d %d %s×10 %x\n", c.seed, c.bits, alg, tokensSum(t, r, alg))
		}
	}
	const file = "testdata/golden.txt"
	if *update {
		if err := os.WriteFile(file, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got.String()); diff != "" {
		t.Errorf("other bytes than before (-want +got):\n%s", diff)
	}
}

// tokensSum is that of ten tokens with different claims, a line each.
func tokensSum(t *testing.T, r *Ring, alg Alg) [sha256.Size]byte {
	var tokens strings.Builder
	for i := range 10 {
		token, err := r.Sign(alg, fmt.Appendf(nil, `{"sub":"user-%d"}`, i))
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintln(&tokens, token)
	}
	return sha256.Sum256([]byte(tokens.String()))
}
