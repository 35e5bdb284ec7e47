package targets

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// readHTTP reads the line format: a request line, header lines, at most one
// @body line, a blank line. Comments are dropped before anything else is
// decided, and a request line always starts a target: so neither can be taken
// for a header of the target above.
func (r *reader) readHTTP(text []byte) error {
	var open *Target // still takes lines
	var body bool    // it has had its body line
	for i, raw := range strings.Split(string(text), "\n") {
		line := strings.Trim(raw, " \t\r")
		var err error
		switch method, url, isRequest := requestLine(line); {
		case strings.HasPrefix(line, "#"):
		case len(line) > maxLine:
			err = errLong
		case line == "":
			open = nil
		case isRequest:
			if err = checkRequest(method, url); err == nil {
				r.set.Targets = append(r.set.Targets, Target{Method: method, URL: url, Header: http.Header{}, File: r.name, Line: i + 1})
				open, body = &r.set.Targets[len(r.set.Targets)-1], false
			}
		case open == nil:
			err = notARequest(line)
		case line[0] == '@' && body:
			err = errors.New("second body line; a request has one body, and a blank line ends a target")
		case line[0] == '@':
			open.Body, err = r.body(line[1:])
			body = true
		case body:
			err = fmt.Errorf("%s comes after the body line; headers stand before it, and a target starts with METHOD URL", excerpt(line))
		default:
			err = addHeaderLine(open.Header, line)
		}
		if err != nil {
			return r.errAt(i+1, err)
		}
	}
	return nil
}

// requestLine splits METHOD URL. It is deliberately wide (a bad method or a
// broken URL still counts), so that no attempt at a request becomes a header.
func requestLine(line string) (method, url string, ok bool) {
	cut := strings.IndexAny(line, " \t")
	if cut < 0 || !isToken(line[:cut]) {
		return "", "", false
	}
	url = strings.TrimLeft(line[cut:], " \t")
	return line[:cut], url, hasURLStart(url)
}

// notARequest says what is wrong with a line where a target has to start.
func notARequest(line string) error {
	name, _, isHeader := strings.Cut(line, ":")
	switch word, rest, two := strings.Cut(line, " "); {
	case line[0] == '@' || isHeader && isToken(name):
		return fmt.Errorf("%s belongs to no target; leave no blank line between a request and its headers and body", excerpt(line))
	case two && isToken(word):
		return checkURL(strings.TrimLeft(rest, " \t"))
	}
	return fmt.Errorf("%s is not a request line; a target starts with METHOD URL, such as GET http://router/path", excerpt(line))
}

// addHeaderLine keeps the name's case, as vegeta does: some servers depend on
// it. A repeated name adds a value.
func addHeaderLine(header http.Header, line string) error {
	name, value, found := strings.Cut(line, ":")
	name, value = strings.Trim(name, " \t"), strings.Trim(value, " \t")
	switch {
	case !found:
		return fmt.Errorf("%s is neither a header nor a request line; write Name: value, or METHOD URL", excerpt(line))
	case value == "":
		return fmt.Errorf("header %s has no value; leave the line out, or use the JSON format with an empty string", excerpt(name))
	}
	return addHeader(header, name, value)
}
