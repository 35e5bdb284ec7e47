package build

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// plant makes a small folder, always the same one.
func plant(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range map[string]string{"bin/server": "code", "bin-x": "data", "é b": ""} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(filepath.Join(dir, "bin/server"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("bin/server", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	return dir
}

func hash(t *testing.T, path string) string {
	t.Helper()
	sum, err := HashTree(path)
	if err != nil {
		t.Fatal(err)
	}
	return sum
}

func TestHashOfAFileIsThatOfItsContent(t *testing.T) {
	dir := plant(t)
	const want = "3a6eb0790f39ac87c94f3856b2dd2c5d110e6811602261a9a923d3bb23adc8b7" // printf data | sha256sum
	if got := hash(t, filepath.Join(dir, "bin-x")); got != want {
		t.Errorf("got %s", got)
	}
}

func TestHashOfAFolderIsAsDocumented(t *testing.T) {
	// s() { printf %s "$1" | sha256sum | cut -c-64; }
	// { printf 'dir "bin"\nfile "bin-x" %s\nexec "bin/server" %s\n' $(s data) $(s code)
	//   printf 'link "link" %s\nexec "link" %s\nfile "é b" %s\n' $(s bin/server) $(s code) $(s ''); } | sha256sum
	const want = "d5193ccb0e56e98f42f09a8b240713e22232a01088b1bf7894c327a0e040bf8e"
	if got := hash(t, plant(t)); got != want {
		t.Errorf("got %s", got)
	}
}

func TestHashTreeSeesWhatMatters(t *testing.T) {
	want := hash(t, plant(t))
	for _, c := range []struct {
		name   string
		same   bool
		change func(dir string) error
	}{
		{"nothing", true, func(dir string) error { return nil }},
		{"time", true, func(dir string) error { return os.Chtimes(dir+"/bin-x", time.Unix(1, 0), time.Unix(1, 0)) }},
		{"other modes", true, func(dir string) error { return os.Chmod(dir+"/bin-x", 0o600) }},
		{"content", false, func(dir string) error { return os.WriteFile(dir+"/bin-x", []byte("date"), 0o644) }},
		{"executable bit", false, func(dir string) error { return os.Chmod(dir+"/bin-x", 0o755) }},
		{"name", false, func(dir string) error { return os.Rename(dir+"/bin-x", dir+"/bin-y") }},
		{"place", false, func(dir string) error { return os.Rename(dir+"/bin-x", dir+"/bin/x") }},
		{"new file", false, func(dir string) error { return os.WriteFile(dir+"/new", nil, 0o644) }},
		{"lost file", false, func(dir string) error { return os.Remove(dir + "/é b") }},
		{"empty folder", false, func(dir string) error { return os.Mkdir(dir+"/new", 0o755) }},
		{"link's target", false, func(dir string) error { return relink("bin-x", dir+"/link") }},
		{"link to nothing", false, func(dir string) error { return relink("nothing", dir+"/link") }},
		{"file for a link", false, func(dir string) error {
			if err := os.Remove(dir + "/link"); err != nil {
				return err
			}
			return os.WriteFile(dir+"/link", []byte("code"), 0o755)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := plant(t)
			if err := c.change(dir); err != nil {
				t.Fatal(err)
			}
			if got := hash(t, dir); (got == want) != c.same {
				t.Errorf("same hash: %v, want %v", got == want, c.same)
			}
		})
	}
}

func relink(to, link string) error {
	if err := os.Remove(link); err != nil {
		return err
	}
	return os.Symlink(to, link)
}

func TestHashFollowsLinksOut(t *testing.T) {
	dir, outside := plant(t), filepath.Join(t.TempDir(), "server")
	if err := os.WriteFile(outside, []byte("one"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(dir, "out")); err != nil {
		t.Fatal(err)
	}
	one := hash(t, dir)
	if err := os.WriteFile(outside, []byte("two"), 0o755); err != nil {
		t.Fatal(err)
	}
	if hash(t, dir) == one {
		t.Error("a new program behind a link has the old hash")
	}
	link := filepath.Join(t.TempDir(), "root")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	if hash(t, link) != hash(t, dir) {
		t.Error("a folder behind a link has another hash")
	}
}

func TestHashTreeErrors(t *testing.T) {
	dir := plant(t)
	if _, err := HashTree(dir + "/none"); err == nil || !strings.HasPrefix(err.Error(), "hashing "+dir+"/none: ") {
		t.Errorf("got %v", err)
	}
	if err := syscall.Mkfifo(dir+"/pipe", 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := HashTree(dir)
	checkError(t, err, "hashing "+dir+": "+dir+"/pipe is neither a file nor a folder")
}
