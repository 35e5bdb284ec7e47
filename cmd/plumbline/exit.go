package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"plumbline/session"
)

// exitError ends the program with a code; a nil err says nothing more.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// usage marks an error as the caller's: code 2.
func usage(err error) error {
	if err == nil {
		return nil
	}
	return &exitError{code: 2, err: err}
}

// classify finds the code of an error that does not carry one.
func classify(err error) *exitError {
	var sig *signalError
	var use *session.UsageError
	switch {
	case errors.As(err, &sig):
		return &exitError{code: sig.code(), err: err}
	case errors.As(err, &use):
		return &exitError{code: 2, err: err}
	}
	return &exitError{code: 1, err: err}
}

// signalError is the cause of a context that a signal has ended.
type signalError struct{ signal os.Signal }

func (e *signalError) Error() string {
	if e.signal == os.Interrupt {
		return "interrupted"
	}
	return "ended by signal: " + e.signal.String()
}

func (e *signalError) code() int {
	if s, ok := e.signal.(syscall.Signal); ok {
		return 128 + int(s)
	}
	return 1
}

// withSignals ends the context at the first Ctrl-C, TERM or hang-up, so that
// everything is put away; the second one kills us as usual.
func withSignals(parent context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(parent)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	// Who reads our output may go away (| head): the write fails, we do not.
	// Not ignored, which the routers would inherit.
	pipes := make(chan os.Signal, 1)
	signal.Notify(pipes, syscall.SIGPIPE)
	go func() {
		select {
		case s := <-signals:
			signal.Stop(signals)
			cancel(&signalError{s})
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		signal.Stop(pipes)
		cancel(context.Canceled)
	}
}
