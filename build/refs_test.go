package build

import (
	"context"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestCompleteRefs(t *testing.T) {
	s := newRepo(t)
	commit := s.commit("a", "a")
	for _, ref := range []string{"heads/feature/x", "heads/fix", "remotes/origin/main", "tags/v1", "tags/fix"} {
		s.git("update-ref", "refs/"+ref, commit)
	}
	s.git("symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/main")
	for prefix, want := range map[string][]string{
		"":     {"feature/x", "fix", "main", "origin/main", "v1"},
		"f":    {"feature/x", "fix"},
		"orig": {"origin/main"},
		"no":   {},
		"-":    {},
	} {
		if got := CompleteRefs(context.Background(), s.dir, prefix); !slices.Equal(got, want) {
			t.Errorf("%q: got %q, want %q", prefix, got, want)
		}
	}
	if got := CompleteRefs(context.Background(), t.TempDir(), ""); got != nil {
		t.Errorf("outside of a repository: %q", got)
	}
}

func TestDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"", "abc", 3}, {"kitten", "sitting", 3}, {"main", "mian", 2}, {"v1", "v1.0", 2}} {
		if got := distance(c.a, c.b); got != c.want {
			t.Errorf("distance(%q, %q) = %d, want %d", c.a, c.b, got, c.want)
		}
	}
	rapid.Check(t, func(t *rapid.T) { // a metric
		word := rapid.StringMatching(`[abc]{0,6}`)
		a, b, c := word.Draw(t, "a"), word.Draw(t, "b"), word.Draw(t, "c")
		if ab := distance(a, b); ab != distance(b, a) || (ab == 0) != (a == b) || ab > distance(a, c)+distance(c, b) {
			t.Fatalf("distance(%q, %q) = %d", a, b, ab)
		}
	})
}
