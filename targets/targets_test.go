package targets_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"plumbline/targets"
)

// bodies serves every name as its own content, except those with "missing" in them.
func bodies(name string) ([]byte, error) {
	if strings.Contains(name, "missing") {
		return nil, fs.ErrNotExist
	}
	return []byte(name), nil
}

func sum(s string) string {
	h := sha256.Sum256([]byte(s))
	return hex.EncodeToString(h[:])
}

// short is one line a target: line, request, body, headers.
func short(set *targets.Set) []string {
	var out []string
	for _, t := range set.Targets {
		out = append(out, fmt.Sprintf("%d %s %s %q %v", t.Line, t.Method, t.URL, t.Body, map[string][]string(t.Header)))
	}
	return out
}

func TestParse(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       []string
	}{
		{"one", "GET http://a/1", []string{`1 GET http://a/1 "" map[]`}},
		{"no blank line between", "GET http://a/1\nGET http://a/2\n", []string{`1 GET http://a/1 "" map[]`, `2 GET http://a/2 "" map[]`}},
		// vegeta reads the second request as a header named "GET http".
		{"comment between", "GET http://a/1\n# note\nGET http://a/2\n", []string{`1 GET http://a/1 "" map[]`, `3 GET http://a/2 "" map[]`}},
		{"comment does not end a target", "GET /1\nA: b\n# note\nC: d\n# note\n@x\n", []string{`1 GET http://router/1 "x" map[A:[b] C:[d]]`}},
		{"header then request", "GET /1\nA: b\nPOST /2\n@x\nGET /3", []string{`1 GET http://router/1 "" map[A:[b]]`, `3 POST http://router/2 "x" map[]`, `5 GET http://router/3 "" map[]`}},
		{"case and order of headers kept", "GET /\nx-a: 1\nX-A: 2\nx-a: 3\n", []string{`1 GET http://router/ "" map[X-A:[2] x-a:[1 3]]`}},
		{"colons and spaces in a value", "GET /\nA:  b: c  d \n", []string{`1 GET http://router/ "" map[A:[b: c  d]]`}},
		{"host header", "GET http://a/\nHost: shop.example:8080\n", []string{`1 GET http://a/ "" map[Host:[shop.example:8080]]`}},
		{"byte order mark and CRLF", "\ufeff# x\r\n\r\nGET http://a/1\r\nA: b\r\n@x\r\n\r\nGET /2\r\n", []string{`3 GET http://a/1 "x" map[A:[b]]`, `7 GET http://a/2 "" map[]`}},
		{"origin form takes the host of the others", "GET /1?q=a%20b\n\nGET https://A:8443/2\nGET https://a:8443/3", []string{
			`1 GET https://A:8443/1?q=a%20b "" map[]`, `3 GET https://A:8443/2 "" map[]`, `4 GET https://a:8443/3 "" map[]`}},
		{"path with two slashes is no host", "GET //x/y\n", []string{`1 GET http://router//x/y "" map[]`}},
		{"longest header", "GET /\nA: " + strings.Repeat("x", 64<<10-3), []string{`1 GET http://router/ "" map[A:[` + strings.Repeat("x", 64<<10-3) + `]]`}},
		{"long comment", "GET /\n#" + strings.Repeat("x", 1<<20), []string{`1 GET http://router/ "" map[]`}},
		{"json", "\n" + `{"method":"POST","url":"http://a/1","body":"Rk9P","header":{"A":["b","c"],"d":[""]}}` + "\r\n \n" + `{"url":"/2","method":"GET"}`, []string{
			`2 POST http://a/1 "FOO" map[A:[b c] d:[]]`, `4 GET http://a/2 "" map[]`}},
		{"json with byte order mark", "\ufeff" + `{"method": "GET", "url": "/"}`, []string{`1 GET http://router/ "" map[]`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			set, err := targets.Parse("t", []byte(c.text), bodies)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, short(set)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestRefusals(t *testing.T) {
	long := strings.Repeat("x", 64<<10)
	for _, c := range []struct{ text, want string }{
		{"", "t: holds no target; write one as GET http://router/path, or METHOD /path"},
		{"\n# only a comment\n", "t: holds no target; write one as GET http://router/path, or METHOD /path"},
		{"hello\n", `t:1: "hello" is not a request line; a target starts with METHOD URL, such as GET http://router/path`},
		{"GET ftp://a/1\n", `t:1: invalid URL "ftp://a/1": it does not start with http://, https:// or /; write http://router/path or /path`},
		{"GET \n", `t:1: "GET" is not a request line; a target starts with METHOD URL, such as GET http://router/path`},
		{"get http://a/\n", `t:1: invalid method "get"; methods are upper case, such as GET or POST`},
		{"GET http:///x\n", `t:1: invalid URL "http:///x": its host is missing or malformed; write http://router/path or /path`},
		{"GET http://:80/x\n", `t:1: invalid URL "http://:80/x": its host is missing or malformed; write http://router/path or /path`},
		{"GET http://a/%zz\n", `t:1: invalid URL "http://a/%zz": invalid URL escape "%zz"; write http://router/path or /path`},
		{"GET /a b\n", `t:1: invalid URL "/a b": it holds a space; write %20, and leave out HTTP/1.1`},
		{"GET /a HTTP/1.1\n", `t:1: invalid URL "/a HTTP/1.1": it holds a space; write %20, and leave out HTTP/1.1`},
		{"GET /a#b\n", `t:1: invalid URL "/a#b": the part after # is never sent; write %23 for the character itself`},
		{"GET /a\x01\n", `t:1: invalid URL "/a\x01": net/url: invalid control character in URL; write http://router/path or /path`},
		{"GET /" + long + "\n", "t:1: longer than 64 KiB; a server would refuse such a header or URL, send large data as a body"},
		{"GET http://a/1\n\nGET http://b/2\n", "t:3: http://b is a second host after http://a in line 1; every request goes to the arm under load; use a Host header for virtual hosts"},
		{"GET http://a/1\nGET https://a/2\n", "t:2: https://a is a second host after http://a in line 1; every request goes to the arm under load; use a Host header for virtual hosts"},
		{"GET /1\n\nA: b\n", `t:3: "A: b" belongs to no target; leave no blank line between a request and its headers and body`},
		{"GET /1\n\n@x\n", `t:3: "@x" belongs to no target; leave no blank line between a request and its headers and body`},
		{"GET /1\nA: b\nGET ftp://a/2\n", `t:3: invalid header name "GET ftp"; a header is Name: value, a request is METHOD URL with a URL that starts with http://, https:// or /`},
		{"GET /1\nPOST\n", `t:2: "POST" is neither a header nor a request line; write Name: value, or METHOD URL`},
		{"GET /1\nA b: c\n", `t:2: invalid header name "A b"; a header is Name: value, a request is METHOD URL with a URL that starts with http://, https:// or /`},
		{"GET /1\n: c\n", `t:2: invalid header name ""; a header is Name: value, a request is METHOD URL with a URL that starts with http://, https:// or /`},
		{"GET /1\nA:\n", `t:2: header "A" has no value; leave the line out, or use the JSON format with an empty string`},
		{"GET /1\nA: b\x00c\n", "t:2: header A: its value holds a control character; remove it"},
		{"GET /1\nA: b\rB: c\n", "t:2: header A: its value holds a control character; remove it"},
		{"GET /1\nA: " + long + "\n", "t:2: longer than 64 KiB; a server would refuse such a header or URL, send large data as a body"},
		{"GET /1\nhost: x\n", "t:2: header host: it would be sent in addition to the real one; spell it Host"},
		{"GET /1\nHost: x\nHost: y\n", "t:3: second Host header; a request has one"},
		{"GET /1\nHost: http://x/\n", `t:2: header Host: "http://x/" is not a host; write name or name:port`},
		{"GET /1\ncontent-length: 5\n", "t:2: header content-length: the HTTP client sets it from the body; remove it"},
		{"POST /1\n@x\n@y\n", "t:3: second body line; a request has one body, and a blank line ends a target"},
		{"POST /1\n@x\nA: b\n", `t:3: "A: b" comes after the body line; headers stand before it, and a target starts with METHOD URL`},
		{"POST /1\n@\n", "t:2: body line names no file; write @ and its path"},
		{"POST /1\n# x\n@missing.json\n", `t:3: body "missing.json": file does not exist; its path is relative to the target file's folder`},

		{`{}`, "t:1:1: a target needs the keys method and url"},
		{"\n [1]", "t:2:2: wants one JSON object a line"},
		{`{"method":"GET"}`, "t:1:1: a target needs the keys method and url"},
		{`{"method":"","url":"/"}`, "t:1:11: method is missing; write one such as GET"},
		{`{"method":"GET","url":""}`, "t:1:23: URL is missing; write http://router/path or /path"},
		{`{"method":"GET","url":"x"}`, `t:1:23: invalid URL "x": it does not start with http://, https:// or /; write http://router/path or /path`},
		{`{"method":"GET","url":null}`, "t:1:23: url: wants a string"},
		{`{"method":7,"url":"/"}`, "t:1:11: method: wants a string"},
		{`{"method": "GET", "uri": "/"}`, `t:1:19: unknown key "uri"; known keys are method, url, body and header`},
		{`{"Method":"GET","url":"/"}`, `t:1:2: unknown key "Method"; known keys are method, url, body and header`},
		{`{"method":"GET","url":"/","method":"PUT"}`, `t:1:27: duplicate key "method" in the target; write it once`},
		{`{"method":"GET","url":"/","body":"x"}`, "t:1:34: body: wants base64 with padding, on one line; base64 -w0 writes it"},
		{`{"method":"GET","url":"/","body":"QUFB\nQUFB"}`, "t:1:34: body: wants base64 with padding, on one line; base64 -w0 writes it"},
		{`{"method":"GET","url":"/","body":["QUFB"]}`, "t:1:34: body: wants a string"},
		{`{"method":"GET","url":"/","header":{"A":"b"}}`, `t:1:41: header: wants lists of strings by name, such as {"Accept": ["text/html"]}`},
		{`{"method":"GET","url":"/","header":{"A":[1]}}`, `t:1:42: header: wants lists of strings by name, such as {"Accept": ["text/html"]}`},
		{`{"method":"GET","url":"/","header":[]}`, `t:1:36: header: wants lists of strings by name, such as {"Accept": ["text/html"]}`},
		{`{"method":"GET","url":"/","header":{"A":[]}}`, `t:1:41: header "A" has no value; leave it out`},
		{`{"method":"GET","url":"/","header":{"A":["b"],"A":["c"]}}`, `t:1:47: duplicate key "A" in the header; write it once`},
		{`{"method":"GET","url":"/","header":{"A b":["c"]}}`, `t:1:44: invalid header name "A b"; a header is Name: value, a request is METHOD URL with a URL that starts with http://, https:// or /`},
		{`{"method":"GET","url":"/","header":{"A":["` + long + `"]}}`, "t:1:42: longer than 64 KiB; a server would refuse such a header or URL, send large data as a body"},
		{`{"method":"GET","url":"/"} {"method":"GET","url":"/"}`, "t:1:28: invalid character '{' after top-level value; each target is one JSON object on a line of its own"},
		{"{\n\"method\":\"GET\",\"url\":\"/\"}", "t:1:1: unexpected end of JSON input; each target is one JSON object on a line of its own"},
		{`{"method":"GET","url":"/"}` + "\n# note", "t:2:1: invalid character '#' looking for beginning of value; each target is one JSON object on a line of its own"},
		{"{\"method\":\"GET\",\"url\":\"/\xff\"}", "t:1:1: not UTF-8; save the file as UTF-8, and put binary bodies into base64"},
	} {
		t.Run(c.want, func(t *testing.T) {
			set, err := targets.Parse("t", []byte(c.text), bodies)
			if err == nil {
				t.Fatalf("accepted %.200q as %v", c.text, short(set))
			}
			if err.Error() != c.want {
				t.Errorf("%.200q\n got %s\nwant %s", c.text, err, c.want)
			}
		})
	}
}

// Read finds bodies beside the target file, whatever the working directory,
// and hashes each file once, in order of first use.
func TestRead(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "load", "targets.http")
	text := "POST /1\n@b.json\n\nPOST /2\n@../a.json\n\nPOST /3\n@b.json\n\nPOST /4\n@" + filepath.Join(dir, "a.json") + "\n\nPOST /5\n@empty\n"
	for name, content := range map[string]string{"load/targets.http": text, "load/b.json": "B", "a.json": "A", "load/empty": ""} {
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	set, err := targets.Read(path)
	if err != nil {
		t.Fatal(err)
	}
	target := func(n, line int, body []byte) targets.Target {
		return targets.Target{Method: "POST", URL: fmt.Sprintf("http://router/%d", n), Header: http.Header{}, Body: body, File: path, Line: line}
	}
	want := &targets.Set{
		Targets: []targets.Target{
			target(1, 1, []byte("B")), target(2, 4, []byte("A")), target(3, 7, []byte("B")), target(4, 10, []byte("A")), target(5, 13, nil),
		},
		Inputs: []targets.Input{
			{path, sum(text)}, {"b.json", sum("B")}, {"../a.json", sum("A")}, {filepath.Join(dir, "a.json"), sum("A")}, {"empty", sum("")},
		},
	}
	if diff := cmp.Diff(want, set); diff != "" {
		t.Error(diff)
	}

	if err := os.Remove(filepath.Join(dir, "load", "b.json")); err != nil {
		t.Fatal(err)
	}
	wantErr := path + `:2: body "b.json": open ` + filepath.Join(dir, "load", "b.json") + ": no such file or directory; its path is relative to the target file's folder"
	if _, err := targets.Read(path); err == nil || err.Error() != wantErr {
		t.Errorf("got %v\nwant %s", err, wantErr)
	}
	none := filepath.Join(dir, "none")
	if _, err := targets.Read(none); err == nil || err.Error() != "reading targets: open "+none+": no such file or directory" {
		t.Error(err)
	}
}

// What could be read for ever, or not twice, is refused before it is read.
func TestOnlyRegularFiles(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	huge := write("huge", "")
	if err := os.Truncate(huge, 300<<20); err != nil { // a hole: it takes no room
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		os.DevNull: os.DevNull + " is not a regular file",
		dir:        "is not a regular file",
		huge:       "huge holds 300 MiB, more than the 256 MiB that one file may",
		write("device.http", "GET /\n@/dev/zero"): "device.http:2: ",
		write("hole.http", "GET /\n@huge"):        "more than the 256 MiB",
	} {
		if _, err := targets.Read(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want an error with %q", path, err, want)
		}
	}
}
