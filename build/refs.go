package build

import (
	"cmp"
	"context"
	"slices"
	"strings"
)

// CompleteRefs returns the branches, remote branches and tags of the
// repository around dir that begin with prefix, in this order, for shell
// completion. Whatever is wrong, a completion only stays empty.
func CompleteRefs(ctx context.Context, dir, prefix string) []string {
	r, err := locate(ctx, dir)
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(r.refs(ctx), func(name string) bool { return !strings.HasPrefix(name, prefix) })
}

// refs returns the short names of branches, remote branches and tags.
func (r repository) refs(ctx context.Context) []string {
	var names []string
	for _, kind := range []string{"refs/heads", "refs/remotes", "refs/tags"} {
		// Symbolic ones, such as origin/HEAD, only repeat another name.
		out, err := r.git(ctx, nil, "for-each-ref", "--format=%(if)%(symref)%(then)%(else)%(refname:lstrip=2)%(end)", kind)
		if err != nil {
			return nil
		}
		for name := range strings.Lines(out + "\n") {
			if name = strings.TrimSuffix(name, "\n"); name != "" && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

// closest returns at most three of names that could be meant by ref, the
// likeliest first: spelled almost alike, or with ref as their last part.
func closest(ref string, names []string) []string {
	type candidate struct {
		name     string
		distance int
	}
	limit := 1
	if len(ref) > 3 {
		limit = max(2, len(ref)/3) // 2: two letters changed places
	}
	var near []candidate
	for _, name := range names {
		d := distance(strings.ToLower(ref), strings.ToLower(name))
		if strings.HasSuffix(name, "/"+ref) {
			d = min(d, 1)
		}
		if d <= limit && name != ref {
			near = append(near, candidate{name, d})
		}
	}
	slices.SortStableFunc(near, func(a, b candidate) int { return cmp.Compare(a.distance, b.distance) })
	var out []string
	for _, c := range near[:min(len(near), 3)] {
		out = append(out, c.name)
	}
	return out
}

// distance is the number of bytes to insert, delete or replace to turn a into
// b (Levenshtein 1966), in O(len(a)·len(b)) time.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(replaced, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
