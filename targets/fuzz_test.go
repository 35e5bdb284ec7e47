package targets_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"plumbline/targets"
)

// sameSet compares what is sent; lines and hashes belong to the text.
var sameSet = cmp.Options{cmpopts.IgnoreFields(targets.Target{}, "Line"), cmpopts.EquateEmpty()}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"GET http://a/1\n# note\nGET http://a/2\n",
		"\ufeffPOST /x?y\r\nA: b\r\na: c\r\nHost: h:1\r\n@body one\r\n\r\nPUT https://b//p%20q\n",
		"GET http://[::1]:80/\nA: b\n@x\n@y\n",
		"GET /1\n\nA: b",
		"M-SEARCH *\n",
		"GET http://u:p@a/1\nGET http://A?x\nGET /y",
		`{"method":"POST","url":"http://a/1","body":"Rk9P","header":{"A":["b",""]}}` + "\n\n" + `{"method":"GET","url":"/2"}`,
		`{"method":"GET","url":"/","method":"GET"}`,
		`[]`,
		"",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		set, err := targets.Parse("t", data, bodies)
		if err != nil {
			if set != nil || !strings.HasPrefix(err.Error(), "t:") || strings.ContainsAny(err.Error(), "\n\r") {
				t.Fatalf("bad refusal: %v, %q", set, err)
			}
			return
		}
		lines := 1 + strings.Count(string(data), "\n")
		last := 0
		for _, target := range set.Targets {
			if target.Method == "" || target.URL == "" || target.File != "t" || target.Line <= last || target.Line > lines {
				t.Fatalf("incomplete target %+v", target)
			}
			last = target.Line
			if _, err := http.NewRequest(target.Method, target.URL, nil); err != nil {
				t.Fatalf("the HTTP client refuses %+v: %v", target, err)
			}
		}
		same := func(what, text string) {
			again, err := targets.Parse("t", []byte(text), bodies)
			if err != nil {
				t.Fatalf("%s: %v\n%q", what, err, text)
			}
			if diff := cmp.Diff(set.Targets, again.Targets, sameSet); diff != "" {
				t.Fatalf("%s changed the set: %s\n%q", what, diff, text)
			}
		}
		if isJSON := strings.HasPrefix(strings.TrimLeft(strings.TrimPrefix(string(data), "\ufeff"), " \t\r\n"), "{"); isJSON {
			same("rendering", renderJSON(t, set))
			same("blank lines", strings.ReplaceAll(string(data), "\n", "\n \t\r\n"))
			return
		}
		same("rendering", renderHTTP(set))
		same("comments", withComments(string(data), set))
		if text := renderJSON(t, set); utf8.Valid(data) {
			same("rendering as JSON", text)
		}
	})
}

// withComments puts a comment above every line, and blank lines above every target.
func withComments(text string, set *targets.Set) string {
	starts := map[int]bool{}
	for _, t := range set.Targets {
		starts[t.Line] = true
	}
	var out strings.Builder
	for i, line := range strings.Split(strings.TrimPrefix(text, "\ufeff"), "\n") {
		out.WriteString(" # GET http://elsewhere/ A: b @x\n")
		if starts[i+1] {
			out.WriteString("\n \t\r\n")
		}
		out.WriteString(line + "\n")
	}
	return out.String()
}

// renderHTTP relies on bodies: a body's content is its name.
func renderHTTP(set *targets.Set) string {
	var out strings.Builder
	for _, t := range set.Targets {
		fmt.Fprintf(&out, "%s %s\n", t.Method, t.URL)
		for _, name := range slices.Sorted(maps.Keys(t.Header)) {
			for _, value := range t.Header[name] {
				fmt.Fprintf(&out, "%s: %s\n", name, value)
			}
		}
		if len(t.Body) > 0 {
			fmt.Fprintf(&out, "@%s\n", t.Body)
		}
	}
	return out.String()
}

func renderJSON(t *testing.T, set *targets.Set) string {
	var out strings.Builder
	for _, target := range set.Targets {
		line, err := json.Marshal(map[string]any{"method": target.Method, "url": target.URL, "body": base64.StdEncoding.EncodeToString(target.Body), "header": target.Header})
		if err != nil {
			t.Fatal(err)
		}
		out.Write(append(line, '\n'))
	}
	return out.String()
}
