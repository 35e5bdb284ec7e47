package plan

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// decoder turns nodes into values. It goes on after the first thing that is
// wrong, with zero values, and keeps that first one: so the sections read like
// the file they describe.
type decoder struct {
	file  string
	err   error
	lines map[string]int // of every key so far, by path; for the checks that come later

	services []string // names of all services of the file
	seen     []string // of those that were read
}

// value is a node where it is used: an alias has another path than its anchor.
type value struct {
	*node
	path string
	line int // of its key; in a list its own
}

func (d *decoder) fail(v value, format string, args ...any) {
	if d.err != nil {
		return
	}
	where := fmt.Sprintf("%s:%d: ", d.file, v.line)
	if v.path != "" {
		where += v.path + ": "
	}
	d.err = fmt.Errorf("%s%w", where, fmt.Errorf(format, args...))
}

// failAt is fail for a path, at the line of the longest part of it that the
// file has.
func (d *decoder) failAt(path, format string, args ...any) {
	line := 1
	for at := path; at != ""; at = at[:max(0, strings.LastIndexByte(at, '.'))] {
		if l, ok := d.lines[at]; ok {
			line = l
			break
		}
	}
	d.fail(value{path: path, line: line}, format, args...)
}

// field is a key that a map may have, and what to do with its value.
type field struct {
	key  string
	read func(value)
}

// keys reads a map with known keys.
func (d *decoder) keys(v value, fields ...field) {
	d.each(v, func(key string, item value) {
		var known []string
		for _, f := range fields {
			if f.key == key {
				f.read(item)
				return
			}
			known = append(known, f.key)
		}
		d.fail(item, "unknown key;%s known keys here are %s", didYouMean(key, known), list(known))
	})
}

// each reads a map whose keys are names.
func (d *decoder) each(v value, read func(key string, item value)) {
	if v.shape != mapping {
		d.fail(v, "wants a map of key: value, not %s", v.shape)
		return
	}
	for _, p := range v.pairs {
		path := join(v.path, p.key)
		d.lines[path] = p.line
		if p.key == "" || strings.ContainsFunc(p.key, isControl) {
			d.fail(value{path: path, line: p.line}, "is no name; write one without control characters")
			return
		}
		read(p.key, value{p.value, path, p.line})
	}
}

// elements reads a list of at least one element.
func (d *decoder) elements(v value, example string, read func(value)) {
	switch {
	case v.shape != items:
		d.fail(v, "wants a list, not %s; write %s", v.shape, example)
	case len(v.items) == 0:
		d.fail(v, "is an empty list; write %s", example)
	}
	for i, item := range v.items {
		read(value{item, fmt.Sprintf("%s[%d]", v.path, i), item.line})
	}
}

// anyText is text that may be empty.
func (d *decoder) anyText(v value) string {
	switch {
	case v.shape == number || v.shape == boolean:
		d.fail(v, "wants text, not %s; put it in quotes: %q", v.shape, v.text)
	case v.shape != text:
		d.fail(v, "wants text, not %s", v.shape)
	case strings.ContainsRune(v.text, 0):
		d.fail(v, "holds a NUL character; remove it")
	}
	return v.text
}

func (d *decoder) text(v value) string {
	s := d.anyText(v)
	if strings.TrimSpace(s) == "" {
		d.fail(v, "is empty; give it a value or leave the key out")
	}
	return s
}

func (d *decoder) choice(v value, options ...string) string {
	s := d.text(v)
	if !slices.Contains(options, s) {
		d.fail(v, "%s is unknown;%s known are %s", quote(s), didYouMean(s, options), list(options))
	}
	return s
}

// whole reads a number as people write it: no sign, no leading zero, no
// underscore, no exponent, because YAML's readers do not agree on those.
func (d *decoder) whole(v value, least, most uint64) uint64 {
	if v.shape != number || !isWhole(v.text) {
		d.fail(v, "wants a whole number, not %s; write digits only, such as %d", v.describe(), max(least, 1))
		return 0
	}
	n, err := strconv.ParseUint(v.text, 10, 64)
	if err != nil || n < least || n > most {
		d.fail(v, "wants a number from %d to %d, not %s", least, most, v.text)
	}
	return n
}

func isWhole(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == "" && (s == "0" || s[0] != '0')
}

func (d *decoder) duration(v value, zero bool) time.Duration {
	if v.shape == number || v.shape == text && isWhole(v.text) {
		d.fail(v, "%s has no unit; say %ss", v.text, v.text)
		return 0
	}
	s := d.text(v)
	n, err := time.ParseDuration(s)
	switch {
	case err != nil:
		d.fail(v, "%s is no duration; write one such as 200ms, 30s or 5m", quote(s))
	case n < 0:
		d.fail(v, "%s is negative; write one such as 200ms, 30s or 5m", s)
	case n == 0 && !zero:
		d.fail(v, "%s is no time at all; write one such as 200ms, 30s or 5m", s)
	}
	return n
}

func (d *decoder) yes(v value) bool {
	if v.shape != boolean {
		d.fail(v, "wants true or false, not %s", v.describe())
	}
	return strings.EqualFold(v.text, "true")
}

// describe is how an error names the node.
func (n *node) describe() string {
	switch n.shape {
	case text:
		return "the text " + quote(n.text)
	case number, boolean:
		return n.text
	}
	return string(n.shape)
}

func isControl(c rune) bool { return c < ' ' || c == 0x7f }

// quote keeps errors on one short line.
func quote(s string) string {
	const most = 60
	if r := []rune(s); len(r) > most {
		return strconv.Quote(string(r[:most])) + "..."
	}
	return strconv.Quote(s)
}

// list writes a, b and c.
func list(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " and " + words[last]
}

// didYouMean is a hint for a near miss: fewer than half of the letters are
// wrong, and at most two.
func didYouMean(word string, known []string) string {
	best, least := "", 3
	for _, k := range known {
		if n := distance(word, k); n < least && 2*n < len(k) {
			best, least = k, n
		}
	}
	if best == "" {
		return ""
	}
	return " did you mean " + best + "?"
}

// distance counts the bytes to insert, delete, replace or swap with their
// neighbour to get from a to b, upper and lower case being the same (optimal
// string alignment). Words that differ by more than two in length are just far.
func distance(a, b string) int {
	a, b = strings.ToLower(a), strings.ToLower(b)
	if len(a) > len(b)+2 {
		return len(a)
	}
	rows := make([][]int, len(a)+1) // rows[i][j]: from a[:i] to b[:j]
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		for j := range rows[i] {
			switch {
			case i == 0 || j == 0:
				rows[i][j] = i + j
				continue
			case a[i-1] == b[j-1]:
				rows[i][j] = rows[i-1][j-1]
				continue
			}
			rows[i][j] = 1 + min(rows[i-1][j-1], rows[i-1][j], rows[i][j-1])
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], 1+rows[i-2][j-2])
			}
		}
	}
	return rows[len(a)][len(b)]
}
