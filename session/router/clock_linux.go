package router

import (
	"bufio"
	"bytes"
	"context"
	"debug/buildinfo"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// libfaketime is the file that is preloaded. Its sister libfaketimeMT takes a
// lock in every call, so that no thread reads what another is changing. An
// offset that stays the same changes nothing after the start, and the lock
// would make the threads of a router wait for each other.
const libfaketime = "libfaketime.so.1"

// CanMoveClocks says why this system cannot move a process's clock.
func CanMoveClocks() error { return nil }

// FindClockLibrary looks for libfaketime for a program: in build, the folder of
// what was built with it (empty: none), in the program's own Nix closure, and
// where distributions put it. Of the last the first that fits the program is taken.
func FindClockLibrary(program, build string) (string, error) {
	return usualPlaces.find(program, build)
}

// places are where libfaketime may be.
type places struct {
	nix    string   // the Nix store
	system []string // folders, as patterns
}

var usualPlaces = places{nix: "/nix/store", system: []string{"/usr/lib/*/faketime", "/usr/lib/faketime", "/usr/local/lib/faketime", "/usr/lib64/faketime"}}

func (p places) find(program, build string) (string, error) {
	var own []string
	if build != "" {
		own = []string{filepath.Join(build, "lib/faketime"), filepath.Join(build, "lib")}
	}
	own = append(own, p.closure(program)...)
	for _, dir := range own {
		if path := filepath.Join(dir, libfaketime); isFile(path) {
			return path, nil
		}
	}
	system := p.system
	if command, err := exec.LookPath("faketime"); err == nil {
		if command, err = filepath.EvalSymlinks(command); err == nil {
			prefix := filepath.Dir(filepath.Dir(command))
			system = append(slices.Clone(system), filepath.Join(prefix, "lib/faketime"), filepath.Join(prefix, "lib"))
		}
	}
	found := ""
	for _, pattern := range system {
		paths, _ := filepath.Glob(filepath.Join(pattern, libfaketime))
		for _, path := range paths {
			var unfit *misfitError
			if err := CheckClock(program, path); !errors.As(err, &unfit) {
				return path, nil
			}
			found = path
		}
	}
	if found != "" {
		return found, nil // CheckClock says why it does not fit
	}
	return "", fmt.Errorf("%s is not installed: nothing of it in %s; install the package libfaketime, or name the file with clock: {start: ..., library: PATH}",
		libfaketime, strings.Join(append(own, system...), ", "))
}

// closure lists the libfaketimes that a program from the Nix store was built
// with. Without Nix's own command there is nothing to be known.
func (p places) closure(program string) (dirs []string) {
	program, err := filepath.EvalSymlinks(program)
	if err != nil {
		return nil
	}
	inside, ok := strings.CutPrefix(program, p.nix+"/")
	if !ok {
		return nil
	}
	name, _, _ := strings.Cut(inside, "/")
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	query := exec.CommandContext(ctx, "nix-store", "--query", "--requisites", filepath.Join(p.nix, name))
	query.WaitDelay = time.Second
	out, err := query.Output()
	if err != nil {
		return nil
	}
	for path := range strings.Lines(string(out)) {
		if path = strings.TrimSpace(path); strings.Contains(filepath.Base(path), "libfaketime") {
			dirs = append(dirs, filepath.Join(path, "lib"), filepath.Join(path, "lib/faketime"))
		}
	}
	return dirs
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// immovableError says that no libfaketime can move a program's clock.
type immovableError struct{ why string }

func (e *immovableError) Error() string {
	return e.why + ", so libfaketime cannot move its clock; leave clock out and send tokens that do not expire (kind: jwt-unique, or jwt-cache)"
}

// misfitError says that a program needs another libfaketime.
type misfitError struct{ library, why string }

func (e *misfitError) Error() string {
	return fmt.Sprintf("%s %s; name another with clock: {start: ..., library: PATH}, or leave clock out and send tokens that do not expire (kind: jwt-unique, or jwt-cache)", e.library, e.why)
}

// CheckClock makes sure that a library can move a program's clock, as far as
// the files tell. What a script is run by counts, not the script. A shell that
// starts the router cannot be seen through: WaitReady looks again.
func CheckClock(program, library string) error {
	if strings.ContainsAny(library, ": \t") {
		return &misfitError{library, "has a space or a colon in its path, at which the loader would cut it"}
	}
	program, err := interpreter(program)
	if err != nil {
		return err
	}
	lib, err := readELF(library)
	if err != nil {
		return &misfitError{library, fmt.Sprintf("is no library (%v)", err)}
	}
	prog, err := readELF(program)
	if err != nil {
		return &immovableError{fmt.Sprintf("%s is no program that the loader knows (%v)", program, err)}
	}
	// Go asks the kernel for the time, not the C library, even where it uses that otherwise.
	_, notGo := buildinfo.ReadFile(program)
	switch {
	case notGo == nil:
		return &immovableError{program + " is written in Go, which asks the kernel itself for the time"}
	case prog.loader == "":
		return &immovableError{program + " is linked statically: it loads no library"}
	case prog.header != lib.header:
		return &misfitError{library, fmt.Sprintf("is for %s, but %s for %s", lib.machine(), program, prog.machine())}
	case prog.musl() != lib.musl():
		return &misfitError{library, fmt.Sprintf("is for %s, but %s is linked with %s", lib.libc(), program, prog.libc())}
	}
	return privileged(program)
}

// elfFile is what a program and a library that it loads must have in common.
type elfFile struct {
	header struct {
		class   elf.Class
		machine elf.Machine
		order   elf.Data
	}
	loader string   // of a program: the dynamic loader; empty: none
	needs  []string // libraries
}

func readELF(path string) (b elfFile, err error) {
	f, err := elf.Open(path)
	if err != nil {
		return b, err
	}
	defer f.Close()
	b.header.class, b.header.machine, b.header.order = f.Class, f.Machine, f.Data
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			name, err := io.ReadAll(io.LimitReader(p.Open(), 4096))
			if err != nil {
				return b, err
			}
			b.loader = string(bytes.TrimRight(name, "\x00"))
		}
	}
	b.needs, err = f.ImportedLibraries()
	return b, err
}

func (b elfFile) machine() string {
	return fmt.Sprintf("%s of %s bits", strings.TrimPrefix(b.header.machine.String(), "EM_"), strings.TrimPrefix(b.header.class.String(), "ELFCLASS"))
}

// musl tells it from glibc: by the loader's name, of a library by what it needs.
func (b elfFile) musl() bool {
	return strings.Contains(b.loader, "/ld-musl-") || slices.ContainsFunc(b.needs, func(name string) bool {
		return name == "libc.so" || strings.HasPrefix(name, "libc.musl-")
	})
}

func (b elfFile) libc() string {
	if b.musl() {
		return "musl"
	}
	return "glibc"
}

// privileged refuses a program that gets rights by being started: the loader
// then loads nothing that the environment names.
func privileged(program string) error {
	info, err := os.Stat(program)
	if err != nil {
		return err
	}
	var st unix.Stat_t
	if err := unix.Stat(program, &st); err != nil {
		return err
	}
	setuid := info.Mode()&os.ModeSetuid != 0 && int(st.Uid) != os.Getuid()
	setgid := info.Mode()&os.ModeSetgid != 0 && int(st.Gid) != os.Getgid()
	size, err := unix.Getxattr(program, "security.capability", nil)
	if setuid || setgid || err == nil && size > 0 && os.Getuid() != 0 {
		return &immovableError{program + " gets another user's rights or capabilities when it is started, and then the loader preloads nothing"}
	}
	return nil
}

// interpreter is the program that the kernel runs for a path: of a script what
// its first line names, also by way of env.
func interpreter(path string) (string, error) {
	for range 5 { // as deep as Linux goes
		line, err := firstLine(path)
		if err != nil {
			return "", err
		}
		words := strings.Fields(line)
		if len(words) == 0 {
			return path, nil
		}
		next := words[0]
		if filepath.Base(next) == "env" {
			if found, err := exec.LookPath(ranByEnv(words[1:])); err == nil {
				next = found
			}
		}
		path = next
	}
	return path, nil
}

// firstLine is what follows #! in a script; empty: it is none.
func firstLine(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	line, err := bufio.NewReader(io.LimitReader(f, 256)).ReadString('\n') // the kernel reads no more
	if err != nil && err != io.EOF {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	if rest, ok := strings.CutPrefix(line, "#!"); ok {
		return rest, nil
	}
	return "", nil
}

// ranByEnv is the program in `env -S NAME=value program argument`.
func ranByEnv(words []string) string {
	for _, w := range words {
		if name, ok := strings.CutPrefix(w, "-S"); ok {
			w = name // -Snode
		}
		if w != "" && w[0] != '-' && !strings.Contains(w, "=") {
			return w
		}
	}
	return ""
}

// checkClock makes sure of the process that answers what CheckClock could not
// tell of the program that was started: a shell may have started another.
func (p *Process) checkClock(pid int) error {
	if (p.cfg.Clock == Clock{}) {
		return nil
	}
	link := fmt.Sprintf("/proc/%d/exe", pid)
	program, err := os.Readlink(link)
	if err != nil {
		return nil // it may not be looked at
	}
	var immovable *immovableError
	if err := CheckClock(link, p.cfg.Clock.Library); errors.As(err, &immovable) {
		immovable.why = strings.ReplaceAll(immovable.why, link, program)
		return &ClockError{immovable}
	}
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil || len(maps) == 0 || bytes.Contains(maps, []byte("/"+libraryName(p.cfg.Clock.Library)+"\n")) {
		return nil
	}
	return &ClockError{&immovableError{fmt.Sprintf("%s, which answers, runs without %s", program, p.cfg.Clock.Library)}}
}

// libraryName is the file's own, as the kernel lists it.
func libraryName(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	return filepath.Base(path)
}

// removeClockFiles removes what libfaketime, before 0.9.11, leaves of processes
// that were killed. With the shared memory of a dead one still there, the next
// process that gets its number could not start.
func removeClockFiles(pids []int) {
	for _, pid := range pids {
		for _, pattern := range []string{"/dev/shm/faketime_shm_%d", "/dev/shm/sem.faketime_sem_%d"} {
			_ = os.Remove(fmt.Sprintf(pattern, pid))
		}
	}
}
