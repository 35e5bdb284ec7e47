// Package record is the vocabulary of a session and its folder on disk.
//
// Everything a verdict may depend on has a type here: the session and its
// rules (session.json), each run (run.json, slices.csv) and the requests that
// were sent (result.bin, in vegeta's own format). The package writes them as
// they happen and reads them back as compact samples; it never judges.
//
// It is on the lowest floor and imports no other package of the project.
package record
