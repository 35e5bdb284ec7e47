package targets

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// originBase is what a target without scheme and host is sent to, in name.
const originBase = "http://router"

// maxLine is the longest header or request line, in bytes. Most servers
// refuse far shorter ones; vegeta loses what is longer without a word.
const maxLine = 64 << 10

// errLong is a line beyond maxLine.
var errLong = errors.New("longer than 64 KiB; a server would refuse such a header or URL, send large data as a body")

func checkRequest(method, url string) error {
	if err := checkMethod(method); err != nil {
		return err
	}
	return checkURL(url)
}

func checkMethod(method string) error {
	switch {
	case method == "":
		return errors.New("method is missing; write one such as GET")
	case !isToken(method) || strings.ToUpper(method) != method:
		return fmt.Errorf("invalid method %s; methods are upper case, such as GET or POST", excerpt(method))
	}
	return nil
}

func hasURLStart(s string) bool {
	return strings.HasPrefix(s, "/") || strings.HasPrefix(s, "http://") || strings.HasPrefix(s, "https://")
}

// checkURL accepts absolute http and https URLs and the origin form /path?query.
func checkURL(raw string) error { return checkURLFrom(raw, raw) }

// checkURLFrom is checkURL for a URL that was made from what the user wrote.
func checkURLFrom(raw, wrote string) error {
	full := raw
	if strings.HasPrefix(raw, "/") {
		full = originBase + raw
	}
	bad := func(what string) error { return fmt.Errorf("invalid URL %s: %s", excerpt(wrote), what) }
	switch {
	case raw == "":
		return errors.New("URL is missing; write http://router/path or /path")
	case len(raw) > maxLine:
		return errLong
	case !hasURLStart(raw):
		return bad("it does not start with http://, https:// or /; write http://router/path or /path")
	case strings.ContainsAny(raw, " \t"):
		return bad("it holds a space; write %20, and leave out HTTP/1.1")
	case strings.Contains(raw, "#"):
		return bad("the part after # is never sent; write %23 for the character itself")
	}
	u, err := url.Parse(full)
	if err != nil {
		// The inner error without the URL, which may be very long.
		var inner *url.Error
		if errors.As(err, &inner) {
			err = inner.Err
		}
		return fmt.Errorf("invalid URL %s: %w; write http://router/path or /path", excerpt(wrote), err)
	}
	if u.Hostname() == "" || !isHost(u.Host) {
		return bad("its host is missing or malformed; write http://router/path or /path")
	}
	return nil
}

// addHeader adds a header that net/http will send just as it stands. Its
// special cases are refused where they would drop or double a header.
func addHeader(header http.Header, name, value string) error {
	canonical := http.CanonicalHeaderKey(name)
	switch {
	case !isToken(name):
		return fmt.Errorf("invalid header name %s; a header is Name: value, a request is METHOD URL with a URL that starts with http://, https:// or /", excerpt(name))
	case len(name)+len(value) > maxLine:
		return errLong
	case strings.ContainsFunc(value, isControl):
		return fmt.Errorf("header %s: its value holds a control character; remove it", name)
	case canonical == "Content-Length" || canonical == "Transfer-Encoding" || canonical == "Trailer":
		return fmt.Errorf("header %s: the HTTP client sets it from the body; remove it", name)
	case canonical == "Host" && name != "Host":
		return fmt.Errorf("header %s: it would be sent in addition to the real one; spell it Host", name)
	case name == "Host" && len(header["Host"]) > 0:
		return errors.New("second Host header; a request has one")
	case name == "Host" && !isHost(value):
		return fmt.Errorf("header Host: %s is not a host; write name or name:port", excerpt(value))
	}
	header[name] = append(header[name], value)
	return nil
}

// isToken reports whether s is a token of RFC 9110, section 5.6.2.
func isToken(s string) bool {
	for i := range len(s) {
		if !isAlnum(s[i]) && strings.IndexByte("!#$%&'*+-.^_`|~", s[i]) < 0 {
			return false
		}
	}
	return s != ""
}

// isHost reports whether s can stand in a Host header (RFC 3986, section 3.2.2, with a port).
func isHost(s string) bool {
	for i := range len(s) {
		if !isAlnum(s[i]) && strings.IndexByte("!$&'()*+,-.:;=[]_~", s[i]) < 0 {
			return false
		}
	}
	return s != ""
}

func isAlnum(b byte) bool {
	return '0' <= b && b <= '9' || 'a' <= b && b <= 'z' || 'A' <= b && b <= 'Z'
}

// isControl leaves out the tab, which may stand inside a header's value.
func isControl(c rune) bool { return c < ' ' && c != '\t' || c == 0x7f }

// excerpt quotes the start of s, so that an error stays on one short line.
func excerpt(s string) string {
	const most = 60
	if len(s) > most {
		return fmt.Sprintf("%q...", s[:most])
	}
	return fmt.Sprintf("%q", s)
}
