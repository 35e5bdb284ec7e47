package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
)

// versionFile holds the version of a packaged plumbline. It is a file and not
// set when linking, so that a package of another revision with the same
// sources is a copy and no new build. Its path starts at the program's folder.
const versionFile = "../share/plumbline/version"

// version is what the package says, else the module's, with the revision it
// was built from.
func version() string {
	exe, err := os.Executable()
	if err == nil {
		exe, err = filepath.EvalSymlinks(exe) // macOS says what was called
	}
	if err == nil {
		if data, err := os.ReadFile(filepath.Join(filepath.Dir(exe), versionFile)); err == nil {
			if v := strings.TrimSpace(string(data)); v != "" {
				return v
			}
		}
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	v := info.Main.Version
	if v == "" {
		v = "(devel)"
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && v == "(devel)" {
			v = fmt.Sprintf("(devel) %.12s", s.Value)
		}
	}
	return v
}
