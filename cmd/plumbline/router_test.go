package main

import (
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// routerMain is the server that the stories weigh. What it does wrong is said
// by its flags; an argument @FILE stands for the words of that file, so that
// a revision can differ from another without being compiled.
func routerMain() {
	var args []string
	for _, a := range os.Args[1:] {
		file, ok := strings.CutPrefix(a, "@")
		if !ok {
			args = append(args, a)
			continue
		}
		words, err := os.ReadFile(file)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		args = append(args, strings.Fields(string(words))...)
	}
	f := flag.NewFlagSet("router", flag.ExitOnError)
	listen := f.String("listen", "", "path of a unix socket, or host:port")
	fail := f.Bool("fail", false, "answer every second request with 500")
	status := f.Int("status", 200, "answer with it")
	size := f.Int("size", 100, "bytes of the body")
	die := f.Bool("die", false, "end before listening")
	deaf := f.Bool("deaf", false, "never listen")
	last := f.Int64("last", 0, "end at this request; 0: never")
	work := f.Duration("work", 0, "do so much for each request, one after the other")
	cert := f.String("cert", "", "speak TLS with this certificate")
	key := f.String("key", "", "and this key")
	stubborn := f.Bool("stubborn", false, "do not end at TERM")
	background := f.Bool("background", false, "go on in another process, and end")
	from := f.Int64("from", 0, "do what -does says from this request on; 0: never")
	does := f.String("does", "", "500, hang, endless (body) or close (the connection)")
	scatter := f.Bool("scatter", false, "start a process that leaves the session and one that hides its environment")
	_ = f.Parse(args) // it ends the process

	body := strings.Repeat("x", *size)
	switch {
	case *status >= 400:
		body = `{"error": "no token, no films"}`
	case *die:
		fmt.Fprintln(os.Stderr, "the database is asleep")
		os.Exit(7)
	case *deaf:
		fmt.Fprintln(os.Stderr, "waiting for a database")
		select {}
	}
	if *stubborn {
		term := make(chan os.Signal, 1)
		signal.Notify(term, syscall.SIGTERM)
		go func() {
			<-term
			fmt.Fprintln(os.Stderr, "not now")
		}()
	}
	if *scatter {
		scatterChildren()
	}
	if *background {
		child := exec.Command(os.Args[0], "-listen", *listen)
		if err := child.Start(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	network := "tcp"
	if strings.Contains(*listen, "/") {
		network = "unix"
	}
	l, err := net.Listen(network, *listen)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Fprintln(os.Stderr, "listening")
	var served atomic.Int64
	var busy sync.Mutex
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := served.Add(1)
		if *work > 0 {
			busy.Lock()
			time.Sleep(*work)
			busy.Unlock()
		}
		if n == *last {
			fmt.Fprintln(os.Stderr, "out of memory, of all things")
			os.Exit(9)
		}
		if n == 1 || n == 20 { // there is no other than the preflight's, and there is load
			fmt.Fprintln(os.Stderr, "request", n)
		}
		if *from > 0 && n >= *from {
			misbehave(w, r, *does)
			return
		}
		if n%2 == 0 && *fail {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		w.WriteHeader(*status)
		fmt.Fprint(w, body)
	})}
	if *cert != "" {
		err = server.ServeTLS(l, *cert, *key)
	} else {
		err = server.Serve(l)
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// scatterChildren starts what is hard to find again. Both keep TMPDIR, by
// which nothing-left knows the processes of a story.
func scatterChildren() {
	away := exec.Command("sleep", "1000")
	away.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	hidden := exec.Command("sleep", "1001")
	hidden.Env = []string{"TMPDIR=" + os.Getenv("TMPDIR")}
	for _, c := range []*exec.Cmd{away, hidden} {
		if err := c.Start(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	fmt.Fprintln(os.Stderr, "scattered")
}

func misbehave(w http.ResponseWriter, r *http.Request, how string) {
	switch how {
	case "500":
		w.WriteHeader(http.StatusInternalServerError)
	case "hang":
		fmt.Fprintln(os.Stderr, "thinking")
		<-r.Context().Done()
	case "endless":
		for r.Context().Err() == nil {
			fmt.Fprint(w, strings.Repeat("x", 1<<16))
			time.Sleep(10 * time.Millisecond)
		}
	case "close":
		panic(http.ErrAbortHandler)
	}
}
