package targets_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"plumbline/targets"
	"plumbline/targets/keys"
)

// FuzzClaims: a template is refused, as the field claims, or gives two
// different tokens whose claims are the template's with what its strings say in
// braces put in, and ours.
func FuzzClaims(f *testing.F) {
	for _, seed := range []string{
		``, `{}`, `{"role": "author"}`, `{"sub": "x"}`, `{"sub": "{n}", "aud": ["{alg}", {"a": "{sub}{seed}{{n}"}]}`, `{"jti": "{n}", "sub": ""}`,
		`{"a": 1e5, "b": -0.0, "c": [true, null], "": {}}`, `{"a": "é\ud83d\ude00\u0000\"\\\/"}`, `{"a": "{", "b": "{}"}`, `{"a": 1, "a": 2}`,
		`{"exp": 1}`, `[]`, `{"a": "\ud800"}`, "{\"a\": \"\xff\"}", `{"sub": {"n": "{n}"}}`, `{"jti": 1, "sub": "x"}`, `{"a":{"b":{"c":["{n}"]}},"sub":"y"}`,
	} {
		f.Add([]byte(seed))
	}
	parent := f.TempDir()
	f.Fuzz(func(t *testing.T, template []byte) {
		s := targets.DefaultSpec(targets.JWTCache)
		s.Count, s.Algs, s.Seed, s.Claims = 2, []keys.Alg{keys.HS256}, 7, template
		dir, err := os.MkdirTemp(parent, "")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(dir)
		dir = filepath.Join(dir, "set")
		if _, err := targets.Generate(t.Context(), dir, s, "", false); err != nil {
			var field *targets.FieldError
			if !errors.As(err, &field) || field.Field != "claims" {
				t.Fatalf("%q: %v", template, err)
			}
			return
		}
		set := readSet(t, dir)
		tokens := map[string]bool{}
		for i, target := range set.Targets {
			tokens[target.Header.Get("Authorization")] = true
			payload, err := base64.RawURLEncoding.DecodeString(strings.Split(target.Header.Get("Authorization"), ".")[1])
			if err != nil {
				t.Fatal(err)
			}
			got := decoded(t, payload)
			want := map[string]any{}
			if len(template) > 0 {
				want = decoded(t, template)
			}
			sub, given := want["sub"].(string)
			if !given {
				sub = "user-{n}"
			}
			fill := strings.NewReplacer("{{", "{", "{n}", string('1'+rune(i)), "{alg}", "HS256", "{seed}", "7")
			sub = fill.Replace(sub)
			fill = strings.NewReplacer("{{", "{", "{n}", string('1'+rune(i)), "{alg}", "HS256", "{seed}", "7", "{sub}", sub)
			want = filled(want, fill).(map[string]any)
			want["iat"], want["nbf"], want["exp"], want["sub"] = json.Number("946684800"), json.Number("946684800"), json.Number("4102444800"), sub
			if _, given := want["jti"]; !given && got["jti"] != nil {
				want["jti"] = string('1' + rune(i))
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("%q gives %s: %s", template, payload, diff)
			}
		}
		if len(tokens) != 2 {
			t.Fatalf("%q: both tokens are the same", template)
		}
	})
}

func TestParseClaims(t *testing.T) {
	for text, want := range map[string]string{
		" {\"a\": 1}\n":                     "",
		"\ufeff{\"a\": \"\\ud83d\\ude00\"}": "",
		"{\"a\": \"\\\\ud83d\"}":            "",
		"\n\n{\"a\":\n\t1,}":                "c.json:4: invalid character '}'",
		"{\"a\":\n":                         "c.json:2: unexpected end of JSON input; write a JSON object such as",
		"{}\n{}":                            "c.json:2: invalid character '{' after top-level value",
		"\ufeff \n":                         "c.json is empty; write a JSON object",
		"[1]":                               "c.json holds no JSON object; write",
		"null":                              "c.json holds no JSON object",
	} {
		claims, err := targets.ParseClaims("c.json", []byte(text))
		if want == "" && err == nil {
			s := quickly(targets.JWTCache)
			s.Claims = claims
			err = s.Check()
		}
		if want == "" && err != nil || want != "" && (err == nil || !strings.HasPrefix(err.Error(), want)) {
			t.Errorf("%q: got %v, want %s", text, err, want)
		}
	}
}

func decoded(t *testing.T, data []byte) (object map[string]any) {
	t.Helper()
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	if err := dec.Decode(&object); err != nil {
		t.Fatalf("%q: %v", data, err)
	}
	return object
}

func filled(v any, fill *strings.Replacer) any {
	switch v := v.(type) {
	case string:
		return fill.Replace(v)
	case []any:
		for i := range v {
			v[i] = filled(v[i], fill)
		}
	case map[string]any:
		for name := range v {
			v[name] = filled(v[name], fill)
		}
	}
	return v
}
