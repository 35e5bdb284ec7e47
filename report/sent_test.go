package report_test

import (
	"strings"
	"testing"

	"plumbline/gates"
	"plumbline/record"
	"plumbline/report"
)

// Every page says what was sent, if the record does.
func TestSentLine(t *testing.T) {
	for want, sent := range map[string]*record.Targets{
		"":                             nil,
		"kind login, 12 targets":       {Count: 12},
		"kind login, 1 target (mixed)": {Count: 1, Set: "mixed"},
		"kind login, 50 targets (jwt-cache): tokens of HS256, repeated":                                     {Count: 50, Set: "jwt-cache", Algs: []string{"HS256"}},
		"kind login, 9 targets (jwt-unique): tokens of HS256, RS256 and EdDSA, each sent once to a process": {Count: 9, Set: "jwt-unique", Algs: []string{"HS256", "RS256", "EdDSA"}, Once: true},
		"kind login, 3000 targets (jwt-cache-worst): tokens of HS256 and RS256, each sent once to a process, at most 7 skipped in a run, they expire within 8 s of its start with a leeway of 30 s": {
			Count: 3000, Set: "jwt-cache-worst", Algs: []string{"HS256", "RS256"}, Once: true, Skipped: 7, ExpireS: 8, LeewayS: 30,
		},
	} {
		st := newStory(gates.Pass)
		single, m := measuring([]float64{0.5}, []string{"a"}, "GET /")
		sessions, v := varying("GET /")
		for _, s := range append([]*record.Session{&st.s, single}, sessions...) {
			s.Asked.Kind, s.Targets = "login", sent
		}
		for page, got := range map[string]string{
			"text": text(t, st, report.Options{}), "markdown": markdown(t, st),
			"measured": measuredText(t, single, m, 0), "measured markdown": measuredMarkdown(t, single, m),
			"variance": varianceText(t, sessions, v, 0), "variance markdown": varianceMarkdown(t, sessions, v),
		} {
			flat := strings.ReplaceAll(strings.Join(strings.Fields(got), " "), `\`, "")
			if strings.Contains(flat, "kind login") != (want != "") || !strings.Contains(flat, want) {
				t.Errorf("%s: no %q in\n%s", page, want, got)
			}
		}
	}
}
