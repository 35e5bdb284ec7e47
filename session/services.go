package session

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	vegeta "github.com/tsenart/vegeta/v12/lib"

	"plumbline/plan"
	"plumbline/record"
	"plumbline/session/router"
)

// service is what the plan says of a service, and whom it runs as here.
type service struct {
	plan.Service
	account *account // nil: as plumbline
}

// account is a user that this process, as root, can start programs as.
type account struct {
	name       string
	credential *syscall.Credential
	env        []string
}

// served is a service that runs; *router.Process is the real process.
type served struct {
	service
	process interface {
		Alive(when string) error
		Done() <-chan struct{}
		Stop()
	}
	log    string            // below the session folder
	values map[string]string // the placeholders that it fills: postgres.port
	clear  func()            // removes its folder; nil: it has none
}

func (s *served) stop() {
	s.process.Stop()
	if s.clear != nil {
		s.clear()
	}
}

// ServiceError says that a service could not be started or has ended. No arm
// is to blame.
type ServiceError struct {
	Service string // its name
	Log     string // below the session folder
	// Ends tells that the session cannot go on: the service did not start, or
	// was to run as long as the session.
	Ends bool
	Err  error
}

func (e *ServiceError) Error() string {
	return fmt.Sprintf("%v; its log is %s in the session folder", e.Err, e.Log)
}
func (e *ServiceError) Unwrap() error { return e.Err }

// services starts and stops what the arms need besides themselves: in the
// plan's order, those per session first, and in reverse. A nil *services is none.
type services struct {
	list []service
	// start starts one, for a block or (0) the session, and returns when it
	// may be used. values are the placeholders of those before it.
	start func(ctx context.Context, s service, block int, values map[string]string) (*served, error)

	begun   bool      // those per session are
	running []*served // in the order of their start
	block   int       // whose services run; 0: none
	watch   context.Context
	unwatch context.CancelFunc
}

// serve makes sure that what the runs of a block need was started: at first the
// services per session, then those of the block, afresh unless that was done
// for it already. tell hears the name of each that is started.
func (s *services) serve(ctx context.Context, block int, tell func(name string)) error {
	if s == nil || s.block == block {
		return nil
	}
	s.stop(plan.PerBlock)
	if !s.begun {
		s.begun = true
		if err := s.startAll(ctx, plan.PerSession, 0, tell); err != nil {
			return err
		}
	}
	if err := s.alive("between two blocks"); err != nil {
		return err
	}
	if err := s.startAll(ctx, plan.PerBlock, block, tell); err != nil {
		return err
	}
	s.block = block
	s.watchAll()
	return nil
}

func (s *services) startAll(ctx context.Context, per plan.Per, block int, tell func(name string)) error {
	for _, one := range s.list {
		if one.Per != per {
			continue
		}
		if err := context.Cause(ctx); err != nil {
			return err
		}
		tell(one.Name)
		r, err := s.start(ctx, one, block, s.values())
		if err != nil {
			return err
		}
		s.running = append(s.running, r)
	}
	return nil
}

// watchAll opens the channel of ended for the services that run now.
func (s *services) watchAll() {
	s.watch, s.unwatch = context.WithCancel(context.Background())
	watch, ended := s.watch, s.unwatch
	for _, r := range s.running {
		go func() {
			select {
			case <-r.process.Done():
				ended()
			case <-watch.Done():
			}
		}()
	}
}

// values are the placeholders that the running services fill.
func (s *services) values() map[string]string {
	values := map[string]string{}
	if s != nil {
		for _, r := range s.running {
			maps.Copy(values, r.values)
		}
	}
	return values
}

// ended is closed when one of the services has ended by itself.
func (s *services) ended() <-chan struct{} {
	if s == nil || s.watch == nil {
		return nil
	}
	return s.watch.Done()
}

// alive is a *ServiceError if a service has ended; when says at what time.
func (s *services) alive(when string) error {
	if s == nil {
		return nil
	}
	for _, r := range s.running {
		if err := r.process.Alive(when); err != nil {
			return &ServiceError{Service: r.Name, Log: r.log, Ends: r.Per == plan.PerSession, Err: err}
		}
	}
	return nil
}

// soon is how long a service may take to end after the arm that depends on it:
// the connections go first.
const soon = time.Second

// blame is the *ServiceError that explains why an arm has failed, if there is one.
func (s *services) blame(ctx context.Context) error {
	if s == nil {
		return nil
	}
	select {
	case <-s.ended():
	case <-ctx.Done():
	case <-time.After(soon):
	}
	return s.alive("while it was needed")
}

// excuse takes failed requests out of a slice's results if a service has ended:
// they are not the arm's.
func (s *services) excuse(rs []*vegeta.Result) []*vegeta.Result {
	failed := func(r *vegeta.Result) bool { return r.Code == 0 || r.Code >= 500 }
	if s == nil || len(rs) == 0 || !failed(rs[len(rs)-1]) { // from then on every request would fail
		return rs
	}
	select {
	case <-s.ended():
		return slices.DeleteFunc(rs, failed)
	case <-time.After(soon / 10): // its end may be about to be noticed
		return rs
	}
}

// end stops everything.
func (s *services) end() {
	if s != nil {
		s.stop(plan.PerBlock)
		s.stop(plan.PerSession)
	}
}

func (s *services) stop(per plan.Per) {
	if s.unwatch != nil {
		s.unwatch()
	}
	s.block = 0
	for _, r := range slices.Backward(s.running) {
		if r.Per == per {
			r.stop()
		}
	}
	s.running = slices.DeleteFunc(s.running, func(r *served) bool { return r.Per == per })
}

// servicesOf looks up whom the plan's services run as.
func servicesOf(p *plan.Plan) (list []service, err error) {
	for i, s := range p.Services {
		one := service{Service: s}
		if s.User != "" && os.Geteuid() == 0 { // nobody else can change who they are
			if one.account, err = accountOf(s.User); err != nil {
				return nil, fmt.Errorf("%s: services[%d].user: %w", p.Path, i, err)
			}
		}
		list = append(list, one)
	}
	return list, nil
}

func accountOf(name string) (*account, error) {
	u, err := user.Lookup(name)
	if err != nil {
		return nil, fmt.Errorf("%w; name a user of this machine, such as nobody", err)
	}
	groups, err := u.GroupIds()
	if err != nil {
		return nil, err
	}
	var ids []uint32
	for _, id := range append([]string{u.Uid, u.Gid}, groups...) {
		n, err := strconv.ParseUint(id, 10, 32)
		if err != nil {
			return nil, fmt.Errorf("%s has the number %s, which is none", name, id)
		}
		ids = append(ids, uint32(n))
	}
	return &account{
		name:       name,
		credential: &syscall.Credential{Uid: ids[0], Gid: ids[1], Groups: ids[2:]},
		env:        []string{"HOME=" + u.HomeDir, "USER=" + name, "LOGNAME=" + name},
	}, nil
}

// recorded is what session.json says of the services.
func recorded(list []service) (out []record.Service) {
	for _, s := range list {
		out = append(out, record.Service{Name: s.Name, Run: s.Run, Per: string(s.Per)})
	}
	return out
}

// servicesDir holds the services' logs in the session folder.
const servicesDir = "services"

// serve starts a service on this machine: it sets it up, waits until it is
// ready and loads its fixtures. On an error nothing of it is left but its log.
func (m *machine) serve(ctx context.Context, s service, block int, values map[string]string) (_ *served, err error) {
	r := &served{service: s, log: filepath.Join(servicesDir, s.Name+".log")}
	if block > 0 {
		r.log = filepath.Join(servicesDir, fmt.Sprintf("%s-%d.log", s.Name, block))
	}
	defer func() {
		if err == nil {
			return
		}
		if r.clear != nil {
			r.clear()
		}
		if ctx.Err() != nil {
			err = context.Cause(ctx)
			return
		}
		err = &ServiceError{Service: s.Name, Log: r.log, Ends: true, Err: err}
	}()
	if err := os.MkdirAll(filepath.Join(m.session, servicesDir), 0o755); err != nil {
		return nil, err
	}
	m.serves++
	dir := filepath.Join(m.temp, fmt.Sprintf("s%d", m.serves)) // short, for a socket's path
	r.clear = func() { _ = os.RemoveAll(dir) }                 // what is left goes with the session
	values = maps.Clone(values)
	values["dir"], values["socket"], values["targets"] = dir, filepath.Join(dir, "socket"), m.launches[0].targets
	if values["port"], err = freePort(); err != nil {
		return nil, err
	}
	r.values = map[string]string{}
	for _, own := range []string{"dir", "socket", "port"} {
		r.values[s.Name+"."+own] = values[own]
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		return nil, err
	}
	e := &expansion{values: values}
	cfg := router.Config{
		Name: "service " + s.Name, Mark: m.mark(), Args: e.all(s.Run), Env: os.Environ(), Dir: m.planDir, Log: filepath.Join(m.session, r.log),
		CPUs: m.load.ArmCPUs, Stop: signalNumber(s.Stop),
		Ready: router.Ready{Path: s.Ready.HTTP, Run: e.one(s.Ready.Run), Within: s.Ready.Within},
	}
	setup, fixtures := e.all(s.Setup), e.all(s.Fixtures)
	texts := slices.Concat(slices.Collect(maps.Values(s.Env)), s.Run, s.Setup, s.Fixtures)
	switch {
	case s.Ready.Run != "": // its word is taken: what listens may be another program's, as with a container
	case mentions(texts, "{socket}"):
		cfg.Address = router.Address{Network: "unix", Addr: values["socket"]}
	case mentions(texts, "{port}"):
		cfg.Address = router.Address{Network: "tcp", Addr: net.JoinHostPort("127.0.0.1", values["port"])}
	}
	if a := s.account; a != nil {
		cfg.Credential, cfg.Env = a.credential, append(cfg.Env, a.env...)
		if err := os.Chown(dir, int(a.credential.Uid), int(a.credential.Gid)); err != nil {
			return nil, err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Env)) {
		cfg.Env = append(cfg.Env, name+"="+e.one(s.Env[name]))
	}
	if e.err != nil {
		return nil, fmt.Errorf("service %s: %w", s.Name, e.err)
	}
	if s.account != nil {
		if err := mayUse(ctx, cfg, dir); err != nil {
			return nil, fmt.Errorf("user %s must be able to enter the plan's folder %s and to write to %s (TMPDIR moves it): %w", s.account.name, m.planDir, dir, err)
		}
	}
	if err := m.lines(ctx, cfg, "setup", setup); err != nil {
		return nil, err
	}
	if err := note(cfg.Log, strings.Join(cfg.Args, " ")); err != nil {
		return nil, err
	}
	started, err := router.Start(cfg)
	if err != nil {
		return nil, err
	}
	m.guard.begun(started.PID())
	p := guarded{started, m.guard}
	if err := p.WaitReady(ctx); err != nil {
		p.Stop()
		return nil, err
	}
	if err := m.lines(ctx, cfg, "fixtures", fixtures); err != nil {
		if dead := p.Alive("while its fixtures were loaded"); dead != nil {
			err = dead
		}
		p.Stop()
		return nil, err
	}
	r.process = p
	return r, nil
}

// expansion fills in placeholders and keeps the first error.
type expansion struct {
	values map[string]string
	err    error
}

func (e *expansion) one(text string) string {
	v, err := plan.Expand(text, e.values)
	if e.err == nil {
		e.err = err
	}
	return v
}

func (e *expansion) all(texts []string) (out []string) {
	for _, t := range texts {
		out = append(out, e.one(t))
	}
	return out
}

// lines runs shell lines one after the other as the service's user, into its
// log. What one leaves in the background ends with it.
func (m *machine) lines(ctx context.Context, service router.Config, what string, all []string) error {
	for _, line := range all {
		if err := note(service.Log, line); err != nil {
			return err
		}
		cfg := service
		cfg.Name = fmt.Sprintf("%s: %s: `%s`", service.Name, what, brief(line))
		cfg.Args, cfg.Mark = []string{"sh", "-c", line}, m.mark()
		cfg.Address, cfg.Stop, cfg.Grace = router.Address{}, syscall.SIGTERM, time.Second
		if err := router.Run(ctx, cfg); err != nil {
			return err
		}
	}
	return nil
}

// mayUse looks whether the service's user may enter the folders it works in.
func mayUse(ctx context.Context, service router.Config, dir string) error {
	cfg := service
	cfg.Name = "looking for a way there"
	cfg.Args = []string{"sh", "-c", `cd "$1" && cd "$2" && test -w .`, "sh", service.Dir, dir}
	cfg.Dir, cfg.Address, cfg.Stop, cfg.Grace = "/", router.Address{}, syscall.SIGTERM, time.Second
	return router.Run(ctx, cfg)
}

// mark is one that no run has, and no other program that was started here for a service.
func (m *machine) mark() string {
	const afterRuns = 500_000
	m.marks++
	return m.guard.mark(afterRuns + m.marks)
}

// note writes a command into a log as a heading of what it prints.
func note(log, command string) error {
	f, err := os.OpenFile(log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(f, "$ %s\n", command)
	return errors.Join(err, f.Close())
}

// brief is a command in a line that is not too long for a message.
func brief(command string) string {
	const most = 100
	if r := []rune(oneLine(command)); len(r) > most {
		return string(r[:most]) + "…"
	}
	return oneLine(command)
}
