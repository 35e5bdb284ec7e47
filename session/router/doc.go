// Package router owns one process under test, or a service that one needs: it
// starts it pinned to its CPUs in a process group of its own, waits until it
// answers, freezes and thaws it, notices its death and stops it so that
// nothing is left behind.
//
// It never sends load and knows nothing of arms or blocks.
package router
