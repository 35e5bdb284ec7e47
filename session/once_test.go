package session

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"plumbline/plan"
	"plumbline/record"
	"plumbline/session/load"
	"plumbline/targets"
	"plumbline/targets/keys"
)

func onceSet(schedule record.Schedule, requests int, expiry *targets.Expiry) *once {
	return &once{kind: "tokens", made: true, requests: requests, schedule: schedule, arms: 2, manifest: &targets.Manifest{Once: true, Requests: requests, Expiry: expiry}}
}

// A run of sliced has 1 s of warm-up and two slices of 200 ms, at 100 requests
// a second.
func TestUsedUpTargetsStopTheSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stage := &fakeStage{targets: 110}
		c := newConductor(t, sliced, stage)
		c.once = onceSet(sliced, 110, nil)
		err := c.run(t.Context())
		var stop *StopError
		if !errors.As(err, &stop) {
			t.Fatalf("the session ended with %v", err)
		}
		s := ended(t, c, stage, record.Stopped)
		// 100 a second for 1.4 s, and a fifth more.
		const want = "the targets of kind tokens are used up: each is sent once, and the 110 lasted for 1.1s of load; " +
			"a run of this plan needs about 170: write kinds.tokens.generate.count: 170, or a fixed rate with --rate"
		if !strings.HasSuffix(s.Reason, ": "+want) {
			t.Errorf("the reason is %q, want %q", s.Reason, want)
		}
		for _, r := range s.Runs {
			if r.Samples[record.NoTarget] != nil || r.State == record.Complete {
				t.Errorf("%s is %s, with %v", r.ID, r.State, r.Samples)
			}
		}
	})
}

// The warm-up and two slices of a run skip 5 targets each.
func TestSkippedTargetsAreNoted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stage := &fakeStage{skips: 5}
		c := newConductor(t, sliced, stage)
		c.session.Targets = &record.Targets{Count: 1000}
		if err := c.run(t.Context()); err != nil {
			t.Fatal(err)
		}
		s := ended(t, c, stage, record.Complete)
		for _, r := range s.Runs {
			if r.Skipped != 15 {
				t.Errorf("%s notes %d", r.ID, r.Skipped)
			}
		}
		if s.Targets == nil || s.Targets.Skipped != 15 {
			t.Errorf("session.json notes %+v", s.Targets)
		}
	})
}

// A router that dies closes every connection, and the targets with it: it has
// lost a run, and the session goes on.
func TestUsedUpByADeath(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stage := &fakeStage{burns: "002-candidate"}
		c := newConductor(t, sliced, stage)
		c.once = onceSet(sliced, 1000, nil)
		if err := c.run(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, r := range ended(t, c, stage, record.Complete).Runs {
			if r.ID == "002-candidate" && r.State != record.Died {
				t.Errorf("it is %s: %s", r.State, r.Reason)
			}
		}
	})
}

func TestWhyTargetsAreUsedUp(t *testing.T) {
	worst := func(seconds int) *targets.Expiry { return &targets.Expiry{DurationS: seconds, LeewayS: 30} }
	for _, tt := range []struct {
		name  string
		once  *once
		used  load.UsedUpError
		alive time.Duration
		want  string
	}{
		{"too few that do not expire", onceSet(sliced, 1000, nil), load.UsedUpError{Sent: 1000, Load: time.Second}, 5 * time.Second, "kinds.tokens.generate.count: 1700,"},
		{"the server is faster than they expire", onceSet(sliced, 1000, worst(20)), load.UsedUpError{Sent: 900, Skipped: 100, Load: time.Second}, 7 * time.Second,
			"(100 of them had expired before their turn); a run of this plan needs about 22000: write kinds.tokens.generate.count: 22000,"},
		{"the run is longer than they live", onceSet(sliced, 10000, worst(6)), load.UsedUpError{Sent: 200, Skipped: 9800, Late: true, Load: 700 * time.Millisecond}, 5 * time.Second,
			"all tokens of kind tokens that were left were too old 5s after the router's start: they are made for 6s, and none is sent in the last 3s (200 of 10000 were sent); write kinds.tokens.generate.duration: 14s"},
		{"all of that was the starts", onceSet(sliced, 1000, worst(10)), load.UsedUpError{Sent: 1, Skipped: 999, Late: true, Load: time.Millisecond}, 9 * time.Second,
			"kinds.tokens.generate.duration: 24s"},
		{"no load at all", onceSet(sliced, 1000, worst(10)), load.UsedUpError{Skipped: 1000, Late: true}, 9 * time.Second,
			"kinds.tokens.generate.duration: 24s"},
		{"never shorter than they are", onceSet(sliced, 1000, worst(30)), load.UsedUpError{Sent: 1, Skipped: 999, Late: true, Load: 1400 * time.Millisecond}, 9 * time.Second,
			"kinds.tokens.generate.duration: 31s"},
		{"and too few for so long", onceSet(sliced, 1000, worst(6)), load.UsedUpError{Sent: 700, Skipped: 300, Late: true, Load: 700 * time.Millisecond}, 5 * time.Second,
			"kinds.tokens.generate.duration: 14s and kinds.tokens.generate.count: 16800"},
		{"half of them left out", &once{kind: "tokens", made: true, requests: 1000, routes: 1, all: 2, schedule: sliced, arms: 2, manifest: &targets.Manifest{Once: true}}, load.UsedUpError{Sent: 1000, Load: time.Second}, 0,
			"the 1000 on the 1 of its 2 routes that --only leaves lasted for 1s of load; a run of this plan needs about 1700: write kinds.tokens.generate.count: 3400,"},
		{"made by hand", &once{kind: "tokens", requests: 1000, schedule: sliced, arms: 2, manifest: &targets.Manifest{Once: true}}, load.UsedUpError{Sent: 1000, Load: time.Second}, 0,
			"make them again with --count 1700,"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.once.ended(&tt.used, tt.alive).Error(); !strings.Contains(got, tt.want) {
				t.Errorf("got %q, want %q in it", got, tt.want)
			}
		})
	}
}

// withToken is a request with an unsigned token of these claims.
func withToken(path, claims string) targets.Target {
	part := func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }
	token := part(`{"alg":"HS256", "kid":"k"}`) + "." + part(claims) + "." + part("its signature")
	return targets.Target{Method: "GET", URL: "http://router" + path, Header: http.Header{"authorization": {"bearer " + token}}}
}

func TestARefusedTokenIsShown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stage := &fakeStage{answer: func(int, string) int { return 401 }, body: "no: e30.e30." + base64.RawURLEncoding.EncodeToString([]byte("its signature")) + "\n"}
		c := newConductor(t, sliced, stage)
		c.probes.routes[0] = withToken("/a", `{"role": "author", "iat": 946684800, "nbf": 946684700.5, "exp": 946681190}`)
		err := c.run(t.Context())
		s := ended(t, c, stage, record.Stopped)
		if err == nil || !strings.Contains(s.Reason, "preflight: GET /a: status 401; if that is the answer to weigh") {
			t.Errorf("the reason is %q", s.Reason)
		}
		// Virtual time begins at 2000-01-01T00:00:00Z, and a fake router's clock is an hour behind.
		const want = `the body (5 bytes):
no: e30.e30.…

its token's header: {"alg":"HS256","kid":"k"}
its claims: {"role":"author","iat":946684800,"nbf":946684700.5,"exp":946681190}
iat is 2000-01-01T00:00:00Z, 1h after the router's clock
nbf is 1999-12-31T23:58:20Z, 58m20s after the router's clock
exp is 1999-12-31T22:59:50Z, 10s before the router's clock
the router's clock, which was moved, should have been 1999-12-31T23:00:00Z
its Date header: Sat, 01 Jan 2000 00:00:00 GMT
so its clock was not moved: `
		if !strings.HasPrefix(s.Detail, want) {
			t.Errorf("the detail is\n%s\nwant\n%s", s.Detail, want)
		}
	})
}

// Of a set that was made the tokens are good: first the keys are to be looked at.
func TestAGoodTokenIsRefused(t *testing.T) {
	for want, until := range map[string]time.Time{
		"preflight: GET /a: status 401: a token of the set was refused that should be good (does the router verify with the keys in {targets}?); only if that is the answer to weigh, name it in the plan: `expect: {\"GET /a\": {status: [401]}}`": {},
		// A fake router's clock shows 23:00:00 by now.
		"preflight: GET /a: status 401 to a token that had expired: the starts took longer than the targets are made for; write kinds.tokens.generate.duration: 21s and kinds.tokens.generate.count: 2100": time.Date(1999, 12, 31, 23, 0, 0, 0, time.UTC),
	} {
		synctest.Test(t, func(t *testing.T) {
			stage := &fakeStage{answer: func(int, string) int { return 401 }}
			c := newConductor(t, sliced, stage)
			c.once = onceSet(sliced, 1000, &targets.Expiry{DurationS: 20, LeewayS: 0})
			c.once.rate = 100
			c.probes.good = true
			c.probes.routes[0] = withToken("/a", `{"exp": 946681190}`)
			c.probes.routes[0].Until = until
			if err := c.run(t.Context()); err == nil {
				t.Error("the session went on")
			}
			if s := ended(t, c, stage, record.Stopped); !strings.HasSuffix(s.Reason, want) {
				t.Errorf("the reason is %q, want %q", s.Reason, want)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) { // an error of the server is not about its token
		stage := &fakeStage{answer: func(int, string) int { return 503 }}
		c := newConductor(t, sliced, stage)
		c.probes.good = true
		if err := c.run(t.Context()); err == nil || strings.Contains(err.Error(), "token") {
			t.Errorf("got %v", err)
		}
	})
}

func TestTokensThatAreNone(t *testing.T) {
	for _, value := range []string{"", "Basic a.b.c", "Bearer", "Bearer a.b", "Bearer !.!.!", "Bearer bm8.bm8.bm8", "Bearer W10.W10.c2ln"} {
		target := targets.Target{Header: http.Header{"Authorization": {value}}}
		if got, ok := bearerOf(target); ok {
			t.Errorf("%q is read as %s", value, got.claims)
		}
	}
	if _, ok := bearerOf(targets.Target{}); ok {
		t.Error("a request without headers has a token")
	}
}

func TestExpiredTokensMustBeRefused(t *testing.T) {
	for _, status := range []int{401, 403, 200, 500} {
		synctest.Test(t, func(t *testing.T) {
			stage := &fakeStage{answer: func(_ int, route string) int {
				if route == "GET /a?expired" {
					return status
				}
				return 200
			}}
			c := newConductor(t, sliced, stage)
			c.probes.expired = []targets.Target{withToken("/a?expired", `{"exp": 946681199}`)}
			c.probes.leewayS = 30
			err := c.run(t.Context())
			if status == 401 || status == 403 {
				if err != nil {
					t.Fatal(err)
				}
				for _, r := range ended(t, c, stage, record.Complete).Runs {
					if len(r.Expired) != 1 || r.Expired[0].Status != status || r.Expired[0].Date == "" || len(r.Preflight) != 2 || r.Preflight[0].Date != "" {
						t.Errorf("%s notes %+v and %+v", r.ID, r.Preflight, r.Expired)
					}
				}
				return
			}
			s := ended(t, c, stage, record.Stopped)
			for _, want := range []string{"clock is not moved", "leeway is longer than the 30 s", "does not look at exp"} {
				if !strings.Contains(s.Reason, want) {
					t.Errorf("the reason is %q, without %q", s.Reason, want)
				}
			}
			if !strings.Contains(s.Detail, "exp is 1999-12-31T22:59:59Z, 1s before the router's clock") {
				t.Errorf("the detail is %q", s.Detail)
			}
		})
	}
}

// A leeway that was overstated by less than the preflight can see: what the
// reference refuses under load is no load of good tokens. If the candidate alone
// refuses them, that is a result.
func TestTokensThatTheBaselineRefuses(t *testing.T) {
	worst := &targets.Expiry{DurationS: 20, LeewayS: 30}
	for _, tt := range []struct {
		name    string
		refuses string
		expiry  *targets.Expiry
		expect  []int
		alone   bool   // the arm has none to be compared with
		stopped string // by whom
	}{
		{"both take them", "", worst, nil, false, ""},
		{"the baseline does not", "baseline", worst, nil, false, "main"},
		{"the candidate does not", "candidate", worst, nil, false, ""},
		{"the only arm does not", "candidate", worst, nil, true, "HEAD"},
		{"they do not expire", "baseline", nil, nil, false, ""},
		{"that is expected", "baseline", worst, []int{200, 401}, false, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				stage := &fakeStage{refuses: tt.refuses}
				c := newConductor(t, sliced, stage)
				c.once = onceSet(sliced, 1000, tt.expiry)
				for i := range c.session.Routes {
					c.session.Routes[i].Status = tt.expect
				}
				if tt.alone {
					c.session.Arms = c.session.Arms[1:]
				}
				err := c.run(t.Context())
				if tt.stopped == "" {
					if err != nil {
						t.Fatal(err)
					}
					ended(t, c, stage, record.Complete)
					return
				}
				s := ended(t, c, stage, record.Stopped)
				want := tt.stopped + ": 100 of 100 answers under load refuse a token of kind tokens that is still good for 2s: the router takes a token for less than the 30 s after exp that the targets were made for; find out for how long, and say it with kinds.tokens.generate.leeway"
				if !strings.HasSuffix(s.Reason, want) {
					t.Errorf("the reason is %q, want %q", s.Reason, want)
				}
			})
		})
	}
}

func TestAFewRefusalsAreResults(t *testing.T) {
	o := onceSet(sliced, 1000, &targets.Expiry{DurationS: 20, LeewayS: 30})
	for _, tt := range []struct {
		answers, refused int
		want             bool
	}{{100, 0, false}, {100, 9, false}, {100, 10, true}, {101, 10, false}, {9, 9, false}, {10, 10, true}, {0, 0, false}} {
		if got := o.refused(tt.answers, tt.refused) != nil; got != tt.want {
			t.Errorf("%d of %d: %v", tt.refused, tt.answers, got)
		}
	}
}

// planOf reads a plan with a kind that is generated, and what else it says.
func planOf(t *testing.T, generate, more string) *plan.Plan {
	t.Helper()
	p, err := plan.Parse(filepath.Join(t.TempDir(), "p.yaml"), []byte(`
router: {build: make, run: ["{build}/server", "{socket}"], clock: 2000-01-01T00:00:00Z}
arms: {baseline: {}, candidate: {}}
kinds: {tokens: {generate: {algs: [HS256], `+generate+`}}}
`+more))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// The preflight takes what the load does not send: of each route that is sent,
// and over TLS where the load goes over it.
func TestThePreflightAsksTheReserve(t *testing.T) {
	at := func(line int, paths ...string) (all []targets.Target) {
		for i, path := range paths {
			all = append(all, targets.Target{Method: "GET", URL: "http://router" + path, Line: line + i})
		}
		return all
	}
	set := &targets.Set{
		Manifest: &targets.Manifest{Once: true, Expiry: &targets.Expiry{DurationS: 20, LeewayS: 30}},
		Targets:  at(1, "/a", "/b", "/a", "/b"), Reserve: at(11, "/a", "/b"), Expired: at(21, "/a", "/b"),
	}
	for _, tt := range []struct {
		more            string
		only            []string
		routes, expired string
	}{
		{"", nil, "http://router/a:11 http://router/b:12", "http://router/a:21 http://router/b:22"},
		{"", []string{"/b"}, "http://router/b:12", "http://router/b:22"},
		{"load: {tls: true}\n", nil, "https://router/a:11 https://router/b:12", "https://router/a:21 https://router/b:22"},
	} {
		p := planOf(t, "kind: jwt-unique", tt.more)
		p.Only = tt.only
		var l layout
		if err := l.send(p, set); err != nil {
			t.Fatal(err)
		}
		show := func(all []targets.Target) string {
			var parts []string
			for _, t := range all {
				parts = append(parts, fmt.Sprintf("%s:%d", t.URL, t.Line))
			}
			return strings.Join(parts, " ")
		}
		if got := show(l.probes.routes); got != tt.routes {
			t.Errorf("%q %q: the routes are asked by %s, want %s", tt.more, tt.only, got, tt.routes)
		}
		if got := show(l.probes.expired); got != tt.expired || l.probes.leewayS != 30 {
			t.Errorf("%q %q: to be refused are %s (leeway %d), want %s", tt.more, tt.only, got, l.probes.leewayS, tt.expired)
		}
	}
}

func TestASetThatCannotLast(t *testing.T) {
	// A block is 4 s of warm-up, 10 s of load, and 2.1 s of controls.
	const worst, rate = "kind: jwt-cache-worst, leeway: 30s, ", "load: {rate: 100/s}\n"
	for _, tt := range []struct {
		name, generate, more string
		want                 string // empty: it can, or nobody knows
	}{
		{"a closed loop", "kind: jwt-unique, count: 1", "", ""},
		{"enough for a rate", "kind: jwt-unique, count: 700", rate, ""},
		{"too few for a rate", "kind: jwt-unique, count: 699", rate,
			"kind tokens has 699 targets, each of which is sent once, and a run of this plan sends 700: 100 requests a second for 7s of load; write kinds.tokens.generate.count: 700"},
		{"repeated", "kind: jwt-cache, count: 1", rate, ""},
		{"as long as a run", worst + "count: 10", "", ""},
		{"long enough", worst + "duration: 20s", "", ""},
		{"too short", worst + "duration: 19s", "", "the tokens of kind tokens are made for 19s from a router's start, but a run of this plan takes 16.1s and its starts, and none is sent in the last 3s: 20s is the least; write kinds.tokens.generate.duration: 25s, or make schedule.block or warmup shorter"},
		{"too short for a short run", worst + "duration: 5s", "schedule: {mode: interleaved, block: 5s}\nwarmup: {load: 0s}\n", "6s is the least; write kinds.tokens.generate.duration: 8s"},
		{"long enough for one", worst + "duration: 5s", "schedule: {mode: interleaved, block: 4s}\nwarmup: {load: 0s}\n", ""},
		{"slow enough", worst + "count: 1000, duration: 10s", rate, ""},
		{"faster than they expire", worst + "count: 999, duration: 10s", rate, "a run of this plan sends 1000: 100 requests a second for the 10s that they are made for; write kinds.tokens.generate.count: 1000"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := layChecked(Job{Plan: planOf(t, tt.generate, tt.more)})
			switch {
			case tt.want == "" && err != nil:
				t.Error(err)
			case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

// The record says in few words what is sent; of the algorithms, those that --only leaves.
func TestWhatIsSentIsRecorded(t *testing.T) {
	made := t.TempDir()
	dir := filepath.Join(made, "set")
	spec := targets.DefaultSpec(targets.JWTCacheWorst)
	spec.Algs, spec.Count, spec.Duration, spec.Leeway = []keys.Alg{keys.ES256, keys.HS256}, 10, 20*time.Second, 30*time.Second
	if _, err := targets.Generate(t.Context(), dir, spec, "dev", false); err != nil {
		t.Fatal(err)
	}
	set, err := targets.Read(filepath.Join(dir, targets.TargetsFile))
	if err != nil {
		t.Fatal(err)
	}
	byHand := &targets.Set{Targets: []targets.Target{{Method: "GET", URL: "http://router/"}}}
	for _, tt := range []struct {
		set  *targets.Set
		only []string
		want record.Targets
	}{
		{byHand, nil, record.Targets{Count: 1}},
		{set, nil, record.Targets{Count: 10, Set: "jwt-cache-worst", Algs: []string{"HS256", "ES256"}, Once: true, ExpireS: 20, LeewayS: 30}},
		{set, []string{"/authors_only?alg=ES256"}, record.Targets{Count: 5, Set: "jwt-cache-worst", Algs: []string{"ES256"}, Once: true, ExpireS: 20, LeewayS: 30}},
	} {
		p := planOf(t, "kind: jwt-unique", "")
		p.Only = tt.only
		var l layout
		if err := l.send(p, tt.set); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(&tt.want, l.sent()); diff != "" {
			t.Errorf("%q: %s", tt.only, diff)
		}
	}
}

// Tokens that a router cannot take, as they are not good yet or not any more.
func TestTokensOfAnotherTime(t *testing.T) {
	now := time.Date(2026, 12, 1, 5, 0, 0, 0, time.UTC)
	const host = "but it is 2026-12-01T05:00:00Z on this machine's clock, by which main goes; "
	for _, tt := range []struct {
		name, generate string
		clock          string // empty: not moved
		want           string // empty: they are good
	}{
		{"the clock's own", "kind: jwt-cache", "2000-01-01T00:00:00Z", ""},
		{"of the past", "kind: jwt-cache", "", ""},
		{"of just now", "kind: jwt-unique, base_time: 2026-12-01T05:00:00Z", "", ""},
		{"after the clock", "kind: jwt-unique, base_time: 2000-01-01T00:00:01Z", "2000-01-01T00:00:00Z",
			"p.yaml: the tokens of kind tokens are good from 2000-01-01T00:00:01Z to 2100-01-01T00:00:01Z, but the clock of main shows 2000-01-01T00:00:00Z when it starts; write kinds.tokens.generate.base_time: a moment up to 99 years before that"},
		{"after today", "kind: jwt-cache, base_time: 2027-01-01T00:00:00Z", "", host},
		{"before the clock", "kind: jwt-cache, base_time: 2000-01-01T00:00:00Z", "2199-01-01T00:00:00Z", "to 2100-01-01T00:00:00Z, but the clock of main shows 2199-01-01T00:00:00Z"},
		{"expired just then", "kind: jwt-cache, base_time: 2000-01-01T00:00:00Z", "2100-01-01T00:00:00Z", "to 2100-01-01T00:00:00Z, but"},
		{"a moment earlier", "kind: jwt-cache, base_time: 2000-01-01T00:00:00Z", "2099-12-31T23:59:59Z", ""},
		{"before today", "kind: jwt-unique, base_time: 1970-01-01T00:00:00Z", "", ""},
		{"those that expire in a run", "kind: jwt-cache-worst, leeway: 0s", "2000-01-01T00:00:00Z", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l, err := lay(Job{Plan: planOf(t, tt.generate, "")})
			if err != nil {
				t.Fatal(err)
			}
			l.arms[0].arm.Label = "main"
			for i := range l.arms {
				l.arms[i].router.Clock.Start = time.Time{}
				if tt.clock != "" {
					l.arms[i].router.Clock.Start, _ = time.Parse(time.RFC3339, tt.clock)
				}
			}
			err = l.checkDates(now)
			switch {
			case tt.want == "" && err != nil:
				t.Error(err)
			case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
	// And plan check and a session look at it.
	if _, err := layChecked(Job{Plan: planOf(t, "kind: jwt-cache, base_time: 2000-01-02T00:00:00Z", "")}); err == nil || !strings.Contains(err.Error(), "are good from") {
		t.Errorf("a session begins with tokens of tomorrow: %v", err)
	}
}

// A set of which --only sends a part is large enough once the advice is followed.
func TestACountForSomeRoutes(t *testing.T) {
	for _, generate := range []string{"kind: jwt-unique", "kind: jwt-cache-worst, leeway: 0s"} {
		for _, only := range [][]string{{"/authors_only?alg=RS256"}, {"/authors_only?alg=RS256", "/authors_only?alg=ES256"}} {
			p := planOf(t, generate, "load: {rate: 101/s}\n")
			spec := p.Kinds[0].Generate
			spec.Algs, spec.Count = []keys.Alg{keys.HS256, keys.ES256, keys.RS256}, 10
			p.Only = only
			_, err := layChecked(Job{Plan: p})
			if err == nil {
				t.Fatalf("%s: 10 requests last", generate)
			}
			for _, part := range []string{fmt.Sprintf(" on the %d of its 3 routes that --only leaves,", len(only)), "generate.count: "} {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%s %q: got %v, want %q", generate, only, err, part)
				}
			}
			_, number, _ := strings.Cut(err.Error(), "generate.count: ")
			if spec.Count, err = strconv.Atoi(number); err != nil {
				t.Fatal(err)
			}
			if _, err := layChecked(Job{Plan: p}); err != nil {
				t.Errorf("%s %q: as was advised: %v", generate, only, err)
			}
			spec.Count -= 3
			if _, err := layChecked(Job{Plan: p}); err == nil {
				t.Errorf("%s %q: a round less than was advised is enough", generate, only)
			}
		}
	}
}

func TestTokensAreMadeForARunOfThePlan(t *testing.T) {
	for more, want := range map[string]time.Duration{
		"": 25 * time.Second, // 1.1 × 16.1 s, two starts of 2 s, and 3 s in which none is sent
		"schedule: {controls: false}\nwarmup: {load: auto, at_most: 10s, idle: 1s}\n": 42 * time.Second,
		"schedule: {mode: interleaved}\n":                                             13 * time.Second,
		"schedule: {mode: interleaved, block: 1s}\nwarmup: {load: 0s}\n":              6 * time.Second,
	} {
		l, err := layChecked(Job{Plan: planOf(t, "kind: jwt-cache-worst, leeway: 0s", more)})
		if err != nil {
			t.Fatal(err)
		}
		if got := l.kind.Generate.Duration; got != want || l.set.Manifest.Expiry.DurationS != int(want.Seconds()) {
			t.Errorf("%q: made for %s, want %s", more, got, want)
		}
	}
}

func TestAClockThatWasNotMoved(t *testing.T) {
	now := time.Date(2026, 12, 1, 5, 0, 0, 0, time.UTC)
	offset := record.Seconds(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC).Sub(now).Seconds())
	token, ok := bearerOf(withToken("/", `{"exp": 946684805}`))
	if !ok {
		t.Fatal("no token")
	}
	for _, tt := range []struct {
		name  string
		run   record.Run
		date  string
		found bool
	}{
		{"it shows the host's time", record.Run{ClockOffsetS: &offset}, "Tue, 01 Dec 2026 05:00:01 GMT", true},
		{"it shows its own", record.Run{ClockOffsetS: &offset}, "Sat, 01 Jan 2000 00:00:00 GMT", false},
		{"it says nothing", record.Run{ClockOffsetS: &offset}, "", false},
		{"it should show the host's", record.Run{}, "Tue, 01 Dec 2026 05:00:01 GMT", false},
	} {
		got := token.beside(tt.run, asked{at: now, answer: record.Answer{Date: tt.date}})
		if strings.Contains(got, "so its clock was not moved") != tt.found {
			t.Errorf("%s: %s", tt.name, got)
		}
		want := "exp is 2000-01-01T00:00:05Z, 5s after the router's clock\nthe router's clock, which was moved, should have been 2000-01-01T00:00:00Z"
		if tt.run.ClockOffsetS != nil && !strings.Contains(got, want) {
			t.Errorf("%s: got %s, want %s", tt.name, got, want)
		}
		if strings.Count(got, "\n") > 12 {
			t.Errorf("%s: %d lines", tt.name, strings.Count(got, "\n"))
		}
	}
}

// Slow starts are not the token's fault, nor is a server without the leeway.
func TestATokenThatExpiredBeforeItsTurn(t *testing.T) {
	target := withToken("/", `{"exp": 946684800}`)
	token, _ := bearerOf(target)
	target.Until = time.Date(2000, 1, 1, 0, 0, 30, 0, time.UTC)
	const slow, less = "so it had expired, leeway and all", "less than the leeway of 30 s that the targets are made for"
	for seconds, want := range map[int]string{-1: "", 0: less, 29: less, 30: slow} {
		at := time.Date(2000, 1, 1, 0, 0, seconds, 0, time.UTC)
		got := token.beside(record.Run{}, asked{target: target, at: at, answer: record.Answer{Status: 401}})
		for _, hint := range []string{slow, less} {
			if strings.Contains(got, hint) != (hint == want) {
				t.Errorf("after %d s: %s", seconds, got)
			}
		}
	}
}

// Whoever may write where sets are kept decides what is sent.
func TestCacheRoot(t *testing.T) {
	cache := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", cache) // Linux
	t.Setenv("HOME", cache)           // others
	root := cacheRoot()
	if root == "" {
		t.Fatal("a user's own cache folder is not taken")
	}
	for mode, want := range map[os.FileMode]string{0o755: root, 0o700: root, 0o775: "", 0o757: "", 0o777 | os.ModeSticky: ""} {
		if err := os.Chmod(root, mode); err != nil {
			t.Fatal(err)
		}
		if got := cacheRoot(); got != want {
			t.Errorf("with %v it is %q, want %q", mode, got, want)
		}
	}
	if err := os.Chmod(root, 0o755); err != nil {
		t.Fatal(err)
	}
	if os.Getuid() != 0 {
		return // nobody else can be given a folder
	}
	if err := os.Chown(root, 65534, 65534); err != nil {
		t.Fatal(err)
	}
	if got := cacheRoot(); got != "" {
		t.Errorf("another user's folder is taken: %s", got)
	}
}
