package session

import (
	"fmt"
	"slices"
	"strings"

	"plumbline/record"
)

// AnswerError says that a route does not answer as it must.
type AnswerError struct {
	Answer record.Answer
	Why    string
}

func (e *AnswerError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "preflight: %s: %s", e.Answer.Route, e.Why)
	if e.Answer.Excerpt != "" {
		fmt.Fprintf(&b, "; the body:\n    %s", strings.ReplaceAll(strings.TrimRight(e.Answer.Excerpt, "\n"), "\n", "\n    "))
	}
	return b.String()
}

// checkAnswers holds the preflight of one arm against what is expected. The first
// preflight of a session fixes the expected status of the routes for which
// the plan names none; from then on every arm must answer the same.
func checkAnswers(routes []record.Route, answers []record.Answer) error {
	for i, a := range answers {
		want := &routes[i].Status
		bad := func(format string, args ...any) error {
			return &AnswerError{Answer: a, Why: fmt.Sprintf(format, args...)}
		}
		switch {
		case a.Error != "":
			return bad("no answer: %s", a.Error)
		case len(*want) > 0 && !slices.Contains(*want, a.Status):
			return bad("status %d, but %s is expected (by `expect` in the plan, else by the first arm's answer)", a.Status, statuses(*want))
		case len(*want) > 0:
		case a.Status == 401 || a.Status == 403 || a.Status >= 500:
			return bad("status %d; if that is the answer to weigh, name it in the plan: `expect: {%q: {status: [%d]}}`", a.Status, a.Route, a.Status)
		default:
			*want = []int{a.Status}
		}
	}
	return nil
}

func statuses(codes []int) string {
	parts := make([]string, len(codes))
	for i, c := range codes {
		parts[i] = fmt.Sprint(c)
	}
	return strings.Join(parts, " or ")
}

// forRecord drops the excerpts of successes: they are only shown with an error.
func forRecord(answers []record.Answer) []record.Answer {
	kept := slices.Clone(answers)
	for i := range kept {
		if kept[i].Status < 400 && kept[i].Error == "" {
			kept[i].Excerpt = ""
		}
	}
	return kept
}
