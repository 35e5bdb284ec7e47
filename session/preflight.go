package session

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"plumbline/record"
	"plumbline/targets"
)

// probes are the requests of a preflight.
type probes struct {
	routes  []targets.Target // one for each route of the session, in its order
	expired []targets.Target // whose token every router must refuse
	leewayS int              // that those were made for
	good    bool             // each of routes has a token that a router is to take
}

// asked is a request of the preflight with its answer.
type asked struct {
	target targets.Target
	answer record.Answer
	at     time.Time // when it was answered, on this machine's clock
}

func ask(ctx context.Context, cl client, all []targets.Target) (done []asked, err error) {
	for _, t := range all {
		a := cl.Ask(ctx, t)
		if err := context.Cause(ctx); err != nil {
			return nil, err
		}
		done = append(done, asked{t, a, time.Now()})
	}
	return done, nil
}

func answersOf(all []asked) (answers []record.Answer) {
	for _, a := range all {
		answers = append(answers, a.answer)
	}
	return answers
}

// preflight asks each route once, before any load, and then what the router
// has to refuse.
func (c *conductor) preflight(ctx context.Context, m *member) error {
	c.tell(Event{Phase: "asking each route", Block: m.run.Block, Arm: m.arm.Label})
	all, err := ask(ctx, m.client, c.probes.routes)
	if err != nil {
		return err
	}
	expired, err := ask(ctx, m.client, c.probes.expired)
	if err != nil {
		return err
	}
	m.run.Preflight, m.run.Expired = forRecord(answersOf(all)), forRecord(answersOf(expired))
	if c.first == "" {
		c.first = m.arm.Label
	}
	if slices.ContainsFunc(append(all, expired...), func(a asked) bool { return a.answer.Error != "" }) {
		c.settle(m)
	}
	if err := m.proc.Alive("at the first requests"); err != nil {
		return &faultError{m, err}
	}
	wrong := checkAnswers(c.session.Routes, c.first, all, c.probes.good)
	if wrong == nil {
		wrong = checkExpired(expired, c.probes.leewayS)
	}
	if wrong != nil {
		wrong.explain(m.run, c.once)
		return &faultError{m, wrong}
	}
	c.started[m.arm.Name] = true
	return nil
}

// AnswerError says that a route does not answer as it must.
type AnswerError struct {
	asked
	Why   string
	Token string // what the request's token says, in some lines; empty: it is not about a token

	expired bool // the token had to be refused
	good    bool // it had to be taken
}

func (e *AnswerError) Error() string {
	return fmt.Sprintf("preflight: %s: %s", e.answer.Route, e.Why)
}

// Detail shows the body, or as much of it as tells what it is, and the token.
func (e *AnswerError) Detail() string {
	most := 600
	if e.Token != "" {
		most = 200 // of a refusal that is enough
	}
	var parts []string
	if body := strings.TrimRight(strings.ToValidUTF8(e.answer.Excerpt, "\uFFFD"), "\n"); body != "" {
		if len(body) > most {
			body = strings.ToValidUTF8(body[:most], "") + " …"
		}
		parts = append(parts, fmt.Sprintf("the body (%d bytes):\n%s", e.answer.BodyBytes, body))
	}
	if e.Token != "" {
		parts = append(parts, e.Token)
	}
	return strings.Join(parts, "\n\n") // a blank line, to tell where the body ends
}

// settle waits a moment: a router that dies closes its connections before its
// end is known.
func (c *conductor) settle(m *member) {
	select {
	case <-m.proc.Done():
	case <-time.After(200 * time.Millisecond):
	}
}

// explain adds what the request's token says, where the answer is about that.
func (e *AnswerError) explain(run record.Run, o *once) {
	refused := e.answer.Status == http.StatusUnauthorized || e.answer.Status == http.StatusForbidden
	token, ok := bearerOf(e.target)
	if !ok || !refused && !e.expired {
		return
	}
	e.Token = token.beside(run, e.asked)
	if until := e.target.Until; e.good && o != nil && !until.IsZero() {
		if now, _ := run.Clock(e.at); !now.Before(until) {
			e.Why = fmt.Sprintf("status %d to a token that had expired: the starts took longer than the targets are made for; %s", e.answer.Status, o.longer(e.at.Sub(run.Started), 1, 0))
		}
	}
	if token.signature != "" { // some servers repeat what they refuse
		e.answer.Excerpt = strings.ReplaceAll(e.answer.Excerpt, token.signature, "…")
	}
}

// checkAnswers holds the preflight of one arm against what is expected. The first
// preflight of a session, first's, fixes the expected status of the routes for
// which the plan names none; from then on every arm must answer the same. good
// says that the requests have tokens of a set that was made.
func checkAnswers(routes []record.Route, first string, answers []asked, good bool) *AnswerError {
	for i, asked := range answers {
		want, a := &routes[i].Status, asked.answer
		bad := func(format string, args ...any) *AnswerError {
			return &AnswerError{asked: asked, Why: fmt.Sprintf(format, args...)}
		}
		switch {
		case a.Error != "":
			return bad("no answer: %s", a.Error)
		case len(*want) > 0 && slices.Contains(*want, a.Status):
		case routes[i].Learned:
			return bad("status %d, but %s answered %s", a.Status, first, statuses(*want))
		case len(*want) > 0:
			return bad("status %d, but `expect` in the plan wants %s", a.Status, statuses(*want))
		case good && (a.Status == 401 || a.Status == 403):
			err := bad("status %d: a token of the set was refused that should be good (does the router verify with the keys in {targets}?); only if that is the answer to weigh, name it in the plan: `expect: {%q: {status: [%d]}}`", a.Status, a.Route, a.Status)
			err.good = true
			return err
		case a.Status == 401 || a.Status == 403 || a.Status >= 500:
			return bad("status %d; if that is the answer to weigh, name it in the plan: `expect: {%q: {status: [%d]}}`", a.Status, a.Route, a.Status)
		default:
			*want, routes[i].Learned = []int{a.Status}, true
		}
	}
	return nil
}

// checkExpired looks whether a router refuses what it has to: if it does not,
// the load would not be what it is called.
func checkExpired(answers []asked, leewayS int) *AnswerError {
	for _, asked := range answers {
		a := asked.answer
		why := ""
		switch {
		case a.Error != "":
			why = "no answer to a token that has expired: " + a.Error
		case a.Status != http.StatusUnauthorized && a.Status != http.StatusForbidden:
			why = fmt.Sprintf("status %d to a token that has expired, which wants 401 or 403: the router's clock is not moved, its leeway is longer than the %d s that the targets were made for, or it does not look at exp",
				a.Status, leewayS)
		default:
			continue
		}
		return &AnswerError{asked: asked, Why: why, expired: true}
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
			kept[i].Excerpt, kept[i].Date = "", ""
		}
	}
	return kept
}
