package plumbline_test

import (
	"bytes"
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"plumbline/session/router"
	"plumbline/targets"
)

// makeTargets runs the command `targets` and returns its folder.
func makeTargets(t *testing.T, plumbline string, args ...string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "targets")
	cmd := exec.Command(plumbline, append([]string{"targets", dir}, args...)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", cmd.Args, err, out)
	}
	return dir
}

// startServer starts a server that is ready once path answers.
func startServer(t *testing.T, cfg router.Config, path string) *http.Client {
	t.Helper()
	cfg.Env = append(os.Environ(), cfg.Env...)
	cfg.Log = filepath.Join(t.TempDir(), "log")
	cfg.Ready = router.Ready{Path: path, Within: 30 * time.Second}
	cfg.Stop = syscall.SIGTERM
	p, err := router.Start(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Stop)
	if err := p.WaitReady(context.Background()); err != nil {
		log, _ := os.ReadFile(cfg.Log)
		t.Fatalf("%v\n%s", err, log)
	}
	client := &http.Client{
		Transport:     &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return cfg.Address.Dial(ctx) }},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	t.Cleanup(client.CloseIdleConnections)
	return client
}

// startHAProxy starts the example's HAProxy, which verifies with the keys in dir.
func startHAProxy(t *testing.T, dir string, clock router.Clock) *http.Client {
	t.Helper()
	secret, err := os.ReadFile(filepath.Join(dir, "hs.secret"))
	if err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(shortTemp(t), "s")
	return startServer(t, router.Config{
		Args: []string{"sh", "-c", `PATH="$PATH:/usr/sbin" exec haproxy -db -f examples/haproxy-jwt/haproxy.cfg`}, Dir: ".", Clock: clock,
		Env:     []string{"SOCKET=" + socket, "TARGETS=" + dir, "HS_SECRET=" + string(secret), "KEY=rsa.public.pem", "LEEWAY=0"},
		Address: router.Address{Network: "unix", Addr: socket},
	}, "/health")
}

// clockLibrary is the system's libfaketime, as any of its programs loads it.
func clockLibrary(t *testing.T) string {
	t.Helper()
	path, err := router.FindClockLibrary("/bin/sh", "")
	if err != nil {
		missing(t, err.Error())
	}
	return path
}

// shortTemp is short enough for a unix socket's path.
func shortTemp(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "pl")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// status is what a server answers to a target, whose token change may alter.
func status(t *testing.T, client *http.Client, of targets.Target, change func(token string) string) int {
	t.Helper()
	req, err := http.NewRequest(of.Method, of.URL, bytes.NewReader(of.Body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header = of.Header.Clone()
	if token, ok := strings.CutPrefix(req.Header.Get("Authorization"), "Bearer "); !ok {
		t.Fatalf("%s:%d has no token", of.File, of.Line)
	} else if change != nil {
		req.Header.Set("Authorization", "Bearer "+change(token))
	}
	res, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	return res.StatusCode
}

func readTargets(t *testing.T, dir string) *targets.Set {
	t.Helper()
	set, err := targets.Read(filepath.Join(dir, targets.TargetsFile))
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// tamperings make another token of a good one, which no verifier may take.
var tamperings = map[string]func(string) string{
	"signature": func(token string) string {
		i := strings.LastIndexByte(token, '.') + 10
		return token[:i] + string(other(token[i])) + token[i+1:]
	},
	"claims": func(token string) string {
		i := strings.IndexByte(token, '.') + 20
		return token[:i] + string(other(token[i])) + token[i+1:]
	},
	"no signature": func(token string) string { return token[:strings.LastIndexByte(token, '.')+1] },
	"cut":          func(token string) string { return token[:len(token)-8] },
}

func other(b byte) byte {
	if b == 'A' {
		return 'B'
	}
	return 'A'
}

// HAProxy takes every generated token of both algorithms, and no other.
func TestHAProxyTakesTheTokens(t *testing.T) {
	needs(t, "haproxy")
	plumbline := binary(t)
	for _, kind := range []string{"jwt-cache", "jwt-unique"} {
		t.Run(kind, func(t *testing.T) {
			dir := makeTargets(t, plumbline, "--kind", kind, "--count", "400", "--rsa-bits", "2048", "--url", "/")
			set := readTargets(t, dir)
			client := startHAProxy(t, dir, router.Clock{})
			seen := map[string]int{}
			for _, target := range append(set.Targets, set.Reserve...) {
				seen[target.URL]++
				if got := status(t, client, target, nil); got != 200 {
					t.Fatalf("%s:%d: status %d", target.File, target.Line, got)
				}
			}
			if len(seen) != 2 || len(set.Targets) != 400 {
				t.Errorf("%d targets on %v", len(set.Targets), seen)
			}
			for _, target := range set.Targets[:20] {
				for name, change := range tamperings {
					if got := status(t, client, target, change); got != 401 {
						t.Errorf("%s of %s changed: status %d", name, target.URL, got)
					}
				}
			}
		})
	}
}

// On a moved clock the tokens expire one after the other, when the manifest
// says so.
func TestTokensExpireOnAMovedClock(t *testing.T) {
	needs(t, "haproxy")
	plumbline := binary(t)
	dir := makeTargets(t, plumbline, "--kind", "jwt-cache-worst", "--count", "40", "--duration", "20s", "--leeway", "0s", "--rsa-bits", "2048", "--url", "/")
	set := readTargets(t, dir)
	base := set.Manifest.BaseTime
	client := startHAProxy(t, dir, router.Clock{Start: base, Library: clockLibrary(t)})
	began := time.Now()
	for _, target := range set.Expired {
		if got := status(t, client, target, nil); got != 401 {
			t.Errorf("%s:%d: a token that expired before the start: status %d", target.File, target.Line, got)
		}
	}
	first, last := set.Targets[0], set.Targets[len(set.Targets)-1]
	if got := status(t, client, first, nil); got != 200 {
		t.Errorf("the first token, %s before it expires: status %d", first.Until.Sub(base), got)
	}
	// The router may have been started a second or two before began.
	time.Sleep(time.Until(began.Add(first.Until.Sub(base) + 2*time.Second)))
	if got := status(t, client, first, nil); got != 401 {
		t.Errorf("the first token, after it has expired: status %d", got)
	}
	if got := status(t, client, last, nil); got != 200 {
		t.Errorf("the last token, which expires after %s: status %d", last.Until.Sub(base), got)
	}
}

// oauth2-proxy reads the public set itself, and takes the RS256 tokens.
func TestOAuth2ProxyReadsTheSet(t *testing.T) {
	needs(t, "oauth2-proxy")
	plumbline := binary(t)
	dir := ""
	issuer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.ServeFile(w, r, filepath.Join(dir, "jwks.public.json"))
	}))
	defer issuer.Close()
	dir = makeTargets(t, plumbline, "--kind", "jwt-cache", "--count", "50", "--algs", "RS256,HS256", "--url", "/",
		"--claim", "iss="+issuer.URL, "--claim", "aud=plumbline", "--claim", "email=load@example.org")
	listen := freeAddress(t)
	client := startServer(t, router.Config{
		Args: []string{"oauth2-proxy", "--provider=oidc", "--skip-oidc-discovery", "--oidc-issuer-url=" + issuer.URL, "--oidc-jwks-url=" + issuer.URL,
			"--login-url=" + issuer.URL, "--redeem-url=" + issuer.URL, "--skip-jwt-bearer-tokens", "--upstream=static://200", "--email-domain=*",
			"--client-id=plumbline", "--client-secret=none", "--cookie-secret=0123456789abcdef", "--http-address=" + listen},
		Address: router.Address{Network: "tcp", Addr: listen},
	}, "/ping")
	set := readTargets(t, dir)
	taken := 0
	for _, target := range set.Targets {
		symmetric := strings.Contains(target.URL, "HS256")
		got := status(t, client, target, nil)
		switch {
		case symmetric && got == 200:
			t.Errorf("%s:%d: a token was taken whose key is not in the public set", target.File, target.Line)
		case !symmetric && got != 200:
			t.Fatalf("%s:%d: status %d", target.File, target.Line, got)
		case !symmetric:
			taken++
			for name, change := range tamperings {
				if got := status(t, client, target, change); got == 200 {
					t.Errorf("%s changed: status %d", name, got)
				}
			}
		}
	}
	if taken != 25 {
		t.Errorf("%d of 25 RS256 tokens were taken", taken)
	}
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// A session on generated tokens has a row per algorithm. Where one arm's
// verification of one of them is slower, that row is and no other.
func TestTokenSessions(t *testing.T) {
	needs(t, "haproxy")
	plumbline := binary(t)
	example := filepath.Join("examples", "haproxy-jwt", "plumbline.yaml")
	rows := [2]string{"GET /?alg=HS256", "GET /?alg=RS256"}
	bothRows := func(t *testing.T, v verdict) {
		t.Helper()
		seen := map[string]bool{}
		for _, r := range v.Comparisons {
			seen[r.Route] = true
		}
		if len(seen) != 2 || !seen[rows[0]] || !seen[rows[1]] {
			t.Errorf("rows %v, want %v", seen, rows)
		}
	}
	t.Run("same", func(t *testing.T) {
		bothRows(t, noRegression(t, func() verdict {
			return command(t, plumbline, "between", "baseline", "baseline", "--plan", example, "--duration", "18s", "--blocks", "6")
		}))
	})
	t.Run("RS256 slower", func(t *testing.T) {
		bothRows(t, onlyThere(t, rows[1], func() verdict {
			return command(t, plumbline, "run", example, "--duration", "18s", "--blocks", "6")
		}))
	})
	t.Run("expiring", func(t *testing.T) {
		v := command(t, plumbline, "run", filepath.Join("examples", "haproxy-jwt", "expiring.yaml"), "--duration", "6s", "--blocks", "3")
		bothRows(t, v)
		for _, r := range v.Comparisons {
			if r.Metric == "error_rate" && (r.Values == nil || *r.Values != [2]float64{}) {
				t.Errorf("%s: error rates %v: an expired token was sent", r.Route, r.Values)
			}
		}
	})
}

// Each kind shows about a cache of tokens what it is for: testdata/verifier.js
// has such a cache, and counts.
func TestKindsShowWhatTheySay(t *testing.T) {
	needs(t, "node")
	clockLibrary(t)
	plumbline := binary(t)
	verifier, err := filepath.Abs("testdata/verifier.js")
	if err != nil {
		t.Fatal(err)
	}
	type counts struct{ Hits, Misses, Expired, Refused int }
	for _, kind := range []struct {
		generate string
		good     func(c counts) bool
	}{
		{"jwt-cache: {generate: {count: 200, algs: [HS256, ES256]}", func(c counts) bool {
			return c.Misses == 200 && c.Hits > 5000 && c.Expired == 0 && c.Refused == 0
		}},
		{"jwt-unique: {generate: {count: 8000, algs: [HS256, ES256]}", func(c counts) bool {
			return c.Hits == 0 && c.Misses > 5000 && c.Expired == 0 && c.Refused == 0
		}},
		// What the preflight demands to be refused is two tokens.
		{"jwt-cache-worst: {generate: {count: 15000, algs: [HS256, ES256], leeway: 30s}", func(c counts) bool {
			return c.Hits == 0 && c.Misses > 5000 && c.Expired > 1000 && c.Refused == 2
		}},
	} {
		name, _, _ := strings.Cut(kind.generate, ":")
		t.Run(name, func(t *testing.T) {
			dir := shortTemp(t)
			plan := `
router:
  run: [node, "` + verifier + `"]
  env: {SOCKET: "{socket}", TARGETS: "{targets}", LEEWAY: "30"}
  ready: {http: /health}
  clock: 2000-01-01T00:00:00Z
kinds: {` + kind.generate + `}}
load: {rate: 1000/s}
warmup: {load: 500ms}
schedule: {block: 6s, blocks: 1, controls: false}
`
			if err := os.WriteFile(filepath.Join(dir, "plumbline.yaml"), []byte(plan), 0o644); err != nil {
				t.Fatal(err)
			}
			out := filepath.Join(dir, "session")
			if said, err := exec.Command(plumbline, "run", filepath.Join(dir, "plumbline.yaml"), "--out", out).CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, said)
			}
			log, err := os.ReadFile(filepath.Join(out, "runs", "001-router", "router.log"))
			if err != nil {
				t.Fatal(err)
			}
			var c counts
			if err := json.Unmarshal(log, &c); err != nil || !kind.good(c) {
				t.Errorf("the server counted %s, %v", log, err)
			}
		})
	}
}
