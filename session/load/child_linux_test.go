package load

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// childMode turns the test binary into another process of a benchmark, so
// that what is measured is one process's own.
const childMode = "PLUMBLINE_LOAD_CHILD"

func TestMain(m *testing.M) {
	switch args := strings.Fields(os.Getenv(childMode)); {
	case len(args) == 0:
		os.Exit(m.Run())
	case args[0] == "server":
		serverMain(args[1], must(strconv.Atoi(args[2])), args[3] == "tls", must(time.ParseDuration(args[4])))
	case args[0] == "awake":
		awakeMain()
	case args[0] == "memory":
		memoryMain(args[1], args[2])
	}
}

func child(mode ...string) *exec.Cmd {
	cmd := exec.Command(must(os.Executable()))
	cmd.Env = append(os.Environ(), childMode+"="+strings.Join(mode, " "))
	cmd.Stderr = os.Stderr
	return cmd
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// awakeMain keeps its CPU from sleeping, as a session does, until it is killed.
func awakeMain() {
	runtime.LockOSThread()
	check(unix.SchedSetAttr(0, &unix.SchedAttr{Policy: unix.SCHED_IDLE}, 0))
	fmt.Println("awake")
	for {
	}
}

// serverMain serves h1 and h2c, or with TLS h1 and h2, until its standard
// input ends. Each request occupies its CPU for the time of work.
func serverMain(network string, bodySize int, secure bool, work time.Duration) {
	body := make([]byte, bodySize)
	address := "127.0.0.1:0"
	if network == "unix" {
		dir := must(os.MkdirTemp("", "load"))
		defer os.RemoveAll(dir)
		address = filepath.Join(dir, "s")
	}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(true)
	protocols.SetUnencryptedHTTP2(true)
	server := http.Server{Protocols: protocols, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for start := time.Now(); time.Since(start) < work; {
		}
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		w.Header().Set("Content-Location", "/actors?select=*")
		w.Header().Set("Cache-Control", "no-store")
		w.Write(body)
	})}
	l := must(net.Listen(network, address))
	if secure {
		own := httptest.NewTLSServer(nil) // has a certificate
		own.Close()
		server.TLSConfig = &tls.Config{Certificates: own.TLS.Certificates}
	}
	fmt.Println(l.Addr())
	if secure {
		go server.ServeTLS(l, "", "")
	} else {
		go server.Serve(l)
	}
	io.Copy(io.Discard, os.Stdin)
	server.Close()
}

// startServer starts it on the last of the allowed CPUs and keeps this
// process on the first, as a session on two CPUs does, both CPUs awake.
func startServer(b *testing.B, network string, bodySize int, secure bool, work time.Duration) (address string) {
	b.Helper()
	var all unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil {
		b.Fatal(err)
	}
	var first, last unix.CPUSet
	for cpu := range len(all) * 64 {
		if all.IsSet(cpu) {
			if first.Count() == 0 {
				first.Set(cpu)
			}
			last.Zero()
			last.Set(cpu)
		}
	}
	procs := runtime.GOMAXPROCS(1)
	b.Cleanup(func() {
		runtime.GOMAXPROCS(procs)
		pin(b, &all)
	})
	startChild(b, &first, "awake")
	startChild(b, &last, "awake")
	way := "plain"
	if secure {
		way = "tls"
	}
	address = startChild(b, &last, "server", network, strconv.Itoa(bodySize), way, work.String())
	pin(b, &first)
	return address
}

// startChild starts a child on some CPUs and returns the first line it says.
func startChild(b *testing.B, cpus *unix.CPUSet, mode ...string) string {
	b.Helper()
	cmd := child(mode...)
	stop := must(cmd.StdinPipe())
	out := must(cmd.StdoutPipe())
	pin(b, cpus) // inherited
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		stop.Close()
		if mode[0] == "awake" {
			cmd.Process.Kill()
		}
		cmd.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		b.Fatal(err)
	}
	return strings.TrimSpace(line)
}

// pin binds all threads; one that starts later has the CPUs of its parent.
func pin(b *testing.B, cpus *unix.CPUSet) {
	b.Helper()
	for range 2 { // once more for threads that started meanwhile
		for _, task := range must(os.ReadDir("/proc/self/task")) {
			if err := unix.SchedSetaffinity(must(strconv.Atoi(task.Name())), cpus); err != nil && err != unix.ESRCH {
				b.Fatal(err)
			}
		}
	}
}
