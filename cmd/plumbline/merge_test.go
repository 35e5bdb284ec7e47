package main

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestShortNames(t *testing.T) {
	for paths, want := range map[string]string{
		"x.csv":                       "x",
		"main.csv head.csv":           "main head",
		"a/x.csv b/x.csv":             "a/x b/x",
		"b/x.csv a/x.csv":             "b/x a/x",
		"x.csv a/x.csv":               "x a/x",
		"/tmp/a/x.csv /tmp/b/x.csv c": "a/x b/x c",
		"r/1/a/x.csv r/2/a/x.csv y":   "1/a/x 2/a/x y",
		"a/b/x.csv c/b/x.csv b/x.csv": "a/b/x c/b/x b/x",
		"x.csv x":                     "x.csv x",
		".csv x.csv":                  ".csv x.csv",
		"./a/../x.csv":                "x",
		"a/x.csv ../a/x.csv":          "a/x ../a/x",
	} {
		if got := strings.Join(shortNames(strings.Fields(paths)), " "); got != want {
			t.Errorf("%s: %s, want %s", paths, got, want)
		}
	}
}

// Different paths have different names, each of which is an end of its path,
// whatever the order.
func TestShortNamesAreDifferent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		paths := rapid.SliceOfNDistinct(rapid.StringMatching(`([ab]/){0,3}[xy](\.csv)?`), 1, 8, rapid.ID[string]).Draw(t, "paths")
		names := shortNames(paths)
		for i, name := range names {
			if !strings.HasSuffix(strings.TrimSuffix(paths[i], ".csv"), strings.TrimSuffix(name, ".csv")) {
				t.Errorf("%s is called %s", paths[i], name)
			}
		}
		if sorted := slices.Sorted(slices.Values(names)); len(slices.Compact(sorted)) != len(paths) {
			t.Errorf("%s are called %s", paths, names)
		}
		turned, back := slices.Clone(paths), slices.Clone(names)
		slices.Reverse(turned)
		slices.Reverse(back)
		if got := shortNames(turned); !slices.Equal(got, back) {
			t.Errorf("%s, turned around: %s", names, got)
		}
	})
}
