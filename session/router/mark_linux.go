package router

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// EndMarked ends every process that carries mark in its environment, with its
// whole process group, whatever session or group it has moved to: a mark is
// inherited like any variable. A mark is compared as a prefix, so that one
// can stand for many. With a grace they get TERM first, and KILL when it is over.
//
// What cannot be seen or ended (another user's, or one that has written over
// its environment and left its group) stays. Only Linux lets us look.
func EndMarked(mark string, grace time.Duration) {
	begun := time.Now()
	ending, groups := map[int]bool{}, map[int]bool{}
	var ended []int
	// A process may fork while it is being ended, so look again until none is left.
	for time.Since(begun) < grace+patience {
		for pid, group := range marked(mark) {
			ending[pid] = true
			switch {
			case group == 0 || group == syscall.Getpgrp(): // gone, or nothing that we started
			case time.Since(begun) >= grace:
				_ = syscall.Kill(-group, syscall.SIGKILL)
				groups[group] = true
			case !groups[group]: // once: a second TERM would end git while it puts away what it began
				_ = syscall.Kill(-group, syscall.SIGTERM)
				groups[group] = true
			}
		}
		// One that has lost its memory has no environment, but still its files.
		maps.DeleteFunc(ending, func(pid int, _ bool) bool {
			state, _ := readStat(fmt.Sprintf("/proc/%d/stat", pid))
			if state == "" || state == "Z" {
				ended = append(ended, pid)
				return true
			}
			return false
		})
		if len(ending) == 0 {
			break
		}
		time.Sleep(5 * time.Millisecond)
	}
	for group := range groups { // one that hides its environment may be in it
		EndGroup(group)
	}
	removeClockFiles(ended)
}

// marked finds the processes that were started with mark in their
// environment, with the group of each.
func marked(mark string) map[int]int {
	all, _ := filepath.Glob("/proc/[0-9]*/environ")
	found := map[int]int{}
	for _, path := range all {
		environ, err := os.ReadFile(path) // those of other users cannot be read
		if err != nil || !bytes.Contains(append([]byte{0}, environ...), append([]byte{0}, mark...)) {
			continue
		}
		dir := filepath.Dir(path)
		if pid, err := strconv.Atoi(filepath.Base(dir)); err == nil && pid != os.Getpid() {
			_, found[pid] = readStat(filepath.Join(dir, "stat"))
		}
	}
	return found
}
