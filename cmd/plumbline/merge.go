package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"plumbline/gates"
	"plumbline/record"
	"plumbline/report"
)

func newMerge() *cobra.Command {
	var f mergeFlags
	c := &cobra.Command{
		Use:   "merge FILE...",
		Short: "Put CSVs of process samples side by side, as a Markdown table",
		Long: `Reads files of "plumbline monitor", or CSVs of other tools, and prints one table:
a row for each second since each file's start, the files' columns of one metric
side by side, blank where a file has no sample. Below it stands what each file
comes to: CPU seconds, mean and maximum, and of memory the value at the start
(idle), on the plateau (the mean over the second half of the time) and at the
end. With --requests also the CPU seconds per 1,000 requests; they include what
the process did before and after the load, as far as it is in the file.

What cannot be true is not averaged in: that metric of that file is set aside,
and the fault is named with its line: CPU that is 0 all the time, below 0 or more
than all CPUs have (--cpus; default: this machine's), times that repeat, go back
or, in whole seconds, are skipped, rows that are cut off.

Columns of other tools: "Elapsed seconds", "elapsed_time", "elapsed", "timestamp"
(since 1970, or RFC 3339); "CPU (%)", "cpu", "%CPU"; "Real (MB)", "mem_real",
rss_bytes, rss_kib, pss_bytes, pss_kib; num_threads, num_fds. A column without a
unit, such as rss, is not guessed at. Fields may be separated by semicolons or
tabs, and then have decimal commas.`,
		Example: `  plumbline merge main.csv head.csv
  plumbline merge main.csv head.csv --metric cpu_percent,pss_mib --requests 30000
  plumbline merge main.csv head.csv --requests main=30000 --requests head=head.bin
  plumbline merge */monitor.csv >> "$GITHUB_STEP_SUMMARY"`,
		Args: args(cobra.MinimumNArgs(1)),
		RunE: func(c *cobra.Command, a []string) error { return f.merge(c, a) },
	}
	flags := c.Flags()
	flags.StringSliceVar(&f.metrics, "metric", []string{record.CPUPercent.String(), record.RSSMiB.String()}, "`columns` to show: "+wordsOf(quantityNames(), ", "))
	flags.StringArrayVar(&f.requests, "requests", nil, "how many requests the process was sent, as `NAME=N` or NAME=FILE, a result file of vegeta; N alone: each; may be repeated")
	flags.Var(whole(&f.cpus, 0, "from 1 on"), "cpus", "how many CPUs the files' machine had (default: this one's, of a session's run the recorded machine's)")
	flags.BoolVar(&f.asJSON, "json", false, "print JSON instead of Markdown")
	_ = c.RegisterFlagCompletionFunc("metric", cobra.FixedCompletions(quantityNames(), cobra.ShellCompDirectiveNoFileComp))
	c.Flag("cpus").DefValue = ""
	return c
}

func quantityNames() (all []string) {
	for _, q := range record.Quantities() {
		all = append(all, q.String())
	}
	return all
}

type mergeFlags struct {
	metrics, requests []string
	cpus              uint64
	asJSON            bool
}

func (f *mergeFlags) merge(c *cobra.Command, paths []string) error {
	metrics, err := f.quantities()
	if err == nil {
		err = allDifferent(paths)
	}
	if err == nil && c.Flags().Changed("cpus") && (f.cpus < 1 || f.cpus > 1<<20) {
		err = errors.New("--cpus: want a whole number from 1 on")
	}
	if err != nil {
		return usage(err)
	}
	names := shortNames(paths)
	requests, err := f.requestsOf(names)
	if err != nil {
		return err
	}
	var in []gates.MergeInput
	for i, path := range paths {
		file, err := record.ReadUsage(path, f.cpusOf(path))
		if err != nil {
			return fmt.Errorf("reading the samples: %w", err)
		}
		if err := hasAll(file, metrics); err != nil {
			return err
		}
		in = append(in, gates.MergeInput{Name: names[i], File: file, Requests: requests[i]})
	}
	merged := gates.Merge(in, metrics)
	if f.asJSON {
		return writeJSON(c.OutOrStdout(), merged)
	}
	return report.MergedMarkdown(c.OutOrStdout(), merged)
}

func (f *mergeFlags) quantities() (all []record.Quantity, err error) {
	for _, name := range f.metrics {
		q, ok := record.ParseQuantity(strings.TrimSpace(name))
		if !ok {
			return nil, fmt.Errorf("--metric: %q is none of %s", name, wordsOf(quantityNames(), ", "))
		}
		if slices.Contains(all, q) {
			return nil, fmt.Errorf("--metric: %s is there twice", q)
		}
		all = append(all, q)
	}
	if len(all) == 0 {
		return nil, errors.New("--metric: names no column")
	}
	return all, nil
}

// allDifferent also sees through links; what is not there is for the reader to say.
func allDifferent(paths []string) error {
	var infos []os.FileInfo
	for _, path := range paths {
		if path == "" {
			return errors.New("the name of a file is empty; is a variable not set?")
		}
		info, err := os.Stat(path)
		if err != nil {
			info = nil
		} else if info.IsDir() {
			return fmt.Errorf("%s is a folder, not a file of samples", path)
		}
		for k, other := range infos {
			if info != nil && other != nil && os.SameFile(info, other) {
				return fmt.Errorf("%s and %s are the same file: %w", paths[k], path, record.ErrGivenTwice)
			}
		}
		infos = append(infos, info)
	}
	return nil
}

// shortNames are the shortest ends of the paths that tell them apart, without
// .csv if they still do: a/x.csv and b/x.csv are a/x and b/x.
func shortNames(paths []string) []string {
	var parts [][]string
	for _, path := range paths {
		parts = append(parts, strings.Split(filepath.ToSlash(filepath.Clean(path)), "/"))
	}
	end := func(i, n int) string {
		p := parts[i]
		return strings.Join(p[max(0, len(p)-n):], "/")
	}
	names := make([]string, len(paths))
	for i := range paths {
		n := 1
		for n < len(parts[i]) && slices.ContainsFunc(others(len(paths), i), func(k int) bool { return end(k, n) == end(i, n) }) {
			n++
		}
		names[i] = end(i, n)
	}
	bare := make([]string, len(names))
	for i, name := range names {
		bare[i] = strings.TrimSuffix(name, ".csv")
	}
	if sorted := slices.Sorted(slices.Values(bare)); len(slices.Compact(sorted)) == len(bare) && !slices.Contains(bare, "") {
		return bare
	}
	return names
}

func others(n, i int) (all []int) {
	for k := range n {
		if k != i {
			all = append(all, k)
		}
	}
	return all
}

// cpusOf is how many CPUs the machine of a file had.
func (f *mergeFlags) cpusOf(path string) int {
	if f.cpus > 0 {
		return int(f.cpus)
	}
	// SESSION/runs/RUN/FILE
	if s, err := record.OpenMeta(filepath.Join(filepath.Dir(path), "..", "..")); err == nil && s.Host.CPUs > 0 {
		return s.Host.CPUs
	}
	return runtime.NumCPU()
}

func hasAll(file *record.UsageFile, metrics []record.Quantity) error {
	for _, q := range metrics {
		if file.Columns[q] == "" {
			var has []string
			for _, q := range record.Quantities() {
				if file.Columns[q] != "" {
					has = append(has, q.String())
				}
			}
			return fmt.Errorf("%s has no column %s (it has %s); --metric says which to show, and `plumbline merge --help` how other tools may call them", file.Path, q, strings.Join(has, ", "))
		}
	}
	return nil
}

// requestsOf is how many requests each file's process was sent; 0: not known.
func (f *mergeFlags) requestsOf(names []string) ([]int64, error) {
	counts := make([]int64, len(names))
	for _, flag := range f.requests {
		i := strings.LastIndexByte(flag, '=')
		name, value := flag[:max(i, 0)], flag[i+1:]
		at := slices.Index(names, name)
		if i >= 0 && at < 0 {
			return nil, usage(fmt.Errorf("--requests: %q is none of the files: %s", name, strings.Join(names, ", ")))
		}
		n, err := countOf(value)
		if err != nil {
			return nil, err
		}
		for k := range counts {
			if i >= 0 && k != at {
				continue
			}
			if counts[k] != 0 {
				return nil, usage(fmt.Errorf("--requests: those of %s are there twice", names[k]))
			}
			counts[k] = n
		}
	}
	return counts, nil
}

// countOf is a number, or that of the requests in a result file.
func countOf(value string) (int64, error) {
	if n, err := strconv.ParseInt(value, 10, 64); err == nil || !isFile(value) {
		if err != nil || n < 1 {
			return 0, usage(fmt.Errorf("--requests: %q is neither a number from 1 on nor a result file", value))
		}
		return n, nil
	}
	s, err := readFiles([]string{value})
	if err != nil {
		return 0, err
	}
	return int64(s.Runs[0].Sent), nil
}
