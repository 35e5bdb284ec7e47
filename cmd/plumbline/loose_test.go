package main

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/spf13/cobra"
	vegeta "github.com/tsenart/vegeta/v12/lib"
)

// results FILE [KEY=VALUE...]: what `vegeta attack` or `vegeta encode` writes.
//
//	at    the minute in which it was sent; also seeds the latencies (0)
//	n     requests, one a ms, to /a and /b in turns (3000)
//	as    gob, csv or json (gob)
//	slow  how much slower /a is, in percent (0)
//	fail  how many of the requests to /b get 500, in percent (0)
//	lost  how many results at the end have no target (0)
//	more  a further route, every tenth request
func writeResults(ts *testscript.TestScript, _ bool, args []string) {
	opts := map[string]string{"at": "0", "n": "3000", "as": "gob", "slow": "0", "fail": "0", "lost": "0"}
	for _, a := range args[1:] {
		key, value, _ := strings.Cut(a, "=")
		opts[key] = value
	}
	number := func(key string) int {
		n, err := strconv.Atoi(opts[key])
		ts.Check(err)
		return n
	}
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC).Add(time.Duration(number("at")) * time.Minute)
	rng := rand.New(rand.NewPCG(uint64(number("at")), 1))
	var b bytes.Buffer
	enc := map[string]func(io.Writer) vegeta.Encoder{"gob": vegeta.NewEncoder, "csv": vegeta.NewCSVEncoder, "json": vegeta.NewJSONEncoder}[opts["as"]](&b)
	for k := range number("n") {
		r := vegeta.Result{
			Seq: uint64(k), Timestamp: start.Add(time.Duration(k) * time.Millisecond), Code: 200, Method: "GET", URL: "http://old:8080/a",
			Latency: time.Duration(200e3 * math.Exp(0.1*rng.NormFloat64())), BytesIn: 512,
		}
		switch {
		case opts["more"] != "" && k%10 == 9:
			r.URL = "http://old:8080" + opts["more"]
		case k%2 == 1:
			r.URL = "http://old:8080/b?x=1"
			if k/2%100 < number("fail") {
				r.Code = 500
			}
		default:
			r.Latency += r.Latency * time.Duration(number("slow")) / 100
		}
		if k >= number("n")-number("lost") {
			r = vegeta.Result{Seq: r.Seq, Timestamp: r.Timestamp, Latency: 1, Error: "no targets to attack"}
		}
		ts.Check(enc.Encode(&r))
	}
	path := ts.MkAbs(args[0])
	ts.Check(os.MkdirAll(filepath.Dir(path), 0o755))
	ts.Check(os.WriteFile(path, b.Bytes(), 0o644))
}

// All words after a flag belong to it, up to the next one.
func TestSideFlags(t *testing.T) {
	for line, want := range map[string]string{
		"S":                                  "[S] [] []",
		"--baseline a --candidate b":         "[] [a] [b]",
		"--baseline a b c --candidate d e f": "[] [a b c] [d e f]",
		"--candidate d e --baseline=a b":     "[] [a b] [d e]",
		"--baseline a --candidate d --baseline b --candidate e f --baseline c": "[] [a b c] [d e f]",
		"S --baseline a b --candidate c d":                                     "[S] [a b] [c d]",
		"--baseline a b --json --candidate c d":                                "[] [a b] [c d]",
		"--baseline a --candidate c --json d":                                  "[] [a] [c d]",
		"--baseline a --candidate c -- -d --json":                              "[] [a] [c -d --json]",
	} {
		var f sideFlags
		c := &cobra.Command{Use: "gate"}
		c.Flags().Bool("json", false, "")
		f.add(c)
		if err := c.ParseFlags(strings.Fields(line)); err != nil {
			t.Errorf("%s: %v", line, err)
			continue
		}
		rest, files := f.split(c.Flags().Args())
		if got := fmt.Sprint(rest, files[0], files[1]); got != want {
			t.Errorf("%s: %s, want %s", line, got, want)
		}
	}
}

func TestPercentilesFlag(t *testing.T) {
	for text, want := range map[string][]float64{
		"50": {50}, "0,50, 99.9,100": {0, 50, 99.9, 100}, "99.999": {99.999},
		"": nil, "50,": nil, "P50": nil, "101": nil, "-1": nil, "NaN": nil, "1e1": nil, "50,50.0": nil, "99.9999": nil, "0x10": nil, "50;90": nil,
		strings.TrimSuffix(strings.Repeat("1,", 30), ","): nil,
	} {
		var f percentilesFlag
		err := f.Set(text)
		if (err == nil) != (want != nil) || !slices.Equal(f, want) {
			t.Errorf("-p %q: %v, %v, want %v", text, []float64(f), err, want)
		}
	}
}
