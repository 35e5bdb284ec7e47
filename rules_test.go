package plumbline_test

import (
	"encoding/json"
	"errors"
	"go/parser"
	"go/token"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// floors is the import table of docs/DESIGN.md: what each room may import of ours.
var floors = map[string][]string{
	"record":          {},
	"gates/stats":     {},
	"targets":         {"targets/keys"},
	"targets/keys":    {},
	"mocks/demo":      {},
	"mocks/responder": {},
	"plan":            {"record", "targets", "targets/keys"},
	"build":           {"record"},
	"session/router":  {"record"},
	"monitor":         {"record"},
	"gates":           {"record", "gates/stats"},
	"session/load":    {"record", "targets"},
	"session":         {"plan", "targets", "targets/keys", "build", "record", "monitor", "mocks/demo", "mocks/responder", "session/router", "session/load"},
	"report":          {"record", "gates"},
	"cmd/router-demo": {"mocks/demo"},
	"cmd/plumbline":   {"record", "gates", "targets", "targets/keys", "mocks/demo", "mocks/responder", "plan", "build", "session/router", "monitor", "session/load", "session", "report"},
}

type goPackage struct {
	ImportPath   string
	Dir          string
	Imports      []string
	TestImports  []string
	XTestImports []string
	GoFiles      []string
}

func packages(t *testing.T) []goPackage {
	t.Helper()
	out, err := exec.Command("go", "list", "-json=ImportPath,Dir,Imports,TestImports,XTestImports,GoFiles", "./...").Output()
	if err != nil {
		t.Fatal(err)
	}
	var all []goPackage
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p goPackage
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
}

func TestImportsGoDown(t *testing.T) {
	seen := 0
	for _, p := range packages(t) {
		room, ours := strings.CutPrefix(p.ImportPath, "plumbline/")
		if !ours {
			continue // this package of rules
		}
		allowed, known := floors[room]
		if !known {
			t.Errorf("%s stands in no row of the import table (rules_test.go, docs/DESIGN.md)", room)
			continue
		}
		seen++
		for _, imported := range slices.Concat(p.Imports, p.TestImports, p.XTestImports) {
			of, ours := strings.CutPrefix(imported, "plumbline/")
			if ours && of != room && !slices.Contains(allowed, of) {
				t.Errorf("%s imports %s, which the import table does not allow", room, of)
			}
		}
	}
	if seen < 10 {
		t.Errorf("only %d rooms were looked at", seen)
	}
}

func TestEveryPackageSaysWhatItOwns(t *testing.T) {
	for _, p := range packages(t) {
		if len(p.GoFiles) == 0 {
			continue
		}
		lines := 0
		for _, name := range p.GoFiles {
			f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, name), nil, parser.PackageClauseOnly|parser.ParseComments)
			if err != nil {
				t.Fatal(err)
			}
			if f.Doc != nil {
				lines += strings.Count(f.Doc.Text(), "\n")
			}
		}
		if lines < 2 {
			t.Errorf("%s has a package comment of %d lines, want at least 2", p.ImportPath, lines)
		}
	}
}

func TestModuleReplacesNothing(t *testing.T) {
	mod, err := os.ReadFile("go.mod")
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(mod), "replace") {
		t.Error("go.mod has a replace directive: `go run` of the published module would ignore it")
	}
	if out, err := exec.Command("go", "mod", "tidy", "-diff").CombinedOutput(); err != nil {
		t.Errorf("go.mod is not tidy: %v\n%s", err, out)
	}
}
