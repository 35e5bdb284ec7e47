package targets

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"sync"

	"plumbline/targets/keys"
)

// maker writes the requests of a set with tokens, each by its number alone: so
// they can be made on all CPUs at once, and the bytes are the same on any
// number of them.
type maker struct {
	spec   Spec
	ring   *keys.Ring
	claims *claims
	times  times
	algs   []keys.Alg
	heads  []string // by place in algs
}

func newMaker(ctx context.Context, s Spec, c *claims) (m *maker, err error) {
	m = &maker{spec: s, claims: c, times: s.times(), algs: s.algs()}
	for _, alg := range m.algs {
		m.heads = append(m.heads, s.head(alg))
	}
	m.ring, err = keys.New(ctx, s.Seed, s.RSABits, m.algs)
	return m, err
}

// algs are those of the spec in the order of keys.Algs: the spec's decides nothing.
func (s Spec) algs() (all []keys.Alg) {
	for _, alg := range keys.Algs() {
		if slices.Contains(s.Algs, alg) {
			all = append(all, alg)
		}
	}
	return all
}

// rsaBits is 0 if there is no RSA key.
func (s Spec) rsaBits() int {
	if slices.Contains(s.Algs, keys.RS256) || slices.Contains(s.Algs, keys.PS256) {
		return s.RSABits
	}
	return 0
}

// head is the start of an algorithm's requests, up to the token.
func (s Spec) head(alg keys.Alg) string {
	url, _ := s.RequestURL(alg) // Check has seen it
	return s.Method + " " + url + "\n" + authorization + ": " + bearer
}

// reserve counts the requests that only the preflight sends: one of each
// algorithm, where no request is to be sent twice.
func (m *maker) reserve() int {
	if m.spec.Kind.Once() {
		return len(m.algs)
	}
	return 0
}

// request says of the i-th request, from 0, the place of its algorithm and
// the token's exp. After those of the load stands the reserve, then what is
// refused.
func (m *maker) request(i int) (place int, exp int64) {
	after := i - m.spec.Count
	switch {
	case after < 0:
		return turn(m.spec.Seed, i, len(m.algs)), m.times.exp(i)
	case after < m.reserve():
		return after, m.times.last
	}
	return (after - m.reserve()) % len(m.algs), m.times.refused()
}

// tally counts what was written.
type tally struct {
	requests map[keys.Alg]int
	expire   int // before the run's end
}

// chunkSize is how many requests a CPU makes at a time; few enough for those
// of large RSA keys to be interrupted soon, enough for the rest to cost nothing.
const chunkSize = 64

// chunk is a stretch of requests while it is made.
type chunk struct {
	from, to int
	out      []byte
	places   []int // of the algorithms
	expire   int
	err      error
	made     chan struct{}
}

// write writes the requests from and up to these numbers, made on all CPUs, in
// order. It holds a few chunks at a time, whatever their number.
func (m *maker) write(ctx context.Context, w io.Writer, from, to int, done func(requests int)) (*tally, error) {
	ctx, cancel := context.WithCancel(ctx)
	var all sync.WaitGroup
	defer all.Wait()
	defer cancel()
	workers := runtime.GOMAXPROCS(0)
	queue, order := make(chan *chunk, 4*workers), make(chan *chunk, 4*workers)
	all.Go(func() {
		defer close(queue)
		defer close(order)
		for at := from; at < to; at += chunkSize {
			c := &chunk{from: at, to: min(at+chunkSize, to), places: make([]int, len(m.algs)), made: make(chan struct{})}
			select {
			case order <- c:
			case <-ctx.Done():
				return
			}
			queue <- c
		}
	})
	for range workers {
		all.Go(func() {
			for c := range queue {
				c.err = m.fill(ctx, c)
				close(c.made)
			}
		})
	}
	sum := &tally{requests: map[keys.Alg]int{}}
	for c := range order {
		<-c.made
		if c.err != nil {
			return nil, c.err
		}
		if _, err := w.Write(c.out); err != nil {
			return nil, err
		}
		for place, n := range c.places {
			sum.requests[m.algs[place]] += n
		}
		sum.expire += c.expire
		done(c.to)
	}
	return sum, context.Cause(ctx)
}

// fill makes a chunk's requests.
func (m *maker) fill(ctx context.Context, c *chunk) error {
	var object []byte
	for i := c.from; i < c.to; i++ {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		place, exp := m.request(i)
		alg := m.algs[place]
		object = m.claims.append(object[:0], token{n: i + 1, alg: alg, iat: m.times.iat, exp: exp})
		signed, err := m.ring.Sign(alg, object)
		if err != nil {
			return err
		}
		c.out = append(append(append(c.out, m.heads[place]...), signed...), "\n\n"...)
		c.places[place]++
		if m.times.duration == 0 {
			continue
		}
		// From the token itself, so that the manifest says what is in the file.
		written, err := expOf(signed)
		if err != nil {
			return err
		}
		if written+m.times.leeway < m.times.base+m.times.duration {
			c.expire++
		}
	}
	return nil
}

const (
	authorization = "Authorization"
	bearer        = "Bearer "
)

// expOf reads the claim exp of a token, in seconds since 1970; its signature
// is not looked at.
func expOf(token string) (int64, error) {
	_, rest, _ := strings.Cut(token, ".")
	payload, _, found := strings.Cut(rest, ".")
	if !found {
		return 0, errors.New("is no token: it has no three parts")
	}
	object, err := base64.RawURLEncoding.DecodeString(payload)
	if err != nil {
		return 0, fmt.Errorf("the token's claims: %w", err)
	}
	var claims struct {
		Exp *int64 `json:"exp"`
	}
	if err := json.Unmarshal(object, &claims); err != nil {
		return 0, fmt.Errorf("the token's claims: %w", err)
	}
	if claims.Exp == nil {
		return 0, errors.New("the token has no exp")
	}
	return *claims.Exp, nil
}
