package plumbline_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// postgraphile writes the example's plan, as an A/A with that many workers,
// into a folder with the example's other files.
func postgraphile(t *testing.T, workers int) string {
	t.Helper()
	example, err := filepath.Abs("examples/postgraphile")
	if err != nil {
		t.Fatal(err)
	}
	if found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/postgres"); len(found) == 0 {
		missing(t, "PostgreSQL is not installed; on Debian: apt-get install postgresql")
	}
	if _, err := os.Stat(filepath.Join(example, "node_modules")); errors.Is(err, fs.ErrNotExist) {
		missing(t, "PostGraphile is not installed: npm ci --prefix examples/postgraphile")
	}
	needs(t, "node")

	dir := t.TempDir()
	if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil { // the database's user must get in
		t.Fatal(err)
	}
	files, err := os.ReadDir(example)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if err := os.Symlink(filepath.Join(example, f.Name()), filepath.Join(dir, f.Name())); err != nil {
			t.Fatal(err)
		}
	}
	data, err := os.ReadFile(filepath.Join(example, "plumbline.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	plan := string(data)
	for old, text := range map[string]string{
		`candidate: {env: {POOL: "2"}}`: "candidate: {}",
		"load: {workers: 4}": fmt.Sprintf("load: {workers: %d}", workers) + `
warmup: {load: 1s}
schedule: {block: 3s, blocks: 4}
gates: {latency_p50: {zone: 15%}, latency_distribution: {zone: 30%}}`,
	} {
		if strings.Count(plan, old) != 1 {
			t.Fatalf("the example's plan does not hold %q once", old)
		}
		plan = strings.Replace(plan, old, text, 1)
	}
	path := filepath.Join(dir, "aa.yaml")
	if err := os.WriteFile(path, []byte(plan), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// A server that holds connections to a database survives being frozen for the
// other arm's slices, again and again, with one request under way and with more.
func TestDatabaseConnectionsSurviveFreezing(t *testing.T) {
	plumbline := binary(t)
	for _, workers := range []int{1, 8} {
		t.Run(fmt.Sprint(workers, " workers"), func(t *testing.T) {
			v := noRegression(t, func() verdict { return weigh(t, plumbline, postgraphile(t, workers)) })
			rates := 0
			for _, r := range v.Comparisons {
				if r.Metric != "error_rate" {
					continue
				}
				rates++
				if r.Values == nil || *r.Values != [2]float64{} {
					t.Errorf("%s: error rates %v, want none in either arm", r.Route, r.Values)
				}
			}
			if rates != 3 {
				t.Errorf("%d rows of error rates, want one for each of 3 routes", rates)
			}
		})
	}
}
