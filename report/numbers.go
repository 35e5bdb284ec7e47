package report

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"

	"plumbline/gates"
	"plumbline/record"
)

// missing stands for what was not measured; a 0 would be a claim.
const missing = "–"

// points are percentage points, the unit of a difference of rates.
const points = " points"

// most is the largest effect that is shown as it is. A limit beyond it only
// says that next to nothing is known.
const most = 100

// Percent shows an effect, a fraction (0.05 = +5 %), with one decimal:
// "+5.2 %", "−1.3 %", "±0.0 %", "> +10000 %"; "–" for NaN and infinities.
func Percent(effect float64) string {
	if finite(effect) && effect > most {
		return "> " + signed(most*100, 0, " %")
	}
	return signed(effect*100, 1, " %")
}

// signed shows x with its sign and unit; what rounds to zero has no direction.
func signed(x float64, decimals int, unit string) string {
	if !finite(x) {
		return missing
	}
	digits := strconv.FormatFloat(math.Abs(x), 'f', decimals, 64)
	sign := "+"
	if zero, _ := strconv.ParseFloat(digits, 64); zero == 0 {
		sign = "±"
	} else if x < 0 {
		sign = "−"
	}
	return sign + digits + unit
}

func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }

// isRate says that effects are differences, shown in percentage points.
func isRate(c gates.Comparison) bool { return c.Unit == "fraction" }

// amount shows an effect, or a limit of its interval, of this comparison.
func amount(c gates.Comparison, x *float64) string {
	switch {
	case x == nil:
		return missing
	case isRate(c):
		return signed(*x*100, pointDecimals(c.Zone), points)
	}
	return Percent(*x)
}

// pointDecimals are enough to tell where in the zone a rate lies: two for the
// usual 0.1 points, more for a narrower zone.
func pointDecimals(zone float64) int {
	if zone <= 0 || !finite(zone) {
		return 2
	}
	return max(2, 1+int(math.Ceil(-math.Log10(zone*100))))
}

// to stands between the limits of an interval.
const to = " … "

// interval shows both limits, the unit of points once: "−0.8 % … +1.9 %",
// "−0.01 … +0.03 points".
func interval(c gates.Comparison, between string) string {
	low, high := amount(c, c.Low), amount(c, c.High)
	if low == missing && high == missing {
		return missing
	}
	if high != missing {
		low = strings.TrimSuffix(low, points)
	}
	return low + between + high
}

// zoneText shows the zones of rows of one metric: "zone ±5 %". After the floor
// rows can differ: "zone ±5 % to ±12.4 %".
func zoneText(rows []gates.Comparison) string {
	if len(rows) == 0 {
		return ""
	}
	byZone := func(a, b gates.Comparison) int { return cmp.Compare(a.Zone, b.Zone) }
	low, high := zoneOf(slices.MinFunc(rows, byZone)), zoneOf(slices.MaxFunc(rows, byZone))
	if low == high {
		return "zone " + low
	}
	return "zone " + low + " to " + high
}

func zoneOf(c gates.Comparison) string {
	unit := " %"
	if isRate(c) {
		unit = points
	}
	x := c.Zone * 100
	if !finite(x) || x <= 0 {
		return missing
	}
	if x < 1 {
		return "±" + strconv.FormatFloat(x, 'g', 2, 64) + unit
	}
	return "±" + strconv.FormatFloat(math.Round(x*10)/10, 'f', -1, 64) + unit
}

// unit is what the values of one table are shown in: value × scale.
type unit struct {
	name  string
	scale float64
}

// unitFor picks one unit for a whole table, so that values can be compared down
// a column: for seconds the largest in which the median value is at least 1.
func unitFor(rows []gates.Comparison) unit {
	var values []float64
	name := ""
	for _, c := range rows {
		name = c.Unit
		if c.Values != nil {
			values = append(values, c.Values[0], c.Values[1])
		}
	}
	switch name {
	case "fraction":
		return unit{"%", 100}
	case "s":
		return unitOfTime(values)
	}
	return unit{name, 1}
}

// unitOfTime is the one for values in seconds. It sorts them.
func unitOfTime(values []float64) unit {
	slices.Sort(values)
	middle := 0.0
	if len(values) > 0 {
		middle = values[len(values)/2]
	}
	switch {
	case middle >= 1:
		return unit{"s", 1}
	case middle >= 1e-3:
		return unit{"ms", 1e3}
	}
	return unit{"µs", 1e6}
}

// value shows the i-th arm's value.
func (u unit) value(c gates.Comparison, i int) string {
	if c.Values == nil {
		return missing
	}
	return u.show(c.Values[i])
}

// show writes a value with three significant digits; digits before the decimal
// point are never rounded away.
func (u unit) show(x float64) string {
	if !finite(x) {
		return missing
	}
	x *= u.scale
	if x == 0 {
		return "0"
	}
	// The exponent after rounding: 9.996 is 10.0, not 10.00.
	rounded, _ := strconv.ParseFloat(strconv.FormatFloat(x, 'e', 2, 64), 64)
	decimals := 2 - int(math.Floor(math.Log10(math.Abs(rounded))))
	return strconv.FormatFloat(x, 'f', max(0, decimals), 64)
}

// percentileOf names where in the distribution a comparison was made: "P50",
// "P90", "errors".
func percentileOf(c gates.Comparison) string {
	switch c.Metric {
	case record.LatencyP50:
		return "P50"
	case record.LatencyP99:
		return "P99"
	case record.ErrorRate:
		return "errors"
	case record.LatencyDistribution:
		if c.Percentile == 0 {
			return "P5–P95"
		}
		return "P" + strconv.Itoa(c.Percentile)
	}
	return string(c.Metric)
}
