package report_test

import (
	"bytes"
	"testing"

	"plumbline/gates"
	"plumbline/record"
	"plumbline/report"
)

// mergedFiles are samples as they come: of different lengths, with a gap, of
// another tool, with faults, cut off, and with a name that would be markup.
func mergedFiles(t *testing.T, metrics []record.Quantity, requests int64, names ...string) string {
	t.Helper()
	data := map[string]string{
		"main/mem": "elapsed_s,cpu_percent,rss_mib,ctx_voluntary\n0.000,,40.25,0\n1.001,85.50,52.5,1200\n2.000,91.25,60,2500\n3.002,90,61,3700\n4.000,12.5,61,3710\n",
		"head/mem": "elapsed_s,cpu_percent,rss_mib,ctx_voluntary\n0.000,,41,0\n1.000,95,55,1300\n5.003,97.5,70,7000\n",
		"other":    "Elapsed seconds,CPU (%),MEM (%),Real (MB)\r\n1,0.0,0.1,12.5\r\n2,0.0,0.1,12.5\r\n3,0.0,0.1,12.75\r\n4,0.0,0.",
		"a|b`<i>*": "elapsed_s,cpu_percent,rss_mib,ctx_voluntary\n0,5,40,0\n1,-40,41,5\n1,50,41,6\n",
	}
	var in []gates.MergeInput
	for _, name := range names {
		f, err := record.ParseUsage(name+".csv", []byte(data[name]), 2)
		if err != nil {
			t.Fatal(err)
		}
		in = append(in, gates.MergeInput{Name: name, File: f, Requests: requests})
		requests *= 2
	}
	var b bytes.Buffer
	if err := report.MergedMarkdown(&b, gates.Merge(in, metrics)); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestMergedGolden(t *testing.T) {
	usual := []record.Quantity{record.CPUPercent, record.RSSMiB}
	golden(t, "testdata/merged-two.md", mergedFiles(t, []record.Quantity{record.CPUPercent, record.RSSMiB, record.CtxVoluntary}, 30000, "main/mem", "head/mem"))
	golden(t, "testdata/merged-other-order.md", mergedFiles(t, usual, 0, "head/mem", "main/mem"))
	golden(t, "testdata/merged-faults.md", mergedFiles(t, usual, 0, "main/mem", "other", "a|b`<i>*"))
}
