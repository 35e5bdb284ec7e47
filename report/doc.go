// Package report shows a verdict, or what was measured without one: as text for
// a terminal or a log and as Markdown for a pull request.
//
// It owns the words and the layout: the sentence on top, one table per metric
// with one row per route, the footnotes. It never computes a verdict, an effect
// or an interval; every number comes from gates, so all renderers say the same.
//
// The flow: words.go makes sentences, view.go orders rows into tables and
// footnotes, text.go and markdown.go only lay them out; measured.go does all
// of it for tables of percentiles, variance.go for what a machine can see. Names and reasons come from servers, URLs and
// git refs, that is from strangers: escape.go makes each of them harmless for
// where it is shown.
package report
