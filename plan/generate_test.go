package plan

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"plumbline/targets"
	"plumbline/targets/keys"
)

// generating is head with more kinds, from line 5 on.
func generating(kinds string) string { return head + kinds }

// clocked is a plan whose router's clock is moved; its kinds start in line 5.
func clocked(kinds string) string {
	return "router:\n  run: [./server, \"{socket}\"]\n  clock: 2001-02-03T04:05:06Z\nkinds:\n" + kinds
}

func TestGenerate(t *testing.T) {
	dir := folder(t)
	path := filepath.Join(dir, "p.yaml")
	base := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	clock := time.Date(2001, 2, 3, 4, 5, 6, 0, time.UTC)
	if err := os.WriteFile(filepath.Join(dir, "claims.json"), []byte("\n{\"role\": \"author\"}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	spec := func(k targets.Kind, change func(*targets.Spec)) *targets.Spec {
		s := targets.DefaultSpec(k)
		s.BaseTime = base
		change(&s)
		return &s
	}
	for _, tt := range []struct {
		name, text string
		want       *targets.Spec
	}{
		{"the kind's own name", generating("  jwt-cache: {generate: {}}\n"), spec(targets.JWTCache, func(*targets.Spec) {})},
		{"a name of one's own", generating("  tokens: {generate: {kind: jwt-unique, seed: 7}}\n"), spec(targets.JWTUnique, func(s *targets.Spec) { s.Seed = 7 })},
		{"another kind than the name says", generating("  jwt-cache: {generate: {kind: jwt-unique}}\n"), spec(targets.JWTUnique, func(*targets.Spec) {})},
		{"the plan's seed is not the targets'", generating("  jwt-cache: {generate: {}}\nseed: 9\n"), spec(targets.JWTCache, func(*targets.Spec) {})},
		{"everything", generating(`  jwt-cache:
    generate:
      count: 50
      method: OPTIONS
      url: "/me/{alg}"
      algs: [ES256, EdDSA]
      rsa_bits: 2048
      base_time: 2002-03-04T05:06:07+01:00
      claims: {role: "author {n}", aud: [a, null, 1.5, true], deep: {x: "<&>"}}
`), spec(targets.JWTCache, func(s *targets.Spec) {
			s.Count, s.Method, s.URL, s.Algs, s.RSABits = 50, "OPTIONS", "/me/{alg}", []keys.Alg{keys.ES256, keys.EdDSA}, 2048
			s.BaseTime = time.Date(2002, 3, 4, 4, 6, 7, 0, time.UTC)
			s.Claims = []byte("{\"role\":\"author {n}\",\"aud\":[\"a\",null,1.5,true],\"deep\":{\"x\":\"\\u003c\\u0026\\u003e\"}}")
		})},
		{"claims in a file", generating("  jwt-cache: {generate: {claims: claims.json}}\n"), spec(targets.JWTCache, func(s *targets.Spec) { s.Claims = []byte(`{"role": "author"}`) })},
		{"the router's clock", clocked("  jwt-cache: {generate: {}}\n"), spec(targets.JWTCache, func(s *targets.Spec) { s.BaseTime = clock })},
		{"the worst, as long as a run is", clocked("  jwt-cache-worst: {generate: {leeway: 30s}}\n"), spec(targets.JWTCacheWorst, func(s *targets.Spec) { s.BaseTime, s.Leeway = clock, 30*time.Second })},
		{"the worst, all said", clocked("  w: {generate: {kind: jwt-cache-worst, leeway: 0s, duration: 25s, base_time: 2001-02-03T04:05:06Z}}\n"),
			spec(targets.JWTCacheWorst, func(s *targets.Spec) { s.BaseTime, s.Duration, s.Leeway = clock, 25*time.Second, 0 })},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p, err := Parse(path, []byte(tt.text))
			if err != nil {
				t.Fatal(err)
			}
			k := p.Kinds[len(p.Kinds)-1]
			if diff := cmp.Diff(tt.want, k.Generate); diff != "" || k.Targets != "" {
				t.Errorf("targets %q, %s", k.Targets, diff)
			}
		})
	}
}

func TestGenerateRefusals(t *testing.T) {
	dir := folder(t)
	t.Chdir(dir)
	if err := os.WriteFile("broken.json", []byte("{\n\"role\": }"), 0o600); err != nil {
		t.Fatal(err)
	}
	const worst = "  jwt-cache-worst: {generate: {leeway: 0s"
	for _, c := range []struct{ text, want string }{
		{generating("  mixed: {generate: {}}\n"), "5: kinds.mixed.generate: has no kind; write kind: jwt-cache, jwt-cache-worst or jwt-unique"},
		{generating("  jwt-cache: {generate: {}, targets: targets.http}\n"), "5: kinds.jwt-cache: has both targets and generate; keep one"},
		{generating("  jwt-cache: {generate: 5}\n"), "5: kinds.jwt-cache.generate: wants a map of key: value, not a number"},
		{generating("  jwt-cache:\n    generate:\n      cuont: 5\n"), "7: kinds.jwt-cache.generate.cuont: unknown key; did you mean count? known keys here are kind, count, method, url, algs, rsa_bits, seed, base_time, claims, duration and leeway"},
		{generating("  jwt-cache:\n    generate: {}\n    count: 5\n"), "7: kinds.jwt-cache.count: belongs inside generate; write generate: {count: …}"},
		{generating("  a:\n    kind: jwt-cache\n"), "6: kinds.a.kind: belongs inside generate; write generate: {kind: …}"},
		{generating("  a: {generate: {kind: jwt-cash}}\n"), `5: kinds.a.generate.kind: "jwt-cash" is unknown; did you mean jwt-cache? known are jwt-cache, jwt-cache-worst and jwt-unique`},
		{generating("  jwt-cache: {generate: {count: 0}}\n"), "5: kinds.jwt-cache.generate.count: 0 requests; ask for 1 or more"},
		{generating("  jwt-cache: {generate: {count: 5000000000, algs: [HS256]}}\n"), "5: kinds.jwt-cache.generate.count: 5000000000 requests do not fit into the 256 MiB that a file may hold; ask for at most about "},
		{generating("  jwt-cache: {generate: {count: 18446744073709551615}}\n"), "5: kinds.jwt-cache.generate.count: 9223372036854775807 requests do not fit"},
		{generating("  jwt-cache: {generate: {seed: a}}\n"), `5: kinds.jwt-cache.generate.seed: wants a whole number, not the text "a"; write digits only, such as 1`},
		{generating("  jwt-cache: {generate: {algs: [HS265]}}\n"), `5: kinds.jwt-cache.generate.algs[0]: "HS265" is unknown; did you mean HS256? known are HS256, RS256, PS256, ES256 and EdDSA`},
		{generating("  jwt-cache: {generate: {base_time: yesterday}}\n"), `5: kinds.jwt-cache.generate.base_time: "yesterday" is no moment; write one such as 2000-01-01T00:00:00Z or 2000-01-01T01:00:00+01:00`},
		{generating("  jwt-cache: {generate: {claims: [a]}}\n"), "5: kinds.jwt-cache.generate.claims: wants a map of claims or the path of a file with them, not a list; write {role: author}"},
		{generating("  jwt-cache: {generate: {claims: {n: .inf}}}\n"), "5: kinds.jwt-cache.generate.claims.n: JSON has no number .inf; write it in decimal, or put it in quotes"},
		{generating("  jwt-cache: {generate: {claims: nope.json}}\n"), "5: kinds.jwt-cache.generate.claims: stat " + filepath.Join(dir, "nope.json") + ": no such file or directory; the path is relative to the plan's folder"},
		{generating("  jwt-cache: {generate: {claims: broken.json}}\n"), "5: kinds.jwt-cache.generate.claims: " + filepath.Join(dir, "broken.json") + ":2: invalid character '}' looking for beginning of value; write a JSON object such as"},
		{generating("  jwt-cache: {generate: {claims: test}}\n"), "5: kinds.jwt-cache.generate.claims: " + filepath.Join(dir, "test") + " is not a regular file; name one that holds a JSON object"},
		{generating("  jwt-cache-worst: {generate: {}}\n"), "5: kinds.jwt-cache-worst.generate.leeway: say how long after exp the server still takes a token: 30s for PostgREST, 0s for one that takes none"},
		{generating(worst + "}}\n"), "5: kinds.jwt-cache-worst.generate: its tokens expire while a run goes on, as counted from the router's start at 2000-01-01T00:00:00Z on its clock; write router: {clock: 2000-01-01T00:00:00Z}, or kind: jwt-unique"},
		{clocked(worst + "}}\narms: {candidate: {clock: 2000-01-01T00:00:00Z}}\n"), "6: arms.candidate.clock: is 2000-01-01T00:00:00Z, but the tokens of kind jwt-cache-worst expire as counted from 2001-02-03T04:05:06Z; make clock and base_time the same"},
		{clocked(worst + ", base_time: 2000-01-01T00:00:00Z}}\n"), "3: router.clock: is 2001-02-03T04:05:06Z, but the tokens of kind jwt-cache-worst expire as counted from 2000-01-01T00:00:00Z; make clock and base_time the same"},

		// What targets says of a spec stands at its key.
		{generating("  jwt-cache:\n    generate:\n      rsa_bits: 1024\n"), "7: kinds.jwt-cache.generate.rsa_bits: 1024; an RSA key has 2048 to 16384 bits, a multiple of 8"},
		{generating("  jwt-cache: {generate: {url: \"http://a b/\"}}\n"), `5: kinds.jwt-cache.generate.url: invalid URL`},
		{generating("  jwt-cache: {generate: {claims: {exp: 1}}}\n"), `5: kinds.jwt-cache.generate.claims: "exp" is set by the kind, from the base time; leave it out`},
		{generating("  jwt-cache: {generate: {leeway: 5s}}\n"), "5: kinds.jwt-cache.generate.leeway: only tokens of kind jwt-cache-worst expire while a router runs; leave it out"},
	} {
		_, err := Parse("p.yaml", []byte(c.text))
		if err == nil || !strings.HasPrefix(err.Error(), "p.yaml:"+c.want) {
			t.Errorf("%q:\ngot  %v\nwant p.yaml:%s", c.text, err, c.want)
		}
	}
}
