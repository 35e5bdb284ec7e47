package gates_test

import (
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	vegeta "github.com/tsenart/vegeta/v12/lib"

	"plumbline/gates"
	"plumbline/record"
)

var (
	sessions = flag.Int("sessions", 1000, "sessions per cell of -bench Characteristics")
	only     = flag.String("cells", "", "regular expression: only these truths of -bench Characteristics/promises")
	recorded = flag.String("recorded", "", "folder of sessions that -bench Idea has recorded, for -bench Characteristics")
)

// BenchmarkCharacteristics measures METHOD.md's operating characteristics and
// prints them as the tables of docs/BENCHMARKS.md:
//
//	go test -run '^$' -bench Characteristics -benchtime 1x -timeout 2h ./gates -args -sessions 1000 -recorded DIR
//
// DIR holds sessions of real routers (see BenchmarkIdea); without it the parts
// about them are left out. Characteristics/promises is the first table alone,
// also /rivals and /recorded.
func BenchmarkCharacteristics(b *testing.B) {
	for _, part := range []struct {
		name string
		tell func(*testing.B, io.Writer)
	}{{"promises", tellPromises}, {"rivals", tellRivals}, {"recorded", tellRecorded}} {
		b.Run(part.name, func(b *testing.B) {
			start := time.Now()
			part.tell(b, os.Stdout)
			b.ReportMetric(0, "ns/op") // its time says nothing
			fmt.Fprintf(os.Stderr, "%s: %v\n", part.name, time.Since(start).Round(time.Second))
		})
	}
}

func percent(share float64) string { return fmt.Sprintf("%.1f %%", 100*share) }

func (p promise) limit() string {
	switch {
	case p.least > 0:
		return "≥ " + percent(p.least)
	case p.most < 1:
		return "≤ " + percent(p.most)
	}
	return "–"
}

// kept says what the measured share makes of the promise.
func (p promise) kept(m measuredShare) string {
	switch {
	case p.least == 0 && p.most == 1:
		return ""
	case m.at >= p.least && m.at <= p.most:
		return "kept"
	case m.high >= p.least && m.low <= p.most:
		return "missed, within the simulation's error"
	}
	return "**missed**"
}

func tellPromises(b *testing.B, out io.Writer) {
	fmt.Fprintf(out, "\n| truth | what | promised | measured | 95 %% interval | mean blocks | |\n| --- | --- | --- | --- | --- | --- | --- |\n")
	for _, c := range cells() {
		if !regexp.MustCompile(*only).MatchString(c.name) {
			continue
		}
		all := judgeMany(*sessions, func(i int) *gates.Verdict { return c.truth.judge(uint64(i)) })
		for i, p := range c.promises {
			m, name, blocks := meanShare(sharesOf(all, p.share), 1.96), c.name, meanBlocks(all)
			if i > 0 {
				name, blocks = "", ""
			}
			fmt.Fprintf(out, "| %s | %s | %s | %.2f %% | %.2f to %.2f | %s | %s |\n",
				name, p.words, p.limit(), 100*m.at, 100*m.low, 100*m.high, blocks, p.kept(m))
		}
	}
	n := max(1, *sessions/50)
	p := atLeast(1, "the same verdict as without, byte for byte", nil)
	m := meanShare(judgeMany(n, func(i int) float64 { return sameTenfold(b, uint64(i)) }), 1.96)
	fmt.Fprintf(out, "| each request written ten times over, %d sessions | %s | %s | %.2f %% | %.2f to %.2f | 6 | %s |\n",
		n, p.words, p.limit(), 100*m.at, 100*m.low, 100*m.high, p.kept(m))
}

func meanBlocks(all []*gates.Verdict) string {
	n := 0
	for _, v := range all {
		n += v.Blocks
	}
	return fmt.Sprintf("%.1f", float64(n)/float64(len(all)))
}

// TestEveryRecordTenTimes: more of the same is not more evidence.
func TestEveryRecordTenTimes(t *testing.T) {
	for seed := range uint64(2) {
		if sameTenfold(t, seed) != 1 {
			t.Errorf("seed %d: another verdict", seed)
		}
	}
}

// sameTenfold is 1 if a session folder in which each request is written ten
// times over has the verdict of the one in which it is written once.
func sameTenfold(t testing.TB, seed uint64) float64 {
	t.Helper()
	w := small(seed)
	w.perSlice, w.change = 20, map[string]float64{routeName(1): 0.02 * float64(seed%5)} // some are open, some slower
	s := w.session()
	dir, err := os.MkdirTemp("", "plumbline-tenfold-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	var verdicts [2]string
	for i, times := range []int{1, 10} {
		at := filepath.Join(dir, fmt.Sprint(times))
		write(t, s, at, times)
		read, err := record.Open(at)
		if err != nil {
			t.Fatal(err)
		}
		data, err := gates.Judge(read).JSON()
		if err != nil {
			t.Fatal(err)
		}
		verdicts[i] = string(data)
	}
	if verdicts[0] != verdicts[1] {
		return 0
	}
	return 1
}

// write puts a session into a folder, each request as often as told.
func write(t testing.TB, s *record.Session, dir string, times int) {
	t.Helper()
	must := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	f, err := record.Create(dir)
	must(err)
	for _, r := range s.Runs {
		run := *r
		run.State = record.Running
		w, err := f.StartRun(run)
		must(err)
		seq, at := uint64(0), r.Started
		for i := range r.Slices {
			start := at
			var results []*vegeta.Result
			for _, route := range s.Routes {
				for _, l := range r.Samples[route.Name].Slice(i) {
					for range times {
						results = append(results, &vegeta.Result{
							Seq: seq, Timestamp: at, Latency: time.Duration(l), Code: 200,
							Method: "GET", URL: "http://router" + strings.TrimPrefix(route.Name, "GET "), BytesIn: 512,
						})
					}
					seq, at = seq+1, at.Add(time.Duration(l))
				}
			}
			must(w.Results(i+1, results))
			must(w.Slice(record.Slice{N: i + 1, Start: start, Counted: start, End: at, Sent: len(results) / times})) // identical ones count once
		}
		run.State = record.Complete
		must(w.Finish(run))
	}
	must(f.SaveMeta(s.Meta))
	must(f.Close())
}

// tellRecorded draws sessions from the recorded blocks of real routers.
func tellRecorded(b *testing.B, out io.Writer) {
	if *recorded == "" {
		fmt.Fprintln(os.Stderr, "no -recorded: the tables of real routers are left out")
		return
	}
	n := min(*sessions, mostDrawn)
	pools := openPools(b, *recorded)
	if len(pools) == 0 {
		b.Fatalf("%s holds no recorded session of both truths", *recorded)
	}
	var three, drawn, rival strings.Builder
	for _, p := range pools {
		fmt.Fprintf(&drawn, "| %s | %s | %s |\n", p.router, p.mode, strings.Join(p.growing(n), " | "))
		if p.mode == record.Sliced {
			minutes, compared := p.threeMinutes(n)
			fmt.Fprintf(&three, "| %s | %s |\n", p.router, strings.Join(minutes, " | "))
			compared.tell(&rival)
		}
	}
	fmt.Fprintf(out, `
Three minutes of load (%d blocks of 10 s), %d sessions drawn per figure:

| router | blocks recorded | A/A: sessions with a regression | P50 rows equivalent, ±5 %% | half-width, median: P50 | P90 | P50 +1 %%: equivalent, ±5 %% | P50 +3 %%: regression, ±1 %% |
| --- | --- | --- | --- | --- | --- | --- | --- |
%s%s%s
| router | mode | A/A of 6 blocks: pass | regression | 6 to 20: pass | regression | mean blocks | +8 %%: a regression there | elsewhere | mean blocks |
| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |
%s`, minutesBlocks, n, three.String(), rivalsHead, rival.String(), drawn.String())
}
