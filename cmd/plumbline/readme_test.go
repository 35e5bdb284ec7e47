package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"plumbline/plan"
)

// Every command line in the help is one that plumbline takes.
func TestExamplesAreCommands(t *testing.T) {
	shown := 0
	var check func(c *cobra.Command)
	check = func(c *cobra.Command) {
		shown += checkCommandLines(t, c.Example)
		for _, sub := range c.Commands() {
			check(sub)
		}
	}
	check(newRoot())
	if shown < 10 {
		t.Errorf("only %d command lines were found in the help", shown)
	}
}

// So is every one in README, and its plans are plans.
func TestReadme(t *testing.T) {
	data, err := os.ReadFile("../../README.md")
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	commands, plans := 0, 0
	for _, b := range fencedBlocks(string(data)) {
		commands += checkCommandLines(t, b)
		if strings.Contains(b, "router:") {
			checkPlan(t, b)
			plans++
		}
	}
	if commands == 0 || plans == 0 {
		t.Errorf("found %d command lines and %d plans in README", commands, plans)
	}
}

func fencedBlocks(markdown string) (all []string) {
	for i, part := range strings.Split("\n"+markdown, "\n```") {
		if i%2 == 1 {
			_, text, _ := strings.Cut(part, "\n") // without the language
			all = append(all, text)
		}
	}
	return all
}

// commandLine may also be a step of a CI workflow.
var commandLine = regexp.MustCompile(`(?m)^\s*(?:\$ |- run: )?(?:go run \./cmd/plumbline|plumbline) (.*)$`)

// checkCommandLines tries the command lines in a text and counts them.
func checkCommandLines(t *testing.T, text string) int {
	t.Helper()
	lines := commandLine.FindAllStringSubmatch(text, -1)
	for _, l := range lines {
		if err := accepts(shellWords(l[1])); err != nil {
			t.Errorf("plumbline %s: %v", l[1], err)
		}
	}
	return len(lines)
}

// accepts says what is wrong with a command, its flags or the number of its
// arguments; nothing is run.
func accepts(words []string) error {
	c, rest, err := newRoot().Find(words)
	if err != nil {
		return err
	}
	if err := c.ParseFlags(rest); err != nil {
		return err
	}
	return c.ValidateArgs(c.Flags().Args())
}

func TestAccepts(t *testing.T) {
	for line, good := range map[string]bool{
		`against main --out 'a b' > x`: true, `gate SESSION   # a comment`: true,
		`mock demo --slow "GET /search=30%"`: true, `gate`: false, `wiegh main`: false, `against main --jsno`: false, `plan chek`: false,
	} {
		if err := accepts(shellWords(line)); (err == nil) != good {
			t.Errorf("%s: %v", line, err)
		}
	}
}

// shellWords are the words of the first command of a line.
func shellWords(line string) (words []string) {
	word := regexp.MustCompile(`^\s+|^#.*|^[|&;<>].*|^(?:"[^"]*"|'[^']*'|[^\s"'|&;<>])+`)
	for line != "" {
		w := word.FindString(line)
		if w == "" || strings.ContainsAny(w[:1], "#|&;<>") {
			break
		}
		if strings.TrimSpace(w) != "" {
			words = append(words, strings.NewReplacer(`"`, "", `'`, "").Replace(w))
		}
		line = line[len(w):]
	}
	return words
}

// checkPlan reads a plan with the files that it names beside it.
func checkPlan(t *testing.T, text string) {
	t.Helper()
	dir := t.TempDir()
	for _, m := range regexp.MustCompile(`targets: ([^\s,}]+)`).FindAllStringSubmatch(text, -1) {
		path := filepath.Join(dir, m[1])
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("GET /\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := plan.Parse(filepath.Join(dir, "plumbline.yaml"), []byte(text)); err != nil {
		t.Errorf("%v in the plan\n%s", err, text)
	}
}
