package gates_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"plumbline/gates"
	"plumbline/record"
)

func usageFile(t *testing.T, name, data string) gates.MergeInput {
	t.Helper()
	f, err := record.ParseUsage(name+".csv", []byte(data), 2)
	if err != nil {
		t.Fatal(err)
	}
	return gates.MergeInput{Name: name, File: f}
}

func said(x *float64) string {
	if x == nil {
		return "-"
	}
	return fmt.Sprint(*x)
}

func TestMergeSumsUp(t *testing.T) {
	a := usageFile(t, "a", "elapsed_s,cpu_percent,rss_mib,read_bytes\n0,,10,100\n1,100,20,150\n2.5,50,30,150\n3,0,40,175\n")
	a.Requests = 500
	m := gates.Merge([]gates.MergeInput{a}, []record.Quantity{record.CPUPercent, record.RSSMiB, record.ReadBytes, record.PSSMiB})
	f := m.Files[0]
	// 100 % for 1 s, 50 % for 1.5 s, 0 % for 0.5 s.
	if f.Samples != 4 || f.LengthS != 3 || said(f.CPUSeconds) != "1.75" || said(f.CPUPer1000) != "3.5" {
		t.Errorf("%+v, %s s, %s per 1,000", f, said(f.CPUSeconds), said(f.CPUPer1000))
	}
	for i, want := range []string{
		"- - - 58.333333333 100 -", // over 3 s
		"10 35 40 25 40 -",         // the plateau is from 1.5 s on
		"- - - - - 75",
		"- - - - - -",
	} {
		v := f.Metrics[i]
		got := strings.Join([]string{said(v.Start), said(v.Plateau), said(v.End), said(v.Mean), said(v.Max), said(v.Growth)}, " ")
		if got != want {
			t.Errorf("%s: %s, want %s", m.Metrics[i], got, want)
		}
	}
}

// What is not known is not summed as if it were 0.
func TestMergeDoesNotInvent(t *testing.T) {
	for _, tt := range []struct{ name, data, seconds, plateau string }{
		{"one sample", "elapsed_s,cpu_percent,rss_mib\n0,50,10\n", "-", "-"},
		{"a blank in the middle", "elapsed_s,cpu_percent,rss_mib\n0,,10\n1,50,\n2,,\n3,50,30\n", "-", "-"},
		{"a gap", "elapsed_s,cpu_percent,rss_mib\n0.5,,10\n1.5,50,10\n9.5,50,20\n10.5,100,30\n", "5.5", "25"},
		{"set aside", "elapsed_s,cpu_percent,rss_mib\n0,,10\n1,-5,10\n2,50,10\n3,50,-10\n", "-", "-"},
	} {
		m := gates.Merge([]gates.MergeInput{usageFile(t, "a", tt.data)}, []record.Quantity{record.CPUPercent, record.RSSMiB})
		if got := said(m.Files[0].CPUSeconds); got != tt.seconds {
			t.Errorf("%s: %s CPU seconds, want %s", tt.name, got, tt.seconds)
		}
		if got := said(m.Files[0].Metrics[1].Plateau); got != tt.plateau {
			t.Errorf("%s: plateau %s, want %s", tt.name, got, tt.plateau)
		}
	}
	m := gates.Merge([]gates.MergeInput{usageFile(t, "a", "elapsed_s,cpu_percent,rss_mib\n0,5,10\n1,-5,10\n")}, []record.Quantity{record.CPUPercent, record.RSSMiB})
	if v := m.Files[0].Metrics; !v[0].SetAside || v[0].Mean != nil || v[0].Max != nil || v[1].SetAside || said(v[1].Mean) != "10" {
		t.Errorf("%+v", v)
	}
}

func TestMergeBySecond(t *testing.T) {
	a := usageFile(t, "a", "elapsed_s,cpu_percent,fds,periods\n0.000,,5,0\n0.500,10,6,5\n0.9996,30,7,10\n1.500,50,7,15\n")
	b := usageFile(t, "b", "elapsed_s,cpu_percent,fds,periods\n0.000,,5,0\n3.000,70,,30\n")
	m := gates.Merge([]gates.MergeInput{a, b}, []record.Quantity{record.CPUPercent, record.FDs, record.Periods})
	var got []string
	for _, s := range m.Seconds {
		var cells []string
		for _, files := range s.Values {
			for _, x := range files {
				cells = append(cells, said(x))
			}
		}
		got = append(got, fmt.Sprintf("%d: %s", s.Second, strings.Join(cells, " ")))
	}
	want := "0: 10 - 5.5 5 5 0; 1: 40 - 7 - 15 -; 3: - 70 - - - 30"
	if strings.Join(got, "; ") != want {
		t.Errorf("%s\nwant\n%s", strings.Join(got, "; "), want)
	}
}

// The JSON names metrics as the files do, and says null where nothing is known.
func TestMergedJSON(t *testing.T) {
	m := gates.Merge([]gates.MergeInput{usageFile(t, "a", "elapsed_s,cpu_percent\n0,\n1,-5\n")}, []record.Quantity{record.CPUPercent})
	data, err := m.JSON()
	if err != nil {
		t.Fatal(err)
	}
	var back struct {
		Metrics []string
		Files   []struct {
			Aside []struct {
				Line     int
				Column   string
				SetAside []string `json:"set_aside"`
			} `json:"set_aside"`
		}
		Seconds []struct{ Values [][]*float64 }
	}
	if err := json.Unmarshal(data, &back); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprintf("%+v", back); got != "{Metrics:[cpu_percent] Files:[{Aside:[{Line:3 Column:cpu_percent SetAside:[cpu_percent]}]}] Seconds:[{Values:[[<nil>]]} {Values:[[<nil>]]}]}" {
		t.Errorf("%s\n%s", got, data)
	}
}
