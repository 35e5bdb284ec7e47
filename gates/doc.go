// Package gates turns a recorded session into a verdict, as docs/METHOD.md says.
//
// [Judge] is a pure function: no files, no clock, no chance. The same record
// gives the same verdict, byte for byte. It goes in this order:
//
//  1. runs that did not live to their end are set aside, the others form blocks (blocks.go)
//  2. routes whose answers are not the same work are ruled out (answers.go)
//  3. each block gives one effect per route and percentile (effects.go)
//  4. effects become claims with an interval and p-values (latency.go, rates.go)
//  5. the claims of a row become its verdict (decide.go)
//  6. of a session that may grow, 2 to 5 are done for every look, and what is decided stays (looks.go)
//  7. the rows become the session's verdict (conclude.go)
//
// [Vary] looks at sessions of one build against itself in the same way
// (variance.go): what they find is noise.
//
// The package never renders and never measures. It stands on record and
// gates/stats.
package gates
