// Package stats is the mathematics behind the verdicts: exact percentiles, the
// clock's tick, Student's t over blocks, score intervals for proportions,
// Holm's correction, and levels for looking at growing data again and again.
//
// Every function is pure: no input is changed, nothing is drawn by chance, and
// the same input gives the same bits. Levels (alpha) are one-sided everywhere.
// The package knows nothing of routers, routes or sessions; standard
// distributions come from gonum.
package stats
