package session

import (
	"os"
	"testing"
)

// What a killed session left goes with the next one; a live one's stays.
func TestLeftoversGo(t *testing.T) {
	base, err := os.MkdirTemp("", "t")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(base)
	t.Setenv("TMPDIR", base)
	killed, err := newTempDir()
	if err != nil {
		t.Fatal(err)
	}
	killed.lock.Close() // as the kernel does when its process dies
	live, err := newTempDir()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(killed.path); !os.IsNotExist(err) {
		t.Errorf("a killed session's folder is still there: %v", err)
	}
	next, err := newTempDir()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(live.path); err != nil {
		t.Errorf("a live session's folder is gone: %v", err)
	}
	for _, d := range []*tempDir{live, next} {
		if err := d.remove(); err != nil {
			t.Error(err)
		}
	}
	if left, _ := os.ReadDir(base); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

func TestFileName(t *testing.T) {
	for _, tc := range []struct{ name, want string }{
		{"baseline", "baseline"}, {"v1.2_x-3", "v1.2_x-3"}, {"feature/x", "feature-x-3"}, {"a b", "a-b-3"}, {"..", ".."}, {"é", "--3"},
	} {
		if got := fileName(tc.name, 2); got != tc.want {
			t.Errorf("fileName(%q) = %q, want %q", tc.name, got, tc.want)
		}
	}
}
