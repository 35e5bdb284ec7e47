package plan

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// minimal is the smallest useful plan; a test parses it.
const minimal = `router:
  build: go build -o "$OUT/server" ./cmd/server
  run: ["{build}/server", "--listen", "{socket}"]
kinds:
  main: {targets: targets.http}
`

// NotFoundError says that no folder holds a plan.
type NotFoundError struct{ from string }

func (e *NotFoundError) Error() string {
	return fmt.Sprintf("no plan: looked for %s in %s and every folder above it; a minimal plumbline.yaml is\n\n%s", list(planNames), e.from, minimal)
}

var planNames = []string{"plumbline.yaml", "plumbline.yml", "plumbline.json"}

// Find returns the plan file of dir or of the nearest folder above it. Where
// there is none the error is a *NotFoundError.
func Find(dir string) (string, error) {
	start, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("looking for a plan: %w", err)
	}
	for at := start; ; at = filepath.Dir(at) {
		var found []string
		for _, name := range planNames {
			info, err := os.Stat(filepath.Join(at, name))
			if err == nil && !info.IsDir() {
				found = append(found, name)
			}
		}
		switch {
		case len(found) > 1:
			return "", fmt.Errorf("%s has %s; keep one, or name the plan", at, strings.Join(found, " and "))
		case len(found) == 1 && at == start:
			return filepath.Join(dir, found[0]), nil // as short as it was asked for
		case len(found) == 1:
			return filepath.Join(at, found[0]), nil
		case at == filepath.Dir(at):
			return "", &NotFoundError{start}
		}
	}
}
