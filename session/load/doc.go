// Package load offers the load to one arm with vegeta's library: a preflight
// request per route, then stretches of a closed loop whose results it hands
// on in vegeta's own type.
//
// One client per arm lives through all its stretches, so that connections
// live on; every request goes to the arm's address, whatever host its URL
// names. It follows no redirect, no proxy of the environment, and asks for no
// compression that the targets do not ask for. It never judges an answer.
package load
