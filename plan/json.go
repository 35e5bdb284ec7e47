package plan

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// json reads tokens, because Unmarshal silently takes the last of repeated keys.
func (t *tree) json(data []byte) (*node, error) {
	var whole any
	if err := json.Unmarshal(data, &whole); err != nil {
		offset := 0
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) {
			offset = max(0, int(syntax.Offset)-1)
		}
		before := string(data[:offset])
		return nil, t.syntax(1+strings.Count(before, "\n"), offset-strings.LastIndex(before, "\n"), err.Error())
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	return (&jsonTree{tree: t, data: data, dec: dec}).node("")
}

type jsonTree struct {
	*tree
	data []byte // known to be one well-formed value
	dec  *json.Decoder
}

// line is that of the token read last; a token never spans lines.
func (j *jsonTree) line() int {
	return 1 + bytes.Count(j.data[:j.dec.InputOffset()], []byte("\n"))
}

func (j *jsonTree) node(path string) (*node, error) {
	token, err := j.dec.Token()
	if err != nil {
		return nil, j.errAt(j.line(), path, "%w", err)
	}
	n := &node{line: j.line()}
	switch token := token.(type) {
	case nil:
		n.shape = empty
	case bool:
		n.shape, n.text = boolean, fmt.Sprint(token)
	case json.Number:
		n.shape, n.text = number, token.String()
	case string:
		n.shape, n.text = text, token
	case json.Delim:
		if token == '[' {
			n.shape = items
			for j.dec.More() {
				item, err := j.node(fmt.Sprintf("%s[%d]", path, len(n.items)))
				if err != nil {
					return nil, err
				}
				n.items = append(n.items, item)
			}
		} else {
			n.shape = mapping
			if n.pairs, err = j.pairs(path); err != nil {
				return nil, err
			}
		}
		if _, err := j.dec.Token(); err != nil { // the closing bracket
			return nil, j.errAt(j.line(), path, "%w", err)
		}
	}
	return n, nil
}

func (j *jsonTree) pairs(path string) ([]pair, error) {
	var out []pair
	lines := map[string]int{}
	for j.dec.More() {
		token, err := j.dec.Token()
		if err != nil {
			return nil, j.errAt(j.line(), path, "%w", err)
		}
		key, line := fmt.Sprint(token), j.line()
		at := join(path, key)
		if before, ok := lines[key]; ok {
			return nil, j.duplicate(line, at, before)
		}
		lines[key] = line
		value, err := j.node(at)
		if err != nil {
			return nil, err
		}
		out = append(out, pair{key, line, value})
	}
	return out, nil
}
