package gates

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"plumbline/record"
)

// minDelivered is the share of what was due at a fixed rate that a run must
// have sent. With less, another load was measured than the plan's.
const minDelivered = 0.98

// offered counts a run's requests that were due at a fixed rate, and those of
// them that were sent. No slice makes up for another. Due is 0 if one does not
// say.
func offered(r *record.Run) (sent, due int) {
	for _, sl := range r.Slices {
		if sl.Due <= 0 {
			return 0, 0
		}
		sent += min(sl.Sent, sl.Due)
		due += sl.Due
	}
	return sent, due
}

// shortfall says by how much a run missed the session's rate; nothing if it
// kept it, or in a closed loop.
func shortfall(s *record.Session, r *record.Run) string {
	if s.Load.Rate <= 0 {
		return ""
	}
	sent, due := offered(r)
	if due <= 0 {
		return "the record does not say how many requests were due"
	}
	share := float64(sent) / float64(due)
	if share >= minDelivered {
		return ""
	}
	return fmt.Sprintf("delivered %s of %s/s (−%.1f %%)", thousands(share*s.Load.Rate), thousands(s.Load.Rate), 100*(1-share))
}

// delivered is the share of the due requests that each arm's runs sent; nil
// in a closed loop.
func delivered(s *record.Session) map[string]float64 {
	var shares map[string]float64
	for _, a := range s.Arms {
		sent, due := 0, 0
		for _, r := range s.Runs {
			if r.Arm == a.Name {
				n, of := offered(r)
				sent, due = sent+n, due+of
			}
		}
		if due > 0 {
			if shares == nil {
				shares = map[string]float64{}
			}
			shares[a.Name] = digits(6, float64(sent)/float64(due))
		}
	}
	return shares
}

// starved says how many runs each deciding arm lost because they delivered too
// little, with the first as an example; nothing if there is none.
func starved(s *record.Session) string {
	baselines, candidate, ok := sides(s.Arms)
	if !ok {
		return ""
	}
	example := ""
	count := func(arm string) (lost, all int) {
		for _, r := range s.Runs {
			if r.Arm != arm || r.State != record.Complete { // what ended early has a reason of its own
				continue
			}
			all++
			if reason := shortfall(s, r); reason != "" {
				lost++
				if example == "" {
					example = r.ID + ": " + reason
				}
			}
		}
		return lost, all
	}
	c, ofC := count(candidate.Name)
	b, ofB := count(baselines[0].Name)
	if example == "" {
		return ""
	}
	return fmt.Sprintf("The rate was not reached in %d of %d runs of the candidate and %d of %d of the baseline (%s): less than %.0f %% of what was due does not count.",
		c, ofC, b, ofB, example, 100*minDelivered)
}

// thousands shows a rate: "601", "1,000", "12.5".
func thousands(x float64) string {
	if x < 100 {
		return strconv.FormatFloat(math.Round(x*10)/10, 'f', -1, 64)
	}
	text := strconv.FormatFloat(x, 'f', 0, 64)
	var b strings.Builder
	for i, r := range text {
		if i > 0 && (len(text)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteRune(r)
	}
	return b.String()
}
