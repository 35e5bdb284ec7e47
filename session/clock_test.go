package session

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"plumbline/build"
	"plumbline/record"
	"plumbline/session/router"
)

func clockArm(label string, start time.Time, library string) launch {
	return launch{arm: record.Arm{Name: "name of " + label, Label: label, Clock: start}, clock: router.Clock{Start: start, Library: library}}
}

func TestUnevenClocks(t *testing.T) {
	start := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	with, other, without := clockArm("a", start, ""), clockArm("b", start.AddDate(1, 0, 0), ""), clockArm("c", time.Time{}, "")
	for _, c := range []struct {
		arms []launch
		want string
	}{
		{[]launch{with, other}, ""},
		{[]launch{without, without}, ""},
		{[]launch{with}, ""},
		{[]launch{without, with, other}, "only a and b run under libfaketime, which makes reading the time slower, not c: what differs may be that; give all arms a clock"},
	} {
		if got := unevenClocks(c.arms); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}

func TestUnlikeLibraries(t *testing.T) {
	start := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	file := func(name, content string) string {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	one, copied, other := file("lib.so", "one"), file("lib.so", "one"), file("lib.so", "other")
	for _, c := range []struct {
		libraries []string
		warns     bool
	}{{[]string{one, copied}, false}, {[]string{one, "", one}, false}, {[]string{"", one, other}, true}} {
		var arms []launch
		for _, l := range c.libraries {
			arms = append(arms, clockArm("a", start, l))
		}
		got, err := unlikeLibraries(arms)
		if err != nil || strings.Contains(got, "different builds of libfaketime") != c.warns {
			t.Errorf("%q: got %q (%v)", c.libraries, got, err)
		}
	}
}

// What lies in folders that are others in every session is recorded by their placeholders.
func TestLibraryIsRecordedByItsPlace(t *testing.T) {
	l := launch{build: "/tmp/out-01", checkout: build.Source{Dir: "/tmp/tree-01"}}
	for path, want := range map[string]string{
		"/tmp/out-01/lib/f.so": "{build}/lib/f.so", "/tmp/tree-01/f.so": "{source}/f.so", "/usr/lib/f.so": "/usr/lib/f.so", "/tmp/out-011/f.so": "/tmp/out-011/f.so",
	} {
		if got := l.placed(path); got != want {
			t.Errorf("%s is recorded as %s, want %s", path, got, want)
		}
	}
	if got := (launch{}).placed("/usr/lib/f.so"); got != "/usr/lib/f.so" {
		t.Errorf("got %s", got)
	}
}

// New blocks under another clock would be another measurement.
func TestSameArmsHaveTheSameClock(t *testing.T) {
	was := record.Arm{Name: "a", Label: "main", BinarySHA256: "1", Clock: time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC), ClockLibrary: "{build}/f.so"}
	zone, later, library, none := was, was, was, was
	zone.Clock = was.Clock.In(time.FixedZone("", 3600))
	later.Clock = was.Clock.Add(time.Second)
	library.ClockLibrary = "/usr/lib/f.so"
	none.Clock, none.ClockLibrary = time.Time{}, ""
	if err := sameArms([]record.Arm{was}, []record.Arm{zone}); err != nil {
		t.Errorf("the same moment: %v", err)
	}
	for _, is := range []record.Arm{later, library, none} {
		if err := sameArms([]record.Arm{was}, []record.Arm{is}); err == nil || err.Error() != "main is not started as it was" {
			t.Errorf("%+v: %v", is, err)
		}
	}
}
