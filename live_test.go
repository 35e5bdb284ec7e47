package plumbline_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// These tests weigh real routers with the real binary: what they assert holds
// on a noisy machine too, and they are run one after the other.

// binary builds plumbline once per test.
func binary(t testing.TB) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "plumbline")
	build(t, path)
	return path
}

func build(t testing.TB, path string) {
	t.Helper()
	if out, err := exec.Command("go", "build", "-o", path, "./cmd/plumbline").CombinedOutput(); err != nil {
		t.Fatalf("building plumbline: %v\n%s", err, out)
	}
}

// needs fails in CI, and skips elsewhere, where a router is not installed.
func needs(t testing.TB, program string) {
	t.Helper()
	if _, err := exec.LookPath(program); err == nil {
		return
	}
	if _, err := os.Stat("/usr/sbin/" + program); err == nil {
		return
	}
	missing(t, fmt.Sprintf("%s is not installed; on Debian: apt-get install %s", program, program))
}

// missing fails in CI, and skips elsewhere.
func missing(t testing.TB, msg string) {
	t.Helper()
	if os.Getenv("CI") != "" {
		t.Fatal(msg)
	}
	t.Skip(msg)
}

// row is what these tests look at of a comparison.
type row struct {
	Route, Metric, Verdict string
	Reasons                []string
	Judged                 bool
	Effect, Low, High      *float64
	Values                 *[2]float64
}

type verdict struct {
	Verdict     string
	ExitCode    int `json:"exit_code"`
	Reasons     []string
	AA          bool
	Comparisons []row
}

// weigh runs a plan and returns its verdict, whose exit code must be the process's.
func weigh(t testing.TB, plumbline, plan string, more ...string) verdict {
	t.Helper()
	return command(t, plumbline, append([]string{"run", plan}, more...)...)
}

// command is weigh for any command that runs a session.
func command(t testing.TB, plumbline string, args ...string) verdict {
	t.Helper()
	out := filepath.Join(t.TempDir(), "session")
	cmd := exec.Command(plumbline, append(args, "--out", out, "--json")...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	var v verdict
	if err := json.Unmarshal(stdout.Bytes(), &v); err != nil {
		t.Fatalf("%v (exit code %d)\n%s", err, cmd.ProcessState.ExitCode(), stderr.String())
	}
	if v.ExitCode != cmd.ProcessState.ExitCode() {
		t.Errorf("verdict.json says exit code %d, the process ended with %d", v.ExitCode, cmd.ProcessState.ExitCode())
	}
	for _, r := range v.Comparisons {
		if r.Effect != nil && r.Metric != "error_rate" {
			t.Logf("%-14s %-22s %-22s %+6.1f %%  (%+.1f … %+.1f)", r.Route, r.Metric, r.Verdict, 100**r.Effect, 100**r.Low, 100**r.High)
		}
	}
	return v
}

// answered weighs until look finds an answer in the verdict, or a fault. On a
// very busy machine there may be none, which plumbline has to say; then it is
// weighed again, up to three times in all.
func answered(t *testing.T, weigh func() verdict, look func(verdict) bool) (v verdict) {
	t.Helper()
	for range 3 {
		v = weigh()
		if look(v) || t.Failed() {
			return v
		}
		t.Logf("no answer: %s, %v", v.Verdict, v.Reasons)
	}
	t.Error("there was no answer in three sessions")
	return v
}

// noRegression holds an A/A, and returns its verdict. The answer is that
// something is equivalent.
func noRegression(t *testing.T, weigh func() verdict) verdict {
	t.Helper()
	return answered(t, weigh, func(v verdict) bool {
		if !v.AA {
			t.Error("it is not labelled as an A/A")
		}
		equivalent := 0
		for _, r := range v.Comparisons {
			switch r.Verdict {
			case "regression":
				t.Errorf("%s %s: regression in an A/A", r.Route, r.Metric)
			case "equivalent":
				equivalent++
			}
		}
		if v.Verdict == "regression" || v.Verdict == "invalid" {
			t.Errorf("the A/A is %q: %v", v.Verdict, v.Reasons)
		}
		return equivalent > 0
	})
}

// onlyThere holds a session with one slowed route, and returns its verdict. A
// wrong answer fails at once.
func onlyThere(t *testing.T, slowed string, weigh func() verdict) verdict {
	t.Helper()
	return answered(t, weigh, func(v verdict) bool {
		found := ""
		for _, r := range v.Comparisons {
			switch {
			case r.Route == slowed && r.Metric == "latency_p50":
				found = r.Verdict
			case r.Route != slowed && r.Verdict == "regression":
				t.Errorf("%s %s: regression, but only %s was slowed", r.Route, r.Metric, slowed)
			}
		}
		switch found {
		case "regression":
			if v.Verdict != "regression" || v.ExitCode != 3 {
				t.Errorf("the slowed route %s was found, and the session says %s, exit code %d, %v", slowed, v.Verdict, v.ExitCode, v.Reasons)
			}
			return true
		case "inconclusive", "not_comparable":
			if v.Verdict == "pass" {
				t.Errorf("no answer on %s, and the session passes", slowed)
			}
		default:
			t.Errorf("the slowed route %s is %q: %s, exit code %d, %v", slowed, found, v.Verdict, v.ExitCode, v.Reasons)
		}
		return false
	})
}

// work is how many units of work a router does on each of its three routes. A
// unit is some 5 µs, whatever the router: fine enough to plant 2 %.
type work [3]int

// What a slowed route does to its neighbours in a closed loop is a few µs
// (docs/METHOD.md, "Why slices"), so every route works for some 100 µs.
var (
	usual    = work{20, 20, 20}
	slowOnce = work{20, 40, 20} // the second route is some 40 % slower
)

// String names the work in files and commands: 20-40-20.
func (w work) String() string { return fmt.Sprintf("%d-%d-%d", w[0], w[1], w[2]) }

// live is a real router whose routes can be given more work.
type live struct {
	name    string
	program string // to be installed; empty: comes with plumbline
	routes  [3]string
	run     func(work) string // YAML list
	config  func(work) string // content of the file NAME-WORK.conf, which run reads; nil: it needs none
}

func routers(plumbline string) []live {
	paths := [3]string{"GET /one", "GET /two", "GET /three"}
	return []live{
		{
			name: "demo", routes: [3]string{"GET /films/7", "GET /search?q=river", "GET /nothing"},
			run: func(w work) string {
				return fmt.Sprintf(`[%s, mock, demo, --listen, "{socket}", --slow, "GET /films/7=%d%%", --slow, "GET /search=%d%%", --slow, "GET /nothing=%d%%"]`,
					plumbline, 5*w[0]-100, 5*w[1]-100, 5*w[2]-100)
			},
		},
		{
			name: "nginx", program: "nginx", routes: paths, config: nginxConfig,
			run: func(w work) string {
				return fmt.Sprintf(`[sh, -c, 'sed "s|SOCKET|{socket}|" nginx-%v.conf > {dir}/nginx.conf && PATH="$PATH:/usr/sbin" exec nginx -p {dir} -e stderr -c {dir}/nginx.conf']`, w)
			},
		},
		{
			name: "haproxy", program: "haproxy", routes: paths, config: haproxyConfig,
			run: func(w work) string {
				return fmt.Sprintf(`[sh, -c, 'PATH="$PATH:/usr/sbin" SOCKET={socket} exec haproxy -db -f haproxy-%v.conf']`, w)
			},
		},
	}
}

// nginxConfig works by patterns that backtrack.
func nginxConfig(w work) string {
	var locations strings.Builder
	for i, name := range []string{"one", "two", "three"} {
		fmt.Fprintf(&locations, "        location = /%s {\n%s            return 200 %q;\n        }\n", name,
			strings.Repeat("            if ($xs ~ \"^(x+x+)+y$\") { return 500; }\n", w[i]), name)
	}
	return `daemon off;
worker_processes 1;
pid nginx.pid;
events {}
http {
    access_log off;
    client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi; uwsgi_temp_path uwsgi; scgi_temp_path scgi;
    server {
        listen unix:SOCKET;
        set $xs "xxxxxxxxyz";
` + locations.String() + `    }
}
`
}

// haproxyConfig works by digests of digests. Every route has as many rules,
// whatever its work, as each rule costs the other routes too; lines are limited.
func haproxyConfig(w work) string {
	const rulesPerRoute, digestsPerUnit = 20, 10
	var rules strings.Builder
	for i, name := range []string{"one", "two", "three"} {
		for r := range rulesPerRoute {
			digests := digestsPerUnit*w[i]*(r+1)/rulesPerRoute - digestsPerUnit*w[i]*r/rulesPerRoute
			fmt.Fprintf(&rules, "    http-request set-var(txn.x) path%s if { path /%s }\n", strings.Repeat(",sha2(256),hex", digests), name)
		}
		fmt.Fprintf(&rules, "    http-request return status 200 content-type text/plain string %q if { path /%s }\n", name, name)
	}
	return `global
    nbthread 1
defaults
    mode http
    timeout connect 5s
    timeout client 30s
    timeout server 30s
frontend router
    bind "unix@${SOCKET}"
` + rules.String()
}

// plan writes a plan with its files to a folder and returns its path. extra
// are further lines of the plan.
func (l live) plan(t testing.TB, baseline, candidate work, extra string) string {
	t.Helper()
	dir := t.TempDir()
	files := map[string]string{
		"targets.http": strings.Join(l.routes[:], "\n\n") + "\n",
		"plumbline.yaml": `
router: {run: ` + l.run(baseline) + `}
arms: {baseline: {}, candidate: {run: ` + l.run(candidate) + `}}
kinds: {live: {targets: targets.http}}
` + extra}
	for _, w := range []work{baseline, candidate} {
		if l.config != nil {
			files[fmt.Sprintf("%s-%v.conf", l.name, w)] = l.config(w)
		}
	}
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(data), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "plumbline.yaml")
}

// short is a schedule that finds out in some 30 s.
const short = "warmup: {load: 500ms}\nschedule: {block: 4s, blocks: 6}\n"

func TestRealRouters(t *testing.T) {
	plumbline := binary(t)
	for _, l := range routers(plumbline) {
		if l.program != "" {
			needs(t, l.program)
		}
		t.Run(l.name+"/same", func(t *testing.T) {
			noRegression(t, func() verdict { return weigh(t, plumbline, l.plan(t, usual, usual, short)) })
		})
		t.Run(l.name+"/one route slower", func(t *testing.T) {
			onlyThere(t, l.routes[1], func() verdict { return weigh(t, plumbline, l.plan(t, usual, slowOnce, short)) })
		})
	}
}

// The main job: try finds the planted slowdown and nothing else. Where rows
// stay open on a very busy machine it is tried again; a wrong one fails at once.
func TestTry(t *testing.T) {
	plumbline := binary(t)
	var stdout, stderr bytes.Buffer
	dir := ""
	for i := range 3 {
		dir = t.TempDir()
		stdout.Reset()
		stderr.Reset()
		cmd := exec.Command(plumbline, "try")
		cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &stdout, &stderr
		err := cmd.Run()
		if err == nil {
			break
		}
		open := strings.Contains(stderr.String(), " is inconclusive") || strings.Contains(stderr.String(), " is not_comparable")
		for _, v := range []string{" is equivalent", " is regression", " is improvement"} {
			open = open && !strings.Contains(stderr.String(), v)
		}
		if i == 2 || !open {
			t.Fatalf("%v\n%s\n%s", err, stdout.String(), stderr.String())
		}
		t.Log(stderr.String())
	}
	lines := strings.Split(strings.TrimSpace(stdout.String()), "\n")
	last, ok := strings.CutPrefix(lines[len(lines)-1], "report: ")
	if !ok || !strings.HasPrefix(lines[0], "REGRESSION") {
		t.Errorf("it does not begin with the verdict and end with the report's path:\n%s", stdout.String())
	}
	if _, err := os.Stat(filepath.Join(dir, last)); err != nil {
		t.Error(err)
	}
	if !strings.Contains(stderr.String(), "would have exited with 3") {
		t.Errorf("it does not say what against would have done:\n%s", stderr.String())
	}
}

// The examples weigh what they say they weigh.
func TestExamples(t *testing.T) {
	plumbline := binary(t)
	for _, name := range []string{"nginx", "haproxy"} {
		t.Run(name, func(t *testing.T) {
			needs(t, name)
			v := weigh(t, plumbline, filepath.Join("examples", name, "plumbline.yaml"), "--blocks", "3", "--duration", "6s")
			if v.Verdict == "invalid" || len(v.Comparisons) == 0 {
				t.Errorf("%s: %v", v.Verdict, v.Reasons)
			}
		})
	}
}

// A router that puts its additional work off to a flush once a second is
// judged right: frozen while it is idle, it pays for the flush itself. Not
// frozen, it would let the other arm pay, and that is noticed.
func TestDeferredWork(t *testing.T) {
	plumbline := binary(t)
	plan := func(schedule string) string {
		dir := t.TempDir()
		run := `[` + plumbline + `, mock, demo, --listen, "{socket}"`
		for name, data := range map[string]string{
			"targets.http": "GET /search?q=river\n",
			"plumbline.yaml": `
router: {run: ` + run + `]}
arms: {baseline: {}, candidate: {run: ` + run + `, --later, --slow, "GET /search=60%"]}}
kinds: {live: {targets: targets.http}}
warmup: {load: 500ms}
schedule: ` + schedule + "\n",
		} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(data), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		return filepath.Join(dir, "plumbline.yaml")
	}
	onlyThere(t, "GET /search?q=river", func() verdict { return weigh(t, plumbline, plan("{block: 6s, blocks: 6}")) })
	v := weigh(t, plumbline, plan("{block: 6s, blocks: 6, freeze: false}"))
	if v.Verdict == "pass" || v.Verdict == "regression" {
		t.Errorf("not frozen: %s, %v", v.Verdict, v.Reasons)
	}
	for _, r := range v.Comparisons {
		if r.Metric != "error_rate" && !strings.Contains(strings.Join(r.Reasons, " "), "carry-over: candidate used") {
			t.Errorf("not frozen: %s is %s: %v", r.Metric, r.Verdict, r.Reasons)
		}
	}
}
