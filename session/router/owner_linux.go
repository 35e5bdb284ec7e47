package router

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// owner finds the process of the router that has the socket that answers; where
// that cannot be told, it is the one that was started. A stranger on the same
// address is an error: it would be measured in the router's place.
func (p *Process) owner() (pid int, err error) {
	if p.cfg.Address == (Address{}) {
		return p.PID(), nil
	}
	inodes, err := listening(p.cfg.Address)
	if err != nil || len(inodes) == 0 {
		return p.PID(), nil // the kernel's table does not show it (another network namespace): not checked
	}
	for _, pid := range p.freezer.pids() {
		fds, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
		for _, fd := range fds {
			if link, err := os.Readlink(fd); err == nil && inodes[link] {
				return pid, nil
			}
		}
	}
	return 0, fmt.Errorf("%s runs, but the socket on %s belongs to another process; if it started that in the background, keep it in the foreground", p.cfg.name(), p.cfg.Address)
}

// listening returns the sockets that listen on an address, as their links in /proc/PID/fd read.
func listening(a Address) (map[string]bool, error) {
	if a.Network == "unix" {
		return sockets("/proc/net/unix", func(f []string) (string, bool) {
			// Num RefCount Protocol Flags Type St Inode Path; flag 0x10000 marks a listener.
			if len(f) < 8 || f[7] != a.Addr || f[3] != "00010000" {
				return "", false
			}
			return f[6], true
		})
	}
	_, port, ok := strings.Cut(a.Addr, ":")
	n, err := strconv.Atoi(port)
	if !ok || err != nil {
		return nil, fmt.Errorf("address %q has no port", a.Addr)
	}
	suffix := fmt.Sprintf(":%04X", n)
	pick := func(f []string) (string, bool) {
		// sl local_address rem_address st ... inode at 9; state 0A is LISTEN.
		if len(f) < 10 || f[3] != "0A" || !strings.HasSuffix(f[1], suffix) {
			return "", false
		}
		return f[9], true
	}
	found, err := sockets("/proc/net/tcp", pick)
	if err != nil {
		return nil, err
	}
	more, err := sockets("/proc/net/tcp6", pick)
	if err == nil { // absent where IPv6 is off
		for s := range more {
			found[s] = true
		}
	}
	return found, nil
}

func sockets(path string, pick func(fields []string) (inode string, ok bool)) (map[string]bool, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	found := map[string]bool{}
	for line := range strings.Lines(string(b)) {
		if inode, ok := pick(strings.Fields(line)); ok {
			found["socket:["+inode+"]"] = true
		}
	}
	return found, nil
}
