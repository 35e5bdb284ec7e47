package build

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// Build runs command with `sh -c` in src.Dir and returns the folder it filled,
// which the command knows as $OUT. name is the arm's, for messages. The
// environment is the user's, without variables that point git elsewhere, then
// that of [Open], then env, then OUT. Both output streams go to the file logPath as they come.
//
// It fails if the command does, or leaves $OUT empty; when ctx ends, the
// command and all it started are stopped. No command means no build: out is "".
func (w *Workspace) Build(ctx context.Context, name string, src Source, command string, env map[string]string, logPath string) (out string, err error) {
	if command == "" {
		return "", nil
	}
	what := name
	if src.Label != "" {
		what = fmt.Sprintf("%s (%s)", name, src.Label)
	}
	if out, err = w.newOut(); err == nil {
		err = w.build(ctx, src, command, env, out, logPath)
	}
	if err != nil {
		return "", fmt.Errorf("building %s: %w", what, err)
	}
	return out, nil
}

// newOut makes the folder of one build. Like the worktrees' its path is as
// long as any other arm's: the length of arguments and environment moves a
// process's stack, which is enough to change its speed (Mytkowicz et al. 2009).
func (w *Workspace) newOut() (string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.lock == nil {
		return "", errors.New("the workspace is closed")
	}
	w.outs++
	out := filepath.Join(w.root, fmt.Sprintf("out-%02d", w.outs))
	return out, os.Mkdir(out, 0o755)
}

func (w *Workspace) build(ctx context.Context, src Source, command string, env map[string]string, out, logPath string) error {
	if err := os.MkdirAll(src.Dir, 0o755); err != nil { // the ref may lack the plan's folder
		return err
	}
	if err := os.MkdirAll(filepath.Dir(logPath), 0o755); err != nil {
		return err
	}
	log, err := os.Create(logPath)
	if err != nil {
		return err
	}
	cmd := exec.Command("sh", "-c", command)
	cmd.Dir = src.Dir
	cmd.Env = append(environ(), "PWD="+src.Dir)
	cmd.Env = append(cmd.Env, w.env...)
	for key, value := range env {
		cmd.Env = append(cmd.Env, key+"="+value)
	}
	cmd.Env = append(cmd.Env, "OUT="+out)
	cmd.Stdout, cmd.Stderr = log, log
	err = run(ctx, cmd)
	if cmd.Process != nil {
		// What a build leaves in the background would disturb the measurement.
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	}
	if e := log.Close(); err == nil {
		err = e
	}
	if ctx.Err() != nil {
		return fmt.Errorf("stopped: %w", ctx.Err())
	}
	if err != nil {
		return w.explain(src, command, logPath, err)
	}
	made, err := os.ReadDir(out)
	if err != nil {
		return err
	}
	if len(made) == 0 {
		return w.explain(src, command, logPath, errors.New("ended well, but $OUT is empty"),
			`write what run needs to "$OUT", as in: go build -o "$OUT/server"`)
	}
	return nil
}

// tailLines and tailBytes limit what of a log is quoted in an error.
const (
	tailLines = 20
	tailBytes = 8 << 10
)

// explain adds to a failed build's error what a person needs to mend it.
func (w *Workspace) explain(src Source, command, logPath string, err error, hints ...string) error {
	var b strings.Builder
	for _, line := range tail(logPath) {
		b.WriteString("\n    " + line)
	}
	b.WriteString("\nlog: " + logPath)
	if w.hasSubmodules(src.Dir) {
		hints = append(hints, "this revision has submodules, which are not checked out; begin the build command with: git submodule update --init --recursive &&")
	}
	for _, hint := range hints {
		b.WriteString("\nhint: " + hint)
	}
	return fmt.Errorf("%s: %w%s", command, err, b.String())
}

// hasSubmodules looks for .gitmodules at the top of the worktree around dir.
func (w *Workspace) hasSubmodules(dir string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.ContainsFunc(w.trees, func(tree string) bool {
		_, err := os.Stat(filepath.Join(tree, ".gitmodules"))
		return err == nil && (dir == tree || strings.HasPrefix(dir, tree+string(filepath.Separator)))
	})
}

// tail returns the last lines of a log, as a terminal would show them.
func tail(path string) []string {
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	cut := false
	if info, err := f.Stat(); err == nil && info.Size() > tailBytes {
		_, err = f.Seek(-tailBytes, io.SeekEnd)
		cut = err == nil
	}
	data, err := io.ReadAll(io.LimitReader(f, tailBytes))
	if err != nil {
		return nil
	}
	text := strings.TrimRight(string(data), "\r\n")
	if text == "" {
		return nil
	}
	lines := strings.Split(text, "\n")
	if cut {
		lines[0] = "…" + strings.ToValidUTF8(lines[0], "")
	}
	lines = lines[max(0, len(lines)-tailLines):]
	for i, line := range lines {
		line = strings.TrimRight(line, "\r")
		lines[i] = line[strings.LastIndexByte(line, '\r')+1:] // a progress bar's last state
	}
	return lines
}
