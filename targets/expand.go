package targets

import (
	"fmt"
	"slices"
	"strings"
)

// piece is text, or the name of what stands in its place in each request.
type piece struct{ text, name string }

// split finds the placeholders of a text, {name}; {{ is a brace. what says in
// an error what a placeholder is.
func split(text, what string, known ...string) (pieces []piece, err error) {
	var plain strings.Builder
	flush := func() {
		if plain.Len() > 0 {
			pieces = append(pieces, piece{text: plain.String()})
			plain.Reset()
		}
	}
	for {
		before, rest, found := strings.Cut(text, "{")
		plain.WriteString(before)
		if !found {
			flush()
			return pieces, nil
		}
		if after, twice := strings.CutPrefix(rest, "{"); twice {
			plain.WriteByte('{')
			text = after
			continue
		}
		name, after, closed := strings.Cut(rest, "}")
		if !closed {
			return nil, fmt.Errorf("%s has no end; known are {%s}, and {{ is a brace", excerpt("{"+rest), strings.Join(known, "} {"))
		}
		if !slices.Contains(known, name) {
			return nil, fmt.Errorf("unknown %s %s; known are {%s}, and {{ is a brace", what, excerpt("{"+name+"}"), strings.Join(known, "} {"))
		}
		flush()
		pieces = append(pieces, piece{name: name})
		text = after
	}
}
