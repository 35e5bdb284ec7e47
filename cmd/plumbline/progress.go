package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"

	"plumbline/session"
)

// progress tells on stderr how a session goes: one line that is overwritten
// on a terminal, a line per block elsewhere.
type progress struct {
	w     io.Writer
	width int // of the terminal; 0: none

	mu    sync.Mutex
	last  session.Event
	since time.Time // of last
	stop  chan struct{}
	once  sync.Once
}

func newProgress(w io.Writer) *progress {
	p := &progress{w: w, stop: make(chan struct{})}
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) || os.Getenv("TERM") == "dumb" {
		return p
	}
	if width, _, err := term.GetSize(int(f.Fd())); err == nil && width > 20 {
		p.width = width
		go p.tick()
	}
	return p
}

// tick counts down the time left. Once a second costs the generator nothing
// that could be measured.
func (p *progress) tick() {
	t := time.NewTicker(time.Second)
	defer t.Stop()
	for {
		select {
		case <-p.stop:
			return
		case <-t.C:
			p.mu.Lock()
			p.draw()
			p.mu.Unlock()
		}
	}
}

// printf prints a line that stays.
func (p *progress) printf(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.erase()
	fmt.Fprintf(p.w, format+"\n", args...)
	p.draw()
}

func (p *progress) event(e session.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if e.Phase == p.last.Phase && e.Left > p.last.Left-time.Since(p.since) && e.Block == p.last.Block {
		e.Left = p.last.Left
	}
	p.last, p.since = e, time.Now()
	if e.Lost != "" {
		p.erase()
		fmt.Fprintf(p.w, "block %s is lost: %s\n", which(e), e.Lost)
	}
	if p.width > 0 {
		p.draw()
		return
	}
	if e.Done && e.Lost == "" {
		fmt.Fprintf(p.w, "block %s done%s%s\n", which(e), left(e.Left, e.AtMost), worst(e.Worst))
	}
}

// which: "3 of 6", "3 of at most 20".
func which(e session.Event) string {
	if e.AtMost {
		return fmt.Sprintf("%d of at most %d", e.Block, e.Blocks)
	}
	return fmt.Sprintf("%d of %d", e.Block, e.Blocks)
}

func left(d time.Duration, atMost bool) string {
	if d <= 0 {
		return ""
	}
	if atMost {
		return fmt.Sprintf(", at most about %s left", d.Round(time.Second))
	}
	return fmt.Sprintf(", about %s left", d.Round(time.Second))
}

func worst(s string) string {
	if s == "" {
		return ""
	}
	return "; worst row: " + s
}

func (p *progress) draw() {
	if p.width == 0 || p.last.Blocks == 0 {
		return
	}
	e := p.last
	phase := e.Phase
	if e.Arm != "" {
		phase += " " + e.Arm
	}
	line := fmt.Sprintf("block %s: %s%s%s", which(e), phase, left(e.Left-time.Since(p.since), e.AtMost), worst(e.Worst))
	if r := []rune(line); len(r) >= p.width {
		line = string(r[:p.width-2]) + "…"
	}
	fmt.Fprintf(p.w, "\r\x1b[K%s", strings.Map(func(r rune) rune {
		if r < ' ' {
			return ' '
		}
		return r
	}, line))
}

func (p *progress) erase() {
	if p.width > 0 {
		fmt.Fprint(p.w, "\r\x1b[K")
	}
}

// close ends the line; what is printed next starts at a clean one.
func (p *progress) close() {
	p.once.Do(func() {
		close(p.stop)
		p.mu.Lock()
		defer p.mu.Unlock()
		p.erase()
		p.last = session.Event{}
	})
}
