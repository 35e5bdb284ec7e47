package record

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	vegeta "github.com/tsenart/vegeta/v12/lib"
)

// results reads vegeta's results from a file, one after the other.
type results struct {
	path   string
	file   *os.File
	decode vegeta.Decoder
	lines  *lastByte // of a text; nil: gob
	n      int       // results read so far
}

// openGob opens a session's own result.bin.
func openGob(path string) (*results, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	return &results{path: path, file: f, decode: vegeta.NewDecoder(bufio.NewReaderSize(f, 1<<16))}, nil
}

// openAny opens a result file of any encoding. It is told by the first bytes:
// vegeta's own detection reads a whole file that has no line breaks.
func openAny(path string) (*results, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is no file but a folder, a pipe or a device; write the results to a file first", path)
	}
	if info.Size() == 0 {
		return nil, fmt.Errorf("%s is empty", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	r := &results{path: path, file: f}
	rd := bufio.NewReaderSize(f, 1<<16)
	start, _ := rd.Peek(60) // a read error comes back with the first result
	if err := r.detect(rd, start); err != nil {
		f.Close()
		return nil, fmt.Errorf("%s is no result file of vegeta: %w", path, err)
	}
	return r, nil
}

// detect picks the decoder. A gob of results begins with a description of
// them, whose length does not fit into a byte below 0x80 and so never looks
// like a text.
func (r *results) detect(rd io.Reader, start []byte) error {
	text := bytes.TrimLeft(start, " \t\r\n")
	switch {
	case bytes.HasPrefix(start, []byte{0x1f, 0x8b}):
		return errors.New("it is compressed with gzip; unpack it first (gunzip)")
	case bytes.HasPrefix(start, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		return errors.New("it is compressed with zstd; unpack it first (unzstd)")
	case bytes.HasPrefix(start, []byte{0xef, 0xbb, 0xbf}):
		return errors.New("it begins with a byte order mark; write it without one")
	case len(start) > 0 && start[0] >= 0xf8: // gob writes a longer length as its negated size
		r.decode = vegeta.NewDecoder(rd)
		return nil
	case len(text) > 0 && text[0] == '{':
		r.lines = &lastByte{rd: rd}
		r.decode = vegeta.NewJSONDecoder(r.lines)
		return nil
	case len(text) > 0 && text[0] >= '0' && text[0] <= '9':
		r.lines = &lastByte{rd: rd}
		r.decode = vegeta.NewCSVDecoder(r.lines)
		return nil
	}
	line, _, _ := bytes.Cut(text, []byte("\n"))
	return fmt.Errorf("it begins with %.40q (what `vegeta attack` and `vegeta encode` write is read; targets and reports are not)", line)
}

// lastByte remembers the last byte that was read.
type lastByte struct {
	rd   io.Reader
	last byte
}

func (l *lastByte) Read(p []byte) (int, error) {
	n, err := l.rd.Read(p)
	if n > 0 {
		l.last = p[n-1]
	}
	return n, err
}

// next is the next result, or io.EOF after the last.
func (r *results) next() (v vegeta.Result, err error) {
	err = r.decode(&v)
	if err == io.EOF {
		// The decoder of JSON drops a last line without an end, that of CSV may
		// take half of one for whole.
		if r.lines != nil && r.lines.last != '\n' {
			return v, fmt.Errorf("%s: the last line has no end: the file is cut short", r.path)
		}
		return v, io.EOF
	}
	r.n++
	if err == nil {
		err = plausible(&v)
	}
	if err != nil {
		return v, r.spoilt(err)
	}
	return v, nil
}

func (r *results) spoilt(err error) error {
	if strings.Contains(err.Error(), "duplicate type received") {
		return fmt.Errorf("%s: request %d cannot be read: a second gob file begins there (cat does not join them); keep one file for each run", r.path, r.n)
	}
	return fmt.Errorf("%s: request %d cannot be read (the file is damaged or cut short): %w", r.path, r.n, err)
}

func (r *results) close() { r.file.Close() }

// plausible refuses what a decoder takes, but no attack writes: the JSON of a
// target or of a report, say, which lacks every field.
func plausible(v *vegeta.Result) error {
	switch y := v.Timestamp.UTC().Year(); {
	case v.Timestamp.IsZero():
		return errors.New("it has no time stamp, so it is no result")
	case y < 1970 || y > 2261: // what nanoseconds since 1970 can hold
		return fmt.Errorf("its time stamp is %s", v.Timestamp.UTC().Format(time.RFC3339))
	case v.Latency < 0:
		return fmt.Errorf("its latency is %v", v.Latency)
	case v.Code != 0 && (v.Code < 100 || v.Code > 999):
		return fmt.Errorf("its status is %d", v.Code)
	case v.Code != 0 && v.URL == "":
		return fmt.Errorf("it has the status %d, but no URL", v.Code)
	}
	return nil
}
