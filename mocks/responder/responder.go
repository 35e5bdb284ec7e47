// Package responder is the server that no arm can touch: it answers inside
// plumbline's own process, every request with the same few bytes. Whatever
// differs in its latencies between two arms is the doing of the session, not
// of a router.
package responder

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"sync"
	"syscall"
)

// Answer is what every request gets, in HTTP/1.1.
const Answer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

// Responder answers on connections that it makes itself, so that it needs no
// address. The zero value is ready.
type Responder struct {
	mu     sync.Mutex
	closed bool
	conns  map[net.Conn]struct{} // its ends
	served sync.WaitGroup
}

// Dial makes a connection through the kernel, a pair of unix sockets, and
// answers on its other end until that is closed.
func (r *Responder) Dial(context.Context) (net.Conn, error) {
	ours, theirs, err := pair()
	if err != nil {
		return nil, fmt.Errorf("connecting to the control responder: %w", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		ours.Close()
		theirs.Close()
		return nil, fmt.Errorf("connecting to the control responder: %w", net.ErrClosed)
	}
	if r.conns == nil {
		r.conns = map[net.Conn]struct{}{}
	}
	r.conns[ours] = struct{}{}
	r.served.Go(func() {
		serve(ours)
		ours.Close()
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.conns, ours)
	})
	return theirs, nil
}

// Close cuts every connection and returns when nothing of the responder runs.
func (r *Responder) Close() {
	r.mu.Lock()
	r.closed = true
	for c := range r.conns {
		c.Close()
	}
	r.mu.Unlock()
	r.served.Wait()
}

// serve answers requests without a body, which is all that it is sent: one
// ends with an empty line.
func serve(c net.Conn) {
	in, answer := bufio.NewReader(c), []byte(Answer)
	for {
		line, err := in.ReadSlice('\n')
		if err != nil {
			return
		}
		if len(line) > 2 { // more than the end of a line
			continue
		}
		if _, err := c.Write(answer); err != nil {
			return
		}
	}
}

// pair is two ends of one connection.
func pair() (a, b net.Conn, err error) {
	syscall.ForkLock.RLock() // no child is to get them
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err == nil {
		syscall.CloseOnExec(fds[0])
		syscall.CloseOnExec(fds[1])
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil, nil, err
	}
	a, err = conn(fds[0])
	b, err2 := conn(fds[1])
	if err == nil && err2 == nil {
		return a, b, nil
	}
	for _, c := range []net.Conn{a, b} {
		if c != nil {
			c.Close()
		}
	}
	if err == nil {
		err = err2
	}
	return nil, nil, err
}

// conn takes a file descriptor over.
func conn(fd int) (net.Conn, error) {
	f := os.NewFile(uintptr(fd), "responder")
	defer f.Close() // FileConn has its own
	return net.FileConn(f)
}
