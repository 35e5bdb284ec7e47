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
	return fmt.Sprintf("preflight: %s: %s", e.Answer.Route, e.Why)
}

// Detail shows the body, or as much of it as tells what it is.
func (e *AnswerError) Detail() string {
	const most = 600
	body := strings.TrimRight(strings.ToValidUTF8(e.Answer.Excerpt, "\uFFFD"), "\n")
	if body == "" {
		return ""
	}
	head := fmt.Sprintf("the body (%d bytes):\n", e.Answer.BodyBytes)
	if len(body) > most {
		body = strings.ToValidUTF8(body[:most], "") + " …"
	}
	return head + body
}

// checkAnswers holds the preflight of one arm against what is expected. The first
// preflight of a session, first's, fixes the expected status of the routes for
// which the plan names none; from then on every arm must answer the same.
func checkAnswers(routes []record.Route, first string, answers []record.Answer) error {
	for i, a := range answers {
		want := &routes[i].Status
		bad := func(format string, args ...any) error {
			return &AnswerError{Answer: a, Why: fmt.Sprintf(format, args...)}
		}
		switch {
		case a.Error != "":
			return bad("no answer: %s", a.Error)
		case len(*want) > 0 && slices.Contains(*want, a.Status):
		case routes[i].Learned:
			return bad("status %d, but %s answered %s", a.Status, first, statuses(*want))
		case len(*want) > 0:
			return bad("status %d, but `expect` in the plan wants %s", a.Status, statuses(*want))
		case a.Status == 401 || a.Status == 403 || a.Status >= 500:
			return bad("status %d; if that is the answer to weigh, name it in the plan: `expect: {%q: {status: [%d]}}`", a.Status, a.Route, a.Status)
		default:
			*want, routes[i].Learned = []int{a.Status}, true
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
