package report_test

import (
	"strings"
	"testing"
	"time"

	"plumbline/gates"
	"plumbline/record"
	"plumbline/report"
)

// Every page says what the routers' own clocks showed, if somebody's was moved.
func TestClockLine(t *testing.T) {
	moved := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	later := moved.Add(time.Hour)
	const at = " at each start, by libfaketime"
	pages := func(t *testing.T, set func(*record.Session)) map[string]string {
		st := newStory(gates.Pass)
		set(&st.s)
		single, m := measuring([]float64{0.5}, []string{"a", "b"}, "GET /")
		set(single)
		sessions, v := varying("GET /")
		for _, s := range sessions {
			set(s)
		}
		return map[string]string{
			"text": text(t, st, report.Options{}), "markdown": markdown(t, st),
			"measured": measuredText(t, single, m, 0), "measured markdown": measuredMarkdown(t, single, m),
			"variance": varianceText(t, sessions, v, 0), "variance markdown": varianceMarkdown(t, sessions, v),
		}
	}
	for name, tt := range map[string]struct {
		clocks [2]time.Time // of the first arm, and of the others
		want   []string
	}{
		"nobody's":         {[2]time.Time{}, nil},
		"everybody's":      {[2]time.Time{moved, moved}, []string{"2000-01-01T00:00:00Z" + at}},
		"at another time":  {[2]time.Time{moved, later}, []string{"2000-01-01T00:00:00Z" + at, "2000-01-01T01:00:00Z" + at}},
		"the others' only": {[2]time.Time{{}, moved}, []string{"not moved", "2000-01-01T00:00:00Z" + at}},
	} {
		for page, got := range pages(t, func(s *record.Session) {
			for i := range s.Arms {
				s.Arms[i].Clock = tt.clocks[min(i, 1)]
			}
		}) {
			flat := strings.Join(strings.Fields(got), " ")
			if strings.Contains(flat, "libfaketime") != (tt.want != nil) {
				t.Errorf("%s, %s: libfaketime is named where it must not be, or not where it must:\n%s", name, page, got)
			}
			for _, want := range tt.want {
				if !strings.Contains(flat, want) {
					t.Errorf("%s, %s: no %q in\n%s", name, page, want, got)
				}
			}
		}
	}
}
