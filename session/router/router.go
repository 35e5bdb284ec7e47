package router

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Address is where a router listens: a unix socket or a port of 127.0.0.1.
type Address struct {
	Network string // unix or tcp
	Addr    string // path, or host:port
}

// Dial connects to the address, whatever a URL says.
func (a Address) Dial(ctx context.Context) (net.Conn, error) {
	var d net.Dialer
	return d.DialContext(ctx, a.Network, a.Addr)
}

func (a Address) String() string {
	if a.Network == "unix" {
		return "unix:" + a.Addr
	}
	return a.Addr
}

// Config is what a process needs to be started.
type Config struct {
	Name       string              // what errors call it; empty: the router
	Args       []string            // program and arguments, without placeholders
	Env        []string            // the whole environment
	Mark       string              // NAME=VALUE to add to it, by which EndMarked knows what the process started; may be empty
	Dir        string              // working folder
	Log        string              // file for its output
	CPUs       []int               // CPUs it may use; empty: all
	Credential *syscall.Credential // whom it runs as; nil: as plumbline
	Clock      Clock               // its own
	Address    Address             // where it listens; zero: nowhere that could be looked at
	Ready      Ready
	Stop       syscall.Signal // asks it to end; it is killed if it has not within Grace
	Grace      time.Duration  // 0: 5 s
}

func (c Config) name() string {
	if c.Name == "" {
		return "the router"
	}
	return c.Name
}

// Ready says when a process is ready for requests.
type Ready struct {
	Path   string        // answers a GET with a status below 400
	TLS    bool          // the GET goes over TLS, with any certificate, in HTTP/1.1 or HTTP/2
	Run    string        // shell line that succeeds; with neither this nor Path a connection is accepted
	Within time.Duration // limit
}

// Process is a running router, or another program that serves one.
type Process struct {
	cfg     Config
	cmd     *exec.Cmd
	log     *os.File
	freezer freezer
	started time.Time
	readyIn time.Duration

	clockOffset time.Duration // of cfg.Clock

	done chan struct{} // closed when the process has been waited for
	err  error         // how it ended; valid once done is closed

	stopOnce sync.Once
}

// DeathError says that a process ended by itself, and what it said last.
type DeathError struct {
	Name string // as errors call it
	When string // before it was ready, under load, ...
	Exit error  // nil: exit status 0
	Tail string // last lines of the log
}

func (e *DeathError) Error() string {
	how := "exit status 0"
	if e.Exit != nil {
		how = e.Exit.Error()
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s ended %s (%s)", e.Name, e.When, how)
	switch lower := strings.ToLower(e.Tail); {
	case strings.Contains(lower, "ft_shm_create(), shm_open failed"):
		b.WriteString("; a process of the same number that was killed has left /dev/shm/faketime_shm_NUMBER: remove what no process has any more, or install libfaketime 0.9.11")
	case strings.Contains(lower, "address already in use"):
		b.WriteString("; something else listens on its address: use {port} or {socket} in run, so that every run gets one of its own")
	case e.Exit == nil:
		b.WriteString("; if it went to the background, tell it to stay in the foreground")
	}
	return b.String()
}

// Detail shows the end of the log.
func (e *DeathError) Detail() string { return endOfLog(e.Tail) }

// LateError says that a process was not ready in time.
type LateError struct {
	Name   string // as errors call it
	Within time.Duration
	Last   error  // of the last probe
	Tail   string // last lines of its log
}

func (e *LateError) Error() string {
	return fmt.Sprintf("%s was not ready within %s: %v", e.Name, e.Within, e.Last)
}

// Detail shows the end of the log.
func (e *LateError) Detail() string { return endOfLog(e.Tail) }

func endOfLog(tail string) string {
	if tail == "" {
		return "it wrote nothing to its log"
	}
	return "the end of its log:\n" + tail
}

// Start runs the program. The caller must Stop it, whatever else fails. An
// address that is already served is refused: the load would go to a stranger.
func Start(cfg Config) (*Process, error) {
	failed := func(err error) error { return fmt.Errorf("starting %s: %w%s", cfg.name(), err, notFoundHint(err)) }
	if len(cfg.Args) == 0 {
		return nil, failed(errors.New("no command"))
	}
	if cfg.Address != (Address{}) {
		if c, err := cfg.Address.Dial(context.Background()); err == nil {
			c.Close()
			return nil, failed(fmt.Errorf("something already listens on %s", cfg.Address))
		}
	}
	log, err := os.OpenFile(cfg.Log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, failed(fmt.Errorf("its log: %w", err))
	}
	env := slices.Clone(cfg.Env)
	if cfg.Mark != "" {
		env = append(env, cfg.Mark)
	}
	started := time.Now()
	p := &Process{cfg: cfg, log: log, started: started, done: make(chan struct{})}
	if (cfg.Clock != Clock{}) {
		env, p.clockOffset = cfg.Clock.environment(env, started)
	}
	p.cmd, p.freezer, err = startFrozen(func() *exec.Cmd {
		cmd := exec.Command(cfg.Args[0], cfg.Args[1:]...)
		cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = cfg.Dir, env, log, log
		cmd.SysProcAttr = processAttributes()
		cmd.SysProcAttr.Credential = cfg.Credential
		// A relative program is looked for in the working folder, as a shell would.
		if strings.Contains(cfg.Args[0], "/") && !filepath.IsAbs(cfg.Args[0]) {
			cmd.Path, cmd.Err = filepath.Join(cfg.Dir, cfg.Args[0]), nil
		}
		return cmd
	}, cfg.CPUs, cfg.Mark)
	if err != nil {
		log.Close()
		return nil, failed(err)
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.done)
	}()
	return p, nil
}

func notFoundHint(err error) string {
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, os.ErrNotExist) {
		return "; run names a program that is not installed, or that the build did not write"
	}
	return ""
}

// PID is the process's number.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// ReadyIn is the time from start to ready, once WaitReady has returned.
func (p *Process) ReadyIn() time.Duration { return p.readyIn }

// Freezer names how Freeze works here: "cgroup v2", "cgroup v1" or "SIGSTOP".
func (p *Process) Freezer() string { return p.freezer.name() }

// Done is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Alive reports an error if the process has ended; when says at what time, for the message.
func (p *Process) Alive(when string) error {
	select {
	case <-p.done:
		return p.death(when)
	default:
		return nil
	}
}

func (p *Process) death(when string) error {
	return &DeathError{Name: p.cfg.name(), When: when, Exit: p.err, Tail: tail(p.cfg.Log, 10)}
}

// Run starts a program that is to end by itself and waits until it has; what
// it has left running then is ended, too. Another exit status than 0 is a
// *DeathError.
func Run(ctx context.Context, cfg Config) error {
	p, err := Start(cfg)
	if err != nil {
		return err
	}
	defer p.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-p.done:
	}
	if p.err != nil {
		return p.death("with an error")
	}
	return nil
}

// WaitReady polls until the router answers and is the one that answers.
func (p *Process) WaitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, p.cfg.Ready.Within, errLate)
	defer cancel()
	client := &http.Client{
		Transport: &http.Transport{
			DialContext:       func(ctx context.Context, _, _ string) (net.Conn, error) { return p.cfg.Address.Dial(ctx) },
			DisableKeepAlives: true, // a probe's connection must not live on into the load
			// The process is known by its address, so its certificate may be of
			// any origin. Servers that want a name at all know this one.
			TLSClientConfig:   &tls.Config{InsecureSkipVerify: true, ServerName: "localhost"},
			ForceAttemptHTTP2: true, // over TLS, where a server may speak nothing else
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	last := errors.New("no answer yet")
	// A probe of its own limit: a server that accepts and then hangs is asked again.
	limit, pause := 2*time.Second, 20*time.Millisecond
	if p.cfg.Ready.Run != "" { // starting a program takes longer, and costs the server more
		limit, pause = 10*time.Second, 200*time.Millisecond
	}
	for wait := time.Millisecond; ; wait = min(2*wait, pause) {
		probe, stop := context.WithTimeout(ctx, limit)
		err := p.probe(probe, client)
		stop()
		if err == nil {
			if err := p.Alive("just as it answered"); err != nil {
				return err
			}
			pid, err := p.owner()
			if err != nil {
				return err
			}
			if err := p.checkClock(pid); err != nil {
				return err
			}
			p.readyIn = time.Since(p.started)
			return nil
		}
		if ctx.Err() == nil {
			last = err
		}
		select {
		case <-p.done:
			return p.death("before it was ready")
		case <-ctx.Done():
			if context.Cause(ctx) != errLate {
				return context.Cause(ctx)
			}
			return &LateError{Name: p.cfg.name(), Within: p.cfg.Ready.Within, Last: last, Tail: tail(p.cfg.Log, 10)}
		case <-time.After(wait):
		}
	}
}

var errLate = errors.New("not ready in time")

func (p *Process) probe(ctx context.Context, client *http.Client) error {
	switch {
	case p.cfg.Ready.Run != "":
		return p.askByCommand(ctx)
	case p.cfg.Ready.Path == "":
		c, err := p.cfg.Address.Dial(ctx)
		if err != nil {
			return err
		}
		return c.Close()
	}
	scheme := "http"
	if p.cfg.Ready.TLS {
		scheme = "https"
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, scheme+"://router"+p.cfg.Ready.Path, nil)
	if err != nil {
		return err
	}
	res, err := client.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if _, err := io.Copy(io.Discard, io.LimitReader(res.Body, 1<<20)); err != nil {
		return err
	}
	if res.StatusCode >= 400 {
		return fmt.Errorf("GET %s answers %s", p.cfg.Ready.Path, res.Status)
	}
	return nil
}

// askByCommand runs the line that succeeds once the process is ready. What it
// says until then is kept out of the log but for the error.
func (p *Process) askByCommand(ctx context.Context) error {
	cfg := p.cfg
	cfg.Name, cfg.Args, cfg.Log = "`"+cfg.Ready.Run+"`", []string{"sh", "-c", cfg.Ready.Run}, cfg.Log+".ready"
	cfg.Clock = Clock{} // it is plumbline that asks
	cfg.Mark, cfg.Address, cfg.Stop, cfg.Grace = "", Address{}, syscall.SIGTERM, time.Second
	defer os.Remove(cfg.Log)
	err := Run(ctx, cfg)
	var death *DeathError
	if errors.As(err, &death) && death.Tail != "" {
		return fmt.Errorf("%w: %s", err, death.Tail[strings.LastIndexByte(death.Tail, '\n')+1:])
	}
	return err
}

// Freeze stops the process and all its children from running until Thaw.
func (p *Process) Freeze() error {
	if err := p.freezer.freeze(); err != nil && p.Alive("") == nil {
		return fmt.Errorf("freezing %s while it is idle: %w", p.cfg.name(), err)
	}
	return nil
}

// Thaw lets it run again.
func (p *Process) Thaw() error {
	if err := p.freezer.thaw(); err != nil && p.Alive("") == nil {
		return fmt.Errorf("thawing %s: %w", p.cfg.name(), err)
	}
	return nil
}

// Stop ends the process and everything it started: first politely, then with
// KILL to its whole group. It returns when nothing of it runs any more. It may
// be called twice and after a death.
func (p *Process) Stop() {
	p.stopOnce.Do(func() {
		grace := p.cfg.Grace
		if grace == 0 {
			grace = 5 * time.Second
		}
		pids := append(p.freezer.pids(), p.PID())
		_ = p.freezer.thaw() // a frozen process cannot hear the signal
		select {
		case <-p.done:
		default:
			_ = syscall.Kill(p.PID(), p.cfg.Stop)
			select {
			case <-p.done:
			case <-time.After(grace):
			}
		}
		// The leader may be gone while its children live on.
		pids = append(pids, p.freezer.pids()...)
		p.freezer.kill()
		<-p.done
		if (p.cfg.Clock != Clock{}) {
			removeClockFiles(pids)
		}
		p.freezer.close()
		p.log.Close()
		if p.cfg.Address.Network == "unix" {
			_ = os.Remove(p.cfg.Address.Addr)
		}
	})
}

// tail returns the last n lines of a file, at most 4 KiB.
func tail(path string, n int) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	const most = 4096
	if st, err := f.Stat(); err == nil && st.Size() > most {
		_, _ = f.Seek(-most, io.SeekEnd)
	}
	b, _ := io.ReadAll(io.LimitReader(f, most))
	lines := strings.Split(strings.TrimRight(string(b), "\n"), "\n")
	if len(lines) > n {
		lines = lines[len(lines)-n:]
	}
	return strings.Join(lines, "\n")
}
