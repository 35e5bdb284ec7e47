package plan

import (
	"path/filepath"
	"strings"
	"testing"
)

// head is lines 1 to 4 of most refused plans, all of them good.
const head = `router:
  run: [./server, "{socket}"]
kinds:
  main: {targets: targets.http}
`

// withRouter is head with lines added to the router, from line 3 on.
func withRouter(lines string) string {
	return strings.Replace(head, "kinds:", lines+"kinds:", 1)
}

// withRun is head with another run, in line 2.
func withRun(run string) string {
	return strings.Replace(head, `[./server, "{socket}"]`, run, 1)
}

func TestRefusals(t *testing.T) {
	dir := folder(t)
	t.Chdir(dir)
	for _, c := range []struct{ text, want string }{
		// Services.
		{head + "services: {}\n", "5: services: wants a list, not a map; write [{name: postgres, run: [...]}]"},
		{head + "services: [{run: [a, \"{port}\"]}]\n", "5: services[0]: has no name; write name: postgres"},
		{head + "services: [{name: Pg, run: [a, \"{port}\"]}]\n", `5: services[0].name: "Pg" is no name of a service; write small letters, digits and underscores, as it stands in placeholders: {postgres.port}`},
		{head + "services: [{name: pg}]\n", `5: services[0]: has no run; say how to start it, such as run: [postgres, -D, "{dir}/data", -p, "{port}"]`},
		{head + "services: [{name: pg, run: [a]}]\n", "5: services[0]: nobody can tell when it is ready: put {port} or {socket} into run or env, or write ready: {run: a command that succeeds}"},
		{head + "services: [{name: pg, run: [a, \"{port}\", \"{build}\"]}]\n", "5: services[0]: {build} is the router's; a service has {port} {socket} {dir} {targets}, and those of the services before it: {name.port}"},
		{head + "services: [{name: pg, run: [a, \"{port}\"], ready: {tcp: true, run: b}}]\n", "5: services[0].ready: has more than one of http, tcp and run; keep the one that says most"},
		{head + "services: [{name: pg, run: [a, \"{port}\"], per: run}]\n", `5: services[0].per: "run" is unknown; known are session and block`},
		{head + "services:\n  - {name: pg, run: [a, \"{port}\"]}\n  - {name: pg, run: [a, \"{port}\"]}\n", "7: services[1]: is the second service called pg; give it another name"},
		{head + "services:\n  - {name: a, run: [a, \"{port}\", \"{b.port}\"]}\n  - {name: b, run: [a, \"{port}\"]}\n", "6: services[0]: {b.port} is of a service that is started later; put b before a"},
		{withRun(`[./server, "{socket}", "{pg.port}"]`), "2: router.run[2]: {pg.port}: no service is called pg; add it to services, or write {{ for a literal brace"},
		{head + "services: [{name: pg, run: [a, \"{port}\"], per: block}]\nschedule: {mode: sequential}\n", "5: services[0].per: a block's runs are far apart in sequential mode, other blocks' lie between them; write per: session, or use another schedule.mode"},
		{head + "services:\n  - {name: a, run: [a, \"{port}\"], per: block}\n  - {name: b, run: [b, \"{port}\", \"{a.port}\"]}\n", "7: services[1].run: {a.port} is another one in every block, but b is started once per session; write per: block here, or per: session there"},

		// The file as a whole.
		{"", "1: holds no plan; it starts with the keys router and kinds"},
		{"# nothing\n---\n", "1: holds no plan; it starts with the keys router and kinds"},
		{"just text\n", "1: wants a map of key: value, not text"},
		{"- a\n", "1: wants a map of key: value, not a list"},
		{"null\n", "1: wants a map of key: value, not nothing"},
		{head + "---\nseed: 1\n", "5: a second document starts here; a plan is one document, remove the line ---"},
		{head + "...\nseed: 1\n", "6: a second document starts here; a plan is one document, remove the line ---"},
		{head + "---\n", "5: a second document starts here; a plan is one document, remove the line ---"},
		{"%YAML 1.2\n---\n" + head, "1: a YAML directive; remove the line"},
		{head + "load:\n\tworkers: 1\n", "6:1: a tab where an indentation or a value should start; YAML indents with spaces"},
		{head + "cpus: [1, 2\n", "5:7: sequence end token ']' not found"},
		{head + "load: {workers: 1} x\n", "5:20: value is not allowed in this context"},
		{head + " seed: 1\n", "5:2: value is not allowed in this context"},
		{head + "seed: \xff\n", "5: not UTF-8; save the file as UTF-8"},
		{head + "#" + strings.Repeat("x", 64<<10), ": larger than 64 KiB; is it a plan?"},
		{head + "seed: !!int 5\n", "5: seed: a YAML tag; leave out !!int, quotes make text"},
		{head + "seed: *x\n", "5: seed: alias *x has no anchor above it; write &x before the value that is meant"},
		{head + "load: {<<: 5}\n", `5: load."<<": wants a map to merge, not a number; write <<: *name of an anchored map`},
		{head + "? seed\n: 5\n", `5: "?": is not text as a key; write key: value, with quotes around the key`},
		{head + "5: 5\n", "5: 5: is not text as a key; write key: value, with quotes around the key"},

		// Keys.
		{"seed: 1\n", `1: router.run: missing; say how to start the server, such as run: ["{build}/server", "--listen", "{socket}"]`},
		{"\nrouter: {stop: TERM}\n", `2: router.run: missing; say how to start the server, such as run: ["{build}/server", "--listen", "{socket}"]`},
		{"router: {run: ['{socket}']}\n", "1: kinds: missing; say what to send, such as kinds: {main: {targets: targets.http}}"},
		{"router: {run: ['{socket}']}\nkinds: {}\n", "2: kinds: missing; say what to send, such as kinds: {main: {targets: targets.http}}"},
		{head + "service: []\n", "5: service: unknown key; did you mean services? known keys here are router, arms, services, kinds, expect, load, warmup, schedule, gates, cpus and seed"},
		{head + "shedule: {}\n", "5: shedule: unknown key; did you mean schedule? known keys here are router, arms, services, kinds, expect, load, warmup, schedule, gates, cpus and seed"},
		{head + "schedule_of_the_session: {}\n", "5: schedule_of_the_session: unknown key; known keys here are router, arms, services, kinds, expect, load, warmup, schedule, gates, cpus and seed"},
		{head + "a b: 1\n", `5: "a b": unknown key; known keys here are router, arms, services, kinds, expect, load, warmup, schedule, gates, cpus and seed`},
		{withRouter("  klock: 2000-01-01T00:00:00Z\n"), "3: router.klock: unknown key; did you mean clock? known keys here are build, run, env, ready, clock and stop"},
		{withRouter("  ready: {htpp: /health}\n"), "3: router.ready.htpp: unknown key; did you mean http? known keys here are http, tcp and within"},
		{head + "schedule:\n  mode: sliced\n  bugdet: 10m\n", "7: schedule.bugdet: unknown key; did you mean budget? known keys here are budget, mode, slice, block, blocks, retries, freeze and controls"},
		{head + "schedule: {budget: 10m, blocks: 6}\n", "5: schedule: has both blocks and budget, and each says how long a session is; keep one"},
		{head + "schedule: {budget: 0s}\n", "5: schedule.budget: 0s is no time at all; write one such as 200ms, 30s or 5m"},
		{head + "schedule: {budget: 10m, mode: sequential}\n", "5: schedule.budget: a sequential session cannot grow: all blocks of one arm come first; write blocks: 6, or mode: interleaved"},
		{head + "arms:\n  main:\n    refs: v1\n", "7: arms.main.refs: unknown key; did you mean ref? known keys here are ref, build, run, env, ready, clock and stop"},
		{head + "  jwt: {generate: {count: 1000}}\n", "5: kinds.jwt.generate: has no kind; write kind: jwt-cache, jwt-cache-worst or jwt-unique"},
		{head + "gates: {memory: {zone: 5%}}\n", "5: gates.memory: unknown key; known keys here are latency_p50, latency_distribution, latency_p99 and error_rate"},
		{head + "gates: {latency_p50: {zones: 5%}}\n", "5: gates.latency_p50.zones: unknown key; did you mean zone? known keys here are zone and watch"},
		{head + "seed: 1\nseed: 2\n", "6: seed: duplicate key, it stands in line 5 already; remove one of them"},
		{withRouter("  env:\n    A: b\n    \"A\": c\n"), "5: router.env.A: duplicate key, it stands in line 4 already; remove one of them"},
		{head + "  main: {targets: targets.http}\n", "5: kinds.main: duplicate key, it stands in line 4 already; remove one of them"},
		{head + "arms:\n", "5: arms: wants a map of key: value, not nothing"},
		{head + "arms: {\"\": {}}\n", `5: arms."": is no name; write one without control characters`},
		{head + "arms: {\"a\\nb\": {}}\n", `5: arms."a\nb": is no name; write one without control characters`},

		// Router and arms.
		{withRun(`"./server {socket}"`), `2: router.run: wants a list, not text; write ["{build}/server", "--listen", "{socket}"]`},
		{withRun(`[]`), `2: router.run: is an empty list; write ["{build}/server", "--listen", "{socket}"]`},
		{withRun(``), `2: router.run: wants a list, not nothing; write ["{build}/server", "--listen", "{socket}"]`},
		{withRun(`["", "{socket}"]`), "2: router.run: its first element, the program, is empty; write its path or name"},
		{withRun("[./server, '{socket}',\n    4]"), `3: router.run[2]: wants text, not a number; put it in quotes: "4"`},
		{withRun("[./server, '{socket}', true]"), `2: router.run[2]: wants text, not true or false; put it in quotes: "true"`},
		{withRun("[./server, '{socket}', [a]]"), "2: router.run[2]: wants text, not a list"},
		{withRun(`[./server, "{socket}\0"]`), "2: router.run[1]: holds a NUL character; remove it"},
		{withRun("[./server, --port=8080]"), "2: router.run: names no address to listen on; several arms run at once, so put {socket} or {port} into run or env"},
		{withRun("[./server, '{{socket}']"), "2: router.run: names no address to listen on; several arms run at once, so put {socket} or {port} into run or env"},
		{withRun("[./server, '{port}', '{socket}']"), "2: router.run: uses both {socket} and {port}; keep one of them in run and env together"},
		{withRouter("  env: {PORT: '{port}'}\n"), "2: router.run: uses both {socket} and {port}; keep one of them in run and env together"},
		{withRun("[./server, '{prot}']"), "2: router.run[1]: unknown placeholder {prot}; did you mean port? known are {build} {socket} {port} {dir} {arm} {source} {targets} {cert} {key}, and {{ is a literal brace"},
		{withRouter("  env:\n    A: '{metrics_port}'\n"), "4: router.env.A: unknown placeholder {metrics_port}; known are {build} {socket} {port} {dir} {arm} {source} {targets} {cert} {key}, and {{ is a literal brace"},
		{withRun("['{build}/server', '{socket}']"), "2: router.run: uses {build} without a build command; add build, or name the program by its path"},
		{withRouter("  build: ''\n"), "3: router.build: is empty; give it a value or leave the key out"},
		{withRouter("  build:\n"), "3: router.build: wants text, not nothing"},
		{withRouter("  env: [A=b]\n"), "3: router.env: wants a map of key: value, not a list"},
		{withRouter("  env: {A=b: c}\n"), `3: router.env."A=b": no environment variable can have = in its name; write NAME: value`},
		{withRouter("  env: {\"A\\0\": c}\n"), `3: router.env."A\x00": is no name; write one without control characters`},
		{withRouter("  env: {A: 1}\n"), `3: router.env.A: wants text, not a number; put it in quotes: "1"`},
		{withRouter("  env: {A: \"b\\0\"}\n"), "3: router.env.A: holds a NUL character; remove it"},
		{withRouter("  ready: {http: health}\n"), `3: router.ready.http: "health" is no path; write one such as /health`},
		{withRouter("  ready: {http: http://a/health}\n"), `3: router.ready.http: "http://a/health" is no path; write one such as /health`},
		{withRouter("  ready: {http: /health, tcp: true}\n"), "3: router.ready: has both http and tcp; keep one, http says more"},
		{withRouter("  ready: {tcp: false}\n"), "3: router.ready.tcp: wants true; an accepted connection is the least that ready can mean"},
		{withRouter("  ready: {tcp: '{port}'}\n"), `3: router.ready.tcp: wants true or false, not the text "{port}"`},
		{withRouter("  ready: {within: 0s}\n"), "3: router.ready.within: 0s is no time at all; write one such as 200ms, 30s or 5m"},
		{withRouter("  clock: 2000-01-01 00:00:00\n"), `3: router.clock: "2000-01-01 00:00:00" is no moment; write one such as 2000-01-01T00:00:00Z or 2000-01-01T01:00:00+01:00`},
		{withRouter("  clock: 2000-01-01\n"), `3: router.clock: "2000-01-01" is no moment; write one such as 2000-01-01T00:00:00Z or 2000-01-01T01:00:00+01:00`},
		{withRouter("  clock: 2000-01-01T00:00:60Z\n"), `3: router.clock: "2000-01-01T00:00:60Z" is no moment; write one such as 2000-01-01T00:00:00Z or 2000-01-01T01:00:00+01:00`},
		{withRouter("  clock: '@2000-01-01T00:00:00Z'\n"), `3: router.clock: "@2000-01-01T00:00:00Z" is no moment; write one such as 2000-01-01T00:00:00Z or 2000-01-01T01:00:00+01:00`},
		{withRouter("  clock: 946684800\n"), "3: router.clock: wants a moment such as 2000-01-01T00:00:00Z, not 946684800"},
		{withRouter("  clock: true\n"), "3: router.clock: wants a moment such as 2000-01-01T00:00:00Z, not true"},
		{withRouter("  clock:\n"), "3: router.clock: wants a moment such as 2000-01-01T00:00:00Z, not nothing"},
		{withRouter("  clock: [2000-01-01T00:00:00Z]\n"), "3: router.clock: wants a moment such as 2000-01-01T00:00:00Z, not a list"},
		{withRouter("  clock: 2000-01-01T00:00:00.5+01:00\n"), "3: router.clock: 2000-01-01T00:00:00.5+01:00 has a fraction of a second; write whole seconds, such as 1999-12-31T23:00:00Z"},
		{withRouter("  clock: 1969-12-31T23:59:59Z\n"), "3: router.clock: 1969-12-31T23:59:59Z is out of reach; write a moment from 1970 to 2199"},
		{withRouter("  clock: 2200-01-01T00:00:00Z\n"), "3: router.clock: 2200-01-01T00:00:00Z is out of reach; write a moment from 1970 to 2199"},
		{withRouter("  clock: {library: lib.so}\n"), "3: router.clock: has no start; write {start: 2000-01-01T00:00:00Z}"},
		{withRouter("  clock: {start: 2000-01-01T00:00:00Z, lib: a}\n"), "3: router.clock.lib: unknown key; known keys here are start and library"},
		{withRouter("  clock: {start: 2000-01-01T00:00:00Z, library: ''}\n"), "3: router.clock.library: is empty; give it a value or leave the key out"},
		{withRouter("  clock: {start: 2000-01-01T00:00:00Z, library: '{dir}/lib.so'}\n"), "3: router.clock.library: {dir} says nothing of a library; its path may hold {build} and {source}"},
		{withRouter("  clock: {start: 2000-01-01T00:00:00Z, library: '{biuld}/lib.so'}\n"), "3: router.clock.library: unknown placeholder {biuld}; did you mean build? known are {build} {socket} {port} {dir} {arm} {source} {targets} {cert} {key}, and {{ is a literal brace"},
		{withRouter("  clock: {start: 2000-01-01T00:00:00Z, library: '{build}/lib.so'}\n"), "3: router.clock: its library is in {build}, but nothing is built; add build, or give the library's own path"},
		{head + "arms: {main: {clock: {library: lib.so}}}\n", "5: arms.main.clock: has no start; write {start: 2000-01-01T00:00:00Z}"},
		{withRouter("  stop: SIGTERM\n"), "3: router.stop: signals are written without SIG; say TERM"},
		{withRouter("  stop: STOP\n"), `3: router.stop: "STOP" is unknown; known are TERM, INT, QUIT, HUP, KILL, USR1 and USR2`},
		{withRouter("  stop: term\n"), `3: router.stop: "term" is unknown; did you mean TERM? known are TERM, INT, QUIT, HUP, KILL, USR1 and USR2`},
		{head + "arms:\n  a: {}\n  b:\n    run: [./server]\n", "8: arms.b.run: names no address to listen on; several arms run at once, so put {socket} or {port} into run or env"},
		{head + "arms:\n  b:\n    env: {PORT: '{port}'}\n", "6: arms.b: uses both {socket} and {port}; keep one of them in run and env together"},
		{head + "arms:\n  b/c:\n    run: ['{build}/server', '{socket}']\n", `7: arms."b/c".run: uses {build} without a build command; add build, or name the program by its path`},
		{head + "arms:\n  b:\n    ref: v1\n", "7: arms.b.ref: changes nothing; add router.build, or use {source}, the folder of its sources"},
		{head + "arms: {b: {ref: 1234567}}\n", `5: arms.b.ref: wants text, not a number; put it in quotes: "1234567"`},

		// Kinds and expectations.
		{strings.Replace(head, "targets.http", "nope.http", 1), "4: kinds.main.targets: stat " + filepath.Join(dir, "nope.http") + ": no such file or directory; the path is relative to the plan's folder"},
		{strings.Replace(head, "targets.http", "test/load", 1), "4: kinds.main.targets: " + filepath.Join(dir, "test/load") + " is a folder; name a target file"},
		{head + "  b: {env: {A: b}}\n", "5: kinds.b: has no targets; name a file, such as targets: targets.http, or write generate: {kind: jwt-cache}"},
		{head + "  b:\n    env: {A: '{port}'}\n    targets: targets.http\n", "6: kinds.b.env: uses both {socket} and {port}; keep one of them in run and env together"},
		{head + "  b:\n    env: {A: '{build}'}\n    targets: targets.http\n", "6: kinds.b.env: uses {build} without a build command; add build, or name the program by its path"},
		{head + "expect: {/x: {body: any}}\n", `5: expect."/x": is no route; write METHOD /path?query as in the target file, such as GET /users`},
		{head + "expect: {get /x: {body: any}}\n", `5: expect."get /x": is no route; write METHOD /path?query as in the target file, such as GET /users`},
		{head + "expect: {GET http://a/x: {body: any}}\n", `5: expect."GET http://a/x": is no route; write METHOD /path?query as in the target file, such as GET /users`},
		{head + "expect: {GET /%zz: {body: any}}\n", `5: expect."GET /%zz": is no route; write METHOD /path?query as in the target file, such as GET /users`},
		{head + "expect: {GET /x: {}}\n", `5: expect."GET /x": expects nothing; write status: [401] or body: any`},
		{head + "expect: {GET /x: {body: same}}\n", `5: expect."GET /x".body: "same" is unknown; known are any`},
		{head + "expect: {GET /x: {status: 99}}\n", `5: expect."GET /x".status: wants a number from 100 to 599, not 99`},
		{head + "expect: {GET /x: {status: [200, 600]}}\n", `5: expect."GET /x".status[1]: wants a number from 100 to 599, not 600`},
		{head + "expect: {GET /x: {status: []}}\n", `5: expect."GET /x".status: is an empty list; write 401 or [200, 401]`},
		{head + "expect: {GET /x: {status: '200'}}\n", `5: expect."GET /x".status: wants a list, not text; write 401 or [200, 401]`},
		{head + "expect:\n  GET /é: {body: any}\n  GET /%C3%A9: {body: any}\n", `7: expect."GET /%C3%A9": is the same route as in line 6; put both into one`},

		// Load, warm-up, schedule.
		{head + "load: {rate: 500}\n", "5: load.rate: wants a rate such as 500/s, not 500; 0 is a closed loop"},
		{head + "load: {rate: fast}\n", `5: load.rate: "fast" is no rate; write one such as 500/s or 30000/m, or 0 for a closed loop`},
		{head + "load: {rate: 500/h}\n", `5: load.rate: "500/h" is no rate; write one such as 500/s or 30000/m, or 0 for a closed loop`},
		{head + "load: {rate: -1/s}\n", `5: load.rate: "-1/s" is no rate; write one such as 500/s or 30000/m, or 0 for a closed loop`},
		{head + "load: {rate: 0/s}\n", "5: load.rate: 0/s is outside of what can be offered; write more than 0/s and at most 1000000/s"},
		{head + "load: {rate: 2000000/s}\n", "5: load.rate: 2000000/s is outside of what can be offered; write more than 0/s and at most 1000000/s"},
		{head + "load: {protocol: h2c, tls: true}\n", "5: load: h2c is HTTP/2 without TLS; write protocol: h2, or leave tls out"},
		{head + "load: {protocol: h2, tls: false}\n", "5: load: h2 is HTTP/2 over TLS; write protocol: h2c, or leave tls out"},
		{head + "load: {timeout: 10ms}\n", "5: load.timeout: wants from 1s to 1h, not 10ms"},
		{head + "load: {timeout: 2h}\n", "5: load.timeout: wants from 1s to 1h, not 2h"},
		{head + "load: {timeout: 30}\n", "5: load.timeout: 30 has no unit; say 30s"},
		{head + "load: {workers: 0}\n", "5: load.workers: wants a number from 1 to 10000, not 0"},
		{head + "load: {workers: -1}\n", "5: load.workers: wants a whole number, not -1; write digits only, such as 1"},
		{head + "load: {workers: 1.5}\n", "5: load.workers: wants a whole number, not 1.5; write digits only, such as 1"},
		{head + "load: {workers: 012}\n", "5: load.workers: wants a whole number, not 012; write digits only, such as 1"},
		{head + "load: {workers: 0x10}\n", "5: load.workers: wants a whole number, not 0x10; write digits only, such as 1"},
		{head + "load: {workers: 1_000}\n", "5: load.workers: wants a whole number, not 1_000; write digits only, such as 1"},
		{head + "load: {workers: '2'}\n", `5: load.workers: wants a whole number, not the text "2"; write digits only, such as 1`},
		{head + "load: {protocol: h3}\n", `5: load.protocol: "h3" is unknown; known are h1, h2c and h2`},
		{head + "warmup: {load: 2s, at_most: 30s}\n", "5: warmup: has at_most, the limit of load: auto; write load: auto, or leave at_most out"},
		{head + "warmup: {idle: -1s}\n", "5: warmup.idle: -1s is negative; write one such as 200ms, 30s or 5m"},
		{head + "warmup: {idle: 0}\n", "5: warmup.idle: 0 has no unit; say 0s"},
		{head + "schedule:\n  block: 30\n", "6: schedule.block: 30 has no unit; say 30s"},
		{head + "schedule: {block: \"30\"}\n", "5: schedule.block: 30 has no unit; say 30s"},
		{head + "schedule: {block: 0s}\n", "5: schedule.block: 0s is no time at all; write one such as 200ms, 30s or 5m"},
		{head + "schedule: {block: }\n", "5: schedule.block: wants text, not nothing"},
		{head + "schedule: {blocks: {min: 6}}\n", "5: schedule.blocks: has no max; write {min: 6, max: 20}, or a number for a session of fixed length"},
		{head + "schedule: {blocks: {max: 5}}\n", "5: schedule.blocks: has max 5 below min 6; write {min: 6, max: 20}"},
		{head + "schedule: {mode: sequential, blocks: {min: 6, max: 9}}\n", "5: schedule.blocks: a sequential session cannot grow: all blocks of one arm come first; write a number, or mode: interleaved"},
		{head + "schedule: {retries: 101}\n", "5: schedule.retries: wants a number from 0 to 100, not 101"},
		{head + "schedule: {blocks: 0}\n", "5: schedule.blocks: wants a number from 1 to 10000, not 0"},
		{head + "schedule: {mode: interleave}\n", `5: schedule.mode: "interleave" is unknown; did you mean interleaved? known are sliced, interleaved and sequential`},
		{head + "schedule: {controls: off}\n", `5: schedule.controls: wants true or false, not the text "off"`},
		{head + "schedule: {freeze: yes}\n", `5: schedule.freeze: wants true or false, not the text "yes"`},
		{head + "schedule:\n  block: 1m\n  slice: 2m\n", "7: schedule.slice: a slice of 2m is longer than a block of 1m; make slice shorter or block longer"},
		{head + "schedule: {block: 60m, slice: 2h}\n", "5: schedule.slice: a slice of 2h is longer than a block of 1h; make slice shorter or block longer"},
		{head + "schedule: {block: 1s}\n", "5: schedule.block: 1s holds 2 rounds of 200ms slices for two arms and 4 are needed; make block longer or slice shorter"},
		{head + "schedule: {slice: 2s}\n", "5: schedule.block: 10s holds 2 rounds of 2s slices for two arms and 4 are needed; make block longer or slice shorter"},

		// Gates, CPUs, seed.
		{head + "gates: {latency_p50: {zone: 0.05}}\n", "5: gates.latency_p50.zone: wants a zone such as 5%, not 0.05"},
		{head + "gates: {latency_p50: {zone: 0.1 points}}\n", `5: gates.latency_p50.zone: wants a zone such as 5%, not "0.1 points"`},
		{head + "gates: {error_rate: {zone: 1}}\n", "5: gates.error_rate.zone: wants a zone such as 0.1 points, not 1"},
		{head + "gates: {error_rate: {zone: 1e1%}}\n", `5: gates.error_rate.zone: wants a zone such as 0.1 points, not "1e1%"`},
		{head + "gates: {latency_p50: {zone: -5%}}\n", `5: gates.latency_p50.zone: wants a zone such as 5%, not "-5%"`},
		{head + "gates: {latency_p50: {zone: 05%}}\n", `5: gates.latency_p50.zone: wants a zone such as 5%, not "05%"`},
		{head + "gates: {latency_p50: {zone: 0%}}\n", "5: gates.latency_p50.zone: 0% is outside of what can be judged; write more than 0% and less than 100%, such as 5%"},
		{head + "gates: {error_rate: {zone: 100 points}}\n", "5: gates.error_rate.zone: 100 points is outside of what can be judged; write more than 0% and less than 100%, such as 0.1 points"},
		{head + "gates: {latency_p99: {watch: 1}}\n", "5: gates.latency_p99.watch: wants true or false, not 1"},
		{head + "cpus: {load: 1, arms: [0, 1]}\n", "5: cpus: CPU 1 is in both load and arms; the generator must not share one with what it measures"},
		{head + "cpus: {load: -1}\n", "5: cpus.load: wants a whole number, not -1; write digits only, such as 1"},
		{head + "cpus: {load: 1024}\n", "5: cpus.load: wants a number from 0 to 1023, not 1024"},
		{head + "cpus: {load: []}\n", `5: cpus.load: is an empty list; write 0, [0, 1] or "0-3,5"`},
		{head + "cpus: {load: [0, 0]}\n", "5: cpus.load[1]: names CPU 0 twice; once is enough"},
		{head + "cpus: {load: '0-2,2'}\n", "5: cpus.load: names CPU 2 twice; once is enough"},
		{head + "cpus: {load: 3-1}\n", `5: cpus.load: "3-1" is no list of CPUs from 0 to 1023; write 0, [0, 1] or "0-3,5"`},
		{head + "cpus: {load: '0-99999999999'}\n", `5: cpus.load: "0-99999999999" is no list of CPUs from 0 to 1023; write 0, [0, 1] or "0-3,5"`},
		{head + "cpus: {load: all}\n", `5: cpus.load: "all" is no list of CPUs from 0 to 1023; write 0, [0, 1] or "0-3,5"`},
		{head + "cpus: {load: true}\n", `5: cpus.load: wants a list, not true or false; write 0, [0, 1] or "0-3,5"`},
		{head + "seed: 18446744073709551616\n", "5: seed: wants a number from 0 to 18446744073709551615, not 18446744073709551616"},
		{head + "seed: now\n", `5: seed: wants a whole number, not the text "now"; write digits only, such as 1`},
	} {
		refused(t, "plumbline.yaml", c.text, c.want)
	}
}

func TestRefusalsJSON(t *testing.T) {
	t.Chdir(folder(t))
	const head = "{\"router\": {\"run\": [\"./server\", \"{socket}\"]},\n\"kinds\": {\"main\": {\"targets\": \"targets.http\"}}"
	for _, c := range []struct{ text, want string }{
		{"", "1:1: unexpected end of JSON input"},
		{head, "2:46: unexpected end of JSON input"},
		{head + "}\n{}", "3:1: invalid character '{' after top-level value"},
		{head + ",\n \"seed\": 012}", "3:11: invalid character '1' after object key:value pair"},
		{"[]", "1: wants a map of key: value, not a list"},
		{head + ",\n\"seed\": 1,\n\n\"seed\": 2}", "5: seed: duplicate key, it stands in line 3 already; remove one of them"},
		{head + ",\n\"warmup\": {\n\t\"load\": 30}}", "4: warmup.load: 30 has no unit; say 30s"},
		{head + ",\n\"sede\": 1}", "3: sede: unknown key; did you mean seed? known keys here are router, arms, services, kinds, expect, load, warmup, schedule, gates, cpus and seed"},
		{head + ",\n\"load\": null}", "3: load: wants a map of key: value, not nothing"},
		{head + ",\n\"seed\": 1e3}", "3: seed: wants a whole number, not 1e3; write digits only, such as 1"},
		{head + ",\n\"<<\": {\"seed\": 1}}", `3: "<<": unknown key; known keys here are router, arms, services, kinds, expect, load, warmup, schedule, gates, cpus and seed`},
	} {
		refused(t, "plumbline.json", c.text, c.want)
	}
}

// refused asserts the whole error; a want that starts with a line number
// leaves out the file before it.
func refused(t *testing.T, file, text, want string) {
	t.Helper()
	if !strings.HasPrefix(want, ":") {
		want = ":" + want
	}
	want = file + want
	t.Run(want, func(t *testing.T) {
		_, err := Parse(file, []byte(text))
		if err == nil {
			t.Fatalf("accepted\n%s", text)
		}
		if err.Error() != want {
			t.Errorf("%.500s\n got %s\nwant %s", text, err, want)
		}
	})
}
