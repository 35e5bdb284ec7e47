package plan

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// shape is what a node is. Its text completes "wants a map, not ...".
type shape string

const (
	empty   shape = "nothing"
	boolean shape = "true or false"
	number  shape = "a number"
	text    shape = "text"
	items   shape = "a list"
	mapping shape = "a map"
)

// node is a value of the file, the same for YAML and JSON: every decision
// about a plan is made on nodes, so that the two formats cannot differ.
type node struct {
	shape shape
	line  int
	text  string  // boolean, number: as written; text: without quotes
	items []*node // of a list
	pairs []pair  // of a map, in file order, keys unique
}

type pair struct {
	key   string
	line  int // of the key
	value *node
}

// parseTree reads one document. Its errors begin with FILE:LINE.
func parseTree(file string, data []byte) (*node, error) {
	if len(data) > maxSize {
		return nil, fmt.Errorf("%s: larger than 64 KiB; is it a plan?", file)
	}
	for i, line := range bytes.Split(data, []byte("\n")) {
		if !utf8.Valid(line) {
			return nil, fmt.Errorf("%s:%d: not UTF-8; save the file as UTF-8", file, i+1)
		}
	}
	t := &tree{file: file, anchors: map[string]*node{}}
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	if strings.HasSuffix(file, ".json") || json.Valid(data) {
		return t.json(data)
	}
	return t.yaml(data)
}

// tree builds nodes.
type tree struct {
	file    string
	anchors map[string]*node
}

func (t *tree) errAt(line int, path, format string, args ...any) error {
	if path != "" {
		path += ": "
	}
	return fmt.Errorf("%s:%d: %s%w", t.file, line, path, fmt.Errorf(format, args...))
}

func (t *tree) syntax(line, column int, message string) error {
	return fmt.Errorf("%s:%d:%d: %s", t.file, line, column, strings.Join(strings.Fields(message), " "))
}

// yaml takes the parser's tree and not its decoder, which forgets lines,
// ignores a second document and reads 012 as ten.
func (t *tree) yaml(data []byte) (*node, error) {
	file, err := parser.ParseBytes(data, 0, parser.AllowDuplicateMapKey()) // refused below, with the key's path
	var parseErr yaml.Error
	switch {
	case errors.As(err, &parseErr) && parseErr.GetToken() != nil:
		at := parseErr.GetToken().Position
		message := parseErr.GetMessage()
		if strings.ContainsRune(message, '\t') {
			message = "a tab where an indentation or a value should start; YAML indents with spaces"
		}
		return nil, t.syntax(at.Line, at.Column, message)
	case err != nil:
		return nil, t.syntax(1, 1, err.Error())
	case len(file.Docs) == 0 || len(file.Docs) == 1 && file.Docs[0].Body == nil:
		return nil, t.errAt(1, "", "holds no plan; it starts with the keys router and kinds")
	}
	first := file.Docs[0]
	if directive, ok := first.Body.(*ast.DirectiveNode); ok {
		return nil, t.errAt(directive.GetToken().Position.Line, "", "a YAML directive; remove the line")
	}
	if len(file.Docs) > 1 {
		return nil, t.errAt(startOf(file.Docs[1]), "", "a second document starts here; a plan is one document, remove the line ---")
	}
	return t.node(first.Body, "")
}

func startOf(doc *ast.DocumentNode) int {
	switch {
	case doc.Start != nil:
		return doc.Start.Position.Line
	case doc.Body != nil:
		return doc.Body.GetToken().Position.Line
	}
	return 1
}

func (t *tree) node(from ast.Node, path string) (*node, error) {
	line := 1
	if tk := from.GetToken(); tk != nil {
		line = tk.Position.Line
	}
	n := &node{line: line}
	var err error
	switch from := from.(type) {
	case *ast.NullNode:
		n.shape = empty
	case *ast.BoolNode:
		n.shape, n.text = boolean, from.Token.Value
	case *ast.IntegerNode, *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
		n.shape, n.text = number, from.GetToken().Value
	case *ast.StringNode:
		n.shape, n.text = text, from.Value
		if from.Token.Type == token.StringType && isWhole(n.text) {
			n.shape = number // beyond 64 bits the parser calls it text
		}
	case *ast.LiteralNode:
		n.shape, n.text = text, from.Value.Value
	case *ast.SequenceNode:
		n.shape = items
		for i, value := range from.Values {
			item, err := t.node(value, fmt.Sprintf("%s[%d]", path, i))
			if err != nil {
				return nil, err
			}
			n.items = append(n.items, item)
		}
	case *ast.MappingNode:
		n.shape = mapping
		n.pairs, err = t.pairs(from.Values, path)
	case *ast.AnchorNode:
		if n, err = t.node(from.Value, path); err == nil {
			t.anchors[from.Name.GetToken().Value] = n
		}
	case *ast.AliasNode:
		name := from.Value.GetToken().Value
		if n = t.anchors[name]; n == nil {
			err = t.errAt(line, path, "alias *%s has no anchor above it; write &%s before the value that is meant", name, name)
		}
	case *ast.TagNode:
		err = t.errAt(line, path, "a YAML tag; leave out %s, quotes make text", from.GetToken().Value)
	default:
		err = t.errAt(line, path, "cannot be read; write it as a value, a list or a map")
	}
	return n, err
}

// pairs refuses repeated keys and resolves merge keys: what is written in the
// map itself wins over what is merged into it, earlier merges over later ones.
func (t *tree) pairs(values []*ast.MappingValueNode, path string) ([]pair, error) {
	var out, merged []pair
	lines := map[string]int{}
	for _, v := range values {
		tk := v.Key.GetToken()
		key, line := tk.Value, tk.Position.Line
		at := join(path, key)
		if _, ok := v.Key.(*ast.StringNode); !ok && !v.Key.IsMergeKey() {
			return nil, t.errAt(line, at, "is not text as a key; write key: value, with quotes around the key")
		}
		if before, ok := lines[key]; ok {
			return nil, t.duplicate(line, at, before)
		}
		lines[key] = line
		value, err := t.node(v.Value, at)
		switch {
		case err != nil:
			return nil, err
		case !v.Key.IsMergeKey():
			out = append(out, pair{key, line, value})
			continue
		case value.shape != items:
			value = &node{items: []*node{value}}
		}
		for _, from := range value.items {
			if from.shape != mapping {
				return nil, t.errAt(line, at, "wants a map to merge, not %s; write <<: *name of an anchored map", from.shape)
			}
			merged = append(merged, from.pairs...)
		}
	}
	for _, p := range merged {
		if _, ok := lines[p.key]; !ok {
			lines[p.key] = p.line
			out = append(out, p)
		}
	}
	return out, nil
}

func (t *tree) duplicate(line int, path string, before int) error {
	return t.errAt(line, path, "duplicate key, it stands in line %d already; remove one of them", before)
}

// join writes a key behind its path; a key that is no plain word is quoted.
func join(path, key string) string {
	if strings.ContainsFunc(key, func(c rune) bool {
		return !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_' || c == '-')
	}) || key == "" {
		key = quote(key)
	}
	if path == "" {
		return key
	}
	return path + "." + key
}
