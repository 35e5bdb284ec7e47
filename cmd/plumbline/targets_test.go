package main

import (
	"strings"
	"testing"
	"time"
)

func TestTellOnce(t *testing.T) {
	for _, tt := range []struct {
		name    string
		perTick int // of 1,000, in half a second
		want    string
	}{
		{"slow", 10, "70 of 1000 tokens signed, about 47s left\n"},
		{"soon done", 100, ""},
		{"done before it is told", 500, ""},
		{"does not go on", 0, ""},
	} {
		var out strings.Builder
		now := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
		tell := tellOnce(&out, func() time.Time { return now })
		for i := range 100 {
			tell(min(1000, (i+1)*tt.perTick), 1000)
			now = now.Add(time.Second / 2)
		}
		if out.String() != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, out.String(), tt.want)
		}
	}
}
