// Package stats is the mathematics behind the verdicts: exact percentiles, the
// clock's tick, Student's t over blocks, score intervals for proportions,
// Holm's correction, levels for looking at growing data again and again, and
// what a test can see: its power, its false alarms, where its noise comes from.
//
// Every function is pure: no input is changed, chance comes from a seed, and
// the same input gives the same bits. Levels (alpha) are one-sided everywhere.
// The package knows nothing of routers, routes or sessions; standard
// distributions come from gonum.
package stats
