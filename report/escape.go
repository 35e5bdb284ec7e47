package report

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/width"
)

// clean makes a stranger's text safe to print on one line: control characters,
// ANSI escapes, line breaks, text-direction marks, invisible characters and
// invalid bytes become visible escapes (\n, \x1b, \u202e). An empty name is "–".
func clean(s string) string {
	var b strings.Builder
	for len(s) > 0 {
		r, n := utf8.DecodeRuneInString(s)
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, s[0])
		case unicode.IsPrint(r): // of the spaces only U+0020
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\r':
			b.WriteString(`\r`)
		case r == '\t':
			b.WriteString(`\t`)
		case r < 0x80:
			fmt.Fprintf(&b, `\x%02x`, r)
		case r < 0x10000:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			fmt.Fprintf(&b, `\U%08x`, r)
		}
		s = s[n:]
	}
	if b.Len() == 0 {
		return missing
	}
	return b.String()
}

// columns is how many columns of a terminal a cleaned text takes.
func columns(s string) int {
	n := 0
	for _, r := range s {
		n += runeColumns(r)
	}
	return n
}

func runeColumns(r rune) int {
	if unicode.In(r, unicode.Mn, unicode.Me) {
		return 0
	}
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth:
		return 2
	}
	return 1
}

// shorten cuts the middle out of a cleaned text: what tells two routes apart
// is at the end as often as at the start.
func shorten(s string, limit int) string {
	if columns(s) <= limit {
		return s
	}
	runes := []rune(s)
	head, tail, room := 0, len(runes), limit-1
	for fromHead := true; head < tail; fromHead = !fromHead {
		next := runes[tail-1]
		if fromHead {
			next = runes[head]
		}
		if room -= runeColumns(next); room < 0 {
			break
		}
		if fromHead {
			head++
		} else {
			tail--
		}
	}
	return string(runes[:head]) + "…" + string(runes[tail:])
}

// code shows a name in Markdown as code: GitHub then sees no emphasis, no HTML,
// no link and no @mention in it. A code span cannot hold a backtick of its own
// length, and how a table row is split at a backslash and a pipe differs between
// parsers; such names get <code> with every special character as an entity,
// which can stand for a character but never for structure.
func code(s string) string {
	s = clean(s)
	if strings.ContainsAny(s, "`|") || strings.HasPrefix(s, " ") || strings.HasSuffix(s, " ") {
		return codeHTML(s)
	}
	return "`" + s + "`"
}

// codeHTML is code for places where Markdown is not read, as in <summary>.
func codeHTML(s string) string {
	var b strings.Builder
	b.WriteString("<code>")
	for _, r := range clean(s) {
		plain := r >= 0x80 || r == ' ' || r == '/' || r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z'
		if plain {
			b.WriteRune(r)
		} else {
			fmt.Fprintf(&b, "&#%d;", r)
		}
	}
	b.WriteString("</code>")
	return b.String()
}

// prose shows a sentence in Markdown: nothing in it is markup, a link, a
// mention or a reference to an issue.
func prose(s string) string {
	s = strings.TrimSpace(clean(s))
	var b strings.Builder
	for i, r := range s {
		link := r == ':' && strings.HasPrefix(s[i:], "://") || r == '.' && strings.HasSuffix(s[:i], "www")
		number := (r == '.' || r == ')') && strings.Trim(s[:i], "0123456789") == "" // "1." would begin a list
		switch {
		case r == '@' || r == '#':
			// GitHub looks for mentions after decoding; only a zero-width space stops it.
			fmt.Fprintf(&b, "&#%d;&#8203;", r)
		case strings.ContainsRune("&<>|\\`*_[]~$!", r), i == 0 && strings.ContainsRune("-+=", r), link, number:
			fmt.Fprintf(&b, "&#%d;", r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}
