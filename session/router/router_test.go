package router

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// TestMain turns the test binary into the routers that the tests start.
func TestMain(m *testing.M) {
	mode, listen := os.Getenv("ROUTER_MODE"), os.Getenv("ROUTER_LISTEN")
	if mode == "" {
		os.Exit(m.Run())
	}
	routerMain(mode, listen)
}

func routerMain(mode, listen string) {
	network := "tcp"
	if strings.Contains(listen, "/") {
		network = "unix"
	}
	switch mode {
	case "dies":
		fmt.Println("a last word")
		os.Exit(7)
	case "silent":
		time.Sleep(time.Minute)
	case "background": // the parent ends, a child would serve
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "ROUTER_MODE=serve")
		if err := cmd.Start(); err != nil {
			panic(err)
		}
		time.Sleep(300 * time.Millisecond)
		os.Exit(0)
	case "deaf":
		signal.Ignore(syscall.SIGTERM)
	case "children": // two that leave the process group
		for range 2 {
			cmd := exec.Command("sleep", "1000")
			cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
			if err := cmd.Start(); err != nil {
				panic(err)
			}
			fmt.Println("child", cmd.Process.Pid)
		}
	}
	l, err := net.Listen(network, listen)
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	start := time.Now()
	http.HandleFunc("/health", func(w http.ResponseWriter, r *http.Request) {
		if mode == "slow" && time.Since(start) < 300*time.Millisecond {
			w.WriteHeader(503)
		}
	})
	http.HandleFunc("/pid", func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, os.Getpid()) })
	http.HandleFunc("/cpus", func(w http.ResponseWriter, r *http.Request) {
		b, _ := os.ReadFile("/proc/self/status")
		_, rest, _ := strings.Cut(string(b), "Cpus_allowed_list:")
		line, _, _ := strings.Cut(rest, "\n")
		fmt.Fprint(w, strings.TrimSpace(line))
	})
	var open atomic.Int64 // connections
	http.HandleFunc("/open", func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, open.Load()) })
	server := &http.Server{Protocols: new(http.Protocols), ConnState: func(_ net.Conn, s http.ConnState) {
		switch s {
		case http.StateNew:
			open.Add(1)
		case http.StateClosed:
			open.Add(-1)
		}
	}}
	server.Protocols.SetHTTP1(mode != "h2")
	server.Protocols.SetHTTP2(mode == "h2")
	if mode == "h2" || mode == "tls" {
		own := httptest.NewTLSServer(nil) // has a certificate
		own.Close()
		server.TLSConfig = &tls.Config{Certificates: own.TLS.Certificates}
		_ = server.ServeTLS(l, "", "")
	}
	_ = server.Serve(l)
}

func config(t *testing.T, mode string) Config {
	t.Helper()
	dir, err := os.MkdirTemp("", "router") // a unix socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(dir, "s")
	return Config{
		Args: []string{exe}, Env: append(os.Environ(), "ROUTER_MODE="+mode, "ROUTER_LISTEN="+socket),
		Dir: dir, Log: filepath.Join(dir, "router.log"), Address: Address{Network: "unix", Addr: socket},
		Ready: Ready{Path: "/health", Within: 10 * time.Second}, Stop: syscall.SIGTERM, Grace: 300 * time.Millisecond,
	}
}

func onPort(t *testing.T, c Config, port int) Config {
	t.Helper()
	c.Address = Address{Network: "tcp", Addr: fmt.Sprintf("127.0.0.1:%d", port)}
	c.Env = append(c.Env, "ROUTER_LISTEN="+c.Address.Addr)
	return c
}

func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

func start(t *testing.T, c Config) *Process {
	t.Helper()
	p, err := Start(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Stop)
	return p
}

func get(t *testing.T, p *Process, path string) string {
	t.Helper()
	client := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return p.cfg.Address.Dial(ctx)
	}, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: true}}
	scheme := "http"
	if p.cfg.Ready.TLS {
		scheme = "https"
	}
	res, err := client.Get(scheme + "://router" + path)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func running(pid int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !strings.Contains(string(b), ") Z ")
}

func TestServesOnSocketAndPort(t *testing.T) {
	for _, c := range []Config{config(t, "serve"), onPort(t, config(t, "serve"), freePort(t))} {
		p := start(t, c)
		if err := p.WaitReady(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := get(t, p, "/pid"); got != fmt.Sprint(p.PID()) {
			t.Errorf("process %s answers, want %d", got, p.PID())
		}
		p.Stop()
		p.Stop() // harmless
		if running(p.PID()) {
			t.Error("it still runs after Stop")
		}
		if err := p.Alive("under load"); err == nil {
			t.Error("it counts as alive after Stop")
		}
		if _, err := os.Stat(c.Address.Addr); err == nil {
			t.Error("its socket is left behind")
		}
	}
}

// TestReadyOverTLS asks servers that speak nothing but HTTP/1.1 or HTTP/2; no connection of a probe may live on.
func TestReadyOverTLS(t *testing.T) {
	for _, mode := range []string{"tls", "h2"} {
		t.Run(mode, func(t *testing.T) {
			c := config(t, mode)
			c.Ready.TLS = true
			p := start(t, c)
			if err := p.WaitReady(t.Context()); err != nil {
				t.Fatal(err)
			}
			deadline := time.Now().Add(20 * time.Second)
			for open := ""; open != "1"; open = get(t, p, "/open") { // the one that asks
				if time.Now().After(deadline) {
					t.Fatalf("%s connections are open", open)
				}
			}
		})
	}
}

func TestReadyIsPolled(t *testing.T) {
	p := start(t, config(t, "slow"))
	if err := p.WaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	if p.ReadyIn() < 300*time.Millisecond {
		t.Errorf("ready after %s, while /health still said 503", p.ReadyIn())
	}
}

func TestWhatGoesWrongIsSaid(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	takenPort := taken.Addr().(*net.TCPAddr).Port

	cases := map[string]struct {
		cfg  func(c Config) Config
		mode string
		want []string
	}{
		"dies": {mode: "dies", want: []string{"the router ended before it was ready (exit status 7)", "the end of its log:\na last word"}},
		"never ready": {mode: "silent", cfg: func(c Config) Config { c.Ready.Within = 200 * time.Millisecond; return c },
			want: []string{"the router was not ready within 200ms", "it wrote nothing to its log"}},
		"plain text": {mode: "serve", cfg: func(c Config) Config { c.Ready.Within, c.Ready.TLS = 300*time.Millisecond, true; return c },
			want: []string{"the router was not ready within 300ms", "server gave HTTP response to HTTPS client"}},
		"wrong path": {mode: "serve", cfg: func(c Config) Config { c.Ready.Within, c.Ready.Path = 300*time.Millisecond, "/nothing"; return c },
			want: []string{"GET /nothing answers 404 Not Found"}},
		"goes to the background": {mode: "background", cfg: func(c Config) Config { c.Ready.Path = "/nothing"; return c },
			want: []string{"the router ended before it was ready (exit status 0)", "tell it to stay in the foreground"}},
		"port in use by a stranger": {mode: "serve", cfg: func(c Config) Config { return onPort(t, c, takenPort) },
			want: []string{"something already listens on 127.0.0.1:"}},
		"listens on another port in use": {mode: "serve", cfg: func(c Config) Config {
			address := onPort(t, c, freePort(t)).Address
			c = onPort(t, c, takenPort) // what the router is told
			c.Address = address         // what it should have listened on
			return c
		}, want: []string{"address already in use", "use {port} or {socket} in run"}},
		"no such program": {mode: "serve", cfg: func(c Config) Config { c.Args = []string{"no-such-router"}; return c },
			want: []string{`"no-such-router": executable file not found`, "not installed"}},
		"no such path": {mode: "serve", cfg: func(c Config) Config { c.Args = []string{"./server"}; return c },
			want: []string{"no such file or directory", "the build did not write"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := config(t, tc.mode)
			if tc.cfg != nil {
				c = tc.cfg(c)
			}
			p, err := Start(c)
			if err == nil {
				err = p.WaitReady(t.Context())
				p.Stop()
			}
			if err == nil {
				t.Fatal("no error")
			}
			got := err.Error()
			if strings.Contains(got, "\n") {
				t.Errorf("the error is not one line: %q", got)
			}
			var d interface{ Detail() string }
			if errors.As(err, &d) {
				got += "\n" + d.Detail()
			}
			for _, want := range tc.want {
				if !strings.Contains(got, want) {
					t.Errorf("got %v, want an error with %q", got, want)
				}
			}
		})
	}
}

// A stranger that takes the address between our look and the router's start
// must not be measured in its place.
func TestStrangerOnTheAddress(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("who owns a socket is checked on Linux only")
	}
	c := config(t, "silent")
	c.Ready.Path = ""
	p := start(t, c)
	l, err := net.Listen("unix", c.Address.Addr)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := p.WaitReady(t.Context()); err == nil || !strings.Contains(err.Error(), "belongs to another process") {
		t.Errorf("got %v", err)
	}
}

func TestWaitReadyEndsWithItsContext(t *testing.T) {
	p := start(t, config(t, "silent"))
	why := errors.New("interrupted")
	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(50*time.Millisecond, func() { cancel(why) })
	if err := p.WaitReady(ctx); !errors.Is(err, why) {
		t.Errorf("got %v, want %v", err, why)
	}
}

func TestDeathIsNoticed(t *testing.T) {
	p := start(t, config(t, "serve"))
	if err := p.WaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := p.Alive("under load"); err != nil {
		t.Errorf("alive, but %v", err)
	}
	if err := syscall.Kill(p.PID(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-p.Done()
	var death *DeathError
	if err := p.Alive("under load"); !errors.As(err, &death) || !strings.Contains(err.Error(), "ended under load (signal: killed)") {
		t.Errorf("got %v", err)
	}
}

func TestNothingIsLeft(t *testing.T) {
	for _, mode := range []string{"deaf", "children", "children by signals"} {
		for _, frozen := range []bool{false, true} {
			t.Run(fmt.Sprint(mode, " frozen ", frozen), func(t *testing.T) {
				mode, signalled := strings.CutSuffix(mode, " by signals")
				c := config(t, mode)
				c.Mark = fmt.Sprintf("TEST_MARK=%d", os.Getpid())
				p := start(t, c)
				if signalled && runtime.GOOS == "linux" {
					p.freezer.close()
					p.freezer = signals{group: p.PID(), mark: c.Mark}
				}
				if err := p.WaitReady(t.Context()); err != nil {
					t.Fatal(err)
				}
				if frozen {
					if err := p.Freeze(); err != nil {
						t.Fatal(err)
					}
				}
				p.Stop()
				if running(p.PID()) {
					t.Error("it still runs")
				}
				log, err := os.ReadFile(c.Log)
				if err != nil {
					t.Fatal(err)
				}
				for line := range strings.Lines(string(log)) {
					var pid int
					if _, err := fmt.Sscanf(line, "child %d", &pid); err == nil {
						if running(pid) {
							_ = syscall.Kill(pid, syscall.SIGKILL)
							t.Errorf("its child %d still runs", pid)
						}
					}
				}
			})
		}
	}
}

// While frozen a router answers nothing; thawed it goes on as if nothing had been.
func TestFreeze(t *testing.T) {
	for _, how := range []string{"best", "signals"} {
		t.Run(how, func(t *testing.T) {
			p := start(t, config(t, "serve"))
			if how == "signals" {
				p.freezer.close()
				p.freezer = signals{group: p.PID()}
			}
			if err := p.WaitReady(t.Context()); err != nil {
				t.Fatal(err)
			}
			for range 20 {
				if err := p.Freeze(); err != nil {
					t.Fatal(err)
				}
				answered := make(chan error, 1)
				go func() {
					c, err := p.cfg.Address.Dial(context.Background()) // the kernel accepts for it
					if err == nil {
						defer c.Close()
						fmt.Fprint(c, "GET /pid HTTP/1.0\r\n\r\n")
						_, err = c.Read(make([]byte, 1))
					}
					answered <- err
				}()
				select {
				case err := <-answered:
					t.Fatalf("a frozen router answers (%v)", err)
				case <-time.After(10 * time.Millisecond):
				}
				if err := p.Thaw(); err != nil {
					t.Fatal(err)
				}
				if err := <-answered; err != nil {
					t.Fatalf("thawed it does not answer: %v", err)
				}
			}
			t.Logf("%s by %s", how, p.Freezer())
		})
	}
}

func TestPinned(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("pinning is Linux only")
	}
	c := config(t, "serve")
	c.CPUs = []int{0}
	p := start(t, c)
	if err := p.WaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := get(t, p, "/cpus"); got != "0" {
		t.Errorf("it may run on CPUs %s, want 0", got)
	}
	c = config(t, "serve")
	c.CPUs = []int{1000}
	if p, err := Start(c); err == nil {
		p.Stop()
		t.Error("a CPU that is not there is accepted")
	}
}

func BenchmarkFreezeThaw(b *testing.B) {
	cmd, best, err := startFrozen(func() *exec.Cmd {
		cmd := exec.Command("sleep", "1000")
		cmd.SysProcAttr = processAttributes()
		return cmd
	}, nil, "")
	if err != nil {
		b.Fatal(err)
	}
	defer func() {
		go cmd.Wait() // a process that nobody waits for stays in its cgroup
		best.kill()
		best.close()
	}()
	for _, f := range []freezer{best, signals{group: cmd.Process.Pid}} {
		b.Run(f.name(), func(b *testing.B) {
			for b.Loop() {
				if err := errors.Join(f.freeze(), f.thaw()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
