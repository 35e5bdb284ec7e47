package targets_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/golang-jwt/jwt/v5"
	"github.com/google/go-cmp/cmp"
	vegeta "github.com/tsenart/vegeta/v12/lib"

	"plumbline/targets"
	"plumbline/targets/keys"
)

// specOf is a kind's default, small enough to be quick.
func specOf(kind targets.Kind) targets.Spec {
	s := targets.DefaultSpec(kind)
	s.Count, s.RSABits = 40, 2048
	if kind == targets.JWTCacheWorst {
		s.Duration, s.Leeway = 20*time.Second, 30*time.Second
	}
	return s
}

// quickly is a spec without a key that takes time to make.
func quickly(kind targets.Kind) targets.Spec {
	s := specOf(kind)
	s.Algs = []keys.Alg{keys.HS256, keys.EdDSA}
	return s
}

func generate(t testing.TB, s targets.Spec) (dir string, m *targets.Manifest) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "set")
	m, err := targets.Generate(t.Context(), dir, s, "test", false)
	if err != nil {
		t.Fatal(err)
	}
	return dir, m
}

func readSet(t testing.TB, dir string) *targets.Set {
	t.Helper()
	set, err := targets.Read(filepath.Join(dir, targets.TargetsFile))
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// tokenClaims decodes a request's token, without any code of ours.
func tokenClaims(t testing.TB, target targets.Target) map[string]any {
	t.Helper()
	parts := strings.Split(strings.TrimPrefix(target.Header.Get("Authorization"), "Bearer "), ".")
	if len(parts) != 3 {
		t.Fatalf("%s:%d: no token", target.File, target.Line)
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		t.Fatal(err)
	}
	var claims map[string]any
	if err := json.Unmarshal(payload, &claims); err != nil {
		t.Fatal(err)
	}
	return claims
}

const year2000 = 946684800

func TestCacheAndUnique(t *testing.T) {
	for _, kind := range []targets.Kind{targets.JWTCache, targets.JWTUnique} {
		t.Run(string(kind), func(t *testing.T) {
			s := specOf(kind)
			s.Count = 41
			s.Algs = keys.Algs()
			dir, m := generate(t, s)
			set := readSet(t, dir)
			if diff := cmp.Diff(m, set.Manifest); diff != "" {
				t.Error(diff)
			}
			wantReserve := 0
			if kind.Once() {
				wantReserve = 5
			}
			if len(set.Targets) != 41 || len(set.Reserve) != wantReserve || m.Requests != 41 || m.Reserve != wantReserve || m.Once != kind.Once() || set.Expired != nil || m.Expiry != nil {
				t.Errorf("%d targets, reserve of %d, %d expired; manifest: %+v", len(set.Targets), len(set.Reserve), len(set.Expired), m)
			}
			seen, counts := map[string]bool{}, map[keys.Alg]int{}
			for i, target := range append(slices.Clone(set.Targets), set.Reserve...) {
				claims := tokenClaims(t, target)
				want := map[string]any{"iat": 946684800.0, "nbf": 946684800.0, "exp": 4102444800.0, "sub": fmt.Sprintf("user-%d", i+1)}
				if diff := cmp.Diff(want, claims); diff != "" {
					t.Fatalf("token %d: %s", i+1, diff)
				}
				if seen[target.Header.Get("Authorization")] {
					t.Fatalf("token %d is there twice", i+1)
				}
				seen[target.Header.Get("Authorization")] = true
				if !target.Until.IsZero() {
					t.Errorf("token %d has an end", i+1)
				}
				if i < 41 {
					counts[algOf(t, target)]++
				}
				if i < 40 && i%5 == 4 { // every round has each once
					for alg, n := range counts {
						if n != i/5+1 {
							t.Fatalf("after %d requests there are %d of %s", i+1, n, alg)
						}
					}
				}
			}
			if diff := cmp.Diff(m.Requested, counts); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// algOf is the algorithm that a URL's marker names; it must be the token's.
func algOf(t testing.TB, target targets.Target) keys.Alg {
	t.Helper()
	head, _, _ := strings.Cut(strings.TrimPrefix(target.Header.Get("Authorization"), "Bearer "), ".")
	data, err := base64.RawURLEncoding.DecodeString(head)
	if err != nil {
		t.Fatal(err)
	}
	var header struct{ Alg, Kid, Typ string }
	if err := json.Unmarshal(data, &header); err != nil {
		t.Fatal(err)
	}
	if _, marked, _ := strings.Cut(target.URL, "alg="); marked != header.Alg || header.Kid == "" || header.Typ != "JWT" {
		t.Fatalf("%s has a token with the header %s", target.URL, data)
	}
	return keys.Alg(header.Alg)
}

// The order of the algorithms differs between rounds, and with the seed.
func TestAlgorithmsTakeTurnsByChance(t *testing.T) {
	orders := map[string]bool{}
	for seed := range uint64(3) {
		s := quickly(targets.JWTCache)
		s.Seed = seed
		dir, _ := generate(t, s)
		set, order := readSet(t, dir), ""
		for i := 0; i < len(set.Targets); i += 2 {
			order += string(algOf(t, set.Targets[i])[0])
		}
		if !strings.Contains(order, "H") || !strings.Contains(order, "E") {
			t.Errorf("seed %d: every round begins with the same algorithm: %s", seed, order)
		}
		orders[order] = true
	}
	if len(orders) != 3 {
		t.Errorf("three seeds give %d orders", len(orders))
	}
}

func TestTokensThatExpireInTheRun(t *testing.T) {
	for _, c := range []struct {
		count             int
		duration, leeway  time.Duration
		first, wantExpire int
	}{
		{40, 20 * time.Second, 30 * time.Second, 5, 30},
		{40, 20 * time.Second, 0, 5, 30},
		{1001, 20 * time.Second, time.Second, 5, 751},
		{3, 60 * time.Second, 0, 5, 3},
		{10, 5 * time.Second, 0, 2, 6},
		{10, 7 * time.Second, 24 * time.Hour, 2, 8},
		{2, 6 * time.Second, 0, 2, 2},
	} {
		s := quickly(targets.JWTCacheWorst)
		s.Count, s.Duration, s.Leeway = c.count, c.duration, c.leeway
		dir, m := generate(t, s)
		set := readSet(t, dir)
		name := fmt.Sprintf("%d requests in %s with a leeway of %s", c.count, c.duration, c.leeway)
		want := &targets.Expiry{DurationS: int(c.duration.Seconds()), LeewayS: int(c.leeway.Seconds()), FirstS: c.first, Expire: c.wantExpire}
		if diff := cmp.Diff(want, m.Expiry); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		base, duration, leeway := float64(year2000), c.duration.Seconds(), c.leeway.Seconds()
		refused, last := 0, 0.0
		check := func(target targets.Target) (effective float64) {
			claims := tokenClaims(t, target)
			exp := claims["exp"].(float64)
			effective = exp + leeway
			if claims["iat"] != claims["nbf"] || claims["iat"].(float64) >= exp || claims["iat"].(float64) < 0 {
				t.Fatalf("%s: claims %v", name, claims)
			}
			if want := time.Unix(int64(effective), 0).UTC(); !target.Until.Equal(want) {
				t.Fatalf("%s: until %s, want %s", name, target.Until, want)
			}
			return effective
		}
		for k, target := range set.Targets {
			at := check(target)
			if at < last {
				t.Fatalf("%s: token %d expires before the one before it", name, k+1)
			}
			last = at
			if at < base+duration {
				refused++
			}
			// Asked at a steady pace the server gets each while it is good, and
			// not much earlier: within the second that rounding takes.
			sent := base + float64(k)*duration/float64(c.count)
			if ahead := at - sent; ahead <= float64(c.first)-1 || ahead > float64(c.first) {
				t.Fatalf("%s: token %d expires %.2f s after its turn", name, k+1, ahead)
			}
		}
		if refused != m.Expiry.Expire {
			t.Errorf("%s: %d tokens expire in the run, the manifest says %d", name, refused, m.Expiry.Expire)
		}
		if len(set.Reserve) != 2 || len(set.Expired) != 2 {
			t.Fatalf("%s: reserve of %d, %d expired", name, len(set.Reserve), len(set.Expired))
		}
		for i := range 2 {
			if at := check(set.Reserve[i]); at != base+duration {
				t.Errorf("%s: the reserve expires at %+.0f s", name, at-base)
			}
			if at := check(set.Expired[i]); at != base-1 {
				t.Errorf("%s: what is refused expires at %+.0f s", name, at-base)
			}
			if algOf(t, set.Reserve[i]) != s.Algs[i] || algOf(t, set.Expired[i]) != s.Algs[i] {
				t.Errorf("%s: reserve and refused requests are not one of each algorithm", name)
			}
		}
	}
}

// Every request of a folder, the reserve and the refused ones too, is signed
// with the key that its header names, as golang-jwt sees it by the sets in the
// folder. That go-jose and openssl read the keys is shown in targets/keys.
func TestTokensAreSignedWithTheKeysBesideThem(t *testing.T) {
	s := specOf(targets.JWTCacheWorst)
	s.Algs = keys.Algs()
	dir, _ := generate(t, s)
	set := readSet(t, dir)
	all, public := jwks(t, filepath.Join(dir, "jwks.json")), jwks(t, filepath.Join(dir, "jwks.public.json"))
	secret, err := os.ReadFile(filepath.Join(dir, "hs.secret"))
	if err != nil {
		t.Fatal(err)
	}
	checked := map[keys.Alg]int{}
	for _, target := range slices.Concat(set.Targets, set.Reserve, set.Expired) {
		alg := algOf(t, target)
		token := strings.TrimPrefix(target.Header.Get("Authorization"), "Bearer ")
		by := func(token *jwt.Token) (any, error) {
			kid, _ := token.Header["kid"].(string)
			if alg == keys.HS256 {
				if got := all.Key(kid)[0].Key; !bytes.Equal(got.([]byte), secret) {
					t.Fatal("the secret in jwks.json is not that of hs.secret")
				}
				return secret, nil
			}
			if found := public.Key(kid); len(found) != 1 || !found[0].IsPublic() {
				return nil, fmt.Errorf("%d public keys are called %s", len(found), kid)
			}
			return public.Key(kid)[0].Key, nil
		}
		parser := jwt.NewParser(jwt.WithValidMethods([]string{string(alg)}), jwt.WithoutClaimsValidation())
		if _, err := parser.Parse(token, by); err != nil {
			t.Fatalf("%s:%d: %v", target.File, target.Line, err)
		}
		if _, err := parser.Parse(token[:len(token)-3]+"AAA", by); err == nil {
			t.Fatalf("%s:%d: a spoilt signature is taken", target.File, target.Line)
		}
		checked[alg]++
	}
	for _, alg := range keys.Algs() {
		if checked[alg] != 10 { // 8 for the load, one in the reserve, one that is refused
			t.Errorf("%d tokens of %s were checked", checked[alg], alg)
		}
	}
	if len(public.Key("hs256")) > 0 {
		t.Error("the public set holds the secret")
	}
}

func jwks(t *testing.T, path string) (set jose.JSONWebKeySet) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(data, &set)
	}
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func TestURLsAndClaims(t *testing.T) {
	for _, c := range []struct{ url, claims, wantURL, wantClaims string }{
		{"/a", "", "http://router/a?alg=HS256", `{"exp":4102444800,"iat":946684800,"nbf":946684800,"sub":"user-1"}`},
		{"/a?x=1", `{}`, "http://router/a?x=1&alg=HS256", `{"exp":4102444800,"iat":946684800,"nbf":946684800,"sub":"user-1"}`},
		{"http://h/{alg}/b?{{x}", `{"role": "author", "aud": ["a", {"z": 1.50, "a": null}], "ok": true}`, "http://h/HS256/b?{x}",
			`{"aud":["a",{"a":null,"z":1.50}],"exp":4102444800,"iat":946684800,"nbf":946684800,"ok":true,"role":"author","sub":"user-1"}`},
		{"/", `{"sub": "x"}`, "http://router/?alg=HS256", `{"exp":4102444800,"iat":946684800,"jti":"1","nbf":946684800,"sub":"x"}`},
		{"/", `{"sub": ""}`, "http://router/?alg=HS256", `{"exp":4102444800,"iat":946684800,"jti":"1","nbf":946684800,"sub":""}`},
		{"/", `{"sub": "x", "jti": "t-{n}"}`, "http://router/?alg=HS256", `{"exp":4102444800,"iat":946684800,"jti":"t-1","nbf":946684800,"sub":"x"}`},
		{"/", `{"sub": "{alg}/{n}", "who": "<{sub}> {seed} {{n}"}`, "http://router/?alg=HS256",
			`{"exp":4102444800,"iat":946684800,"nbf":946684800,"sub":"HS256/1","who":"<HS256/1> 7 {n}"}`},
		{"/", `{"sub": "q\"\\é\n{n}\"", "a": "{sub}"}`, "http://router/?alg=HS256",
			`{"a":"q\"\\é\u000a1\"","exp":4102444800,"iat":946684800,"nbf":946684800,"sub":"q\"\\é\u000a1\""}`},
	} {
		s := targets.DefaultSpec(targets.JWTCache)
		s.Count, s.Algs, s.Seed, s.URL = 2, []keys.Alg{keys.HS256}, 7, c.url
		s.Claims = json.RawMessage(c.claims)
		dir, _ := generate(t, s)
		first := readSet(t, dir).Targets[0]
		payload, err := base64.RawURLEncoding.DecodeString(strings.Split(first.Header.Get("Authorization"), ".")[1])
		if err != nil {
			t.Fatal(err)
		}
		if first.URL != c.wantURL || string(payload) != c.wantClaims {
			t.Errorf("%s with %s: got\n%s %s, want\n%s %s", c.url, c.claims, first.URL, payload, c.wantURL, c.wantClaims)
		}
		if second := readSet(t, dir).Targets[1]; second.Header.Get("Authorization") == first.Header.Get("Authorization") {
			t.Errorf("%s: the tokens are the same", c.claims)
		}
	}
}

func TestVegetaReadsWhatIsGenerated(t *testing.T) {
	for _, kind := range []targets.Kind{targets.JWTCache, targets.JWTCacheWorst} {
		dir, _ := generate(t, quickly(kind))
		data, err := os.ReadFile(filepath.Join(dir, targets.TargetsFile))
		if err != nil {
			t.Fatal(err)
		}
		theirs, err := vegeta.ReadAllTargets(vegeta.NewHTTPTargeter(strings.NewReader(string(data)), nil, nil))
		if err != nil {
			t.Fatal(err)
		}
		set := readSet(t, dir)
		ours := append(slices.Clone(set.Targets), set.Reserve...)
		if len(theirs) != len(ours) {
			t.Fatalf("vegeta reads %d targets, we %d", len(theirs), len(ours))
		}
		for i, o := range ours {
			if theirs[i].Method != o.Method || theirs[i].URL != o.URL || !cmp.Equal(theirs[i].Header, o.Header) {
				t.Fatalf("target %d: vegeta reads %v, we %v", i, theirs[i], o)
			}
		}
	}
}

// golden are the SHA-256 of every file of every kind, with all algorithms.
// Whoever changes a byte raises the constant generation, and makes this file
// again with UPDATE=1.
func TestGolden(t *testing.T) {
	var got strings.Builder
	for _, cpus := range []int{1, 3} {
		before := runtime.GOMAXPROCS(cpus)
		defer runtime.GOMAXPROCS(before)
		got.Reset()
		for _, kind := range []targets.Kind{targets.JWTCache, targets.JWTCacheWorst, targets.JWTUnique} {
			s := specOf(kind)
			s.Count, s.Algs = 300, keys.Algs()
			s.Claims = json.RawMessage(`{"role": "author", "aud": ["{alg}-{n}", 1.5]}`)
			_, m := generate(t, s)
			for _, f := range m.Files {
				fmt.Fprintf(&got, "%s %s %s %d\n", kind, f.SHA256, f.Path, f.Bytes)
			}
			manifest, err := m.JSON()
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&got, "%s %s %s %d\n", kind, sum(string(manifest)), targets.ManifestName, len(manifest))
		}
		path := filepath.Join("testdata", "golden.txt")
		if os.Getenv("UPDATE") != "" {
			if err := errors.Join(os.MkdirAll("testdata", 0o755), os.WriteFile(path, []byte(got.String()), 0o644)); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), got.String()); diff != "" {
			t.Errorf("with %d CPUs: %s", cpus, diff)
		}
	}
}

// What does not matter changes no byte.
func TestSameSetFromEqualSpecs(t *testing.T) {
	a := quickly(targets.JWTCache)
	a.Claims = json.RawMessage(`{"b": {"y": 1, "x": 2}, "a": 1}`)
	b := a
	b.Algs = []keys.Alg{keys.EdDSA, keys.HS256}
	b.Claims = json.RawMessage(`{"a":1,"b":{"x":2,"y":1}}`)
	b.RSABits = 4096
	_, first := generate(t, a)
	_, second := generate(t, b)
	if diff := cmp.Diff(first, second); diff != "" {
		t.Error(diff)
	}
}

func TestCheck(t *testing.T) {
	long := strings.Repeat("x", 40_000)
	for _, c := range []struct {
		name string
		set  func(s *targets.Spec)
		want string
	}{
		{"no kind", func(s *targets.Spec) { s.Kind = "" }, "kind: is missing; known are jwt-cache, jwt-cache-worst, jwt-unique, mixed"},
		{"kind", func(s *targets.Spec) { s.Kind = "jwt-cahce" }, `kind: unknown kind "jwt-cahce"; did you mean jwt-cache? known are jwt-cache,`},
		{"kind", func(s *targets.Spec) { s.Kind = "unique" }, `did you mean jwt-unique?`},
		{"kind", func(s *targets.Spec) { s.Kind = "jwt-cache-wrost" }, `did you mean jwt-cache-worst?`},
		{"kind", func(s *targets.Spec) { s.Kind = "films" }, `unknown kind "films"; known are`},
		{"count", func(s *targets.Spec) { s.Count = 0 }, "count: 0 requests; ask for 1 or more"},
		{"count", func(s *targets.Spec) { s.Count = -5 }, "count: -5 requests"},
		{"count", func(s *targets.Spec) { s.Count = 10_000_001 }, "count: 10000001 requests do not fit into the 256 MiB that a file may hold; ask for at most about 630000 of this size"},
		{"count", func(s *targets.Spec) { s.Count = 1 }, "count: 1 for 2 algorithms"},
		{"file", func(s *targets.Spec) { s.Count = 2_000_000 }, "count: 2000000 requests do not fit into"},
		{"file", func(s *targets.Spec) { s.Count = math.MaxInt }, "do not fit into the 256 MiB"},
		{"bits", func(s *targets.Spec) { s.RSABits = 2047 }, "rsa_bits: 2047; an RSA key has 2048 to 16384 bits"},
		{"bits", func(s *targets.Spec) { s.RSABits = 2052 }, "a multiple of 8"},
		{"bits", func(s *targets.Spec) { s.RSABits = 1 << 20 }, "rsa_bits: 1048576"},
		{"bits without RSA", func(s *targets.Spec) { s.RSABits, s.Algs = 0, []keys.Alg{keys.HS256} }, "rsa_bits: 0"},
		{"URL", func(s *targets.Spec) { s.URL = "" }, "url: URL is missing"},
		{"URL", func(s *targets.Spec) { s.URL = "/a b" }, "url: invalid URL \"/a b\": it holds a space"},
		{"URL", func(s *targets.Spec) { s.URL = "/a{alg}b c" }, "url: invalid URL \"/a{alg}b c\": it holds a space"},
		{"URL", func(s *targets.Spec) { s.URL = "/a?x=1&%61lg=1" }, `url: "/a?x=1&%61lg=1" has a parameter alg, which is added to tell the algorithms apart; write {alg} where`},
		{"URL", func(s *targets.Spec) { s.URL = "/a\nGET /b" }, "url: invalid URL"},
		{"URL", func(s *targets.Spec) { s.URL = "/a\n" }, "invalid control character"},
		{"URL", func(s *targets.Spec) { s.URL = "/a#b" }, "is never sent"},
		{"URL", func(s *targets.Spec) { s.URL = "ftp://a/b" }, "does not start with http://"},
		{"URL", func(s *targets.Spec) { s.URL = "/{kind}" }, `url: unknown placeholder "{kind}"; known are {alg}, and {{ is a brace`},
		{"URL", func(s *targets.Spec) { s.URL = "/{alg" }, `url: "{alg" has no end`},
		{"URL", func(s *targets.Spec) { s.URL = "/" + strings.Repeat("x", 64<<10) }, "longer than 64 KiB"},
		{"method", func(s *targets.Spec) { s.Method = "" }, "method: method is missing"},
		{"method", func(s *targets.Spec) { s.Method = "get" }, `method: invalid method "get"`},
		{"method", func(s *targets.Spec) { s.Method = "#GET" }, "its line would be a comment"},
		{"method", func(s *targets.Spec) { s.Method = "GET /x" }, "method: invalid method"},
		{"algs", func(s *targets.Spec) { s.Algs = nil }, "algs: names no algorithm; known are HS256, RS256, PS256, ES256, EdDSA"},
		{"algs", func(s *targets.Spec) { s.Algs = []keys.Alg{"HS265"} }, `algs: unknown algorithm "HS265"; did you mean HS256?`},
		{"algs", func(s *targets.Spec) { s.Algs = []keys.Alg{"none"} }, `unknown algorithm "none"; known are`},
		{"algs", func(s *targets.Spec) { s.Algs = []keys.Alg{"HS256", "HS256"} }, "algs: HS256 is there twice"},
		{"time", func(s *targets.Spec) { s.BaseTime = time.Time{} }, "base_time: 0001-01-01T00:00:00Z lies outside"},
		{"time", func(s *targets.Spec) { s.BaseTime = s.BaseTime.Add(time.Millisecond) }, "base_time: 2000-01-01T00:00:00.001Z: tokens tell time in whole seconds"},
		{"time", func(s *targets.Spec) { s.BaseTime = s.BaseTime.In(time.FixedZone("x", 3600)) }, "base_time: wants UTC"},
		{"time", func(s *targets.Spec) { s.BaseTime = s.BaseTime.AddDate(201, 0, 0) }, "outside of the years 1970 to 2200"},
		{"duration", func(s *targets.Spec) { s.Duration = time.Second }, "duration: only tokens of kind jwt-cache-worst expire"},
		{"leeway", func(s *targets.Spec) { s.Leeway = time.Second }, "leeway: only tokens of kind jwt-cache-worst expire"},
		{"from", func(s *targets.Spec) { s.From = "x" }, "from: only kind mixed copies a file"},
		{"claims", func(s *targets.Spec) { s.Claims = json.RawMessage(`[1]`) }, "claims: wants a JSON object"},
		{"claims", func(s *targets.Spec) { s.Claims = json.RawMessage(`{"a": `) }, "claims: unexpected end of JSON input"},
		{"claims", func(s *targets.Spec) { s.Claims = json.RawMessage(`{} {}`) }, "claims: invalid character"},
		{"claims", func(s *targets.Spec) { s.Claims = json.RawMessage("{\"a\": \"\xff\"}") }, "claims: not UTF-8"},
		{"claims", func(s *targets.Spec) { s.Claims = json.RawMessage(`{"a": "\ud83d"}`) }, `claims: \ud83d is half of a character`},
		{"claims", func(s *targets.Spec) { s.Claims = json.RawMessage(`{"a": "\\\ude00\ud83d"}`) }, `claims: \ude00 is half of a character`},
		{"claims", func(s *targets.Spec) { s.Claims = json.RawMessage(`{"a": "\ud83d\n"}`) }, `claims: \ud83d is half`},
		{"claims", func(s *targets.Spec) { s.Claims = json.RawMessage(`{"\uD83Dx": 1}`) }, `claims: \uD83D is half`},
		{"claims", func(s *targets.Spec) { s.Claims = json.RawMessage(`{"a": "\ud83d\ude00\ud83d\ude00\ud83d"}`) }, `claims: \ud83d is half`},
		{"claims", func(s *targets.Spec) { s.Claims = json.RawMessage(`{"a": "\ud83dude00"}`) }, `claims: \ud83d is half`},
		{"claims", func(s *targets.Spec) { s.Claims = json.RawMessage(`{"exp": 1}`) }, `claims: "exp" is set by the kind`},
		{"claims", func(s *targets.Spec) { s.Claims = json.RawMessage(`{"Nbf": 1}`) }, `claims: "Nbf" is set by the kind`},
		{"claims", func(s *targets.Spec) { s.Claims = json.RawMessage(`{"a": "{user}"}`) }, `claims: "a": unknown claim "{user}"; known are {n} {sub} {alg} {seed}, and {{ is a brace`},
		{"claims", func(s *targets.Spec) { s.Claims = json.RawMessage(`{"a": [{"b": "{n"}]}`) }, `claims: "a[0].b": "{n" has no end`},
		{"claims", func(s *targets.Spec) { s.Claims = json.RawMessage(`{"a": 1, "\u0061": 2}`) }, `claims: "a" is there twice`},
		{"claims", func(s *targets.Spec) { s.Claims = json.RawMessage(`{"a": {"b": 1, "b": 2}}`) }, `claims: "a.b" is there twice`},
		{"claims", func(s *targets.Spec) { s.Claims = json.RawMessage(`{"{n}": 1}`) }, `claims: "{n}": the name of a claim stands as it is`},
		{"claims", func(s *targets.Spec) { s.Claims = json.RawMessage(`{"sub": 5}`) }, `claims: sub: wants a string`},
		{"claims", func(s *targets.Spec) { s.Claims = json.RawMessage(`{"sub": "{sub}"}`) }, `claims: sub: {sub} is itself`},
		{"claims", func(s *targets.Spec) { s.Claims = json.RawMessage(`{"sub": "x", "jti": "y"}`) }, `claims: every token would be the same`},
		{"claims", func(s *targets.Spec) { s.Claims = json.RawMessage(`{"a": "` + long + `"}`) }, "more than the 32768 that fit into a header"},
		{"worst without duration", func(s *targets.Spec) { *s = specOf(targets.JWTCacheWorst); s.Duration = 0 }, "duration: 0s; say how long a router runs"},
		{"worst", func(s *targets.Spec) { *s = specOf(targets.JWTCacheWorst); s.Duration = 4 * time.Second }, "duration: 4s; say how long a router runs, from its start to its last request: 5s or more"},
		{"worst", func(s *targets.Spec) { *s = specOf(targets.JWTCacheWorst); s.Duration = 48 * time.Hour }, "duration: 48h0m0s is longer than a day"},
		{"worst", func(s *targets.Spec) { *s = specOf(targets.JWTCacheWorst); s.Duration = 5500 * time.Millisecond }, "duration: 5.5s: tokens tell time in whole seconds"},
		{"worst without leeway", func(s *targets.Spec) {
			*s = targets.DefaultSpec(targets.JWTCacheWorst)
			s.Duration = time.Minute
		}, "leeway: say how long after exp the server still takes a token: 30s for PostgREST"},
		{"worst", func(s *targets.Spec) { *s = specOf(targets.JWTCacheWorst); s.Leeway = -time.Second }, "leeway: -1s is negative"},
		{"worst", func(s *targets.Spec) { *s = specOf(targets.JWTCacheWorst); s.Leeway = time.Millisecond }, "leeway: 1ms: tokens tell time in whole seconds"},
		{"worst", func(s *targets.Spec) { *s = specOf(targets.JWTCacheWorst); s.Leeway = 25 * time.Hour }, "leeway: 25h0m0s is longer than a day"},
		{"worst before 1970", func(s *targets.Spec) { *s = specOf(targets.JWTCacheWorst); s.BaseTime = time.Unix(3600, 0).UTC() }, "base_time: 1970-01-01T01:00:00Z: the tokens would have been made before 1970"},
		{"mixed without file", func(s *targets.Spec) { *s = targets.DefaultSpec(targets.Mixed) }, "from: kind mixed needs the file to copy"},
		{"mixed with tokens", func(s *targets.Spec) { *s = targets.Spec{Kind: targets.Mixed, From: "x", Count: 5} }, "count: kind mixed takes its requests from a file"},
	} {
		s := specOf(targets.JWTCache)
		c.set(&s)
		dir := filepath.Join(t.TempDir(), "set")
		err := s.Check()
		var field *targets.FieldError
		if !errors.As(err, &field) || !strings.Contains(err.Error(), c.want) || len(err.Error()) > 250 {
			t.Errorf("%s: got %v, want %s", c.name, err, c.want)
		}
		if _, err := targets.Generate(context.Background(), dir, s, "test", false); !errors.As(err, &field) {
			t.Errorf("%s: Generate says %v", c.name, err)
		}
		if _, err := os.Stat(dir); err == nil {
			t.Errorf("%s: a folder was made", c.name)
		}
	}
}

// What Check lets pass is not so large that Read refuses it, nor is much less
// refused.
func TestWhatIsMadeCanBeRead(t *testing.T) {
	for _, alg := range keys.Algs() {
		s := specOf(targets.JWTUnique)
		s.Algs, s.Count, s.URL = []keys.Alg{alg}, 100, "http://router/{alg}/authors?select=*"
		_, m := generate(t, s)
		each := m.Files[len(m.Files)-1].Bytes / int64(m.Requests+m.Reserve)
		if name := m.Files[len(m.Files)-1].Path; name != targets.TargetsFile {
			t.Fatalf("the last file is %s", name)
		}
		most, less, more := int64(256<<20)/each, s, s
		less.Count, more.Count = int(most*9/10), int(most*101/100)
		if err := less.Check(); err != nil {
			t.Errorf("%s: a file of 230 MiB is refused: %v", alg, err)
		}
		if err := more.Check(); err == nil {
			t.Errorf("%s: a file of 259 MiB is not refused", alg)
		}
	}
}
