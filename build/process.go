package build

import (
	"context"
	"os/exec"
	"syscall"
	"time"
)

// grace is how long a stopped command has between TERM and KILL.
const grace = 2 * time.Second

// run starts cmd at the head of its own process group and waits for it. When
// ctx ends first, the whole group gets TERM and, after the grace, KILL; the
// error is then the context's.
//
// The command also gets its own terminal session: Ctrl-C must not reach a
// `git worktree remove`, and a prompt must fail instead of stopping a
// background process for ever.
func run(ctx context.Context, cmd *exec.Cmd) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.WaitDelay = grace // for output pipes that a daemon has inherited
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	group := -cmd.Process.Pid
	deadline := time.Now().Add(grace)
	// The head of the group often ends at once, its children later: ask for the group.
	for err := syscall.Kill(group, syscall.SIGTERM); err == nil && time.Now().Before(deadline); err = syscall.Kill(group, 0) {
		time.Sleep(10 * time.Millisecond)
	}
	_ = syscall.Kill(group, syscall.SIGKILL) // fails where nobody is left
	<-ended
	return ctx.Err()
}
