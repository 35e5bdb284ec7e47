package load

import (
	"encoding/binary"
	"net/http"
	"testing"
	"time"

	vegeta "github.com/tsenart/vegeta/v12/lib"
)

// What is spun is taken off to the nanosecond, or is left in.
func TestWhatADelayDoesToALatency(t *testing.T) {
	body := binary.NativeEndian.AppendUint64(binary.NativeEndian.AppendUint64(nil, 1234), 300)
	for _, tc := range []struct {
		spin *spinner
		want time.Duration
	}{{&spinner{Delay: Delay{Counts: true}}, 1000}, {&spinner{}, 700}} {
		results := make(chan *vegeta.Result, 2)
		results <- &vegeta.Result{Latency: 1000, Body: body}
		results <- &vegeta.Result{Latency: 1000} // no answer, so no delay
		close(results)
		s := &stretch{piece: 3, spin: tc.spin, sink: func(rs []*vegeta.Result) error {
			if rs[0].Latency != tc.want || rs[0].BytesIn != 1234 || rs[1].Latency != 1000 {
				t.Errorf("counts %v: %v of %d bytes, and %v without an answer", tc.spin.Counts, rs[0].Latency, rs[0].BytesIn, rs[1].Latency)
			}
			return nil
		}}
		if err := s.collect(results, func() {}); err != nil {
			t.Fatal(err)
		}
	}
}

// The delay is a share of the time since vegeta's time stamp.
func TestWhereADelayCountsFrom(t *testing.T) {
	began := time.Now()
	s := &spinner{Delay: Delay{Share: 0.5}, began: began}
	var target vegeta.Target
	before := time.Since(began)
	if err := s.target(func(t *vegeta.Target) error { t.Header = http.Header{"A": {"b"}}; return nil })(&target); err != nil {
		t.Fatal(err)
	}
	after := time.Since(began)
	header := target.Header.Clone()
	if at := s.start(header).Sub(began); at < before || at > after {
		t.Errorf("%s after the start, it was called between %s and %s", at, before, after)
	}
	if len(header) != 1 {
		t.Errorf("the arm gets %v", header)
	}
	start := time.Now().Add(-2 * time.Millisecond)
	from := time.Now()
	if spun := s.spin(start); spun < time.Millisecond || spun > time.Since(from) {
		t.Errorf("it says that it spun for %s of the %s it took; half of 2 ms and more was asked for", spun, time.Since(from))
	}
}
