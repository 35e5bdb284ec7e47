package session

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"strings"
	"time"

	"plumbline/plan"
	"plumbline/record"
	"plumbline/targets"
)

// bearer is what a request's token says, without its signature.
type bearer struct {
	header, claims []byte // as they are in the token
	signature      string // never shown
	times          map[string]json.RawMessage
}

// bearerOf decodes the token that a request carries, if it is a JWT.
func bearerOf(t targets.Target) (b bearer, ok bool) {
	for name, values := range t.Header {
		if !strings.EqualFold(name, "Authorization") || len(values) == 0 {
			continue
		}
		scheme, token, _ := strings.Cut(values[0], " ")
		parts := strings.Split(strings.TrimSpace(token), ".")
		if !strings.EqualFold(scheme, "Bearer") || len(parts) != 3 {
			continue
		}
		var err, err2 error
		b.signature = parts[2]
		b.header, err = base64.RawURLEncoding.DecodeString(parts[0])
		b.claims, err2 = base64.RawURLEncoding.DecodeString(parts[1])
		ok = err == nil && err2 == nil && json.Valid(b.header) && json.Unmarshal(b.claims, &b.times) == nil
		return b, ok
	}
	return b, false
}

// beside shows the token beside the router's clock at the moment of the answer.
func (b bearer) beside(run record.Run, a asked) string {
	now, moved := run.Clock(a.at)
	var out strings.Builder
	fmt.Fprintf(&out, "its token's header: %s\n", compact(b.header))
	fmt.Fprintf(&out, "its claims: %s\n", compact(b.claims))
	for _, name := range []string{"iat", "nbf", "exp"} {
		if at, ok := numericDate(b.times[name]); ok {
			fmt.Fprintf(&out, "%s is %s, %s\n", name, at.Format(time.RFC3339), distance(at, now))
		}
	}
	whose := "the router's clock, which is this machine's, was"
	if moved {
		whose = "the router's clock, which was moved, should have been"
	}
	fmt.Fprintf(&out, "%s %s", whose, now.UTC().Format(time.RFC3339))
	if a.answer.Date != "" {
		fmt.Fprintf(&out, "\nits Date header: %s", a.answer.Date)
	}
	if date, err := http.ParseTime(a.answer.Date); err == nil && moved && apart(date, a.at) < unmoved && apart(date, now) > unmoved {
		out.WriteString("\nso its clock was not moved: a program that is linked statically, as those in Go are, cannot be; weigh it with jwt-cache or jwt-unique and without router.clock, as their tokens are good today as well")
	}
	exp, _ := numericDate(b.times["exp"])
	switch until := a.target.Until; {
	case a.answer.Status == http.StatusOK || until.IsZero() || now.Before(exp):
	case now.Before(until):
		fmt.Fprintf(&out, "\nso it had expired by less than the leeway of %.0f s that the targets are made for: the router takes less; make them with its own", until.Sub(exp).Seconds())
	default:
		out.WriteString("\nso it had expired, leeway and all")
	}
	return out.String()
}

// unmoved is how near to this machine's clock a router's is that was not moved.
const unmoved = time.Minute

func apart(a, b time.Time) time.Duration { return a.Sub(b).Abs() }

// compact is JSON on one line that is not too long.
func compact(data []byte) string {
	const most = 400
	var line bytes.Buffer
	if json.Compact(&line, data) != nil {
		return "not JSON"
	}
	if line.Len() > most {
		return strings.ToValidUTF8(line.String()[:most], "") + " …"
	}
	return line.String()
}

// numericDate reads seconds since 1970 (RFC 7519, section 2).
func numericDate(raw json.RawMessage) (at time.Time, ok bool) {
	var seconds *float64
	const most = 1 << 37 // the year 6325: what is beyond is no date
	if json.Unmarshal(raw, &seconds) != nil || seconds == nil || math.Abs(*seconds) > most {
		return at, false
	}
	whole, rest := math.Modf(*seconds)
	return time.Unix(int64(whole), int64(rest*1e9)).UTC(), true
}

// distance: "12s before the router's clock", "36525 days after it".
func distance(at, now time.Time) string {
	d, where := at.Unix()-now.Unix(), "after"
	if d < 0 {
		d, where = -d, "before"
	}
	const day = 24 * 60 * 60
	long := fmt.Sprintf("%d days", d/day)
	if d < 2*day {
		long = plan.Short(time.Duration(d) * time.Second)
	}
	return fmt.Sprintf("%s %s the router's clock", long, where)
}
