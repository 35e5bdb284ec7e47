package plan

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"plumbline/record"
)

// folder is a folder with the target files that the plans of the tests name.
func folder(t testing.TB) string {
	dir := t.TempDir()
	for _, name := range []string{"targets.http", "test/load/more.json"} {
		name = filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte("GET /\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

const full = `# everything that this version knows
router:
  build: go build -o "$OUT/server" ./cmd/server
  run: ["{build}/server", "--listen", "{socket}"]
  env: {DB_POOL: "1", CONFIG: '{"a": 1}'}
  ready: {http: /health, within: 1m}
  clock: 2000-01-01T01:00:00+01:00
  stop: INT
arms:
  main: {env: {DB_POOL: "2", NEW: "on"}, ready: {within: 5s}}
  old/one:
    ref: v1.2
    run:
      - "{build}/old"
      - "{socket}"
    stop: KILL
    ready: {tcp: true}
    clock: {library: "{build}/lib/libfaketime.so.1"}
    build: make old
kinds:
  mixed: {targets: targets.http}
  jwt:
    targets: test/load/more.json
    env: {JWT_SECRET: "@{targets}/jwks.json", DB_POOL: "3"}
expect:
  GET /actors_1: {status: [401, 403]}
  "GET /a%20b?select=*": {body: any, status: 200}
load: {rate: 30000/m, workers: 4, protocol: h1, tls: true, timeout: 1m30s}
warmup: {idle: 5s, load: auto, at_most: 20s}
services:
  - name: postgres
    user: nobody
    setup: ["initdb -D {dir}/data"]
    run: [postgres, -D, "{dir}/data", -k, "{dir}"]
    fixtures: ["psql -h {dir} -f {targets}/films.sql"]
    ready: {run: "pg_isready -h {dir}", within: 20s}
    per: block
    stop: INT
  - name: cache
    run: [cache, "{port}"]
    env: {DATABASE: "{postgres.dir}"}
    per: block
schedule: {mode: interleaved, slice: 100ms, block: 20s, blocks: {min: 12, max: 30}, retries: 0, freeze: false, controls: false}
gates:
  latency_p50: {zone: 2.5%}
  latency_p99: {watch: false}
  error_rate: {zone: 0.2 points, watch: true}
cpus: {load: 0, arms: "3,1-2", awake: false}
seed: 18446744073709551615
`

func wantFull(dir, path string) *Plan {
	rules := record.DefaultRules()
	rules.Metrics[record.LatencyP50] = record.Rule{Zone: 0.025}
	rules.Metrics[record.LatencyP99] = record.Rule{Zone: 0.10}
	rules.Metrics[record.ErrorRate] = record.Rule{Zone: 0.002, Watch: true}
	return &Plan{
		Path: path, Dir: dir, Source: []byte(full),
		Router: Router{
			Build: `go build -o "$OUT/server" ./cmd/server`,
			Run:   []string{"{build}/server", "--listen", "{socket}"},
			Env:   map[string]string{"DB_POOL": "1", "CONFIG": `{"a": 1}`},
			Ready: Ready{HTTP: "/health", Within: time.Minute},
			Clock: Clock{Start: time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)},
			Stop:  "INT",
		},
		Arms: []Arm{
			{Name: "main", Router: Overrides{Env: map[string]string{"DB_POOL": "2", "NEW": "on"}, Ready: &Ready{HTTP: "/health", Within: 5 * time.Second}}},
			{Name: "old/one", Ref: "v1.2", Router: Overrides{Build: "make old", Run: []string{"{build}/old", "{socket}"}, Ready: &Ready{Within: time.Minute}, Stop: "KILL",
				Clock: &Clock{Start: time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC), Library: "{build}/lib/libfaketime.so.1"}}},
		},
		Services: []Service{
			{
				Name: "postgres", User: "nobody", Setup: []string{"initdb -D {dir}/data"},
				Run: []string{"postgres", "-D", "{dir}/data", "-k", "{dir}"}, Fixtures: []string{"psql -h {dir} -f {targets}/films.sql"},
				Env: map[string]string{}, Ready: ServiceReady{Run: "pg_isready -h {dir}", Within: 20 * time.Second}, Per: PerBlock, Stop: "INT",
			},
			{
				Name: "cache", Run: []string{"cache", "{port}"}, Env: map[string]string{"DATABASE": "{postgres.dir}"},
				Ready: ServiceReady{Within: time.Minute}, Per: PerBlock, Stop: "TERM",
			},
		},
		Kinds: []Kind{
			{Name: "mixed", Targets: filepath.Join(dir, "targets.http")},
			{Name: "jwt", Targets: filepath.Join(dir, "test", "load", "more.json"), Env: map[string]string{"JWT_SECRET": "@{targets}/jwks.json", "DB_POOL": "3"}},
		},
		Expect: []Expect{
			{Route: "GET /actors_1", Status: []int{401, 403}, Line: 26},
			{Route: "GET /a%20b?select=*", Status: []int{200}, BodyAny: true, Line: 27},
		},
		Load:     Load{Rate: 500, Workers: 4, Protocol: "h1", TLS: true, Timeout: 90 * time.Second},
		Warmup:   Warmup{Idle: 5 * time.Second, Load: 20 * time.Second, Auto: true},
		Schedule: Schedule{Mode: record.Interleaved, Slice: 100 * time.Millisecond, Block: 20 * time.Second, Blocks: 12, MaxBlocks: 30},
		Rules:    rules,
		CPUs:     CPUs{Load: []int{0}, Arms: []int{1, 2, 3}},
		Seed:     1<<64 - 1,
	}
}

func TestReadFull(t *testing.T) {
	dir := folder(t)
	path := filepath.Join(dir, "plumbline.yaml")
	if err := os.WriteFile(path, []byte(full), 0o644); err != nil {
		t.Fatal(err)
	}
	p, err := Read(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(wantFull(dir, path), p, cmpopts.IgnoreUnexported(Plan{})); diff != "" {
		t.Error(diff)
	}
}

func TestDefaults(t *testing.T) {
	dir := folder(t)
	path := filepath.Join(dir, "p.yaml")
	p, err := Parse(path, []byte(minimal))
	if err != nil {
		t.Fatal(err)
	}
	want := &Plan{
		Path: path, Dir: dir, Source: []byte(minimal),
		Router: Router{
			Build: `go build -o "$OUT/server" ./cmd/server`,
			Run:   []string{"{build}/server", "--listen", "{socket}"},
			Env:   map[string]string{},
			Ready: Ready{Within: 30 * time.Second},
			Stop:  "TERM",
		},
		Kinds:    []Kind{{Name: "main", Targets: filepath.Join(dir, "targets.http")}},
		Load:     Load{Workers: 1, Protocol: "h1", Timeout: 30 * time.Second},
		Warmup:   Warmup{Load: 2 * time.Second},
		Schedule: Schedule{Mode: record.Sliced, Slice: 200 * time.Millisecond, Block: 10 * time.Second, Blocks: 6, MaxBlocks: 20, Retries: 1, Freeze: true, Controls: true},
		Rules:    record.DefaultRules(),
		CPUs:     CPUs{Awake: true},
		Seed:     1,
	}
	if diff := cmp.Diff(want, p, cmpopts.IgnoreUnexported(Plan{})); diff != "" {
		t.Error(diff)
	}
}

// YAML in other clothes means the same plan.
func TestSameMeaning(t *testing.T) {
	dir := folder(t)
	path := filepath.Join(dir, "p.yaml")
	want, err := Parse(path, []byte(minimal))
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"CRLF and byte order mark": "\ufeff" + strings.ReplaceAll(minimal, "\n", "\r\n"),
		"document marks":           "---\n" + minimal + "...\n",
		"JSON":                     `{"kinds": {"main": {"targets": "targets.http"}}, "router": {"run": ["{build}/server", "--listen", "{socket}"], "build": "go build -o \"$OUT/server\" ./cmd/server"}}`,
		"anchors, aliases, block text": `
router:
  run: ["{build}/server", &l --listen, "{socket}"]
  build: >-
    go build -o "$OUT/server"
    ./cmd/server
  env: &none {}
kinds: {main: &main {targets: targets.http, env: *none}}
`,
		"merge keys": `
router:
  <<:
    - {build: 'go build -o "$OUT/server" ./cmd/server', stop: TERM}
    - {stop: KILL}
  run: ["{build}/server", "--listen", "{socket}"]
kinds:
  main: {targets: targets.http, <<: {targets: nowhere}}
`,
	} {
		t.Run(name, func(t *testing.T) {
			p, err := Parse(path, []byte(text))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, p, cmpopts.IgnoreUnexported(Plan{}), cmpopts.IgnoreFields(Plan{}, "Source"), cmpopts.EquateEmpty()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestKind(t *testing.T) {
	dir := folder(t)
	p, err := Parse(filepath.Join(dir, "p.yaml"), []byte(full))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"": "mixed", "mixed": "mixed", "jwt": "jwt"} {
		if k, err := p.Kind(name); err != nil || k.Name != want {
			t.Errorf("Kind(%q) = %v, %v", name, k, err)
		}
	}
	want := `no kind "mixd" in ` + p.Path + "; did you mean mixed? its kinds are mixed and jwt"
	if _, err := p.Kind("mixd"); err == nil || err.Error() != want {
		t.Errorf("got %v\nwant %s", err, want)
	}
}

func TestRouterFor(t *testing.T) {
	p, err := Parse(filepath.Join(folder(t), "p.yaml"), []byte(full))
	if err != nil {
		t.Fatal(err)
	}
	env := func(pool string, more ...string) map[string]string {
		m := map[string]string{"CONFIG": `{"a": 1}`, "DB_POOL": pool}
		for i := 0; i < len(more); i += 2 {
			m[more[i]] = more[i+1]
		}
		return m
	}
	build, run, clock := p.Router.Build, p.Router.Run, p.Router.Clock
	own := Clock{clock.Start, "{build}/lib/libfaketime.so.1"}
	for _, c := range []struct {
		kind  string
		names []string
		want  Router
	}{
		{"mixed", nil, Router{build, run, env("1"), Ready{"/health", time.Minute}, clock, "INT"}},
		{"jwt", []string{"nobody"}, Router{build, run, env("3", "JWT_SECRET", "@{targets}/jwks.json"), Ready{"/health", time.Minute}, clock, "INT"}},
		{"jwt", []string{"nobody", "main", "old/one"}, Router{build, run, env("2", "JWT_SECRET", "@{targets}/jwks.json", "NEW", "on"), Ready{"/health", 5 * time.Second}, clock, "INT"}},
		{"mixed", []string{"old/one", "main"}, Router{"make old", []string{"{build}/old", "{socket}"}, env("1"), Ready{"", time.Minute}, own, "KILL"}},
	} {
		kind, err := p.Kind(c.kind)
		if err != nil {
			t.Fatal(err)
		}
		got := p.RouterFor(kind, c.names...)
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s %v: %s", c.kind, c.names, diff)
		}
		// The caller owns what it gets: the plan stays as it was read.
		got.Env["DB_POOL"], got.Run[0] = "changed", "changed"
		if diff := cmp.Diff(c.want, p.RouterFor(kind, c.names...)); diff != "" {
			t.Errorf("%s %v shares memory with the plan: %s", c.kind, c.names, diff)
		}
	}
}

func TestFind(t *testing.T) {
	root := t.TempDir()
	deep := filepath.Join(root, "a", "b")
	if err := os.MkdirAll(filepath.Join(deep, "plumbline.yaml"), 0o755); err != nil { // a folder of that name is no plan
		t.Fatal(err)
	}
	_, err := Find(deep)
	want := "no plan: looked for plumbline.yaml, plumbline.yml and plumbline.json in " + deep + " and every folder above it; a minimal plumbline.yaml is\n\n" + minimal
	if err == nil || err.Error() != want {
		t.Errorf("got %v\nwant %s", err, want)
	}
	touch := func(path ...string) string {
		name := filepath.Join(path...)
		if err := os.WriteFile(name, nil, 0o644); err != nil {
			t.Fatal(err)
		}
		return name
	}
	check := func(dir, want string) {
		t.Helper()
		if got, err := Find(dir); got != want || err != nil {
			t.Errorf("Find(%s) = %s, %v; want %s", dir, got, err, want)
		}
	}
	top := touch(root, "plumbline.yml")
	check(deep, top)
	near := touch(root, "a", "plumbline.json")
	check(deep, near)
	check(root, top)
	t.Chdir(filepath.Join(root, "a"))
	check(".", "plumbline.json")

	touch(root, "a", "plumbline.yaml")
	want = filepath.Join(root, "a") + " has plumbline.yaml and plumbline.json; keep one, or name the plan"
	if _, err := Find(deep); err == nil || err.Error() != want {
		t.Errorf("got %v\nwant %s", err, want)
	}
}

func TestExpand(t *testing.T) {
	values := map[string]string{"socket": "/run/{port}.sock", "dir": "/d", "other_one": "x"}
	for _, c := range []struct{ in, want, err string }{
		{"", "", ""},
		{"plain } text", "plain } text", ""},
		{"--listen={socket}", "--listen=/run/{port}.sock", ""}, // values are not expanded again
		{"{dir}{dir}/{other_one}", "/d/d/x", ""},
		{`{"a":1} {A} {} { dir } ${HOME} {dir`, `{"a":1} {A} {} { dir } ${HOME} {dir`, ""},
		{"{{dir}} {{{dir}", "{dir}} {/d", ""},
		{`{"dir": "{dir}"}`, `{"dir": "/d"}`, ""},
		{"{port}", "", "{port} has no value in this session"},
		{"{prot}", "", "unknown placeholder {prot}; did you mean port? known are {build} {socket} {port} {dir} {arm} {source} {targets} {cert} {key}, and {{ is a literal brace"},
	} {
		got, err := Expand(c.in, values)
		if got != c.want || (err != nil || c.err != "") && (err == nil || err.Error() != c.err) {
			t.Errorf("Expand(%q) = %q, %v; want %q, %q", c.in, got, err, c.want, c.err)
		}
	}
}

// What a command line changes is checked like the file, and leaves the plan as it was.
// TestLength is what a plan and the command line together say of the length.
func TestLength(t *testing.T) {
	for _, tt := range []struct {
		schedule string
		change   Changes
		want     Schedule // of it: Block, Blocks, MaxBlocks, Budget
	}{
		{"", Changes{}, Schedule{Block: 10 * time.Second, Blocks: 6, MaxBlocks: 20}},
		{"mode: interleaved", Changes{}, Schedule{Block: 10 * time.Second, Blocks: 6, MaxBlocks: 20}},
		{"mode: sequential", Changes{}, Schedule{Block: 10 * time.Second, Blocks: 6}},
		{"blocks: 8", Changes{}, Schedule{Block: 10 * time.Second, Blocks: 8}},
		{"blocks: {min: 4, max: 4}", Changes{}, Schedule{Block: 10 * time.Second, Blocks: 4}},
		{"budget: 5m", Changes{}, Schedule{Block: 10 * time.Second, Blocks: 6, MaxBlocks: 20, Budget: 5 * time.Minute}},
		{"", Changes{Duration: time.Minute}, Schedule{Block: 10 * time.Second, Blocks: 6}},
		{"budget: 5m", Changes{Duration: time.Minute}, Schedule{Block: 10 * time.Second, Blocks: 6}},
		{"budget: 5m", Changes{Blocks: 4}, Schedule{Block: 10 * time.Second, Blocks: 4}},
		{"blocks: 8", Changes{Budget: time.Minute}, Schedule{Block: 10 * time.Second, Blocks: 8, Budget: time.Minute}},
	} {
		p, err := Parse(filepath.Join(folder(t), "p.yaml"), []byte(minimal+"schedule: {"+tt.schedule+"}\n"))
		if err != nil {
			t.Fatal(err)
		}
		if p, err = p.With(tt.change); err != nil {
			t.Fatal(err)
		}
		s := p.Schedule
		if got := (Schedule{Block: s.Block, Blocks: s.Blocks, MaxBlocks: s.MaxBlocks, Budget: s.Budget}); got != tt.want {
			t.Errorf("%q and %+v: %+v, want %+v", tt.schedule, tt.change, got, tt.want)
		}
	}
}

func TestWith(t *testing.T) {
	p, err := Parse(filepath.Join(folder(t), "p.yaml"), []byte(minimal))
	if err != nil {
		t.Fatal(err)
	}
	rate, seed := 500.0, uint64(7)
	q, err := p.With(Changes{Rate: &rate, Duration: time.Minute, Blocks: 4, Seed: &seed, Only: []string{"GET /a"}})
	if err != nil {
		t.Fatal(err)
	}
	want := *p
	want.Load = Load{Rate: 500, Workers: 100, Protocol: "h1", Timeout: 30 * time.Second}
	want.Schedule.Mode, want.Schedule.Blocks, want.Schedule.MaxBlocks, want.Schedule.Block = record.Interleaved, 4, 0, 15*time.Second
	want.Seed, want.Only = 7, []string{"GET /a"}
	if diff := cmp.Diff(&want, q, cmpopts.IgnoreUnexported(Plan{})); diff != "" {
		t.Error(diff)
	}
	if p.Load.Rate != 0 || p.Schedule.Mode != record.Sliced {
		t.Error("With changed the plan itself")
	}
	// A mode that is asked for is no default: the rate does not change it.
	q, err = p.With(Changes{Rate: &rate, Mode: record.Sequential})
	if err != nil {
		t.Fatal(err)
	}
	if q, err = q.With(Changes{Rate: new(float64)}); err != nil || q.Schedule.Mode != record.Sequential {
		t.Errorf("mode %s, %v; want sequential", q.Schedule.Mode, err)
	}
	for _, c := range []struct {
		change Changes
		want   string
	}{
		{Changes{Duration: time.Second, Blocks: 6}, "the changes on the command line: schedule.slice: a slice of 200ms is longer than a block of 166.666666ms; make slice shorter or block longer"},
		{Changes{Workers: 20_000}, "--workers 20000: wants a number from 1 to 10000"},
		{Changes{Blocks: -1}, "--blocks -1: wants a number from 1 to 10000"},
		{Changes{Duration: -time.Second}, "--duration -1s: is negative"},
		{Changes{Budget: -time.Second}, "--budget -1s: is negative"},
		{Changes{Budget: time.Minute, Blocks: 4}, "--budget and --blocks: each says how long the session is; leave one out"},
		{Changes{Budget: time.Minute, Duration: time.Minute}, "--budget and --duration: each says how long the session is; leave one out"},
	} {
		if _, err := p.With(c.change); err == nil || err.Error() != c.want {
			t.Errorf("%+v: %v, want %s", c.change, err, c.want)
		}
	}
}
