package build

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// repository is where the plan's folder stands in git.
type repository struct {
	top    string   // top level of the user's working tree
	prefix string   // the plan's folder below top, with slashes; "" is top itself
	common string   // the git folder that all worktrees share
	env    []string // what git gets in its environment
}

// locate finds the repository around dir. Its errors are for the user.
func locate(ctx context.Context, dir string) (r repository, err error) {
	if dir, err = filepath.Abs(dir); err != nil {
		return r, err
	}
	kind, err := git(ctx, dir, nil, "rev-parse", "--is-inside-work-tree", "--is-bare-repository")
	var ge *gitError
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return r, fmt.Errorf("%w\nhint: install git, the worktrees are made with it", err)
	case errors.As(err, &ge) && strings.Contains(ge.stderr, "not a git repository"):
		return r, fmt.Errorf("%s is not in a git repository\nhint: comparing refs needs the plan inside the repository of the server", dir)
	case err != nil:
		return r, err // git's own advice, such as that on safe.directory
	case strings.HasSuffix(kind, "true"):
		return r, fmt.Errorf("%s is in a bare repository, which has no working tree\nhint: clone it, or `git worktree add` a working tree, and run there", dir)
	case strings.HasPrefix(kind, "false"):
		return r, fmt.Errorf("%s is inside a git folder, not in a working tree\nhint: run in the folder that holds the sources", dir)
	}
	// One question at a time: a path may hold a newline.
	for _, q := range []struct {
		flag   string
		answer *string
	}{{"--show-toplevel", &r.top}, {"--show-prefix", &r.prefix}, {"--git-common-dir", &r.common}} {
		if *q.answer, err = git(ctx, dir, nil, "rev-parse", q.flag); err != nil {
			return r, err
		}
	}
	if !filepath.IsAbs(r.common) {
		r.common = filepath.Join(dir, r.common)
	}
	return r, nil
}

// git asks in the user's working tree.
func (r repository) git(ctx context.Context, env []string, args ...string) (string, error) {
	return git(ctx, r.top, slices.Concat(r.env, env), args...)
}

// worktree asks about worktrees without standing in one, so that it works
// after the user has removed theirs.
func (r repository) worktree(ctx context.Context, args ...string) (string, error) {
	return git(ctx, r.common, r.env, append([]string{"--git-dir=" + r.common, "worktree"}, args...)...)
}

// quiet are settings that keep git from running hooks and daemons and from
// writing outside of what it was asked for, whatever the user's say.
var quiet = [...]string{
	"-c", "core.hooksPath=/dev/null", // no post-checkout
	"-c", "core.fsmonitor=false", // no daemon per worktree
	"-c", "core.splitIndex=false", // no shared index in the user's git folder
	"-c", "core.safecrlf=false", // a warning setting that can refuse `add`
	"-c", "submodule.recurse=false",
	"-c", "worktree.useRelativePaths=false", // sets an extension in the user's config
}

// git runs one git command in dir and returns its standard output without the
// last newline. env is added to the environment. The error is a *gitError,
// or that of the context.
func git(ctx context.Context, dir string, env []string, args ...string) (string, error) {
	cmd := exec.Command("git", append(quiet[:len(quiet):len(quiet)], args...)...)
	cmd.Dir = dir
	cmd.Env = append(environ(), "PWD="+dir, "LC_ALL=C", "LANGUAGE=", "GIT_OPTIONAL_LOCKS=0", "GIT_TERMINAL_PROMPT=0")
	cmd.Env = append(cmd.Env, env...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := run(ctx, cmd)
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	if err != nil {
		return "", &gitError{args: args, stderr: strings.TrimSpace(stderr.String()), err: err}
	}
	return strings.TrimSuffix(stdout.String(), "\n"), nil
}

type gitError struct {
	args   []string
	stderr string
	err    error
}

func (e *gitError) Error() string {
	op := e.args[0]
	if strings.HasPrefix(op, "--git-dir=") {
		op = e.args[1]
	}
	if e.stderr == "" {
		return fmt.Sprintf("git %s: %v", op, e.err)
	}
	return fmt.Sprintf("git %s: %s", op, strings.TrimPrefix(e.stderr, "fatal: "))
}

func (e *gitError) Unwrap() error { return e.err }

// astray are the variables that point git at another repository, index or
// way of reading paths. Git sets some of them for its hooks; with them a
// build's `git describe` or `git clean` would act on the user's working tree.
// What users set for themselves (GIT_CONFIG_COUNT, GIT_SSH_COMMAND) stays.
var astray = [...]string{
	"GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR", "GIT_OBJECT_DIRECTORY",
	"GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_QUARANTINE_PATH", "GIT_IMPLICIT_WORK_TREE", "GIT_PREFIX",
	"GIT_INTERNAL_SUPER_PREFIX", "GIT_NAMESPACE", "GIT_CONFIG", "GIT_CONFIG_PARAMETERS",
	"GIT_GRAFT_FILE", "GIT_SHALLOW_FILE", "GIT_NO_REPLACE_OBJECTS", "GIT_REPLACE_REF_BASE",
	"GIT_LITERAL_PATHSPECS", "GIT_GLOB_PATHSPECS", "GIT_NOGLOB_PATHSPECS", "GIT_ICASE_PATHSPECS",
	"GIT_DEFAULT_HASH", "GIT_DEFAULT_REF_FORMAT",
}

// environ is the user's environment without the variables that lead astray.
func environ() []string {
	return slices.DeleteFunc(os.Environ(), func(kv string) bool {
		key, _, _ := strings.Cut(kv, "=")
		return slices.Contains(astray[:], key)
	})
}
