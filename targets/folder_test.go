package targets_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"plumbline/targets"
)

// tree lists what is in a folder, hidden things too, with modes and content.
func tree(t testing.TB, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(dir, path)
		all[name] = info.Mode().String()
		if info.Mode().IsRegular() {
			data, err := os.ReadFile(path)
			all[name] += " " + sum(string(data))
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func namesIn(t testing.TB, dir string) []string {
	t.Helper()
	var names []string
	for name := range tree(t, dir) {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func TestGenerateMakesTheFolder(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0o077))
	for name, prepare := range map[string]func(root string) (dir, real string){
		"new":            func(root string) (string, string) { return root + "/a", root + "/a" },
		"trailing slash": func(root string) (string, string) { return root + "/a/", root + "/a" },
		"parents":        func(root string) (string, string) { return root + "/x/y/a", root + "/x/y/a" },
		"dots":           func(root string) (string, string) { return root + "/x/../a", root + "/a" },
		"empty": func(root string) (string, string) {
			os.Mkdir(root+"/a", 0o700)
			return root + "/a", root + "/a"
		},
		"link": func(root string) (string, string) {
			os.Mkdir(root+"/real", 0o700)
			os.Symlink("real", root+"/a")
			return root + "/a", root + "/real"
		},
	} {
		root := t.TempDir()
		dir, real := prepare(root)
		if _, err := targets.Generate(t.Context(), dir, quickly(targets.JWTCache), "test", false); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got := tree(t, real)
		for _, file := range []string{"targets.http", "manifest.json", "jwks.json", "jwks.public.json", "hs.secret", "ed.pem", "ed.public.pem"} {
			if !strings.HasPrefix(got[file], "-rw-r--r-- ") {
				t.Errorf("%s: %s is %q", name, file, got[file])
			}
			delete(got, file)
		}
		if len(got) > 0 {
			t.Errorf("%s: there is more in the folder: %v", name, got)
		}
		if info, err := os.Stat(real); err != nil || info.Mode().Perm() != 0o755 {
			t.Errorf("%s: the folder has mode %v (%v)", name, info.Mode(), err)
		}
		if around := namesIn(t, filepath.Dir(real)); slices.ContainsFunc(around, func(s string) bool { return strings.HasPrefix(s, ".") }) {
			t.Errorf("%s: left behind: %v", name, around)
		}
	}
}

func TestGenerateRefusesFolders(t *testing.T) {
	for _, c := range []struct {
		name    string
		prepare func(root string) (dir string)
		force   bool
		want    string
	}{
		{"no name", func(string) string { return "" }, false, "the folder's name is empty"},
		{"not empty", func(root string) string {
			os.Mkdir(root+"/a", 0o755)
			os.WriteFile(root+"/a/notes.txt", nil, 0o644)
			return root + "/a"
		}, false, "/a is not empty; name another folder, or replace what plumbline has made there with --force"},
		{"not ours", func(root string) string {
			os.Mkdir(root+"/a", 0o755)
			os.WriteFile(root+"/a/manifest.json", []byte(`{"name": "a web page", "format": 1}`), 0o644)
			return root + "/a"
		}, true, "/a has no manifest.json of plumbline, so it is not ours to replace"},
		{"no manifest", func(root string) string {
			os.Mkdir(root+"/a", 0o755)
			os.WriteFile(root+"/a/targets.http", nil, 0o644)
			return root + "/a"
		}, true, "has no manifest.json of plumbline"},
		{"broken manifest", func(root string) string {
			targets.Generate(context.Background(), root+"/a", quickly(targets.JWTCache), "test", false)
			os.Truncate(root+"/a/manifest.json", 100)
			return root + "/a"
		}, true, "/a/manifest.json: unexpected end of JSON input, so it cannot be told which files of "},
		{"more than ours", func(root string) string {
			targets.Generate(context.Background(), root+"/a", quickly(targets.JWTCache), "test", false)
			os.Mkdir(root+"/a/sub", 0o755)
			os.WriteFile(root+"/a/sub/notes.txt", nil, 0o644)
			return root + "/a"
		}, true, "/a also holds sub, which plumbline did not make; move it away, or remove the folder yourself"},
		{"a file more", func(root string) string {
			targets.Generate(context.Background(), root+"/a", quickly(targets.JWTCache), "test", false)
			os.WriteFile(root+"/a/notes.txt", nil, 0o644)
			return root + "/a"
		}, true, "/a also holds notes.txt, which plumbline did not make; move it away, or remove the folder yourself"},
		{"an empty folder more", func(root string) string {
			targets.Generate(context.Background(), root+"/a", quickly(targets.JWTCache), "test", false)
			os.Mkdir(root+"/a/sub", 0o755)
			return root + "/a"
		}, true, "/a also holds sub, which plumbline did not make; move it away"},
		{"edited", func(root string) string {
			targets.Generate(context.Background(), root+"/a", quickly(targets.JWTCache), "test", false)
			os.WriteFile(root+"/a/targets.http", []byte("GET /"), 0o644)
			return root + "/a"
		}, true, "/a/targets.http was edited since plumbline made it; move it away, or remove the folder yourself"},
		{"a link in place of a file", func(root string) string {
			targets.Generate(context.Background(), root+"/a", quickly(targets.JWTCache), "test", false)
			os.Rename(root+"/a/targets.http", root+"/b")
			os.Symlink("../b", root+"/a/targets.http")
			return root + "/a"
		}, true, "/a also holds targets.http, which plumbline did not make; move it away"},
		{"ours without force", func(root string) string {
			targets.Generate(context.Background(), root+"/a", quickly(targets.JWTCache), "test", false)
			return root + "/a"
		}, false, "/a is not empty"},
		{"file", func(root string) string {
			os.WriteFile(root+"/a", nil, 0o644)
			return root + "/a"
		}, true, "/a is a file; name a new folder"},
		{"in a file", func(root string) string {
			os.WriteFile(root+"/a", nil, 0o644)
			return root + "/a/b"
		}, true, "not a directory"},
		{"link to nothing", func(root string) string {
			os.Symlink("nothing", root+"/a")
			return root + "/a"
		}, true, "/a is a symbolic link to nothing"},
		{"too long", func(root string) string { return root + "/x/" + strings.Repeat("n", 300) }, false, "file name too long"},
	} {
		root := t.TempDir()
		dir := c.prepare(root)
		before := tree(t, root)
		_, err := targets.Generate(t.Context(), dir, quickly(targets.JWTUnique), "test", c.force)
		var field *targets.FieldError
		if err == nil || !strings.Contains(err.Error(), c.want) || errors.As(err, &field) {
			t.Errorf("%s: got %v, want %s", c.name, err, c.want)
		}
		if diff := cmp.Diff(before, tree(t, root)); diff != "" {
			t.Errorf("%s: something has changed: %s", c.name, diff)
		}
	}
}

func TestGenerateRefusesTheCurrentFolder(t *testing.T) {
	root := t.TempDir()
	t.Chdir(root)
	for _, dir := range []string{".", root, "../" + filepath.Base(root), "./"} {
		_, err := targets.Generate(t.Context(), dir, quickly(targets.JWTCache), "test", true)
		if err == nil || !strings.Contains(err.Error(), "is the folder you are in") {
			t.Errorf("%s: got %v", dir, err)
		}
	}
	if _, err := targets.Generate(t.Context(), "a", quickly(targets.JWTCache), "test", true); err != nil {
		t.Error(err)
	}
	if got := namesIn(t, "."); got[0] != "a" {
		t.Errorf("left behind: %v", got)
	}
}

// meanwhile is a context that does something when it is first asked for a
// value: Generate does so once it has looked at the folder's place.
type meanwhile struct {
	context.Context
	do func()
}

func (m *meanwhile) Value(key any) any {
	m.do()
	return m.Context.Value(key)
}

// Of two that make one new folder at once the faster one does, and the other
// says so; with force the later one replaces it.
func TestGenerateAtOnce(t *testing.T) {
	for force, want := range map[bool]string{
		false: "/a meanwhile, or put something there; name another folder, or replace what plumbline has made there with --force",
		true:  "",
	} {
		root := t.TempDir()
		if force {
			if _, err := targets.Generate(t.Context(), root+"/a", quickly(targets.JWTCache), "test", false); err != nil {
				t.Fatal(err)
			}
		}
		ctx := &meanwhile{t.Context(), sync.OnceFunc(func() {
			if _, err := targets.Generate(t.Context(), root+"/a", quickly(targets.JWTCacheWorst), "test", force); err != nil {
				t.Error(err)
			}
		})}
		_, err := targets.Generate(ctx, root+"/a", quickly(targets.JWTUnique), "test", force)
		if want == "" && err != nil || want != "" && (err == nil || err.Error() != "making targets: another run made "+root+want) {
			t.Errorf("force %t: got %v, want %s", force, err, want)
		}
		kept := targets.JWTCacheWorst
		if force {
			kept = targets.JWTUnique
		}
		if got := readSet(t, root+"/a").Manifest.Kind; got != kept {
			t.Errorf("force %t: a set of kind %s is there", force, got)
		}
		if entries, err := os.ReadDir(root); err != nil || len(entries) != 1 {
			t.Errorf("left behind: %v (%v)", entries, err)
		}
	}
}

func TestForceReplacesAnEarlierSet(t *testing.T) {
	root := t.TempDir()
	dir := filepath.Join(root, "a")
	for _, kind := range []targets.Kind{targets.JWTCacheWorst, targets.JWTCache} {
		if _, err := targets.Generate(t.Context(), dir, quickly(kind), "test", true); err != nil {
			t.Fatal(err)
		}
	}
	// Also one that is not whole any more.
	if err := os.Remove(filepath.Join(dir, "targets.http")); err != nil {
		t.Fatal(err)
	}
	fresh, _ := generate(t, quickly(targets.JWTUnique))
	if _, err := targets.Generate(t.Context(), dir, quickly(targets.JWTUnique), "test", true); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(tree(t, fresh), tree(t, dir)); diff != "" {
		t.Error(diff)
	}
	entries, err := os.ReadDir(root)
	if err != nil || len(entries) != 1 {
		t.Errorf("left behind: %v (%v)", entries, err)
	}
}

// An end in the middle leaves nothing, and an earlier set as it was.
func TestCancelledGenerateLeavesNothing(t *testing.T) {
	cause := errors.New("enough")
	s := quickly(targets.JWTUnique)
	s.Count = 200_000
	for _, force := range []bool{false, true} {
		root := t.TempDir()
		dir := filepath.Join(root, "x", "a")
		if force {
			if _, err := targets.Generate(t.Context(), dir, quickly(targets.JWTCache), "test", false); err != nil {
				t.Fatal(err)
			}
		}
		before := tree(t, root)
		ctx, cancel := context.WithCancelCause(t.Context())
		begun := false
		told := targets.WithProgress(ctx, func(done, total int) {
			files, _ := filepath.Glob(root + "/x/.plumbline-new-*/targets.http")
			begun = len(files) == 1 && done > 0 && done < total && total == s.Count
			cancel(cause)
		})
		if _, err := targets.Generate(told, dir, s, "test", force); !errors.Is(err, cause) {
			t.Errorf("got %v", err)
		}
		if !begun {
			t.Error("it was not cancelled in the middle of the file")
		}
		if diff := cmp.Diff(before, tree(t, root)); diff != "" {
			t.Errorf("something has changed: %s", diff)
		}
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	root := t.TempDir()
	if _, err := targets.Generate(ctx, filepath.Join(root, "a"), specOf(targets.JWTCache), "test", false); !errors.Is(err, cause) || len(tree(t, root)) > 0 {
		t.Errorf("cancelled before it began: %v, %v", err, tree(t, root))
	}
}

// What a killed plumbline has left goes with the next one, but not what somebody
// is at work in.
func TestGenerateSweeps(t *testing.T) {
	root := t.TempDir()
	left, used := filepath.Join(root, ".plumbline-new-1"), filepath.Join(root, ".plumbline-new-2")
	for _, dir := range []string{left, used} {
		os.Mkdir(dir, 0o700)
		write(t, filepath.Join(dir, "targets.http"), "GET /")
	}
	write(t, filepath.Join(root, ".plumbline-new-file"), "")
	lock, err := os.Open(used)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	if _, err := targets.Generate(t.Context(), filepath.Join(root, "a"), quickly(targets.JWTCache), "test", false); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(root)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if diff := cmp.Diff([]string{".plumbline-new-2", ".plumbline-new-file", "a"}, names); diff != "" {
		t.Error(diff)
	}
}

func TestReadHeedsTheManifest(t *testing.T) {
	edit := func(name, old, new string) func(t *testing.T, dir string) {
		return func(t *testing.T, dir string) {
			data, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil {
				t.Fatal(err)
			}
			changed := strings.Replace(string(data), old, new, 1)
			if changed == string(data) {
				t.Fatalf("%s does not hold %s", name, old)
			}
			write(t, filepath.Join(dir, name), changed)
		}
	}
	for _, c := range []struct {
		name string
		edit func(t *testing.T, dir string)
		want string
	}{
		{"targets", edit("targets.http", "authors_only", "authors"), "/targets.http is not the file that manifest.json names: it was edited since; make the folder again, or remove manifest.json"},
		{"keys", edit("jwks.json", "sig", "enc"), "/jwks.json is not the file that manifest.json names"},
		{"expired", edit("expired.http", "GET", "PUT"), "/expired.http is not the file"},
		{"no key", func(t *testing.T, dir string) { os.Remove(filepath.Join(dir, "hs.secret")) }, "/hs.secret: no such file or directory; manifest.json names it: make the folder again"},
		{"cut short", func(t *testing.T, dir string) { os.Truncate(filepath.Join(dir, "manifest.json"), 300) }, "/manifest.json: unexpected end of JSON input; make the folder again, or remove manifest.json"},
		{"empty", func(t *testing.T, dir string) { os.Truncate(filepath.Join(dir, "manifest.json"), 0) }, "/manifest.json: unexpected end of JSON input"},
		{"format", edit("manifest.json", `"format": 1`, `"format": 2`), "format 2 is not the one that this version knows, 1"},
		{"kind", edit("manifest.json", `"jwt-cache-worst"`, `"jwt-cache-best"`), `unknown kind "jwt-cache-best"`},
		{"another kind", edit("manifest.json", `"jwt-cache-worst"`, `"jwt-cache"`), "once is true for kind jwt-cache"},
		{"unknown key", edit("manifest.json", `"seed"`, `"sead"`), `unknown field "sead"`},
		{"counts", edit("manifest.json", `"requests": 40`, `"requests": 39`), "holds 42 requests, but manifest.json says 39 and a reserve of 2"},
		{"reserve", edit("manifest.json", `"reserve": 2`, `"reserve": -2`), "holds 40 requests and a reserve of -2"},
		{"once", edit("manifest.json", `"once": true`, `"once": false`), "once is false for kind jwt-cache-worst"},
		{"no reserve", edit("manifest.json", `"reserve": 2`, `"reserve": 0`), "has a reserve of 0 for kind jwt-cache-worst"},
		{"duration", edit("manifest.json", `"duration_s": `, `"duration_s": 9000000000`), "expiry has a duration of 9000000000"},
		{"long leeway", edit("manifest.json", `"leeway_s": 30`, `"leeway_s": 86401`), "a leeway of 86401 s"},
		{"leeway", edit("manifest.json", `"leeway_s": 30`, `"leeway_s": -30`), "a leeway of -30 s"},
		{"no expiry", edit("manifest.json", `"expiry"`, `"expiri"`), "unknown field"},
		// It stays the first, so that its place in the list is right.
		{"path", edit("manifest.json", `"path": "ed.pem"`, `"path": "../ed.pem"`), `file "../ed.pem" is not named as plumbline does it`},
		{"absolute path", edit("manifest.json", `"path": "ed.pem"`, `"path": "/etc/passwd"`), `file "/etc/passwd" is not named as plumbline does it`},
		{"path with dots", edit("manifest.json", `"path": "ed.pem"`, `"path": "a/../ed.pem"`), `file "a/../ed.pem" is not named as plumbline does it`},
		{"order", edit("manifest.json", `"path": "ed.pem"`, `"path": "z.pem"`), `is not named as plumbline does it`},
		{"sum", edit("manifest.json", `"sha256": "`, `"sha256": "00`), "is not named as plumbline does it"},
		{"no targets", edit("manifest.json", `"targets.http"`, `"targets.txt"`), "does not name targets.http"},
	} {
		dir, _ := generate(t, quickly(targets.JWTCacheWorst))
		c.edit(t, dir)
		if _, err := targets.Read(filepath.Join(dir, "targets.http")); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %s", c.name, err, c.want)
		}
	}
}

func TestReadListsTheInputs(t *testing.T) {
	dir, m := generate(t, quickly(targets.JWTCacheWorst))
	set := readSet(t, dir)
	want := []string{filepath.Join(dir, "targets.http"), "ed.pem", "ed.public.pem", "expired.http", "hs.secret", "jwks.json", "jwks.public.json", "manifest.json"}
	var got []string
	for i, in := range set.Inputs {
		got = append(got, in.Path)
		path := in.Path
		if i > 0 {
			path = filepath.Join(dir, path)
		}
		data, err := os.ReadFile(path)
		if err != nil || sum(string(data)) != in.SHA256 {
			t.Errorf("%s: %v, or another sum than %s", path, err, in.SHA256)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if len(m.Files) != len(set.Inputs)-1 {
		t.Errorf("the manifest has %d files", len(m.Files))
	}
}

// Other programs have a manifest.json, too, and a target file may stand alone.
func TestReadWithoutAManifestOfOurs(t *testing.T) {
	for name, content := range map[string]string{
		"none": "", "web page": `{"name": "shop", "icons": []}`, "a list": `[1]`, "a folder": "/",
		"some format": `{"format": 3, "files": []}`,
	} {
		dir := t.TempDir()
		write(t, filepath.Join(dir, "targets.http"), "GET /1\nGET /2\n")
		switch content {
		case "":
		case "/":
			os.Mkdir(filepath.Join(dir, "manifest.json"), 0o755)
		default:
			write(t, filepath.Join(dir, "manifest.json"), content)
		}
		set := readSet(t, dir)
		if set.Manifest != nil || len(set.Targets) != 2 || len(set.Inputs) != 1 {
			t.Errorf("%s: %+v", name, set)
		}
	}
	// A file that the manifest is not about.
	dir, _ := generate(t, quickly(targets.JWTUnique))
	write(t, filepath.Join(dir, "other.http"), "GET /\n")
	if set, err := targets.Read(filepath.Join(dir, "other.http")); err != nil || set.Manifest != nil {
		t.Errorf("another file: %v, %v", set.Manifest, err)
	}
}

func TestMixed(t *testing.T) {
	for name, text := range map[string]string{
		"http": "# by hand\nGET http://router/films?id=eq.1\n\nPOST /films\nContent-Type: application/json\n@bodies/film.json\nPOST /rpc\n@./b.txt\nPOST /again\n@bodies/../b.txt\n",
		"json": `{"method": "GET", "url": "/films"}` + "\n" + `{"method": "POST", "url": "/films", "body": "eHl6"}` + "\n",
	} {
		t.Run(name, func(t *testing.T) {
			from := t.TempDir()
			os.Mkdir(filepath.Join(from, "bodies"), 0o755)
			write(t, filepath.Join(from, "rest."+name), text)
			write(t, filepath.Join(from, "bodies", "film.json"), `{"title": "x"}`)
			write(t, filepath.Join(from, "b.txt"), "")
			write(t, filepath.Join(from, "unused.txt"), "no")
			s := targets.DefaultSpec(targets.Mixed)
			s.From = filepath.Join(from, "rest."+name)
			before := tree(t, from)
			dir, m := generate(t, s)
			original, err := targets.Read(s.From)
			if err != nil {
				t.Fatal(err)
			}
			set := readSet(t, dir)
			for i := range original.Targets {
				original.Targets[i].File = set.Targets[0].File
			}
			if diff := cmp.Diff(original.Targets, set.Targets); diff != "" {
				t.Error(diff)
			}
			want := []string{"manifest.json", "targets.http"}
			if name == "http" {
				want = []string{"b.txt", "bodies", "bodies/film.json", "manifest.json", "targets.http"}
			}
			if diff := cmp.Diff(want, namesIn(t, dir)); diff != "" {
				t.Error(diff)
			}
			if m.Kind != targets.Mixed || m.Requests != len(set.Targets) || m.Reserve != 0 || m.Once || m.Warning != "" {
				t.Errorf("manifest: %+v", m)
			}
			if diff := cmp.Diff(m, set.Manifest); diff != "" {
				t.Error(diff)
			}
			if got := set.Inputs[len(set.Inputs)-1].Path; got != "manifest.json" {
				t.Errorf("the last input is %s", got)
			}
			if diff := cmp.Diff(before, tree(t, from)); diff != "" {
				t.Error(diff)
			}
			// In its own place, once more.
			again := targets.Spec{Kind: targets.Mixed, From: filepath.Join(dir, "targets.http")}
			first := tree(t, dir)
			if _, err := targets.Generate(t.Context(), dir, again, "test", true); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(first, tree(t, dir)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestMixedRefuses(t *testing.T) {
	root := t.TempDir()
	write(t, filepath.Join(root, "outside.json"), "{}")
	from := filepath.Join(root, "rest")
	os.Mkdir(from, 0o755)
	jwt, _ := generate(t, quickly(targets.JWTUnique))
	for name, c := range map[string]struct{ text, want string }{
		"syntax":   {"GET /a b\n", `rest.http:1: invalid URL "/a b": it holds a space`},
		"missing":  {"POST /\n@no.json\n", `rest.http:2: body "no.json": open`},
		"outside":  {"POST /\n@../outside.json\n", `rest.http:2: body "../outside.json": lies outside of the folder of rest.http, so it cannot be copied with it; move it there`},
		"absolute": {"POST /\n@" + root + "/outside.json\n", "lies outside of the folder"},
		"manifest": {"POST /\n@manifest.json\n", "is the name of a file of every set; rename it"},
		"targets":  {"POST /\n@x/../targets.http\n", "is the name of a file of every set; rename it"},
		"empty":    {"# nothing\n", "rest.http: holds no target"},
	} {
		write(t, filepath.Join(from, "rest.http"), c.text)
		refuses(t, name, filepath.Join(from, "rest.http"), c.want)
	}
	refuses(t, "no file", filepath.Join(from, "nowhere.http"), "from: reading targets: open")
	refuses(t, "folder", from, "is not a regular file")
	write(t, filepath.Join(from, "targets.http"), "GET /")
	write(t, filepath.Join(from, "manifest.json"), "{")
	refuses(t, "broken manifest", filepath.Join(from, "targets.http"), "manifest.json: unexpected end of JSON input; remove it if the targets were not generated")
	refuses(t, "generated", filepath.Join(jwt, "targets.http"), "was made as jwt-unique, with keys and a reserve that a copy would lose; use its folder as it is")
}

func refuses(t *testing.T, name, from, want string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "set")
	_, err := targets.Generate(t.Context(), dir, targets.Spec{Kind: targets.Mixed, From: from}, "test", false)
	var field *targets.FieldError
	if !errors.As(err, &field) || field.Field != "from" || !strings.Contains(err.Error(), want) {
		t.Errorf("%s: got %v, want %s", name, err, want)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Errorf("%s: a folder was made", name)
	}
}

func TestCached(t *testing.T) {
	root := filepath.Join(t.TempDir(), "cache")
	s := quickly(targets.JWTUnique)
	making := 0
	cached := func(s targets.Spec) string {
		t.Helper()
		dir, err := targets.Cached(t.Context(), root, s, func() { making++ })
		if err != nil {
			t.Fatal(err)
		}
		if filepath.Dir(dir) != root || !strings.HasPrefix(filepath.Base(dir), string(s.Kind)+"-") {
			t.Errorf("the folder is %s", dir)
		}
		if set := readSet(t, dir); set.Manifest.Tool != "" {
			t.Errorf("the manifest names the tool %s", set.Manifest.Tool)
		}
		return dir
	}
	dir := cached(s)
	made := tree(t, dir)
	info, err := os.Stat(dir)
	if err != nil {
		t.Fatal(err)
	}
	if again := cached(s); again != dir {
		t.Errorf("another folder: %s", again)
	}
	if now, err := os.Stat(dir); err != nil || !os.SameFile(info, now) {
		t.Errorf("it was made again (%v)", err)
	}
	if making != 1 {
		t.Errorf("making it was told %d times", making)
	}
	for name, spoil := range map[string]func(){
		"edited":      func() { write(t, filepath.Join(dir, "targets.http"), "GET /") },
		"no key":      func() { os.Remove(filepath.Join(dir, "hs.secret")) },
		"no manifest": func() { os.Remove(filepath.Join(dir, "manifest.json")) },
		"empty":       func() { os.RemoveAll(dir); os.Mkdir(dir, 0o755) },
		"a file":      func() { os.RemoveAll(dir); write(t, dir, "") },
	} {
		spoil()
		if again := cached(s); again != dir {
			t.Errorf("%s: another folder: %s", name, again)
		}
		if diff := cmp.Diff(made, tree(t, dir)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	seen := map[string]string{dir: "the first"}
	for name, change := range map[string]func(s *targets.Spec){
		"seed": func(s *targets.Spec) { s.Seed++ }, "count": func(s *targets.Spec) { s.Count++ }, "base": func(s *targets.Spec) { s.BaseTime = s.BaseTime.AddDate(1, 0, 0) },
		"url": func(s *targets.Spec) { s.URL += "x" }, "method": func(s *targets.Spec) { s.Method = "PUT" }, "algs": func(s *targets.Spec) { s.Algs = s.Algs[:1] },
		"claims": func(s *targets.Spec) { s.Claims = []byte(`{"role": "a"}`) }, "other claims": func(s *targets.Spec) { s.Claims = []byte(`{"role": "b"}`) },
		"kind": func(s *targets.Spec) { *s = quickly(targets.JWTCacheWorst) }, "duration": func(s *targets.Spec) { *s = quickly(targets.JWTCacheWorst); s.Duration *= 2 },
		"leeway": func(s *targets.Spec) { *s = quickly(targets.JWTCacheWorst); s.Leeway *= 2 },
		"rsa":    func(s *targets.Spec) { *s = specOf(targets.JWTUnique) },
		"bits":   func(s *targets.Spec) { *s = specOf(targets.JWTUnique); s.RSABits = 2056 },
	} {
		other := s
		change(&other)
		dir := cached(other)
		if seen[dir] != "" {
			t.Errorf("%s: the folder is that of %s", name, seen[dir])
		}
		seen[dir] = name
	}
	same := s
	same.RSABits, same.Claims = 8192, []byte(" {} ") // neither decides a byte
	if cached(same) != dir {
		t.Error("what decides no byte makes another folder")
	}
	if hidden, _ := filepath.Glob(root + "/.*"); len(hidden) > 0 {
		t.Errorf("left behind: %v", hidden)
	}
	s.Count = 0
	if _, err := targets.Cached(t.Context(), root, s, func() {}); err == nil {
		t.Error("a bad spec was taken")
	}
}

func TestCachedForgetsWhatIsNotUsed(t *testing.T) {
	root := t.TempDir()
	cached := func(seed uint64) string {
		t.Helper()
		s := quickly(targets.JWTCache)
		s.Seed = seed
		dir, err := targets.Cached(t.Context(), root, s, func() {})
		if err != nil {
			t.Fatal(err)
		}
		return filepath.Base(dir)
	}
	age := func(name string, days int) {
		t.Helper()
		then := time.Now().AddDate(0, 0, -days)
		if err := os.Chtimes(filepath.Join(root, name), then, then); err != nil {
			t.Fatal(err)
		}
	}
	long, touched, short := cached(1), cached(2), cached(3)
	for _, name := range []string{"notes", "jwt-cache-notes", targets.ManifestName} {
		if err := os.Mkdir(filepath.Join(root, name), 0o755); err != nil {
			t.Fatal(err)
		}
		age(name, 100)
	}
	age(long, 31)
	age(touched, 31)
	age(short, 29)
	if cached(2) != touched { // which is a hit, and removes nothing
		t.Error("another folder")
	}
	want := []string{long, touched, short, "notes", "jwt-cache-notes", targets.ManifestName}
	check := func() {
		t.Helper()
		slices.Sort(want)
		entries, err := os.ReadDir(root)
		var got []string
		for _, e := range entries {
			got = append(got, e.Name())
		}
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Error(diff, err)
		}
	}
	check()
	want = append(slices.DeleteFunc(want, func(name string) bool { return name == long }), cached(4))
	check()
	if info, err := os.Stat(filepath.Join(root, touched)); err != nil || time.Since(info.ModTime()) > 24*time.Hour {
		t.Errorf("a hit is not seen: %v (%v)", info, err)
	}
}

func TestCachedMixedFollowsTheContent(t *testing.T) {
	root, from := t.TempDir(), t.TempDir()
	s := targets.Spec{Kind: targets.Mixed, From: filepath.Join(from, "rest.http")}
	write(t, s.From, "POST /\n@b.txt\n")
	seen := map[string]bool{}
	for _, body := range []string{"one", "two", "one"} {
		write(t, filepath.Join(from, "b.txt"), body)
		dir, err := targets.Cached(t.Context(), root, s, func() {})
		if err != nil {
			t.Fatal(err)
		}
		if got := readSet(t, dir).Targets[0].Body; string(got) != body {
			t.Errorf("the body is %s, want %s", got, body)
		}
		seen[dir] = true
	}
	if len(seen) != 2 {
		t.Errorf("%d folders for two contents", len(seen))
	}
}

func TestCachedAtOnce(t *testing.T) {
	root := t.TempDir()
	s := quickly(targets.JWTUnique)
	s.Count = 2000
	var all sync.WaitGroup
	dirs := make([]string, 6)
	for i := range dirs {
		all.Go(func() {
			dir, err := targets.Cached(t.Context(), root, s, func() {})
			if err != nil {
				t.Error(err)
				return
			}
			if _, err := targets.Read(filepath.Join(dir, targets.TargetsFile)); err != nil {
				t.Error(err)
			}
			dirs[i] = dir
		})
	}
	all.Wait()
	entries, err := os.ReadDir(root)
	if err != nil || len(entries) != 1 || slices.ContainsFunc(dirs, func(d string) bool { return d != dirs[0] }) {
		t.Errorf("%v in the folder, %v returned (%v)", entries, dirs, err)
	}
}

// FuzzManifest: whatever stands beside a target file, it is an error, or not
// ours, or it says what is there.
func FuzzManifest(f *testing.F) {
	s := quickly(targets.JWTUnique)
	s.Count, s.Algs = 3, s.Algs[:1]
	dir, m := generate(f, s)
	whole, err := m.JSON()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole)
	for _, other := range []string{"", "{}", "[]", `{"format": 1, "kind": "mixed", "files": []}`, `{"format": 1, "kind": null, "files": null}`, `{"format": "1", "kind": 2, "files": 3}`} {
		f.Add([]byte(other))
	}
	f.Add([]byte(strings.Replace(string(whole), `"requests": 3`, `"requests": 4`, 1)))
	f.Fuzz(func(t *testing.T, data []byte) {
		write(t, filepath.Join(dir, targets.ManifestName), string(data))
		set, err := targets.Read(filepath.Join(dir, targets.TargetsFile))
		switch {
		case err != nil:
		case set.Manifest == nil:
			if len(set.Targets) != 4 || set.Reserve != nil {
				t.Fatalf("%d targets and a reserve of %d without a manifest", len(set.Targets), len(set.Reserve))
			}
		case set.Manifest.Requests != len(set.Targets) || set.Manifest.Reserve != len(set.Reserve) || len(set.Targets)+len(set.Reserve) != 4:
			t.Fatalf("%d targets and a reserve of %d for %s", len(set.Targets), len(set.Reserve), data)
		}
	})
}
