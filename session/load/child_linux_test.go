package load

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

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
		serverMain(args[1], args[2])
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

// serverMain serves h1 and h2c until its standard input ends.
func serverMain(network, bodySize string) {
	body := make([]byte, must(strconv.Atoi(bodySize)))
	address := "127.0.0.1:0"
	if network == "unix" {
		dir := must(os.MkdirTemp("", "load"))
		defer os.RemoveAll(dir)
		address = filepath.Join(dir, "s")
	}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	server := http.Server{Protocols: protocols, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		w.Header().Set("Content-Location", "/actors?select=*")
		w.Header().Set("Cache-Control", "no-store")
		w.Write(body)
	})}
	l := must(net.Listen(network, address))
	fmt.Println(l.Addr())
	go server.Serve(l)
	io.Copy(io.Discard, os.Stdin)
	server.Close()
}

// startServer starts it on the last of the allowed CPUs and keeps this
// process on the first, as a session on two CPUs does.
func startServer(b *testing.B, network string, bodySize int) (address string) {
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
	cmd := child("server", network, strconv.Itoa(bodySize))
	stop := must(cmd.StdinPipe())
	out := must(cmd.StdoutPipe())
	pin(b, &last) // inherited
	err := cmd.Start()
	pin(b, &first)
	procs := runtime.GOMAXPROCS(1)
	b.Cleanup(func() {
		stop.Close()
		cmd.Wait()
		runtime.GOMAXPROCS(procs)
		pin(b, &all)
	})
	if err != nil {
		b.Fatal(err)
	}
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
