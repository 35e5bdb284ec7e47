package targets

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"plumbline/targets/keys"
)

// claims is what the tokens of a set claim: a JSON object without spaces, its
// keys sorted at every level, so that neither the order nor the layout of the
// template decides any byte.
type claims struct {
	pieces  []piece
	subject []piece // what {sub} stands for
	seed    string
}

// token is what one token has of its own.
type token struct {
	n        int // from 1
	alg      keys.Alg
	iat, exp int64 // seconds since 1970; nbf is iat
}

// The names in a compiled template that a user cannot write.
const (
	issuedAt = "\x00iat"
	expires  = "\x00exp"
)

// placeholders are those that a template's strings may hold.
func placeholders() []string { return []string{"n", "sub", "alg", "seed"} }

// maxClaims bounds the claims of one token, in bytes: signed, and in base64,
// they still fit into a header line.
const maxClaims = 32 << 10

// newClaims compiles a template: an object of further claims, or nothing.
func newClaims(template json.RawMessage, seed uint64) (*claims, error) {
	own, err := parseTemplate(template)
	if err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(own)) {
		if slices.ContainsFunc([]string{"iat", "nbf", "exp"}, func(s string) bool { return strings.EqualFold(s, name) }) {
			return nil, fmt.Errorf("%s is set by the kind, from the base time; leave it out", excerpt(name))
		}
	}
	c := &claims{seed: strconv.FormatUint(seed, 10)}
	if err := c.distinguish(own); err != nil {
		return nil, err
	}
	own["iat"], own["nbf"], own["exp"] = []piece{{name: issuedAt}}, []piece{{name: issuedAt}}, []piece{{name: expires}}
	c.pieces = objectOf(own)
	return c, nil
}

// distinguish sees to it that no two tokens are the same: a server's cache
// would take them for one.
func (c *claims) distinguish(own map[string][]piece) error {
	sub, given := own["sub"]
	if !given {
		sub = []piece{{text: `"user-`}, {name: "n"}, {text: `"`}}
		own["sub"] = sub
	}
	if !strings.HasPrefix(sub[0].text, `"`) {
		return errors.New(`sub: wants a string, such as "user-{n}"`)
	}
	if holds(sub, "sub") {
		return errors.New(`sub: {sub} is itself; write {n}, such as "user-{n}"`)
	}
	c.subject = slices.Clone(sub)
	c.subject[0].text = c.subject[0].text[1:]
	last := &c.subject[len(c.subject)-1]
	last.text = strings.TrimSuffix(last.text, `"`)
	for _, value := range own {
		if holds(value, "n") {
			return nil
		}
	}
	if _, given := own["jti"]; given {
		return errors.New(`every token would be the same, as neither sub nor jti nor another claim holds {n}; leave jti out, or write "{n}" in it`)
	}
	own["jti"] = []piece{{text: `"`}, {name: "n"}, {text: `"`}}
	return nil
}

func holds(pieces []piece, name string) bool {
	return slices.ContainsFunc(pieces, func(p piece) bool { return p.name == name })
}

// append adds a token's claims to out.
func (c *claims) append(out []byte, t token) []byte {
	for _, p := range c.pieces {
		switch p.name {
		case issuedAt:
			out = strconv.AppendInt(out, t.iat, 10)
		case expires:
			out = strconv.AppendInt(out, t.exp, 10)
		case "sub":
			for _, s := range c.subject {
				out = c.fill(out, s, t)
			}
		default:
			out = c.fill(out, p, t)
		}
	}
	return out
}

func (c *claims) fill(out []byte, p piece, t token) []byte {
	switch p.name {
	case "n":
		return strconv.AppendInt(out, int64(t.n), 10)
	case "alg":
		return append(out, t.alg...)
	case "seed":
		return append(out, c.seed...)
	}
	return append(out, p.text...)
}

// join makes one piece of neighbours that are text.
func join(pieces []piece) (out []piece) {
	for _, p := range pieces {
		if last := len(out) - 1; last >= 0 && p.name == "" && out[last].name == "" {
			out[last].text += p.text
			continue
		}
		out = append(out, p)
	}
	return out
}

// ParseClaims looks whether the content of a file is JSON, and gives what a
// Spec's Claims are to be; name stands in errors, with the line.
func ParseClaims(name string, data []byte) (json.RawMessage, error) {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	const example = `write a JSON object such as {"role": "author"}`
	if len(bytes.TrimSpace(data)) == 0 {
		return nil, fmt.Errorf("%s is empty; %s", name, example)
	}
	var whole any
	err := json.Unmarshal(data, &whole)
	var syntax *json.SyntaxError
	switch _, object := whole.(map[string]any); {
	case errors.As(err, &syntax):
		return nil, fmt.Errorf("%s:%d: %w; %s", name, 1+bytes.Count(data[:min(int(syntax.Offset), len(data))], []byte("\n")), err, example)
	case err != nil:
		return nil, fmt.Errorf("%s: %w; %s", name, err, example)
	case !object:
		return nil, fmt.Errorf("%s holds no JSON object; %s", name, example)
	}
	return bytes.TrimSpace(data), nil
}

// loneSurrogate finds the first escape in a JSON text that is half of a
// character: encoding/json would put another character in its place.
func loneSurrogate(text []byte) (escape string, found bool) {
	for i := 0; i < len(text); i++ {
		if text[i] != '\\' {
			continue
		}
		i++ // what is escaped, which may be a backslash
		first, is := unicodeEscape(text[i:])
		if !is || !utf16.IsSurrogate(first) {
			continue
		}
		var second rune
		if rest, escaped := bytes.CutPrefix(text[i+5:], []byte(`\`)); escaped {
			second, _ = unicodeEscape(rest)
		}
		if utf16.DecodeRune(first, second) == utf8.RuneError {
			return `\` + string(text[i:i+5]), true
		}
		i += 10
	}
	return "", false
}

// unicodeEscape reads the u and four digits that begin a text.
func unicodeEscape(text []byte) (rune, bool) {
	if len(text) < 5 || text[0] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(string(text[1:5]), 16, 16)
	return rune(n), err == nil
}

// parseTemplate reads the members of a JSON object, each as pieces.
func parseTemplate(template json.RawMessage) (map[string][]piece, error) {
	if len(template) == 0 {
		return map[string][]piece{}, nil
	}
	if !utf8.Valid(template) {
		return nil, errors.New("not UTF-8; save it as UTF-8")
	}
	var whole any
	if err := json.Unmarshal(template, &whole); err != nil {
		return nil, fmt.Errorf("%w; write a JSON object such as {\"role\": \"author\"}", err)
	}
	if half, found := loneSurrogate(template); found {
		return nil, fmt.Errorf("%s is half of a character; write both halves, or the character itself", half)
	}
	if _, is := whole.(map[string]any); !is {
		return nil, errors.New(`wants a JSON object, such as {"role": "author"}`)
	}
	t := &templateReader{json.NewDecoder(bytes.NewReader(template))}
	t.dec.UseNumber()
	if _, err := t.dec.Token(); err != nil {
		return nil, err
	}
	return t.members("")
}

// templateReader goes through a template token by token: unlike Unmarshal
// that shows repeated keys.
type templateReader struct{ dec *json.Decoder }

func (t *templateReader) members(path string) (map[string][]piece, error) {
	all := map[string][]piece{}
	for t.dec.More() {
		key, err := t.dec.Token()
		if err != nil {
			return nil, err
		}
		name := key.(string)
		at := strings.TrimPrefix(path+"."+name, ".")
		if _, twice := all[name]; twice {
			return nil, fmt.Errorf("%s is there twice; write it once", excerpt(at))
		}
		if strings.Contains(name, "{") {
			return nil, fmt.Errorf("%s: the name of a claim stands as it is; write {n} and the like in its value", excerpt(at))
		}
		if all[name], err = t.value(at); err != nil {
			return nil, err
		}
	}
	_, err := t.dec.Token()
	return all, err
}

func (t *templateReader) value(path string) ([]piece, error) {
	next, err := t.dec.Token()
	if err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return nil, err
	}
	switch v := next.(type) {
	case json.Delim:
		if v == '[' {
			return t.items(path)
		}
		members, err := t.members(path)
		return objectOf(members), err
	case string:
		pieces, err := textOf(v)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", excerpt(path), err)
		}
		return pieces, nil
	case json.Number:
		return []piece{{text: v.String()}}, nil
	case bool:
		return []piece{{text: strconv.FormatBool(v)}}, nil
	}
	return []piece{{text: "null"}}, nil
}

func (t *templateReader) items(path string) ([]piece, error) {
	out := []piece{{text: "["}}
	for i := 0; t.dec.More(); i++ {
		if i > 0 {
			out = append(out, piece{text: ","})
		}
		v, err := t.value(fmt.Sprintf("%s[%d]", path, i))
		if err != nil {
			return nil, err
		}
		out = append(out, v...)
	}
	_, err := t.dec.Token()
	return join(append(out, piece{text: "]"})), err
}

// objectOf writes members as a JSON object, sorted by name.
func objectOf(members map[string][]piece) []piece {
	out := []piece{{text: "{"}}
	for i, name := range slices.Sorted(maps.Keys(members)) {
		if i > 0 {
			out = append(out, piece{text: ","})
		}
		out = append(out, piece{text: `"` + escape(name) + `":`})
		out = append(out, members[name]...)
	}
	return join(append(out, piece{text: "}"}))
}

// textOf writes a string with its placeholders as a JSON string.
func textOf(s string) ([]piece, error) {
	pieces, err := split(s, "claim", placeholders()...)
	if err != nil {
		return nil, err
	}
	out := []piece{{text: `"`}}
	for _, p := range pieces {
		p.text = escape(p.text)
		out = append(out, p)
	}
	return join(append(out, piece{text: `"`})), nil
}

// escape writes what stands between the quotes of a JSON string, with no more
// escapes than RFC 8259, section 7, asks for. encoding/json has changed its
// mind about some of them from one version of Go to the next.
func escape(s string) string {
	var out strings.Builder
	for i := range len(s) {
		switch b := s[i]; {
		case b == '"' || b == '\\':
			out.WriteByte('\\')
			out.WriteByte(b)
		case b < ' ':
			fmt.Fprintf(&out, `\u%04x`, b)
		default:
			out.WriteByte(b)
		}
	}
	return out.String()
}
