package targets

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"plumbline/targets/keys"
)

const (
	// longLived is how many years the tokens are good that are not to expire:
	// those of the year 2000 today as well, where a router's clock cannot be moved.
	longLived = 100
	// head is how long before the first token is refused all of JWTCacheWorst
	// were made, so that none has an iat after its exp.
	head = time.Hour
	// mostFirst is FirstS of JWTCacheWorst, unless the run is short.
	mostFirst = 5
)

// times are the moments in a set's tokens, in seconds since 1970.
type times struct {
	base, iat int64
	last      int64 // exp of the reserve, and of every token that does not expire in the run

	// JWTCacheWorst:
	duration, leeway, first, count int64
}

func (s Spec) times() times {
	t := times{base: s.BaseTime.Unix(), count: int64(s.Count)}
	t.iat, t.last = t.base, s.BaseTime.AddDate(longLived, 0, 0).Unix()
	if s.Kind == JWTCacheWorst {
		t.duration, t.leeway = int64(s.Duration/time.Second), int64(s.Leeway/time.Second)
		t.first = min(mostFirst, (t.duration+3)/4)
		t.iat = t.base - t.leeway - int64(head/time.Second)
		t.last = t.base + t.duration - t.leeway
	}
	return t
}

// Good says from when to when a server takes the tokens of a set in which none
// is to expire: their nbf and exp; false: they do, or there are none.
func (m *Manifest) Good() (from, until time.Time, ok bool) {
	ok = m.Kind == JWTCache || m.Kind == JWTUnique
	if !ok {
		return from, until, false
	}
	return m.BaseTime, m.BaseTime.AddDate(longLived, 0, 0), true
}

// exp is that of the k-th token, from 0. With D the duration, L the leeway and
// F the seconds until the first is refused, the server refuses the k-th of N
// from this moment on:
//
//	base + F + ⌊k·D/N⌋,    exp = that − L
//
// So a server that is asked at a steady pace, N requests in D, gets each token
// F seconds before it goes bad (less than 1 s less, as exp is in whole seconds);
// it holds F seconds' worth of live tokens, and for each that comes one goes bad.
// Those with F + ⌊k·D/N⌋ < D, about (D−F)/D of them, do so before the run ends.
// exp lies before the base time where L > F: with a leeway of 30 s, tokens whose
// exp itself is spread over a run of 20 s would all outlive it.
func (t times) exp(k int) int64 {
	if t.duration == 0 {
		return t.last
	}
	return t.base + t.first + int64(k)*t.duration/t.count - t.leeway
}

// refused is the exp of a token that the server refuses from the base time on.
func (t times) refused() int64 { return t.base - 1 - t.leeway }

// RequestURL is that of the requests with an algorithm. Its error is one of
// Check's.
func (s Spec) RequestURL(alg keys.Alg) (string, error) {
	pieces, err := split(s.URL, "placeholder", "alg")
	if err != nil {
		return "", err
	}
	var out strings.Builder
	marked := s.URL == "" // Check says that it is missing
	for _, p := range pieces {
		if p.name == "alg" {
			p.text, marked = string(alg), true
		}
		out.WriteString(p.text)
	}
	_, query, _ := strings.Cut(s.URL, "?")
	switch {
	case marked:
	case hasParameter(query, "alg"):
		return "", fmt.Errorf("%s has a parameter alg, which is added to tell the algorithms apart; write {alg} where the algorithm's name is to stand, such as alg={alg}", excerpt(s.URL))
	case strings.Contains(out.String(), "?"):
		out.WriteString("&alg=" + string(alg))
	default:
		out.WriteString("?alg=" + string(alg))
	}
	return out.String(), nil
}

func hasParameter(query, name string) bool {
	for parameter := range strings.SplitSeq(query, "&") {
		key, _, _ := strings.Cut(parameter, "=")
		if plain, err := url.QueryUnescape(key); err == nil && plain == name {
			return true
		}
	}
	return false
}

// turn is the place in a round of n algorithms whose turn request i is, from
// 0: in each round a permutation of its own (Fisher and Yates), drawn from
// SHA-256, which no version of Go changes.
func turn(seed uint64, i, n int) int {
	if n == 1 {
		return 0
	}
	round := binary.BigEndian.AppendUint64([]byte("plumbline targets: turns "), seed)
	draw := sha256.Sum256(strconv.AppendInt(round, int64(i/n), 10))
	var order [8]int
	for at := range n {
		order[at] = at
	}
	for at := n - 1; at > 0; at-- {
		with := int(binary.BigEndian.Uint32(draw[4*at:]) % uint32(at+1))
		order[at], order[with] = order[with], order[at]
	}
	return order[i%n]
}
