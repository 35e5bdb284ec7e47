// Command plumbline answers one question about an HTTP router or API server:
// is this build slower than that one?
//
// # Exit codes
//
//	0    pass: nothing judged is slower (try: found just what was planted; variance: it measured)
//	1    plumbline failed
//	2    usage: a flag, an argument or the plan is wrong
//	3    regression
//	4    inconclusive: the data cannot say
//	5    invalid: nothing could be judged
//	130  interrupted (128 + the signal's number)
//
// `go run` turns every code but 0 into 1.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
)

func main() { os.Exit(Main()) }

// Main runs the command line and returns its exit code.
func Main() int {
	ctx, stop := withSignals(context.Background())
	defer stop()
	root := newRoot()
	root.SetArgs(os.Args[1:])
	err := root.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	var exit *exitError
	if !errors.As(err, &exit) {
		exit = classify(err)
	}
	if exit.err != nil {
		fmt.Fprintf(os.Stderr, "plumbline: %v\n", exit.err)
	}
	return exit.code
}
