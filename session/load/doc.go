// Package load offers the load to one arm with vegeta's library: a preflight
// request per route, then stretches of a closed loop or of a fixed rate, whose
// results it hands on in vegeta's own type.
//
// One client per arm lives through all its stretches, so that connections
// live on; every request goes to the arm's address, whatever scheme and host
// its URL names. It sends what the targets say and nothing else, once: it follows no
// redirect, no proxy of the environment, asks for no compression and hides no
// dropped request behind a second try. It never judges an answer.
package load
