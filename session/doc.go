// Package session is the conductor: it turns a plan and some revisions into a
// record.
//
// The recipe, which the files follow:
//
//  1. Prepare (prepare.go, layout.go) reads the targets, checks out and builds
//     every arm and writes down what will be measured, before anything is
//     started. Resume (resume.go) does so for what is left of a session.
//     once.go knows sets that are generated, and for how long they last.
//  2. order (order.go) draws the order of runs and slices from the seed, and
//     blocks.go decides how many blocks it takes.
//  3. Run (conduct.go) measures group by group. A group is the runs that live
//     at the same time: all arms of a block when sliced, one run otherwise.
//     It starts the services (services.go) and the runs, waits until they are
//     ready, asks each route once (preflight.go, token.go), warms them up
//     (warmup.go), gives them the load in turns with the idle ones frozen,
//     stops them and writes each run before the next begins.
//
// Whatever ends plumbline, a guard (guard.go) puts away what it has started.
// It judges nothing: a caller who wants interim verdicts hands it a function.
package session
