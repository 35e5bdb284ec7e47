package session

import (
	"context"
	"errors"
	"testing"
	"time"
)

// Two sessions on one CPU take turns, two on others do not wait.
func TestTurns(t *testing.T) {
	dir := t.TempDir()
	never := func(int) { t.Error("it has to wait") }
	first, err := takeTurn(t.Context(), dir, []int{1, 0}, never)
	if err != nil {
		t.Fatal(err)
	}
	other, err := takeTurn(t.Context(), dir, []int{2}, never)
	if err != nil {
		t.Fatal(err)
	}
	defer other()

	waits, got := make(chan int), make(chan func())
	go func() {
		release, err := takeTurn(t.Context(), dir, []int{1, 3}, func(cpu int) { waits <- cpu })
		if err != nil {
			t.Error(err)
		}
		got <- release
	}()
	if cpu := <-waits; cpu != 1 {
		t.Errorf("it waits for CPU %d, want 1", cpu)
	}
	select {
	case <-got:
		t.Error("two sessions measure on CPU 1")
	case <-time.After(300 * time.Millisecond):
	}
	first()
	(<-got)()
}

func TestTurnsEndWithTheirContext(t *testing.T) {
	dir := t.TempDir()
	release, err := takeTurn(t.Context(), dir, []int{0}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	why := errors.New("interrupted")
	ctx, cancel := context.WithCancelCause(t.Context())
	if _, err := takeTurn(ctx, dir, []int{0}, func(int) { cancel(why) }); !errors.Is(err, why) {
		t.Errorf("got %v, want %v", err, why)
	}
}
