package load

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	vegeta "github.com/tsenart/vegeta/v12/lib"

	"plumbline/record"
)

// BenchmarkMemory is the peak memory of a process that records b.N requests
// and then reads its record, as a session does before its verdict: a session
// of 6 blocks and 15 routes, against a server that answers at once, within
// the process.
func BenchmarkMemory(b *testing.B) {
	for _, mode := range []record.Mode{record.Sliced, record.Interleaved} {
		b.Run(string(mode), func(b *testing.B) {
			cmd := child("memory", string(mode), strconv.Itoa(b.N))
			cmd.Dir = b.TempDir()
			var sent, written, read float64
			if _, err := fmt.Sscan(string(must(cmd.Output())), &sent, &written, &read); err != nil {
				b.Fatal(err)
			}
			if sent < float64(b.N) {
				b.Fatalf("%.0f requests are in the record, want %d", sent, b.N)
			}
			b.ReportMetric(written, "written-MB")
			b.ReportMetric(read, "peak-MB")
		})
	}
}

func memoryMain(mode, requests string) {
	const blocks, slice = 6, 20 * time.Millisecond // some 4,000 requests, as in 200 ms of a fast router
	perRun := must(strconv.Atoi(requests))/(2*blocks) + 1
	ts := someTargets("router")
	client := clientOf(&instant{body: make([]byte, 2000), each: func(*http.Request) {}}, ts)
	meta := record.Meta{
		Format: record.Format, State: record.Complete, Rules: record.DefaultRules(),
		Arms: []record.Arm{{Name: "baseline", Role: record.Baseline}, {Name: "candidate", Role: record.Candidate}},
	}
	for _, t := range ts {
		meta.Routes = append(meta.Routes, record.Route{Name: record.RouteName(t.Method, t.URL), Status: []int{200}})
	}
	folder := must(record.Create(filepath.Join(must(os.Getwd()), "session")))
	for block := range blocks {
		for _, arm := range meta.Arms {
			ref := record.RunRef{ID: fmt.Sprintf("%03d-%s", len(meta.Order)+1, arm.Name), Block: block + 1, Arm: arm.Name}
			meta.Order = append(meta.Order, ref)
			run := record.Run{ID: ref.ID, Block: ref.Block, Arm: ref.Arm, State: record.Complete}
			w := must(folder.StartRun(run))
			quiet := QuietGC()
			sl := record.Slice{N: 1}
			end := func() {
				check(w.Slice(sl))
				sl = record.Slice{N: sl.N + 1}
				runtime.GC()
			}
			for sent := 0; sent < perRun; {
				before := sl.Sent
				o, err := client.Stretch(context.Background(), slice, func(rs []*vegeta.Result) error {
					sl.Sent += len(rs)
					return w.Results(sl.N, rs)
				})
				check(err)
				if sl.Start.IsZero() {
					sl.Start, sl.Counted = o.Start, o.Start
				}
				sl.End = o.End
				sent += sl.Sent - before
				if mode == string(record.Sliced) {
					end()
				}
			}
			if sl.Sent > 0 { // one stretch, but for its length, which is not known before
				end()
			}
			quiet()
			check(w.Finish(run))
		}
	}
	check(folder.SaveMeta(meta))
	written := peak()
	session := must(record.Open(folder.Dir()))
	sent := 0
	for _, r := range session.Runs {
		sent += r.Sent
	}
	fmt.Println(sent, written, peak())
	runtime.KeepAlive(session)
}

// peak is the largest resident set so far, in MB.
func peak() float64 {
	for line := range strings.Lines(string(must(os.ReadFile("/proc/self/status")))) {
		if kib, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			return must(strconv.ParseFloat(strings.Fields(kib)[0], 64)) * 1024 / 1e6
		}
	}
	panic("/proc/self/status has no VmHWM")
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
