package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"plumbline/targets"
	"plumbline/targets/keys"
)

func newTargets() *cobra.Command {
	var f targetsFlags
	c := &cobra.Command{
		Use:   "targets DIR --kind KIND",
		Short: "Make keys, tokens and requests, bit for bit the same from the same seed",
		Long: `Makes the folder DIR: targets.http (requests in vegeta's format), the keys that
their tokens are signed with (jwks.json, jwks.public.json without private and
symmetric keys, PEM files, hs.secret), and manifest.json, which says what was
made and the SHA-256 of each file; of jwt-cache-worst also expired.http, tokens
that the server must refuse. The folder comes to be as a whole or not at all.
Signing is quick but for RSA: some hundred tokens of 4096 bits a second. The
sets that a plan has made are kept in plumbline/targets below $XDG_CACHE_HOME,
else ~/.cache, until nobody has used them for 30 days. The kinds, and what each
shows about a server:

  jwt-cache        COUNT long-lived tokens, which the load repeats. Where the
                   server keeps verified tokens, every one after the first
                   round is a hit: what a hit costs.
  jwt-unique       Every request a token of its own, long-lived. No cache can
                   help: what verification costs, and a cache that only grows.
  jwt-cache-worst  Every request a token of its own, and those that a cache
                   holds expire while the run goes on (--duration, --leeway):
                   verification, and a cache that has to clean up all the time.
  mixed            A file written by hand (--from), checked and copied with the
                   bodies that it names: what the server does all day.

Each algorithm has a row of its own in the report: {alg} in the URL, or else
alg=HS256 added to its query. Tokens have iat, nbf, exp and sub ("user-1"), and
the claims of --claim and --claims; in their strings {n} is the token's number,
{sub}, {alg} and {seed} are what they say, and {{ is a brace.

The keys are for tests only: anyone can make them again, from the seed.

--force replaces a folder that an earlier "plumbline targets" has made, if it
holds nothing else and no file of it was edited.`,
		Example: `  plumbline targets load/jwt --kind jwt-cache --claim role=author
  plumbline targets load/new --kind jwt-unique --count 100000 --algs HS256,ES256
  plumbline targets load/old --kind jwt-cache-worst --count 50000 --algs HS256,ES256 --leeway 30s
  plumbline targets load/rest --kind mixed --from rest.http`,
		Args: args(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, a []string) error {
			s, err := f.spec(c)
			if err != nil {
				return usage(err)
			}
			return f.make(c, a[0], s)
		},
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveFilterDirs
		},
	}
	f.add(c)
	return c
}

// targetsFlags are those of the command targets.
type targetsFlags struct {
	kind, baseTime, method, url, claimsFile, from string
	seed, count, rsaBits                          uint64
	algs, claims                                  []string
	duration, leeway                              time.Duration
	force, asJSON                                 bool
}

// usualRun is the --duration of tokens that expire in a run.
const usualRun = 20 * time.Second

func (f *targetsFlags) add(c *cobra.Command) {
	usual := targets.DefaultSpec(targets.JWTCache)
	flags := c.Flags()
	flags.StringVar(&f.kind, "kind", "", wordsOf(targets.Kinds(), ", "))
	flags.Var(whole(&f.seed, usual.Seed, anySeed), "seed", "what keys and order come from: the same `number`, the same bytes")
	flags.StringVar(&f.baseTime, "base-time", usual.BaseTime.Format(time.RFC3339), "`moment` at which the tokens begin, and the router's clock is to start")
	flags.Var(whole(&f.count, uint64(usual.Count), "from 1 on"), "count", "how many requests")
	flags.StringVar(&f.method, "method", usual.Method, "method of every request")
	flags.StringVar(&f.url, "url", usual.URL, "URL of every request; its host does not matter")
	flags.Var(whole(&f.rsaBits, uint64(usual.RSABits), "from 2048 to 16384"), "rsa-bits", "size of the RSA key, from 2048 on")
	flags.StringSliceVar(&f.algs, "algs", stringsOf(usual.Algs), "algorithms, in turns; known are "+wordsOf(keys.Algs(), ", "))
	flags.StringArrayVar(&f.claims, "claim", nil, "a further claim, as `NAME=VALUE`; VALUE is JSON or else text; may be repeated")
	flags.StringVar(&f.claimsFile, "claims", "", "`file` with a JSON object of further claims")
	flags.DurationVar(&f.duration, "duration", usualRun, "jwt-cache-worst: from a router's start to its last request, "+targets.LeastDuration.String()+" or more")
	flags.DurationVar(&f.leeway, "leeway", 0, "jwt-cache-worst: how long after exp the server still takes a token")
	flags.StringVar(&f.from, "from", "", "mixed: the `file` to copy, in vegeta's HTTP or JSON format")
	flags.BoolVar(&f.force, "force", false, "replace a folder that plumbline targets has made")
	flags.BoolVar(&f.asJSON, "json", false, "print manifest.json instead of a summary")
	_ = c.RegisterFlagCompletionFunc("kind", cobra.FixedCompletions(stringsOf(targets.Kinds()), cobra.ShellCompDirectiveNoFileComp))
	_ = c.RegisterFlagCompletionFunc("algs", completeAlgs)
	_ = c.MarkFlagFilename("claims", "json")
	_ = c.MarkFlagFilename("from")
}

// wholeFlag is a number as people write it: pflag's own take 010 for 8.
type wholeFlag struct {
	n   *uint64
	may string // which it may be
}

// anySeed is what a seed may be.
const anySeed = "from 0 to 2⁶⁴ − 1"

func whole(n *uint64, usual uint64, may string) *wholeFlag {
	*n = usual
	return &wholeFlag{n, may}
}

func (f *wholeFlag) String() string { return strconv.FormatUint(*f.n, 10) }
func (f *wholeFlag) Type() string   { return "number" }

func (f *wholeFlag) Set(s string) error {
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		return errors.New("want a whole number " + f.may)
	}
	*f.n = n
	return nil
}

// completeAlgs completes the last of a list.
func completeAlgs(_ *cobra.Command, _ []string, prefix string) (all []string, _ cobra.ShellCompDirective) {
	before := prefix[:strings.LastIndex(prefix, ",")+1]
	for _, alg := range keys.Algs() {
		if !strings.Contains(","+before, ","+string(alg)+",") {
			all = append(all, before+string(alg))
		}
	}
	return all, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}

// spec is the kind's default with what was said. A flag that is not for the
// kind is left to Spec.Check to refuse.
func (f *targetsFlags) spec(c *cobra.Command) (targets.Spec, error) {
	s := targets.DefaultSpec(targets.Kind(f.kind))
	if s.Kind == targets.JWTCacheWorst {
		s.Duration = usualRun
	}
	given := c.Flags().Changed
	for _, name := range []string{"claims", "from"} {
		if given(name) && c.Flag(name).Value.String() == "" {
			return s, fmt.Errorf("--%s: names no file; is a variable not set?", name)
		}
	}
	if given("seed") {
		s.Seed = f.seed
	}
	if given("base-time") {
		t, err := time.Parse(time.RFC3339, f.baseTime)
		if err != nil {
			return s, fmt.Errorf("--base-time: %q is no moment; write one such as 2000-01-01T00:00:00Z", f.baseTime)
		}
		s.BaseTime = t.UTC()
	}
	if given("count") {
		s.Count = int(min(f.count, math.MaxInt))
	}
	if given("method") {
		s.Method = f.method
	}
	if given("url") {
		s.URL = f.url
	}
	if given("rsa-bits") {
		s.RSABits = int(min(f.rsaBits, math.MaxInt))
	}
	if given("algs") {
		s.Algs = nil
		for _, alg := range f.algs {
			s.Algs = append(s.Algs, keys.Alg(strings.TrimSpace(alg)))
		}
	}
	if given("duration") {
		s.Duration = f.duration
	}
	if given("leeway") {
		s.Leeway = f.leeway
	}
	s.From = f.from
	var err error
	s.Claims, err = f.template()
	return s, err
}

// template is the JSON object of --claims with the members of --claim, each as
// it stands: one that is there twice is for Spec.Check to refuse.
func (f *targetsFlags) template() (json.RawMessage, error) {
	var members [][]byte
	if f.claimsFile != "" {
		data, err := readTemplate(f.claimsFile)
		if err != nil {
			return nil, fmt.Errorf("--claims: %w", err)
		}
		if inner := bytes.TrimSpace(data[1 : len(data)-1]); len(inner) > 0 {
			members = append(members, inner)
		}
	}
	for _, claim := range f.claims {
		name, value, found := strings.Cut(claim, "=")
		if claim == "" {
			return nil, errors.New("--claim: is empty; is a variable not set?")
		}
		if !utf8.ValidString(claim) {
			return nil, fmt.Errorf("--claim: %q is not UTF-8", claim)
		}
		if !found || name == "" {
			return nil, fmt.Errorf("--claim: %q is not NAME=VALUE, such as role=author", claim)
		}
		if !json.Valid([]byte(value)) {
			value = quoted(value)
		}
		members = append(members, []byte(quoted(name)+":"+value))
	}
	if f.claimsFile == "" && len(members) == 0 {
		return nil, nil
	}
	return objectOf(members), nil
}

func objectOf(members [][]byte) json.RawMessage {
	return append(append([]byte("{"), bytes.Join(members, []byte(","))...), '}')
}

func quoted(s string) string {
	data, _ := json.Marshal(s) // a string always can be
	return string(data)
}

// readTemplate reads a file that is small, as what fits into a token is.
func readTemplate(path string) (json.RawMessage, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	const most = 1 << 20
	data, err := io.ReadAll(io.LimitReader(file, most+1))
	switch {
	case err != nil:
		return nil, err
	case len(data) > most:
		return nil, fmt.Errorf("%s is larger than %d KiB; no server takes a token of that size", path, most>>10)
	}
	return targets.ParseClaims(path, data)
}

// make makes the folder and says what is in it.
func (f *targetsFlags) make(c *cobra.Command, dir string, s targets.Spec) error {
	ctx, end := tellSigned(c.Context(), c.ErrOrStderr())
	m, err := targets.Generate(ctx, dir, s, version(), f.force)
	end()
	var field *targets.FieldError
	if errors.As(err, &field) {
		return usage(fmt.Errorf("%s: %w", f.flagOf(field.Field), field.Err))
	}
	var place *targets.DirError
	if errors.As(err, &place) {
		return usage(err)
	}
	if err != nil {
		return err
	}
	if f.asJSON {
		return writeJSON(c.OutOrStdout(), m)
	}
	_, err = io.WriteString(c.OutOrStdout(), summary(dir, m))
	return err
}

// flagOf is what sets a field of a spec.
func (f *targetsFlags) flagOf(field string) string {
	switch {
	case field == "claims" && f.claimsFile == "":
		return "--claim"
	case field == "claims" && len(f.claims) > 0:
		return "--claims, --claim"
	}
	return "--" + strings.ReplaceAll(field, "_", "-")
}

// summary says in a few lines what was made.
func summary(dir string, m *targets.Manifest) string {
	var out strings.Builder
	fmt.Fprintf(&out, "%s: %s of kind %s", dir, numbered(m.Requests, "request"), m.Kind)
	var by []string
	for _, alg := range keys.Algs() {
		if n := m.Requested[alg]; n > 0 {
			by = append(by, fmt.Sprintf("%s %d", alg, n))
		}
	}
	if len(by) > 0 {
		fmt.Fprintf(&out, " (%s), tokens from %s", strings.Join(by, ", "), m.BaseTime.Format(time.RFC3339))
	}
	out.WriteByte('\n')
	if m.Reserve > 0 {
		fmt.Fprintf(&out, "each is to be sent once; in reserve at the end of the file, for the preflight: %d\n", m.Reserve)
	}
	if e := m.Expiry; e != nil {
		fmt.Fprintf(&out, "expiring within %d s of the router's start: %s, the first after %d s (leeway %d s)\n", e.DurationS, numbered(e.Expire, "token"), e.FirstS, e.LeewayS)
	}
	var names []string
	for _, file := range m.Files {
		names = append(names, file.Path)
	}
	fmt.Fprintf(&out, "files: %s\n", strings.Join(append(names, targets.ManifestName), " "))
	if m.Warning != "" {
		out.WriteString("the keys are for tests only: anyone can make them again, from the seed\n")
	}
	return out.String()
}

// tellSigned says how far the signing is, once that takes long: on a terminal
// all the time, elsewhere in one line.
func tellSigned(ctx context.Context, w io.Writer) (_ context.Context, end func()) {
	file, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) || os.Getenv("TERM") == "dumb" {
		return targets.WithProgress(ctx, tellOnce(w, time.Now)), func() {}
	}
	start, shown := time.Now(), false
	ctx = targets.WithProgress(ctx, func(done, total int) {
		if time.Since(start) > time.Second {
			fmt.Fprintf(w, "\r\x1b[K%d %% of %d tokens signed", 100*done/total, total)
			shown = true
		}
	})
	return ctx, func() {
		if shown {
			fmt.Fprint(w, "\r\x1b[K")
		}
	}
}

// tellOnce says after a few seconds of signing how long the rest takes, if that
// is as long again: who looks at a log then knows that nothing hangs.
func tellOnce(w io.Writer, now func() time.Time) func(done, total int) {
	const soon = 3 * time.Second
	var start time.Time
	first, told := 0, false
	return func(done, total int) {
		if start.IsZero() {
			start, first = now(), done
		}
		passed := now().Sub(start)
		if told || passed < soon || done <= first {
			return
		}
		told = true
		if left := passed * time.Duration(total-done) / time.Duration(done-first); left > soon {
			fmt.Fprintf(w, "%d of %d tokens signed, about %s left\n", done, total, left.Round(time.Second))
		}
	}
}

func numbered(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

func stringsOf[T ~string](words []T) (all []string) {
	for _, w := range words {
		all = append(all, string(w))
	}
	return all
}

func wordsOf[T ~string](words []T, between string) string {
	return strings.Join(stringsOf(words), between)
}
