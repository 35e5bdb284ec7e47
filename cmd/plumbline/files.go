package main

import (
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

// writeJSON prints a verdict, or a measurement.
func writeJSON(w io.Writer, v interface{ JSON() ([]byte, error) }) error {
	data, err := v.JSON()
	if err == nil {
		_, err = w.Write(data)
	}
	return err
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

// openReported reads what report is to show; without a verdict where it asked
// for tables, or there can be none.
func openReported(loose *sideFlags, a []string, tables bool) (s *record.Session, v *gates.Verdict, err error) {
	switch {
	case loose.given():
		s, err = loose.read(a)
		return s, nil, err
	case len(a) > 1 || isFile(a[0]):
		s, err = readFiles(a)
		return s, nil, err
	}
	if s, err = record.OpenMeta(a[0]); err != nil {
		return nil, nil, err
	}
	if tables || len(s.Arms) == 1 {
		s, err = record.Open(a[0])
		return s, nil, err
	}
	return readVerdict(a[0])
}

// usualPercentiles are those of a table when nobody says which.
func usualPercentiles() []float64 { return []float64{50, 90, 95, 99} }

// formats are what --format takes.
func formats() []string { return []string{"text", "md", "json"} }

func showVerdict(w io.Writer, s *record.Session, v *gates.Verdict, format string) error {
	switch format {
	case "md":
		return report.Markdown(w, s, v)
	case "json":
		return writeJSON(w, v)
	}
	return report.Text(w, s, v, textOptions(w))
}

func showMeasured(w io.Writer, s *record.Session, m *gates.Measured, format string) error {
	switch format {
	case "md":
		return report.MeasuredMarkdown(w, s, m)
	case "json":
		return writeJSON(w, m)
	}
	return report.Measured(w, s, m, textOptions(w))
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
