package plumbline_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
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
	if out, err := exec.Command("go", "build", "-o", path, "./cmd/plumbline").CombinedOutput(); err != nil {
		t.Fatalf("building plumbline: %v\n%s", err, out)
	}
	return path
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
	msg := fmt.Sprintf("%s is not installed; on Debian: apt-get install %s", program, program)
	if os.Getenv("CI") != "" {
		t.Fatal(msg)
	}
	t.Skip(msg)
}

// row is what these tests look at of a comparison.
type row struct {
	Route, Metric, Verdict string
	Judged                 bool
	Effect, Low, High      *float64
}

type verdict struct {
	Verdict     string
	ExitCode    int `json:"exit_code"`
	Reasons     []string
	AA          bool
	Comparisons []row
}

// weigh runs a plan and returns its verdict, whose exit code must be the process's.
func weigh(t testing.TB, plumbline, plan string) verdict {
	t.Helper()
	out := filepath.Join(t.TempDir(), "session")
	cmd := exec.Command(plumbline, "run", plan, "--out", out, "--json")
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

// noRegression holds an A/A.
func noRegression(t *testing.T, v verdict) {
	t.Helper()
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
	if equivalent == 0 {
		t.Error("nothing at all could be told to be equivalent")
	}
}

// onlyThere holds a session with one slowed route.
func onlyThere(t *testing.T, v verdict, slowed string) {
	t.Helper()
	found := false
	for _, r := range v.Comparisons {
		if r.Route == slowed {
			found = found || r.Verdict == "regression" && r.Metric == "latency_p50"
		} else if r.Verdict == "regression" {
			t.Errorf("%s %s: regression, but only %s was slowed", r.Route, r.Metric, slowed)
		}
	}
	if !found || v.Verdict != "regression" || v.ExitCode != 3 {
		t.Errorf("the slowed route %s was not found: %s, exit code %d, %v", slowed, v.Verdict, v.ExitCode, v.Reasons)
	}
}

// live is a real router that can do more work on one route.
type live struct {
	name    string
	program string // to be installed; empty: comes with plumbline
	run     string // YAML list; WORK in its environment says how much work
	normal  string // value of WORK
	more    string // value of WORK for a route about 30 % slower
	slowed  string // that route
	targets string
	files   map[string]string
}

func routers(plumbline string) []live {
	// Every route works for some 100 µs: what a slowed route does to its
	// neighbours in a closed loop is a few µs (docs/METHOD.md, "Why slices").
	//
	// Work for nginx: a pattern that backtracks, in which each x more nearly doubles it.
	nginx := func(xs int) string {
		return `daemon off;
worker_processes 1;
pid nginx.pid;
events {}
http {
    access_log off;
    client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi; uwsgi_temp_path uwsgi; scgi_temp_path scgi;
    server {
        listen unix:SOCKET;
        set $all "xxxxxxxxxxxyz";
        if ($all ~ "^(x+x+)+y$") { return 500; }
        location = /hello { return 200 "hello"; }
        location = /work {
            set $xs "` + strings.Repeat("x", xs) + `yz";
            if ($xs ~ "^(x+x+)+y$") { return 500; }
            return 200 "done";
        }
    }
}
`
	}
	// Work for HAProxy: digests of digests, in one rule: rules cost other routes too.
	haproxy := func(rounds int) string {
		return `global
    nbthread 1
defaults
    mode http
    timeout connect 5s
    timeout client 30s
    timeout server 30s
frontend router
    bind "unix@${SOCKET}"
    http-request set-var(txn.all) path` + strings.Repeat(",sha2(256),hex", 100) + `
    http-request set-var(txn.x) path` + strings.Repeat(",sha2(256),hex", rounds) + ` if { path /work }
    http-request return status 200 content-type text/plain string "hello" if { path /hello }
    http-request return status 200 content-type text/plain string "done" if { path /work }
    http-request return status 404 content-type text/plain string "nothing here"
`
	}
	const targets = "GET /hello\n\nGET /work\n\nGET /missing\n"
	return []live{
		{
			name: "demo", normal: "GET /search=0%", more: "GET /search=90%", slowed: "GET /search?q=river",
			run:     `[` + plumbline + `, mock, demo, --listen, "{socket}", --slow, "{work}"]`,
			targets: "GET /films/7\n\nGET /search?q=river\n\nGET /nothing\n",
		},
		{
			name: "nginx", program: "nginx", normal: "nginx-11.conf", more: "nginx-12.conf", slowed: "GET /work", targets: targets,
			run:   `[sh, -c, 'sed "s|SOCKET|{socket}|" {work} > {dir}/nginx.conf && PATH="$PATH:/usr/sbin" exec nginx -p {dir} -e stderr -c {dir}/nginx.conf']`,
			files: map[string]string{"nginx-11.conf": nginx(11), "nginx-12.conf": nginx(12)},
		},
		{
			name: "haproxy", program: "haproxy", normal: "haproxy-1.cfg", more: "haproxy-100.cfg", slowed: "GET /work", targets: targets,
			run:   `[sh, -c, 'PATH="$PATH:/usr/sbin" SOCKET={socket} exec haproxy -db -f {work}']`,
			files: map[string]string{"haproxy-1.cfg": haproxy(1), "haproxy-100.cfg": haproxy(100)},
		},
	}
}

// plan writes the router's plan and files to a folder and returns its path.
func (l live) plan(t testing.TB, slow bool, extra string) string {
	t.Helper()
	dir := t.TempDir()
	with := func(work string) string { return strings.ReplaceAll(l.run, "{work}", work) }
	candidate := "{}"
	if slow {
		candidate = "{run: " + with(l.more) + "}"
	}
	files := map[string]string{"targets.http": l.targets, "plumbline.yaml": `
router: {run: ` + with(l.normal) + `}
arms: {baseline: {}, candidate: ` + candidate + `}
kinds: {live: {targets: targets.http}}
warmup: {load: 500ms}
schedule: {block: 4s, blocks: 6}
` + extra}
	maps.Copy(files, l.files)
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(data), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "plumbline.yaml")
}

func TestRealRouters(t *testing.T) {
	plumbline := binary(t)
	for _, l := range routers(plumbline) {
		if l.program != "" {
			needs(t, l.program)
		}
		t.Run(l.name+"/same", func(t *testing.T) { noRegression(t, weigh(t, plumbline, l.plan(t, false, ""))) })
		t.Run(l.name+"/one route slower", func(t *testing.T) { onlyThere(t, weigh(t, plumbline, l.plan(t, true, "")), l.slowed) })
	}
}

// The main job: try finds the planted slowdown and nothing else.
func TestTry(t *testing.T) {
	plumbline := binary(t)
	cmd := exec.Command(plumbline, "try")
	cmd.Dir = t.TempDir()
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s\n%s", err, stdout.String(), stderr.String())
	}
	lines := strings.Split(strings.TrimSpace(stdout.String()), "\n")
	last, ok := strings.CutPrefix(lines[len(lines)-1], "report: ")
	if !ok || !strings.HasPrefix(lines[0], "REGRESSION") {
		t.Errorf("it does not begin with the verdict and end with the report's path:\n%s", stdout.String())
	}
	if _, err := os.Stat(filepath.Join(cmd.Dir, last)); err != nil {
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
			v := weigh(t, plumbline, filepath.Join("examples", name, "plumbline.yaml"))
			if v.Verdict == "invalid" || len(v.Comparisons) == 0 {
				t.Errorf("%s: %v", v.Verdict, v.Reasons)
			}
		})
	}
}
