package targets_test

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	vegeta "github.com/tsenart/vegeta/v12/lib"
	"pgregory.net/rapid"

	"plumbline/targets"
)

// request is what both readers must agree on.
type request struct {
	Method, URL string
	Header      http.Header
	Body        []byte
}

func ours(t *rapid.T, path string) []request {
	set, err := targets.Read(path)
	if err != nil {
		t.Fatal(err)
	}
	var out []request
	for _, target := range set.Targets {
		out = append(out, request{target.Method, target.URL, target.Header, target.Body})
	}
	return out
}

func theirs(t *rapid.T, targeter vegeta.Targeter) []request {
	all, err := vegeta.ReadAllTargets(targeter)
	if err != nil {
		t.Fatal(err)
	}
	var out []request
	for _, target := range all {
		if strings.HasPrefix(target.URL, "/") {
			target.URL = "http://router" + target.URL // ours are always absolute
		}
		out = append(out, request{target.Method, target.URL, target.Header, target.Body})
	}
	return out
}

func agree(t *rapid.T, text, path string, want []request) {
	if diff := cmp.Diff(want, ours(t, path), cmpopts.EquateEmpty()); diff != "" {
		t.Fatalf("vegeta and we differ on\n%s\n%s", text, diff)
	}
}

// The parts a well-formed file is made of.
var (
	methods = rapid.SampledFrom([]string{"GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "PURGE"})
	urls    = rapid.StringMatching(`(http://router)?/[a-z0-9._~*,;:@!-]{0,12}(/[a-z]{1,4}|%20){0,2}(\?[a-z]{1,3}=[a-z0-9.*,():/?-]{0,8})?`)
	names   = rapid.StringMatching(`[A-Za-z][A-Za-z0-9_-]{0,8}`).Filter(plainName)
	values  = rapid.StringMatching(`[!-~]([ -~é]{0,10}[!-~])?`)
)

// plainName leaves out the headers that the HTTP client treats specially.
func plainName(name string) bool {
	switch http.CanonicalHeaderKey(name) {
	case "Host", "Trailer", "Content-Length", "Transfer-Encoding":
		return false
	}
	return true
}

func TestAgreesWithVegetaHTTP(t *testing.T) {
	dir := t.TempDir()
	for name, content := range map[string]string{"a": "A\n\x00", "b.json": `{"x": 1}`, "empty": ""} {
		write(t, filepath.Join(dir, name), content)
	}
	rapid.Check(t, func(t *rapid.T) {
		path := filepath.Join(dir, "targets.http")
		newline := rapid.SampledFrom([]string{"\n", "\r\n"}).Draw(t, "newline")
		var text strings.Builder
		line := func(format string, args ...any) { fmt.Fprintf(&text, format+newline, args...) }
		comment := func(label string) {
			if rapid.Bool().Draw(t, label) {
				line("# GET http://elsewhere/ %s", label)
			}
		}
		for range rapid.IntRange(1, 5).Draw(t, "targets") {
			comment("before")
			line("%s %s", methods.Draw(t, "method"), urls.Draw(t, "url"))
			for range rapid.IntRange(0, 3).Draw(t, "headers") {
				comment("between")
				line("%s:%s%s", names.Draw(t, "name"), rapid.SampledFrom([]string{"", " ", "  "}).Draw(t, "space"), values.Draw(t, "value"))
			}
			if name := rapid.SampledFrom([]string{"", "a", "b.json", "empty"}).Draw(t, "body"); name != "" {
				line("@%s", filepath.Join(dir, name)) // absolute: vegeta's are relative to the working directory
			}
			for range rapid.IntRange(1, 2).Draw(t, "blank") {
				line("")
			}
		}
		write(t, path, text.String())
		agree(t, text.String(), path, theirs(t, vegeta.NewHTTPTargeter(strings.NewReader(text.String()), nil, nil)))
	})
}

func TestAgreesWithVegetaJSON(t *testing.T) {
	path := filepath.Join(t.TempDir(), "targets.json")
	rapid.Check(t, func(t *rapid.T) {
		var text bytes.Buffer
		encode := vegeta.NewJSONTargetEncoder(&text)
		for range rapid.IntRange(1, 5).Draw(t, "targets") {
			target := vegeta.Target{
				Method: methods.Draw(t, "method"),
				URL:    urls.Draw(t, "url"),
				Body:   rapid.SliceOf(rapid.Byte()).Draw(t, "body"),
				Header: rapid.MapOfN(names, rapid.SliceOfN(values, 1, 3), 0, 3).Draw(t, "header"),
			}
			if err := encode(&target); err != nil {
				t.Fatal(err)
			}
			text.WriteString(rapid.SampledFrom([]string{"", "\n", "  \n"}).Draw(t, "blank"))
		}
		write(t, path, text.String())
		agree(t, text.String(), path, theirs(t, vegeta.NewJSONTargeter(bytes.NewReader(text.Bytes()), nil, nil)))
	})
}

func write(t rapid.TB, path, content string) {
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}
