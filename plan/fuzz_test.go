package plan

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"
)

// YAML and JSON with the same content are the same plan.
func TestYAMLAndJSONAgree(t *testing.T) {
	dir := folder(t)
	rapid.Check(t, func(t *rapid.T) {
		tree := drawPlan(t)
		asYAML, err := yaml.MarshalWithOptions(tree, yaml.Flow(rapid.Bool().Draw(t, "flow")))
		if err != nil {
			t.Fatal(err)
		}
		asJSON, err := yaml.MarshalWithOptions(tree, yaml.JSON())
		if err != nil {
			t.Fatal(err)
		}
		if !json.Valid(asJSON) {
			t.Fatalf("not JSON: %s", asJSON)
		}
		path := filepath.Join(dir, "p")
		fromYAML, err := Parse(path, asYAML)
		if err != nil {
			t.Fatalf("%v\n%s", err, asYAML)
		}
		fromJSON, err := Parse(path, asJSON)
		if err != nil {
			t.Fatalf("%v\n%s", err, asJSON)
		}
		if diff := cmp.Diff(fromYAML, fromJSON, cmpopts.IgnoreUnexported(Plan{}), cmpopts.IgnoreFields(Plan{}, "Source"), cmpopts.IgnoreFields(Expect{}, "Line")); diff != "" {
			t.Fatalf("%s\n%s\n%s", diff, asYAML, asJSON)
		}
	})
}

// drawPlan draws the content of a good plan, each optional key there or not.
func drawPlan(t *rapid.T) yaml.MapSlice {
	word := rapid.StringMatching(`[a-z][a-z0-9 ":#%&*é-]{0,6}[a-z]`)
	optional := func(m *yaml.MapSlice, key string, value any) {
		if rapid.Bool().Draw(t, key) {
			*m = append(*m, yaml.MapItem{Key: key, Value: value})
		}
	}
	env := func() map[string]string {
		return rapid.MapOfN(rapid.StringMatching(`[A-Z_]{1,5}`), word, 0, 3).Draw(t, "env")
	}
	overrides := func() yaml.MapSlice {
		var m yaml.MapSlice
		optional(&m, "build", word.Draw(t, "build"))
		optional(&m, "env", env())
		optional(&m, "ready", rapid.SampledFrom([]any{
			map[string]any{"http": "/health"}, map[string]any{"within": "2s"}, map[string]any{"tcp": true},
		}).Draw(t, "ready"))
		optional(&m, "clock", rapid.SampledFrom([]any{
			"2000-01-01T00:00:00Z", map[string]any{"start": "2038-01-19T04:14:08+01:00", "library": "{source}/lib é.so"},
		}).Draw(t, "clock"))
		optional(&m, "stop", rapid.SampledFrom([]string{"TERM", "QUIT", "USR1"}).Draw(t, "stop"))
		return m
	}
	address := rapid.SampledFrom([]string{"{socket}", "{port}", "http://127.0.0.1:{port}/"}).Draw(t, "address")
	router := append(overrides(), yaml.MapItem{Key: "run", Value: []string{word.Draw(t, "program"), word.Draw(t, "flag"), address}})
	kinds, arms := yaml.MapSlice{}, yaml.MapSlice{}
	for _, name := range rapid.SliceOfNDistinct(word, 1, 3, rapid.ID).Draw(t, "kinds") {
		kind := yaml.MapSlice{{Key: "targets", Value: rapid.SampledFrom([]string{"targets.http", "test/load/more.json"}).Draw(t, "targets")}}
		if rapid.Bool().Draw(t, "generate") {
			g := yaml.MapSlice{{Key: "kind", Value: rapid.SampledFrom([]string{"jwt-cache", "jwt-unique"}).Draw(t, "kind")}}
			optional(&g, "count", rapid.IntRange(2, 1000).Draw(t, "count"))
			optional(&g, "algs", []string{"HS256", "EdDSA"})
			optional(&g, "base_time", "2010-01-01T00:00:00Z")
			optional(&g, "claims", yaml.MapSlice{{Key: "role", Value: word.Draw(t, "role")}, {Key: "n", Value: []any{1, true, nil}}})
			kind = yaml.MapSlice{{Key: "generate", Value: g}}
		}
		optional(&kind, "env", env())
		kinds = append(kinds, yaml.MapItem{Key: name, Value: kind})
	}
	for _, name := range rapid.SliceOfNDistinct(word, 0, 2, rapid.ID).Draw(t, "arms") {
		arms = append(arms, yaml.MapItem{Key: name, Value: overrides()})
	}
	p := yaml.MapSlice{}
	optional(&p, "arms", arms)
	p = append(p, yaml.MapItem{Key: "router", Value: router}, yaml.MapItem{Key: "kinds", Value: kinds})
	optional(&p, "expect", map[string]any{"GET /x?a=*": map[string]any{"status": []int{200, 404}}, "POST /": map[string]any{"body": "any", "status": 201}})
	optional(&p, "load", map[string]any{"rate": 0, "workers": rapid.IntRange(1, 64).Draw(t, "workers"), "protocol": "h2c", "timeout": "5s"})
	optional(&p, "warmup", map[string]any{"idle": "0s", "load": "1m30s"})
	optional(&p, "schedule", map[string]any{"blocks": rapid.IntRange(1, 20).Draw(t, "blocks"), "freeze": rapid.Bool().Draw(t, "freeze"), "controls": rapid.Bool().Draw(t, "controls")})
	optional(&p, "gates", map[string]any{"error_rate": map[string]any{"zone": "0.25 points", "watch": true}})
	optional(&p, "cpus", map[string]any{"load": 3, "arms": []int{0, 1}})
	optional(&p, "seed", rapid.Uint64().Draw(t, "seed"))
	return p
}

func FuzzParse(f *testing.F) {
	dir := folder(f)
	for _, seed := range []string{
		full, minimal, head, withRouter("  ready: {tcp: true}\n"),
		`{"router": {"run": ["s", "{port}"]}, "kinds": {"a": {"targets": "targets.http"}}}`,
		"router: &r\n  run:\n  - '{socket}'\nkinds: {a: {targets: targets.http}}\narms: {a: {<<: *r}}\n",
		"--- # x\nrouter: {run: [\"{socket}\"]} # y\nkinds:\n  a:\n    targets: >-\n      targets.http\n...\n",
		"  router: {run: ['{socket}']}\n  kinds: {a: {targets: targets.http}}\n",
		head + "cpus: {load: '0-3,5'}\ngates: {latency_p50: {zone: 5.5 %}}\n",
		head + "  jwt-cache: {generate: {claims: {a: [1, .5, ~, {b: c}]}, algs: [ES256]}}\n",
		head + "seed: 012\n", head + "\tseed: 1", head + "seed: |", "? [a]\n: *b", "%", "{", "a: &a [*a]",
	} {
		f.Add([]byte(seed))
	}
	everything := map[string]string{}
	for _, name := range placeholders {
		everything[name] = "/x"
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		path := filepath.Join(dir, "plumbline.yaml")
		p, err := Parse(path, data)
		if err != nil {
			if p != nil || !strings.HasPrefix(err.Error(), path+":") || strings.ContainsAny(err.Error(), "\r\n") {
				t.Fatalf("bad refusal: %v, %q", p, err)
			}
			return
		}
		again, err := Parse(path, p.Source)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(p, again, cmpopts.IgnoreUnexported(Plan{})); diff != "" {
			t.Fatalf("read twice: %s", diff)
		}
		for _, kind := range p.Kinds {
			for _, arm := range append([]Arm{{}}, p.Arms...) {
				r := p.RouterFor(kind, arm.Name)
				if used := uses(r.texts()...); used["socket"] == used["port"] || len(r.Run) == 0 || r.Ready.Within <= 0 || r.Stop == "" {
					t.Fatalf("incomplete router %+v", r)
				}
				for _, s := range r.texts() {
					if _, err := Expand(s, everything); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
		longer := string(data) + "\nunheard_of: 1\n"
		if object := strings.TrimRight(string(data), " \t\r\n"); json.Valid(data) {
			longer = strings.TrimSuffix(object, "}") + `, "unheard_of": 1}`
		}
		if q, err := Parse(path, []byte(longer)); err == nil {
			t.Fatalf("an unknown key at the end was lost: %+v\n%q", q, longer)
		}
	})
}
