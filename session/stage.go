package session

import (
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"plumbline/build"
	"plumbline/plan"
	"plumbline/record"
	"plumbline/session/load"
	"plumbline/session/router"
	"plumbline/targets"
)

// launch is what it takes to start one arm.
type launch struct {
	arm      record.Arm
	router   plan.Router
	build    string // what its build wrote; empty: nothing was built
	source   string // the folder of its checkout, or the plan's
	checkout build.Source
	targets  string // folder of the target file
	clock    router.Clock
}

// machine is the real stage: this computer.
type machine struct {
	planDir  string
	temp     string // short and private: a unix socket's path has room for some 100 bytes
	session  string // folder of the session
	launches []launch
	services *services
	serves   int // services started so far
	marks    int // given to them and their shell lines
	load     record.Load
	targets  []targets.Target
	once     bool // each of them is sent once to a process
	guard    *guard

	certificate certificate // of arms that speak TLS
}

// guarded is a router that the guard knows of while it runs.
type guarded struct {
	*router.Process
	guard *guard
}

func (g guarded) Stop() {
	g.Process.Stop()
	g.guard.over(g.PID())
}

func (m *machine) start(arm int, ref record.RunRef, log string) (process, client, error) {
	l := m.launches[arm]
	number, _, _ := strings.Cut(ref.ID, "-")
	n, err := strconv.Atoi(number)
	if err != nil {
		return nil, nil, fmt.Errorf("the run %s has no number", ref.ID)
	}
	dir := filepath.Join(m.temp, number)
	// Open to all: a server started by root may drop its rights and still wants its folder.
	if err := os.Mkdir(dir, 0o755); err != nil {
		return nil, nil, err
	}
	values := l.values(dir)
	maps.Copy(values, m.services.values())
	address := router.Address{Network: "unix", Addr: dir + ".sock"}
	values["socket"] = address.Addr
	if l.uses("{port}") {
		port, err := freePort()
		if err != nil {
			return nil, nil, err
		}
		values["port"] = port
		address = router.Address{Network: "tcp", Addr: net.JoinHostPort("127.0.0.1", port)}
	}
	if m.load.TLS {
		values["cert"], values["key"] = m.certificate.cert, m.certificate.key
	}
	args, env, err := l.expand(values)
	if err != nil {
		return nil, nil, err
	}
	p, err := router.Start(router.Config{
		Args: args, Env: env, Mark: m.guard.mark(n), Dir: m.planDir, Log: log, CPUs: m.load.ArmCPUs, Address: address, Clock: l.clock,
		Ready: router.Ready{Path: l.router.Ready.HTTP, TLS: m.load.TLS, Within: l.router.Ready.Within},
		Stop:  signalNumber(l.router.Stop),
	})
	if err != nil {
		return nil, nil, err
	}
	m.guard.begun(p.PID())
	ahead, _ := p.ClockOffset()
	c := load.New(load.Config{
		Dial: address.Dial, Protocol: m.load.Protocol, TLS: m.load.TLS, Rate: m.load.Rate, Workers: m.load.Workers,
		Targets: m.targets, Once: m.once, Clock: func() time.Time { return time.Now().Add(ahead) }, Timeout: m.load.Timeout() + 100*time.Millisecond, // the conductor gives the run up before
	})
	return guarded{p, m.guard}, c, nil
}

// values are the placeholders that do not change from run to run.
func (l launch) values(dir string) map[string]string {
	return map[string]string{"build": l.build, "source": l.source, "targets": l.targets, "arm": l.arm.Name, "dir": dir}
}

// expand fills in the placeholders of the command and its environment.
func (l launch) expand(values map[string]string) (args, env []string, err error) {
	for i, a := range l.router.Run {
		v, err := plan.Expand(a, values)
		if err != nil {
			return nil, nil, fmt.Errorf("router.run[%d]: %w", i, err)
		}
		args = append(args, v)
	}
	env = os.Environ()
	for _, name := range slices.Sorted(maps.Keys(l.router.Env)) {
		v, err := plan.Expand(l.router.Env[name], values)
		if err != nil {
			return nil, nil, fmt.Errorf("router.env.%s: %w", name, err)
		}
		env = append(env, name+"="+v)
	}
	return args, env, nil
}

// uses tells whether a placeholder stands anywhere in the command or its environment.
func (l launch) uses(placeholder string) bool {
	return mentions(append(slices.Collect(maps.Values(l.router.Env)), l.router.Run...), placeholder)
}

// mentions tells whether a placeholder stands in one of the texts.
func mentions(texts []string, placeholder string) bool {
	return slices.ContainsFunc(texts, func(s string) bool { return strings.Contains(s, placeholder) })
}

// freePort asks the kernel for a port that nobody listens on at the moment.
func freePort() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("finding a free port: %w", err)
	}
	defer l.Close()
	return strconv.Itoa(l.Addr().(*net.TCPAddr).Port), nil
}

func signalNumber(name string) syscall.Signal { return unix.SignalNum("SIG" + name) }
