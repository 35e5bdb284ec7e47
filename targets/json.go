package targets

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"unicode/utf8"
)

// readJSON reads one object a line, with vegeta's keys method, url, body (in
// base64) and header (lists of values by name).
func (r *reader) readJSON(text []byte) error {
	for i, raw := range bytes.Split(text, []byte("\n")) {
		if raw = bytes.TrimRight(raw, " \t\r"); len(bytes.TrimLeft(raw, " \t")) == 0 {
			continue
		}
		object := &object{raw: raw, dec: json.NewDecoder(bytes.NewReader(raw))}
		target, err := object.target()
		if err != nil {
			return fmt.Errorf("%s:%d:%d: %w", r.name, i+1, object.column, err)
		}
		target.File, target.Line = r.name, i+1
		r.set.Targets = append(r.set.Targets, target)
	}
	return nil
}

// object is a line while it is read token by token: unlike Unmarshal that
// shows repeated keys, and where things stand.
type object struct {
	raw    []byte
	dec    *json.Decoder
	column int // of the token read last, in bytes from 1
}

func (o *object) target() (Target, error) {
	t := Target{Header: http.Header{}}
	if err := o.wellFormed(); err != nil {
		return t, err
	}
	if o.next() != json.Delim('{') {
		return t, errors.New("wants one JSON object a line")
	}
	start := o.column
	err := o.each("target", func(key string) (err error) {
		switch key {
		case "method":
			if t.Method, err = o.text(key); err == nil {
				err = checkMethod(t.Method)
			}
		case "url":
			if t.URL, err = o.text(key); err == nil {
				err = checkURL(t.URL)
			}
		case "body":
			t.Body, err = o.body()
		case "header":
			err = o.header(t.Header)
		default:
			err = fmt.Errorf("unknown key %s; known keys are method, url, body and header", excerpt(key))
		}
		return err
	})
	if err == nil && (t.Method == "" || t.URL == "") {
		o.column = start
		err = errors.New("a target needs the keys method and url")
	}
	return t, err
}

// wellFormed checks the line's syntax as a whole, so that what follows has
// only the meaning of tokens to look at.
func (o *object) wellFormed() error {
	o.column = 1
	if !utf8.Valid(o.raw) {
		return errors.New("not UTF-8; save the file as UTF-8, and put binary bodies into base64")
	}
	var value any
	if err := json.Unmarshal(o.raw, &value); err != nil {
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) {
			o.column = int(syntax.Offset)
		}
		return fmt.Errorf("%w; each target is one JSON object on a line of its own", err)
	}
	return nil
}

// next returns the next token of a line that wellFormed has checked.
func (o *object) next() json.Token {
	start := int(o.dec.InputOffset())
	start += len(o.raw[start:]) - len(bytes.TrimLeft(o.raw[start:], " \t\r,:"))
	o.column = start + 1
	token, err := o.dec.Token()
	if err != nil {
		return nil // no token fits, so the caller reports a wrong type here
	}
	return token
}

// each calls value for every key up to the closing brace, and refuses a
// repeated one.
func (o *object) each(of string, value func(key string) error) error {
	seen := map[string]bool{}
	for o.dec.More() {
		key, _ := o.next().(string)
		if seen[key] {
			return fmt.Errorf("duplicate key %s in the %s; write it once", excerpt(key), of)
		}
		seen[key] = true
		if err := value(key); err != nil {
			return err
		}
	}
	o.next()
	return nil
}

func (o *object) text(key string) (string, error) {
	s, ok := o.next().(string)
	if !ok {
		return "", fmt.Errorf("%s: wants a string", key)
	}
	return s, nil
}

func (o *object) body() ([]byte, error) {
	s, err := o.text("body")
	if err != nil || s == "" {
		return nil, err
	}
	body, err := base64.StdEncoding.Strict().DecodeString(s)
	if err != nil || strings.ContainsAny(s, "\r\n") {
		return nil, errors.New("body: wants base64 with padding, on one line; base64 -w0 writes it")
	}
	return body, nil
}

func (o *object) header(header http.Header) error {
	wrong := errors.New(`header: wants lists of strings by name, such as {"Accept": ["text/html"]}`)
	if o.next() != json.Delim('{') {
		return wrong
	}
	return o.each("header", func(name string) error {
		if o.next() != json.Delim('[') {
			return wrong
		}
		if !o.dec.More() {
			return fmt.Errorf("header %s has no value; leave it out", excerpt(name))
		}
		for o.dec.More() {
			value, ok := o.next().(string)
			if !ok {
				return wrong
			}
			if err := addHeader(header, name, value); err != nil {
				return err
			}
		}
		o.next()
		return nil
	})
}
