// Package demo is the router that `plumbline try` weighs: an honest small
// HTTP API over a fixed catalogue, whose work is real work of the CPU and
// the same at every start. Routes can be told to do a given share more of
// their own work, which is the slowdown that plumbline must find.
//
// It never sleeps, logs or draws a random number.
package demo

import (
	"bytes"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Slow makes one route do more work: Share 0.3 is 30 % more of what it does.
type Slow struct {
	Route string // as in Routes
	Share float64
}

// ParseSlow reads "GET /search=30%".
func ParseSlow(s string) (Slow, error) {
	route, share, ok := strings.Cut(s, "=")
	percent, hasSign := strings.CutSuffix(strings.TrimSpace(share), "%")
	value, err := strconv.ParseFloat(percent, 64)
	if !ok || !hasSign || err != nil || !(value >= 0 && value <= 10000) {
		return Slow{}, fmt.Errorf("slow route %q: want \"ROUTE=SHARE%%\", such as \"GET /search=30%%\"", s)
	}
	for _, r := range Routes() {
		if r == route {
			return Slow{Route: route, Share: value / 100}, nil
		}
	}
	return Slow{}, fmt.Errorf("slow route %q: the demo router has no such route; it has %s", route, strings.Join(Routes(), ", "))
}

// Routes are the names that ParseSlow knows.
func Routes() []string {
	names := make([]string, 0, len(routes))
	for _, r := range routes {
		names = append(names, r.name)
	}
	return names
}

// Targets are requests to every route, in vegeta's HTTP format.
//
//go:embed targets.http
var Targets string

// Film is the body of the POST in Targets.
//
//go:embed film.json
var Film string

type film struct {
	ID    int      `json:"id"`
	Title string   `json:"title"`
	Year  int      `json:"year"`
	Words []string `json:"words"`
}

// route is one row of the API. Its work is units calls of work; a slow route
// repeats the first ones, so that the answer stays the same.
type route struct {
	name  string
	units int
	work  func(c *catalogue, r *request, i int)
	reply func(c *catalogue, r *request) (status int, body any)
}

// request is the state of one request between its units of work.
type request struct {
	id    int
	query string
	body  []byte
	film  film
	hits  int
	sum   [sha256.Size]byte
	buf   bytes.Buffer
}

// The sizes are chosen so that each route works for some 60 to 180 µs on a
// current core: as much as HTTP itself costs or more, and short enough that
// the tail percentiles of a few seconds rest on thousands of requests.
var routes = [...]route{
	{"GET /films", 150, encodeFilm, func(c *catalogue, r *request) (int, any) { return http.StatusOK, c.films[:50] }},
	{"GET /films/7", 200, digestFilm, func(c *catalogue, r *request) (int, any) { return http.StatusOK, c.films[r.id%len(c.films)] }},
	{"GET /search", len(catalogueWords) * 60, matchFilm, func(c *catalogue, r *request) (int, any) { return http.StatusOK, map[string]int{"hits": r.hits} }},
	{"POST /films", 40, decodeFilm, func(c *catalogue, r *request) (int, any) { return http.StatusCreated, r.film }},
	{"GET /nothing", 150, digestFilm, func(c *catalogue, r *request) (int, any) {
		return http.StatusNotFound, map[string]string{"error": "no such thing"}
	}},
}

func encodeFilm(c *catalogue, r *request, i int) {
	r.buf.Reset()
	// A film of strings and numbers cannot fail to encode.
	_ = json.NewEncoder(&r.buf).Encode(c.films[i%len(c.films)])
}

func digestFilm(c *catalogue, r *request, i int) {
	h := sha256.New()
	h.Write(r.sum[:])
	h.Write(c.texts[(r.id+i)%len(c.texts)])
	h.Sum(r.sum[:0])
}

func matchFilm(c *catalogue, r *request, i int) {
	n := bytes.Count(c.texts[i%len(c.texts)], []byte(r.query))
	if i < len(c.texts) { // repeats change the work, not the answer
		r.hits += n
	}
}

func decodeFilm(c *catalogue, r *request, i int) {
	r.film = film{}
	if json.Unmarshal(r.body, &r.film) == nil {
		r.film.ID = len(c.films) + 1
	}
}

var catalogueWords = [...]string{"river", "harbour", "winter", "letter", "garden", "night", "station", "island", "mirror", "road"}

// catalogue is the API's data.
type catalogue struct {
	films []film
	texts [][]byte
}

func newCatalogue() *catalogue {
	c := &catalogue{}
	for i := range 200 {
		w := func(k int) string { return catalogueWords[(i*7+k*3)%len(catalogueWords)] }
		f := film{ID: i + 1, Title: "The " + w(0) + " and the " + w(1), Year: 1920 + i%100, Words: []string{w(2), w(3), w(4), w(5)}}
		c.films = append(c.films, f)
		c.texts = append(c.texts, []byte(strings.Repeat(f.Title+" "+strings.Join(f.Words, " ")+" ", 8)))
	}
	return c
}

// Handler serves the API; of two Slow for one route the last counts.
func Handler(slow ...Slow) http.Handler { return handler(nil, slow) }

// putOff is work that a flush does later, as a collector of garbage or a
// writer of caches would: the request itself does not wait for it.
type putOff struct {
	mu    sync.Mutex
	tasks []func()
}

func (p *putOff) add(task func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tasks = append(p.tasks, task)
}

// flushes does once a second what was put off since the last time.
func (p *putOff) flushes(ctx context.Context) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		p.mu.Lock()
		tasks := p.tasks
		p.tasks = nil
		p.mu.Unlock()
		for _, task := range tasks {
			task()
			time.Sleep(time.Microsecond) // lets a request in between, as a concurrent collector does
		}
	}
}

// handler is Handler; with later, what slowed routes do more is put off.
func handler(later *putOff, slow []Slow) http.Handler {
	c := newCatalogue()
	byName := map[string]route{}
	for _, r := range routes {
		byName[r.name] = r
	}
	more := map[string]float64{}
	for _, s := range slow {
		more[s.Route] = s.Share
	}
	serve := func(name string) http.HandlerFunc {
		rt := byName[name]
		units, extra := rt.units, int(math.Round(more[name]*float64(rt.units)))
		if later == nil {
			units, extra = units+extra, 0
		}
		return func(w http.ResponseWriter, hr *http.Request) {
			r := request{query: hr.URL.Query().Get("q")}
			r.id, _ = strconv.Atoi(hr.PathValue("id"))
			var err error
			if r.body, err = io.ReadAll(http.MaxBytesReader(w, hr.Body, 1<<20)); err != nil {
				http.Error(w, err.Error(), http.StatusBadRequest)
				return
			}
			for i := range units {
				rt.work(c, &r, i)
			}
			if extra > 0 {
				again := request{id: r.id, query: r.query, body: r.body}
				later.add(func() {
					for i := range extra {
						rt.work(c, &again, i)
					}
				})
			}
			if hr.Method == http.MethodPost && r.film.ID == 0 {
				http.Error(w, "the body is no film", http.StatusBadRequest)
				return
			}
			status, body := rt.reply(c, &r)
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("ETag", `"`+hex.EncodeToString(r.sum[:8])+`"`)
			w.WriteHeader(status)
			_ = json.NewEncoder(w).Encode(body) // the client is gone: nobody to tell
		}
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /films", serve("GET /films"))
	mux.HandleFunc("GET /films/{id}", serve("GET /films/7"))
	mux.HandleFunc("GET /search", serve("GET /search"))
	mux.HandleFunc("POST /films", serve("POST /films"))
	mux.HandleFunc("GET /health", func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusNoContent) })
	mux.HandleFunc("/", serve("GET /nothing"))
	return mux
}

// Serve answers on address until ctx ends: a host:port, or the path of a unix
// socket (recognised by a slash, or by having no colon). HTTP/1.1 and HTTP/2 without TLS.
// With later, what slowed routes do more is done once a second, after the
// answers: the way in which a flush or a garbage collector makes a router slower.
func Serve(ctx context.Context, address string, later bool, slow ...Slow) error {
	network := "tcp"
	if strings.Contains(address, "/") || !strings.Contains(address, ":") {
		network = "unix"
	}
	l, err := net.Listen(network, address)
	if err != nil {
		return fmt.Errorf("starting the demo router: %w", err)
	}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	h := Handler(slow...)
	if later {
		p := &putOff{}
		h = handler(p, slow)
		go p.flushes(ctx)
	}
	srv := &http.Server{Handler: h, Protocols: protocols, ReadHeaderTimeout: 10 * time.Second}
	stop := context.AfterFunc(ctx, func() { srv.Close() })
	defer stop()
	if err := srv.Serve(l); err != http.ErrServerClosed {
		return fmt.Errorf("serving the demo router: %w", err)
	}
	return nil
}
