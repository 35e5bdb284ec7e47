// Command router-demo is the demo router alone, the one of `plumbline mock
// demo`: it imports nothing but the standard library and mocks/demo, so that a
// package of it is another one only where the router itself has changed.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"plumbline/mocks/demo"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:8080", "host:port, or the path of a unix socket")
	var slow []demo.Slow
	flag.Func("slow", `make a route do more of its work, such as "GET /search=30%"; may be repeated`, func(s string) error {
		parsed, err := demo.ParseSlow(s)
		slow = append(slow, parsed)
		return err
	})
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "router-demo: %q: it takes no arguments, only flags\n", flag.Arg(0))
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := demo.Serve(ctx, *listen, false, slow...); err != nil {
		fmt.Fprintln(os.Stderr, "router-demo:", err)
		os.Exit(1)
	}
}
