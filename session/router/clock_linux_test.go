package router

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// needs fails in CI, and skips elsewhere, where a program is not installed.
func needs(t *testing.T, program, pkg string) string {
	t.Helper()
	for _, path := range []string{program, "/usr/sbin/" + program} {
		if path, err := exec.LookPath(path); err == nil {
			return path
		}
	}
	notInstalled(t, program, pkg)
	return ""
}

func notInstalled(t *testing.T, what, pkg string) {
	t.Helper()
	missing(t, fmt.Sprintf("%s is not installed; on Debian: apt-get install %s", what, pkg))
}

// missing fails in CI, and skips elsewhere.
func missing(t *testing.T, msg string) {
	t.Helper()
	if os.Getenv("CI") != "" {
		t.Fatal(msg)
	}
	t.Skip(msg)
}

func libraryFor(t *testing.T, program string) string {
	t.Helper()
	path, err := FindClockLibrary(program, "")
	if err != nil {
		notInstalled(t, err.Error(), "libfaketime")
	}
	return path
}

var year2000 = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

func TestClockEnvironment(t *testing.T) {
	c := Clock{Start: year2000, Library: "/lib/f.so"}
	now := time.Date(2026, 1, 2, 3, 4, 5, 999_999_999, time.UTC)
	env, offset := c.environment([]string{"A=b", "LD_PRELOAD=/first.so", "LD_PRELOAD=/x.so /y.so", "FAKETIME_SHARED=/sem_1 /shm_1", "FAKETIME=+1"}, now)
	want := []string{"A=b", "FAKETIME=+1", "LD_PRELOAD=/lib/f.so:/x.so /y.so", "FAKETIME=-820638245", "FAKETIME_DONT_FAKE_MONOTONIC=1", "FAKETIME_DISABLE_SHM=1"}
	if !slices.Equal(env, want) {
		t.Errorf("got %q\nwant %q", env, want)
	}
	if shown := now.Add(offset); shown.Before(year2000) || !shown.Before(year2000.Add(time.Second)) {
		t.Errorf("at the start it shows %s", shown)
	}
	env, _ = Clock{Start: now.Add(time.Hour), Library: "/f.so"}.environment(nil, now)
	if env[0] != "LD_PRELOAD=/f.so" || env[1] != "FAKETIME=+3600" {
		t.Errorf("got %q", env)
	}
}

// Every process of a router sees the same clock, forked or exec'd, in any time
// zone, and also after libfaketime has read its offset again.
func TestClockOfRealPrograms(t *testing.T) {
	const again = "FAKETIME_NO_CACHE=1" // each call reads the offset, in place of one in 10 s
	for _, c := range []struct{ program, pkg, script, env string }{
		{program: "sh", script: `date +%s; (date +%s); sleep 1.2; date +%s; sh -c "exec date +%s"; TZ=Asia/Tokyo date +%s`, env: "TZ=America/New_York"},
		{program: "sh", script: `for i in 1 2 3; do date +%s; done`, env: again},
		{program: "node", pkg: "nodejs", env: "TZ=Asia/Tokyo", script: `
			const say = () => console.log(Math.floor(Date.now() / 1000));
			say();
			console.log(require("child_process").execSync("date +%s").toString().trim());
			setTimeout(say, 1200);
			const { Worker } = require("worker_threads");
			new Worker("console.log(Math.floor(Date.now() / 1000))", { eval: true });`},
		{program: "node", pkg: "nodejs", env: again, script: `
			const begun = performance.now();
			while (performance.now() - begun < 50) Date.now();
			console.log(Math.floor(Date.now() / 1000));`},
		{program: "python3", pkg: "python3", env: "TZ=Asia/Tokyo", script: "import os, time\nprint(int(time.time()), flush=True)\nif os.fork() == 0:\n  print(int(time.time()), flush=True)\n  os.execlp('date', 'date', '+%s')\nos.wait()"},
	} {
		t.Run(c.program+" "+c.env, func(t *testing.T) {
			path := needs(t, c.program, c.pkg)
			flag := "-c"
			if c.program == "node" {
				flag = "-e"
			}
			log := filepath.Join(t.TempDir(), "log")
			begun := time.Now()
			err := Run(t.Context(), Config{
				Args: []string{c.program, flag, c.script}, Env: append(os.Environ(), c.env), Dir: t.TempDir(), Log: log,
				Clock: Clock{Start: year2000, Library: libraryFor(t, path)}, Stop: syscall.SIGTERM,
			})
			if err != nil {
				t.Fatal(err, tail(log, 20))
			}
			out, err := os.ReadFile(log)
			if err != nil {
				t.Fatal(err)
			}
			last := year2000.Add(time.Second + time.Since(begun)).Unix()
			lines := strings.Fields(string(out))
			for _, line := range lines {
				if at, err := strconv.ParseInt(line, 10, 64); err != nil || at < year2000.Unix() || at > last {
					t.Fatalf("the clock shows %s, want %d to %d: %q", line, year2000.Unix(), last, lines)
				}
			}
			if strings.Contains(c.script, "1.2") && lines[0] == lines[len(lines)-1] {
				t.Errorf("the clock stands still: %q", lines)
			}
		})
	}
}

// HAProxy answers with its own date; nothing of the clock is left, also of a
// router that was killed, and nothing else is taken away.
func TestClockOfHAProxy(t *testing.T) {
	haproxy := needs(t, "haproxy", "haproxy")
	stranger := os.Getppid() // runs, and not for us
	decoy := fmt.Sprintf("/dev/shm/faketime_shm_%d", stranger)
	if f, err := os.OpenFile(decoy, os.O_CREATE|os.O_EXCL, 0o600); err != nil {
		missing(t, fmt.Sprint("no shared memory may be made: ", err))
	} else {
		f.Close()
	}
	defer os.Remove(decoy)
	for _, killed := range []bool{false, true} {
		t.Run(fmt.Sprint("killed ", killed), func(t *testing.T) {
			c := config(t, "")
			conf := filepath.Join(c.Dir, "conf")
			text := fmt.Sprintf("defaults\n mode http\n timeout client 5s\n timeout server 5s\n timeout connect 5s\nfrontend f\n bind unix@%s\n http-request return status 200 hdr X-Date %%[date]\n", c.Address.Addr)
			if err := os.WriteFile(conf, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
			c.Args = []string{haproxy, "-db", "-f", conf}
			c.Clock = Clock{Start: year2000, Library: libraryFor(t, haproxy)}
			if err := CheckClock(haproxy, c.Clock.Library); err != nil {
				t.Fatal(err)
			}
			begun := time.Now()
			p := start(t, c)
			if err := p.WaitReady(t.Context()); err != nil {
				t.Fatal(err)
			}
			client := http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return c.Address.Dial(ctx) }}}
			res, err := client.Get("http://router/")
			if err != nil {
				t.Fatal(err)
			}
			res.Body.Close()
			offset, moved := p.ClockOffset()
			at, err := strconv.ParseInt(res.Header.Get("X-Date"), 10, 64)
			if last := time.Now().Add(offset).Unix(); err != nil || !moved || at < year2000.Unix() || at > last || last > year2000.Unix()+2+int64(time.Since(begun).Seconds()) {
				t.Errorf("its clock shows %v, the record says at most %d (moved: %v)", res.Header, last, moved)
			}
			if killed {
				if err := syscall.Kill(p.PID(), syscall.SIGKILL); err != nil {
					t.Fatal(err)
				}
			}
			pids := append(p.freezer.pids(), p.PID())
			p.Stop()
			if left := clockFiles(pids); len(left) > 0 {
				t.Errorf("left behind: %q", left)
			}
		})
	}
	if _, err := os.Stat(decoy); err != nil {
		t.Errorf("another's was taken away: %v", err)
	}
}

func clockFiles(pids []int) (found []string) {
	for _, pid := range pids {
		for _, name := range []string{"faketime_shm_", "sem.faketime_sem_"} {
			if path := fmt.Sprint("/dev/shm/", name, pid); exists(path) {
				found = append(found, path)
			}
		}
	}
	return found
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// What a mark or a group finds and ends takes the files of its clock with it.
func TestEndingRemovesClockFiles(t *testing.T) {
	for name, end := range map[string]func(pid int, mark string){
		"by its group": func(pid int, _ string) { EndGroup(pid) },
		"by its mark":  func(_ int, mark string) { EndMarked(mark, 0) },
	} {
		t.Run(name, func(t *testing.T) {
			mark := fmt.Sprintf("TEST_MARK=%d.", os.Getpid())
			cmd := exec.Command("sleep", "1000")
			cmd.Env = []string{mark}
			cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			go cmd.Wait()
			pids := []int{cmd.Process.Pid}
			for _, pattern := range []string{"/dev/shm/faketime_shm_%d", "/dev/shm/sem.faketime_sem_%d"} {
				if err := os.WriteFile(fmt.Sprintf(pattern, pids[0]), nil, 0o600); err != nil {
					missing(t, fmt.Sprint("no shared memory may be made: ", err))
				}
			}
			end(pids[0], mark)
			if left := clockFiles(pids); len(left) > 0 {
				t.Errorf("left behind: %q", left)
			}
		})
	}
}

// An old libfaketime ends the process if a dead one of its number has left
// something; that is said.
func TestStaleClockFilesAreNamed(t *testing.T) {
	err := &DeathError{Name: "the router", When: "before it was ready", Tail: "libfaketime: In ft_shm_create(), shm_open failed: File exists"}
	if !strings.Contains(err.Error(), "has left /dev/shm/faketime_shm_NUMBER") {
		t.Error(err)
	}
}

// A shell that starts a program whose clock cannot be moved is found out once
// that answers.
func TestClockIsCheckedAgainWhenReady(t *testing.T) {
	sh := needs(t, "sh", "dash")
	for _, line := range []string{"exec %s", "%s; exit"} { // in the shell's place, and as its child
		c := config(t, "serve")
		c.Clock = Clock{Start: year2000, Library: libraryFor(t, sh)}
		c.Args = []string{"sh", "-c", fmt.Sprintf(line, c.Args[0])}
		p := start(t, c)
		err := p.WaitReady(t.Context())
		if err == nil || !strings.Contains(err.Error(), "is written in Go") || strings.Contains(err.Error(), "/proc/") {
			t.Errorf("%s: got %v", line, err)
		}
	}
}

// copyOf copies a program, changed.
func copyOf(t *testing.T, program string, change func([]byte) []byte) string {
	t.Helper()
	data, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), filepath.Base(program))
	if err := os.WriteFile(path, change(data), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

func same(data []byte) []byte { return data }

func TestCheckClock(t *testing.T) {
	sleep, err := filepath.EvalSymlinks(needs(t, "sleep", "coreutils"))
	if err != nil {
		t.Fatal(err)
	}
	library := libraryFor(t, sleep)
	own, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	script := func(line string) string {
		path := filepath.Join(t.TempDir(), "script")
		if err := os.WriteFile(path, []byte(line+"\nmore\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		return path
	}
	immovable := copyOf(t, sleep, func(data []byte) []byte { return withoutInterpreter(t, data) })
	setuid := func() string {
		path := copyOf(t, sleep, same)
		if os.Getuid() == 0 {
			if err := os.Chown(path, 65534, 65534); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(path, 0o755|os.ModeSetuid); err != nil {
				t.Fatal(err)
			}
			return path
		}
		return "/bin/su" // root's
	}()
	spaced := filepath.Join(t.TempDir(), "with space.so")
	for name, c := range map[string]struct{ program, library, want string }{
		"a program":                      {sleep, library, ""},
		"a script":                       {script("#!" + sleep), library, ""},
		"a script of a script":           {script("#! " + script("#!"+sleep+" -x")), library, ""},
		"by env":                         {script("#!/usr/bin/env sleep"), library, ""},
		"by env with options":            {script("#!/usr/bin/env -S A=b sleep 1"), library, ""},
		"by env that does not find it":   {script("#!/usr/bin/env no-such-program"), library, ""},
		"Go":                             {own, library, own + " is written in Go, which asks the kernel itself for the time, so libfaketime cannot move its clock; leave clock out and send tokens that do not expire (kind: jwt-unique, or jwt-cache)"},
		"a script in Go":                 {script("#!" + own), library, own + " is written in Go"},
		"static":                         {immovable, library, immovable + " is linked statically"},
		"a script by a static program":   {script("#!" + immovable), library, immovable + " is linked statically"},
		"musl":                           {copyOf(t, sleep, func(data []byte) []byte { return withMusl(t, data) }), library, "is for glibc, but "},
		"another machine":                {sleep, copyOf(t, library, func(data []byte) []byte { data[18], data[19] = 0xb7, 0; return data }), "is for AARCH64 of 64 bits, but " + sleep + " for "},
		"no library":                     {sleep, script("#!/bin/sh"), "is no library ("},
		"no file":                        {sleep, "/no/such.so", "/no/such.so is no library (open /no/such.so: no such file"},
		"a path that the loader cuts":    {sleep, spaced, "has a space or a colon in its path"},
		"another user's rights":          {setuid, library, "gets another user's rights"},
		"neither a program nor a script": {script("echo"), library, "is no program that the loader knows"},
	} {
		t.Run(name, func(t *testing.T) {
			err := CheckClock(c.program, c.library)
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("got %v\nwant %s", err, c.want)
			}
			if err != nil && !strings.Contains(err.Error(), "leave clock out and send tokens that do not expire") {
				t.Errorf("it does not say what to do: %v", err)
			}
		})
	}
}

// withoutInterpreter is a program of 64 bits that names no dynamic loader.
func withoutInterpreter(t *testing.T, data []byte) []byte {
	t.Helper()
	headers, size, n := binary.LittleEndian.Uint64(data[32:]), binary.LittleEndian.Uint16(data[54:]), binary.LittleEndian.Uint16(data[56:])
	for i := range uint64(n) {
		if at := headers + i*uint64(size); binary.LittleEndian.Uint32(data[at:]) == 3 { // PT_INTERP
			binary.LittleEndian.PutUint32(data[at:], 0)
			return data
		}
	}
	t.Fatal("it names no loader")
	return nil
}

// withMusl names musl's loader in the place of glibc's.
func withMusl(t *testing.T, data []byte) []byte {
	t.Helper()
	at := bytes.Index(data, []byte("/ld-linux"))
	if at < 0 {
		t.Fatal("glibc's loader is not found")
	}
	copy(data[at:], "/ld-musl-x\x00")
	return data
}

func TestFindClockLibrary(t *testing.T) {
	sleep := needs(t, "sleep", "coreutils")
	real := libraryFor(t, sleep)
	dir := t.TempDir()
	put := func(path, content string, mode os.FileMode) string {
		path = filepath.Join(dir, path)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(content), mode)); err != nil {
			t.Fatal(err)
		}
		return path
	}
	library := func(path string) string {
		data, err := os.ReadFile(real)
		if err != nil {
			t.Fatal(err)
		}
		return put(path, string(data), 0o644)
	}
	t.Setenv("PATH", filepath.Join(dir, "bin")) // no other faketime or Nix
	nowhere := places{nix: filepath.Join(dir, "store"), system: []string{filepath.Join(dir, "none")}}

	if _, err := nowhere.find(sleep, filepath.Join(dir, "built")); err == nil || !strings.Contains(err.Error(),
		"libfaketime.so.1 is not installed: nothing of it in "+dir+"/built/lib/faketime, "+dir+"/built/lib, "+dir+"/none; install the package libfaketime, or name the file with clock: {start: ..., library: PATH}") {
		t.Errorf("got %v", err)
	}
	check := func(name string, p places, program, build, want string) {
		t.Helper()
		if got, err := p.find(program, build); err != nil || got != want {
			t.Errorf("%s: got %s (%v), want %s", name, got, err, want)
		}
	}
	// Beside a command faketime, which may be a link.
	put("opt/bin/faketime", "#!/bin/sh\n", 0o755)
	if err := errors.Join(os.MkdirAll(filepath.Join(dir, "bin"), 0o755), os.Symlink("../opt/bin/faketime", filepath.Join(dir, "bin/faketime"))); err != nil {
		t.Fatal(err)
	}
	check("beside faketime", nowhere, sleep, "", library("opt/lib/faketime/libfaketime.so.1"))

	// The first that fits, of those that the system has.
	other := library("sys/a/faketime/libfaketime.so.1")
	data, err := os.ReadFile(other)
	if err != nil {
		t.Fatal(err)
	}
	data[18], data[19] = 0xb7, 0 // another machine
	put("sys/a/faketime/libfaketime.so.1", string(data), 0o644)
	system := places{nix: nowhere.nix, system: []string{filepath.Join(dir, "sys/*/faketime")}}
	fits := library("sys/b/faketime/libfaketime.so.1")
	check("the system's", system, sleep, "", fits)

	// A Nix program's own; without Nix's command, or if it fails, the system's.
	program := copyOf(t, sleep, same)
	inStore := filepath.Join(dir, "store/abc-router/bin/router")
	if err := errors.Join(os.MkdirAll(filepath.Dir(inStore), 0o755), os.Rename(program, inStore)); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "result")
	if err := os.Symlink(inStore, link); err != nil {
		t.Fatal(err)
	}
	check("without nix-store", system, link, "", fits)
	nix := library("store/xyz-libfaketime-0.9.12/lib/libfaketime.so.1")
	put("bin/nix-store", fmt.Sprintf("#!/bin/sh\n[ \"$*\" = '--query --requisites %[1]s/store/abc-router' ] && echo %[1]s/store/g-glibc && echo %[1]s/store/xyz-libfaketime-0.9.12\n", dir), 0o755)
	check("the closure's", system, link, "", nix)
	check("of a program that is not Nix's", system, sleep, "", fits)

	// What the build brings goes before all.
	check("the build's", system, link, filepath.Join(dir, "built"), library("built/lib/libfaketime.so.1"))
	check("the build's, in its folder", system, link, filepath.Join(dir, "built"), library("built/lib/faketime/libfaketime.so.1"))
	put("bin/nix-store", "#!/bin/sh\nexit 1\n", 0o755)
	check("nix-store fails", system, link, "", fits)
}
