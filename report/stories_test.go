package report_test

import (
	"fmt"

	"plumbline/gates"
	"plumbline/record"
)

var demo = []string{"GET /items", "GET /items/42", "GET /search?q=plumb", "POST /items", "GET /missing"}

var hostile = []string{
	"GET /a|b||c?x=\\|y",
	"GET /`tick`/``two``",
	"GET /line\nbreak\r\n| injected | row |",
	"GET /<script>alert(1)</script>&amp;",
	"GET /*bold*_under_~~gone~~",
	"GET /@octocat/#1?mail=a@b.example",
	"GET /\x1b[31mred\x1b[0m\x07\x00\xff",
	"GET /\u202egnp.exe\u200b",
	"GET /日本語/ü/é",
	"GET /![img](http://evil.example/x.png)[a](javascript:b)",
	"GET /www.evil.example/|http://evil.example",
	"GET /$x^2$/back\\slash\\",
}

// stories are the golden cases: one reader's situation each.
func stories() map[string]*story {
	all := map[string]*story{}

	all["pass"] = newStory(gates.Pass).quiet(demo...)

	st := newStory(gates.Regression).quiet(demo...)
	st.change(record.LatencyP50, demo[2], 540e-6, 0.312, 0.301, 0.324, gates.RowRegression)
	c := st.change(record.LatencyDistribution, demo[2], 700e-6, 0.331, 0.301, 0.362, gates.RowRegression)
	c.Percentile = 95
	st.change(record.LatencyP99, demo[2], 1.1e-3, 0.29, 0.21, 0.36, gates.RowRegression)
	st.v.Reasons = []string{"Regression: P50 of GET /search?q=plumb, latency distribution of GET /search?q=plumb, P99 of GET /search?q=plumb."}
	all["regression"] = st

	st = newStory(gates.Regression).quiet(demo...)
	st.change(record.ErrorRate, demo[3], 0.0001, 0.0123, 0.0101, 0.0148, gates.RowRegression)
	all["errors"] = st

	st = newStory(gates.Inconclusive).quiet(demo...)
	c = st.change(record.LatencyP50, demo[0], 180e-6, 0.031, -0.012, 0.073, gates.RowInconclusive)
	c.MoreBlocks = 8
	c = st.change(record.LatencyDistribution, demo[0], 300e-6, 0.05, -0.14, 0.18, gates.RowInconclusive)
	c.MoreBlocks = 11
	c = st.change(record.LatencyDistribution, demo[1], 320e-6, -0.06, -0.16, 0.03, gates.RowInconclusive)
	c.NotSlower = true
	st.change(record.LatencyP99, demo[1], 900e-6, 0.02, -0.21, 0.25, gates.RowInconclusive)
	all["inconclusive"] = st

	st = newStory(gates.Inconclusive).quiet(demo[:2]...)
	st.missing(record.LatencyP50, demo[2], "the body is 512 bytes in main and 498 bytes in HEAD+dirty")
	st.missing(record.LatencyDistribution, demo[2], "the body is 512 bytes in main and 498 bytes in HEAD+dirty")
	st.missing(record.LatencyP50, demo[3], "the body is 512 bytes in main and 498 bytes in HEAD+dirty")
	all["not comparable"] = st

	st = newStory(gates.Invalid)
	st.s.State, st.s.Reason = record.Stopped, "GET /items answered 500 in the preflight of 001-candidate"
	st.v.Complete, st.v.Blocks = false, 0
	st.v.Reasons = []string{"No block is complete, so no row could be judged.", "GET /items answered 500 in the preflight of 001-candidate."}
	st.v.SetAside = []gates.SetAside{{Run: "001-candidate", Reason: "GET /items answered 500, expected 200: {\"error\":\"no database\"}"}}
	st.s.Detail = "the body (31 bytes):\n  {\"error\": \"</pre><script>\"}\n\n\x1b[31mend"
	all["invalid"] = st

	st = newStory(gates.Invalid)
	st.s.Meta = record.Meta{Format: record.Format, Seed: 7, State: record.Complete, Schedule: st.s.Schedule}
	st.v.Reasons = []string{"The plan has a single arm, so there is nothing to compare."}
	all["no comparisons"] = st

	st = newStory(gates.Regression).quiet(demo...)
	st.alsoAgainst("v1.2")
	for i := range st.v.Comparisons {
		c := &st.v.Comparisons[i]
		if c.Arms[0] != "baseline" && c.Route == demo[4] && c.Metric == record.LatencyP50 {
			worse, low, high := 0.08, 0.071, 0.092
			c.Verdict, c.Effect, c.Low, c.High = gates.RowRegression, &worse, &low, &high
			c.Values = &[2]float64{900e-6, 972e-6}
		}
	}
	all["several baselines"] = st

	st = newStory(gates.Regression).quiet(hostile...)
	for i := range hostile[:2] {
		c = st.change(record.LatencyP50, hostile[i], 200e-6, 0.2, 0.18, 0.22, gates.RowRegression)
		c.Reasons = []string{"body was: <img src=x onerror=alert(1)> | `x` @octocat #12 *b* \x1b[2J"}
	}
	st.s.Arms[0].Label = "feature/<b>|`x`_y_"
	st.s.Arms[1].Label = "HEAD\x1b[31m*@octocat*"
	st.s.Host.Hostname = "host|<i>\n# heading"
	st.s.Command = []string{"against", "a b", "it's", "``` \n```", "--only", "GET /a|b"}
	st.s.Warnings = []string{"# not a heading", "1. not a list", "- nor this", "see [this](http://evil.example) or www.evil.example, @octocat"}
	st.v.Reasons = []string{"A row of <table> was worse.\n\n# Title", "2) second"}
	st.v.SetAside = []gates.SetAside{{Run: "002-x|y", Route: hostile[0], Reason: "answered\n500: <html>|</html>"}}
	all["hostile names"] = st

	st = newStory(gates.Pass).quiet(demo[:3]...)
	for i := range st.v.Comparisons {
		if st.v.Comparisons[i].Route == demo[1] {
			st.v.Comparisons[i].Blocks = 5
		}
	}
	st.v.SetAside = []gates.SetAside{
		{Run: "004-baseline", Reason: "the router died: exit status 137 after 3.2 s of load"},
		{Run: "007-candidate", Route: demo[1], Reason: "14 of 2,204 requests answered 404, expected 200"},
		{Run: "010-candidate", Route: demo[0], Reason: "outlier: block 5 lies apart; P50 of candidate was 221 µs there, in its other runs 180 µs"},
		{Run: "010-candidate", Route: demo[1], Reason: "outlier: block 5 lies apart; P50 of candidate was 442 µs there, in its other runs 360 µs"},
		{Run: "010-candidate", Route: demo[2], Reason: "outlier: block 5 lies apart; P50 of candidate was 663 µs there, in its other runs 540 µs"},
		{Run: "010-candidate", Route: demo[3], Reason: "outlier: block 5 lies apart; P50 of candidate was 884 µs there, in its other runs 720 µs"},
	}
	st.s.Warnings = []string{"the host's speed changed by 6 % in block 2", "no cgroup v2: throttling was not checked"}
	all["set aside"] = st

	st = newStory(gates.Inconclusive).quiet(demo...)
	effect := func(x float64) *float64 { return &x }
	st.v.Controls = []gates.Control{
		{Kind: "negative", Effect: effect(0.001), Low: effect(-0.004), High: effect(0.006), Zone: 0.025, Blocks: 6, Verdict: gates.ControlHeld},
		{Kind: "positive", Effect: effect(0.061), Low: effect(0.034), High: effect(0.089), Want: 0.075, Zone: 0.05, Blocks: 6, Verdict: gates.ControlBlind},
	}
	st.v.Reasons = []string{"The session is blind: a delay of +7.5 % that was there came out as anything from +3.4 % to +8.9 %, and must come out beyond +5.0 %."}
	for i := range st.v.Comparisons {
		if c := &st.v.Comparisons[i]; c.Metric != record.ErrorRate {
			c.Verdict, c.Reasons = gates.RowInconclusive, []string{"the session did not see the control's delay, so it cannot exclude a change"}
		}
	}
	st.v.Pooled = []gates.Pooled{
		{Metric: record.LatencyP50, Arms: [2]string{"baseline", "candidate"}, Effect: 0.003, Low: -0.002, High: 0.008, Blocks: 6, Routes: 5},
		{Metric: record.LatencyDistribution, Percentile: 95, Arms: [2]string{"baseline", "candidate"}, Effect: -0.001, Low: -0.021, High: 0.018, Blocks: 6, Routes: 5},
	}
	st.v.RareStart, st.v.RareGap = 0.393038, 0.062
	for _, m := range []record.Metric{record.LatencyP50, record.LatencyDistribution} {
		for i, route := range demo {
			for _, arm := range []string{"baseline", "candidate"} {
				r := gates.Repeat{Route: route, Metric: m, Arm: arm, Runs: 6, Raw: 0.03 + 0.004*float64(i), Own: 0.004 + 0.0007*float64(i%3)}
				if r.Bound = effect(0.02); m == record.LatencyDistribution {
					r.Bound, r.Within = nil, effect(0.003)
				}
				st.v.Repeats = append(st.v.Repeats, r)
			}
		}
	}
	all["blind"] = st

	st = newStory(gates.Pass).quiet(demo[:3]...)
	st.s.Schedule.MaxBlocks, st.v.MaxBlocks, st.v.Planned, st.v.Blocks = 20, 20, 9, 9
	for i := range st.v.Comparisons {
		c := &st.v.Comparisons[i]
		looked(c, 6, 7, 8, 9)
		if c.Route == demo[1] {
			looked(c, 9)
		}
	}
	late := &st.v.Comparisons[0] // what was decided once stays, and the report says what came later
	later, lowest, highest := 0.031, -0.012, 0.074
	late.Looks[3] = gates.Look{Blocks: 9, Verdict: gates.RowInconclusive, Effect: &later, Low: &lowest, High: &highest}
	all["stopped early"] = st

	st = newStory(gates.Inconclusive).quiet(demo[:3]...)
	st.s.Schedule.MaxBlocks, st.v.MaxBlocks, st.v.Planned, st.v.Blocks = 8, 8, 8, 8
	st.change(record.LatencyP50, demo[0], 180e-6, 0.031, -0.012, 0.073, gates.RowInconclusive)
	for i := range st.v.Comparisons {
		looked(&st.v.Comparisons[i], 6, 7, 8)
	}
	all["undecided at the maximum"] = st

	st = newStory(gates.Inconclusive).quiet(demo[:3]...)
	st.s.Schedule.BudgetS = 300
	st.s.Schedule.MaxBlocks, st.v.MaxBlocks, st.v.Planned, st.v.Blocks = 18, 18, 7, 7
	c = st.change(record.LatencyP50, demo[0], 180e-6, 0.011, -0.052, 0.093, gates.RowInconclusive)
	half := 0.064
	c.Floor = &gates.Floor{Percentile: 50, Zone: 0.05, HalfWidth: &half}
	st.v.Reasons = []string{"Undecided: P50 of GET /items.", "The zone of 5 % is below the noise floor met here: after 18 blocks P50 of GET /items would be known to ±6.4 %. `plumbline variance` shows what this machine can see."}
	for i := range st.v.Comparisons {
		looked(&st.v.Comparisons[i], 6, 7)
	}
	all["below the floor"] = st

	st = newStory(gates.Pass).quiet(demo[:2]...)
	st.v.Exploratory = true
	st.v.Reasons = []string{"Exploratory: judged by other rules than the session was measured with: zone of P50 ±5 % (before: ±1 %); P99 watched (before: judged)."}
	all["exploratory"] = st

	st = newStory(gates.Pass).quiet(demo...)
	st.v.AA = true
	st.v.Reasons = []string{"A/A: both arms are the same build with the same configuration."}
	st.s.Arms[1].Label, st.s.Arms[1].Dirty, st.s.Arms[1].Commit = "main", false, st.s.Arms[0].Commit
	all["aa"] = st

	st = newStory(gates.Inconclusive).quiet(demo[:2]...)
	st.s.State, st.s.Reason = record.Interrupted, "by SIGINT"
	st.v.Complete, st.v.Blocks = false, 4
	st.v.Reasons = []string{"The session is incomplete: 4 of 6 planned blocks."}
	for i := range st.v.Comparisons {
		st.v.Comparisons[i].Blocks = 4
	}
	all["incomplete"] = st

	st = newStory(gates.Pass).quiet(demo...)
	st.change(record.LatencyP50, demo[1], 360e-6, -0.203, -0.22, -0.181, gates.RowImprovement)
	st.change(record.LatencyDistribution, demo[1], 500e-6, -0.19, -0.22, -0.16, gates.RowImprovement)
	st.change(record.LatencyP50, demo[0], 180e-6, -0.092, -0.11, -0.071, gates.RowImprovement)
	all["improvements"] = st

	st = newStory(gates.Pass).quiet("GET /")
	st.s.Schedule = record.Schedule{Mode: record.Sequential, Blocks: 6, BlockS: 60}
	st.v.Reasons = []string{"Sequential: drift of the host is not told apart from a change."}
	st.v.Comparisons[0].Zone = 0.124
	all["single route"] = st

	st = newStory(gates.Regression)
	var routes []string
	for i := range 40 {
		routes = append(routes, fmt.Sprintf("GET /api/v1/organisations/%d/projects?select=id,name,owner&order=created_at.desc&limit=%d", i+1, 10*(i+1)))
	}
	st.quiet(routes...)
	for i, worse := range []float64{0.09, 0.41, 0.17, 0.12, 0.08} {
		st.change(record.LatencyP50, routes[7*i], 2e-3, worse, worse-0.02, worse+0.02, gates.RowRegression)
	}
	all["forty routes"] = st
	return all
}

// looked gives a row looks that all say what it says.
func looked(c *gates.Comparison, blocks ...int) {
	c.Looks = nil
	for _, n := range blocks {
		c.Looks = append(c.Looks, gates.Look{Blocks: n, Verdict: c.Verdict, Effect: c.Effect, Low: c.Low, High: c.High, Percentile: c.Percentile})
	}
}
