package demo

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func ask(t *testing.T, h http.Handler, method, url, body string) (int, string) {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(method, url, strings.NewReader(body)))
	b, err := io.ReadAll(w.Result().Body)
	if err != nil {
		t.Fatal(err)
	}
	return w.Code, string(b)
}

var requests = []struct {
	method, url, body string
	status            int
	want              string // part of the answer
}{
	{"GET", "/films", "", 200, `"title":"The river and the letter"`},
	{"GET", "/films/7", "", 200, `"id":8`},
	{"GET", "/search?q=river", "", 200, `{"hits":`},
	{"POST", "/films", Film, 201, `"The quiet river"`},
	{"POST", "/films", "{", 400, "no film"},
	{"GET", "/nothing", "", 404, `"no such thing"`},
	{"GET", "/health", "", 204, ""},
}

// A slowed route answers byte for byte the same: only its work differs.
func TestAnswers(t *testing.T) {
	var every []Slow
	for _, route := range Routes() {
		every = append(every, Slow{Route: route, Share: 0.3})
	}
	plain := Handler()
	for _, q := range requests {
		status, body := ask(t, plain, q.method, q.url, q.body)
		if status != q.status || !strings.Contains(body, q.want) {
			t.Errorf("%s %s: %d %s, want %d with %s", q.method, q.url, status, body, q.status, q.want)
		}
		slowStatus, slowBody := ask(t, Handler(every...), q.method, q.url, q.body)
		if slowStatus != status || slowBody != body {
			t.Errorf("%s %s slowed: %d %s, want %d %s", q.method, q.url, slowStatus, slowBody, status, body)
		}
	}
}

func TestParseSlow(t *testing.T) {
	got, err := ParseSlow("GET /search=30%")
	if err != nil || got != (Slow{Route: "GET /search", Share: 0.3}) {
		t.Errorf("got %v, %v", got, err)
	}
	for _, bad := range []string{"", "GET /search", "GET /search=30", "GET /search=x%", "GET /search=-1%", "GET /search=NaN%", "GET /other=3%"} {
		if _, err := ParseSlow(bad); err == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
}

func BenchmarkRoutes(b *testing.B) {
	h := Handler()
	for _, q := range requests {
		b.Run(q.method+q.url, func(b *testing.B) {
			for b.Loop() {
				h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(q.method, q.url, strings.NewReader(q.body)))
			}
		})
	}
}
