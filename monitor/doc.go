// Package monitor samples what a process, or a tree of them, uses of its
// machine: CPU time, memory, threads, descriptors, context switches, storage,
// and what its cgroup's CPU quota took away.
//
// Processes are read with gopsutil; what that lacks (CPU time finer than a
// tick of 10 ms, proportional memory, context switches of all threads, cgroups)
// comes from /proc, and only on Linux: elsewhere those columns are blank. What
// cannot be read is unknown, never 0. The files are record's; the package
// judges nothing, and imports only record.
package monitor
