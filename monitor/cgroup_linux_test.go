package monitor

import (
	"os"
	"path/filepath"
	"testing"
)

// What systems say, shortened: which folder has the quota's figures.
func TestCPUCgroup(t *testing.T) {
	for _, tt := range []struct{ name, own, mounts, top, path string }{
		{"version 2", "0::/user.slice/app.service\n",
			"24 23 0:22 / /proc rw - proc proc rw\n30 24 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n", "/sys/fs/cgroup", "/user.slice/app.service"},
		{"version 2 in a container", "0::/\n", "900 800 0:26 / /sys/fs/cgroup ro - cgroup2 cgroup rw\n", "/sys/fs/cgroup", "/"},
		{"version 1, controllers together", "5:cpu,cpuacct:/docker/1a2b\n1:name=systemd:/docker/1a2b\n",
			"40 30 0:30 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,name=systemd\n41 30 0:31 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n", "/sys/fs/cgroup/cpu,cpuacct", "/docker/1a2b"},
		{"version 1 in a container", "5:cpu,cpuacct:/docker/1a2b/sub\n", "41 30 0:31 /docker/1a2b /sys/fs/cgroup/cpu ro - cgroup cgroup rw,cpu,cpuacct\n", "/sys/fs/cgroup/cpu", "/sub"},
		{"both, the controller in version 1", "1:cpu:/a\n0::/b\n",
			"30 24 0:26 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n39 31 0:36 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n", "/sys/fs/cgroup/cpu", "/a"},
		{"outside of the container", "0::/../other\n", "30 24 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n", "", ""},
		{"another part of the hierarchy", "5:cpu:/docker/1a2bc\n", "41 30 0:31 /docker/1a2b /sys/fs/cgroup/cpu ro - cgroup cgroup rw,cpu\n", "", ""},
		{"cpuset alone is not the CPU's", "3:cpuset:/x\n", "37 31 0:34 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n", "", ""},
		{"none", "", "", "", ""},
	} {
		top, path, ok := cpuCgroup(tt.own, tt.mounts)
		if top != tt.top || path != tt.path || ok != (tt.top != "") {
			t.Errorf("%s: %q %q %v, want %q %q", tt.name, top, path, ok, tt.top, tt.path)
		}
	}
}

// The same quota, as version 1 and version 2 write it down, has the same figures.
func TestThrottleOf(t *testing.T) {
	v1 := map[string]string{
		"cpu.stat":             "nr_periods 0\nnr_throttled 0\nthrottled_time 0\n", // of the root, which has no quota
		"cpu.cfs_quota_us":     "-1\n",
		"a/cpu.stat":           "nr_periods 120\nnr_throttled 30\nthrottled_time 4500000000\nnr_bursts 0\nburst_time 0\n",
		"a/cpu.cfs_quota_us":   "50000\n",
		"a/b/cpu.stat":         "nr_periods 0\nnr_throttled 0\nthrottled_time 0\n",
		"a/b/cpu.cfs_quota_us": "-1\n",
	}
	v2 := map[string]string{
		"cpu.stat":     "usage_usec 5\nuser_usec 3\nsystem_usec 2\n",
		"a/cpu.stat":   "usage_usec 5\nuser_usec 3\nsystem_usec 2\nnr_periods 120\nnr_throttled 30\nthrottled_usec 4500000\nnr_bursts 0\nburst_usec 0\n",
		"a/cpu.max":    "50000 100000\n",
		"a/b/cpu.stat": "usage_usec 5\nnr_periods 0\nnr_throttled 0\nthrottled_usec 0\n",
		"a/b/cpu.max":  "max 100000\n",
	}
	for name, files := range map[string]map[string]string{"version 1": v1, "version 2": v2} {
		top := t.TempDir()
		for file, text := range files {
			path := filepath.Join(top, file)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		for _, path := range []string{"/a", "/a/b"} { // which inherits it
			got, where, ok := throttleOf(top, path)
			if want := (throttle{periods: 120, throttled: 30, seconds: 4.5}); got != want || !ok || where != filepath.Join(top, "a") {
				t.Errorf("%s, %s: %+v in %s, %v, want %+v", name, path, got, where, ok, want)
			}
		}
		got, _, ok := throttleOf(top, "/")
		if got != (throttle{}) || ok != (name == "version 1") { // version 2 does not say 0, but nothing
			t.Errorf("%s, without a quota: %+v, %v", name, got, ok)
		}
		if _, _, ok := throttleOf(top, "/none"); ok {
			t.Errorf("%s: a cgroup that is not there has figures", name)
		}
	}
}
