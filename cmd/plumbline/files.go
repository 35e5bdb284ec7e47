package main

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/term"

	"plumbline/gates"
	"plumbline/record"
	"plumbline/report"
)

func writeJSON(w io.Writer, v *gates.Verdict) error {
	data, err := v.JSON()
	if err == nil {
		_, err = w.Write(data)
	}
	return err
}

func writeMarkdown(path string, s *record.Session, v *gates.Verdict) error {
	var b bytes.Buffer
	if err := report.Markdown(&b, s, v); err != nil {
		return err
	}
	return record.WriteFile(path, b.Bytes())
}

// readVerdict opens a session with the verdict it holds, else with one on
// what was measured.
func readVerdict(dir string) (*record.Session, *gates.Verdict, error) {
	s, err := record.OpenMeta(dir)
	if err != nil {
		return nil, nil, err
	}
	data, err := os.ReadFile(filepath.Join(dir, record.VerdictFile))
	if err == nil {
		v, err := gates.ReadVerdict(data)
		return s, v, err
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return nil, nil, err
	}
	if s, err = record.Open(dir); err != nil {
		return nil, nil, err
	}
	return s, gates.Judge(s), nil
}

// textOptions fits the report to a terminal; a file or a pipe gets it plain.
func textOptions(w io.Writer) report.Options {
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return report.Options{}
	}
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		width = 0
	}
	return report.Options{Width: width, Color: os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"}
}

// shellQuote makes a path that can be pasted into a shell.
func shellQuote(s string) string {
	if s != "" && strings.IndexFunc(s, func(r rune) bool {
		return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:+@", r)
	}) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
