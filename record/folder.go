package record

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/google/renameio/v2"
	"golang.org/x/sys/unix"
)

// Names of the files of a session folder.
const (
	sessionFile  = "session.json"
	runFile      = "run.json"
	resultFile   = "result.bin"
	slicesFile   = "slices.csv"
	controlsFile = "controls.csv"
	runsDir      = "runs"

	// VerdictFile, ReportFile and LogFile are written or read by others.
	VerdictFile = "verdict.json"
	ReportFile  = "report.md"
	LogFile     = "router.log"
)

// Folder is a session folder that is being written. It is locked meanwhile,
// so that nobody else goes on with the session.
type Folder struct {
	dir  string
	lock *os.File
}

// Create makes a new session folder. A folder that exists must be empty:
// a record is never written over another one.
func Create(dir string) (*Folder, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("creating the session folder: %w", err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("creating the session folder: %w", err)
	}
	if len(entries) > 0 {
		return nil, fmt.Errorf("creating the session folder: %s is not empty; name another folder, or remove this one", dir)
	}
	// Made now, so that a folder nobody may write to fails in the first second.
	if err := os.Mkdir(filepath.Join(dir, runsDir), 0o755); err != nil {
		return nil, fmt.Errorf("creating the session folder: %w", err)
	}
	return lockFolder(dir)
}

// Reopen is Open for a session that is to be gone on with: its folder can be
// written again, by nobody else.
func Reopen(dir string) (*Folder, *Session, error) {
	if _, err := OpenMeta(dir); err != nil {
		return nil, nil, err // before anything else: it is a session folder at all
	}
	if err := unix.Access(dir, unix.W_OK); err != nil {
		return nil, nil, fmt.Errorf("writing to the session folder %s: %w", dir, err)
	}
	f, err := lockFolder(dir)
	if err != nil {
		return nil, nil, err
	}
	s, err := Open(dir)
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return f, s, nil
}

func lockFolder(dir string) (*Folder, error) {
	lock, err := os.Open(dir)
	if err != nil {
		return nil, fmt.Errorf("locking the session folder: %w", err)
	}
	switch err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); {
	case errors.Is(err, unix.EWOULDBLOCK):
		lock.Close()
		return nil, fmt.Errorf("locking the session folder: %s is being written by another plumbline", dir)
	case err != nil: // some network file systems know no locks
		lock.Close()
		lock = nil
	}
	return &Folder{dir: dir, lock: lock}, nil
}

// Close gives the folder free.
func (f *Folder) Close() error {
	if f.lock == nil {
		return nil
	}
	return f.lock.Close()
}

// Discard removes what was written. A folder that Create was given stays, empty.
func (f *Folder) Discard() error {
	entries, err := os.ReadDir(f.dir)
	errs := []error{err}
	for _, e := range entries {
		errs = append(errs, os.RemoveAll(filepath.Join(f.dir, e.Name())))
	}
	return errors.Join(errs...)
}

// Dir is the folder's path.
func (f *Folder) Dir() string { return f.dir }

// Write puts a file into the folder, whole or not at all; folders on the way are made.
func (f *Folder) Write(name string, data []byte) error {
	path := filepath.Join(f.dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("writing the record: %w", err)
	}
	return WriteFile(path, data)
}

// SaveMeta replaces session.json.
func (f *Folder) SaveMeta(m Meta) error { return f.writeJSON(sessionFile, m) }

func (f *Folder) writeJSON(name string, v any) error {
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("writing %s: %w", name, err)
	}
	return f.Write(name, append(data, '\n'))
}

// Open reads a session folder with all its runs.
func Open(dir string) (*Session, error) {
	s, err := OpenMeta(dir)
	if err != nil {
		return nil, err
	}
	for _, ref := range s.Order {
		switch r, err := s.ReadRun(ref.ID); {
		case errors.Is(err, ErrNoRun):
			continue // the session ended before it
		case err != nil:
			return nil, err
		default:
			s.Runs = append(s.Runs, r)
		}
	}
	return s, nil
}

// OpenMeta reads session.json alone.
func OpenMeta(dir string) (*Session, error) {
	path := filepath.Join(dir, sessionFile)
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("reading the session: %s is no session folder: it has no %s", dir, sessionFile)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the session: %w", err)
	}
	s := &Session{Dir: dir}
	if err := json.Unmarshal(data, &s.Meta); err != nil {
		return nil, fmt.Errorf("reading the session: %s: %w", path, err)
	}
	if s.Format < 1 || s.Format > Format {
		return nil, fmt.Errorf("reading the session: %s: format %d is not one this version knows (1 to %d); use the plumbline that wrote it (%s)", path, s.Format, Format, s.Tool)
	}
	if err := s.check(); err != nil {
		return nil, fmt.Errorf("reading the session: %s: %w", path, err)
	}
	return s, nil
}

// check refuses a session.json that could not have been written by a session:
// a gate must not pass because a name in it leads nowhere.
func (m *Meta) check() error {
	if len(m.Arms) == 0 {
		return errors.New("arms: there is none")
	}
	arms := map[string]bool{}
	for i, a := range m.Arms {
		if a.Name == "" || arms[a.Name] {
			return fmt.Errorf("arms[%d].name: %q is empty or used twice", i, a.Name)
		}
		if a.Role != Baseline && a.Role != Candidate {
			return fmt.Errorf("arms[%d].role: %q is neither %q nor %q", i, a.Role, Baseline, Candidate)
		}
		arms[a.Name] = true
	}
	if len(m.Routes) == 0 {
		return errors.New("routes: there is none")
	}
	routes := map[string]bool{}
	for i, r := range m.Routes {
		if r.Name == "" || routes[r.Name] {
			return fmt.Errorf("routes[%d].name: %q is empty or used twice", i, r.Name)
		}
		routes[r.Name] = true
	}
	if c := m.Schedule; c.MaxBlocks != 0 && (c.Blocks < 1 || c.MaxBlocks < c.Blocks) {
		return fmt.Errorf("schedule.max_blocks: %d with blocks %d: needs 1 ≤ blocks ≤ max_blocks, or 0 for a fixed length", c.MaxBlocks, c.Blocks)
	}
	if c := m.Schedule.Controls; c != nil && (c.Pairs < 1 || !(c.Delay > 0 && c.Delay < 10)) {
		return fmt.Errorf("schedule.controls: needs pairs of at least 1, not %d, and a delay between 0 and 10, not %v", c.Pairs, c.Delay)
	}
	ids := map[string]bool{}
	for i, o := range m.Order {
		if !arms[o.Arm] || o.Block < 1 {
			return fmt.Errorf("order[%d]: arm %q, block %d is no run of this session", i, o.Arm, o.Block)
		}
		if o.ID == "" || ids[o.ID] || filepath.Base(o.ID) != o.ID {
			return fmt.Errorf("order[%d].id: %q is empty, used twice or no plain name", i, o.ID)
		}
		ids[o.ID] = true
	}
	if m.Load.Rate < 0 {
		return fmt.Errorf("load.rate: %v is below 0", m.Load.Rate)
	}
	if m.Rules.FloorS < 0 || m.Rules.FloorS >= 1 {
		return fmt.Errorf("rules.floor_s: %v is not between 0 and 1 second", m.Rules.FloorS)
	}
	for _, metric := range Metrics {
		rule, ok := m.Rules.Metrics[metric]
		if !ok || !(rule.Zone > 0 && rule.Zone < 1) {
			return fmt.Errorf("rules.metrics.%s: needs a zone between 0 and 1", metric)
		}
	}
	return nil
}

// WriteFile puts a file in its place whole or not at all.
func WriteFile(path string, data []byte) error {
	// Beside the file, not in the system's temporary folder, where nobody would
	// look for what is left of it if we are killed.
	beside := renameio.WithTempDir(filepath.Dir(path))
	if err := renameio.WriteFile(path, data, 0o644, renameio.IgnoreUmask(), beside); err != nil {
		return fmt.Errorf("writing the record: %w", err)
	}
	return nil
}
