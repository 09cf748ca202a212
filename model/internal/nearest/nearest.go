// Package nearest finds the name that was probably meant, for error messages.
package nearest

import (
	"fmt"
	"strings"
)

// longest is the length beyond which names are not compared: no tensor has such a name,
// and the work grows with its square.
const longest = 512

// Hint returns `; nearest is "x"`, where x is what [Name] returns, or "" where there is
// no name near enough: the end of a message about a name that is missing.
func Hint(want string, names []string) string {
	if name, ok := Name(want, names); ok {
		return fmt.Sprintf("; nearest is %q", name)
	}
	return ""
}

// Name returns the one of names with the smallest edit distance to want, if that is at
// most a third of want's length; among equals the first. If there is none, it returns
// the first of names that has want as its last components or the reverse, as
// model.norm.weight and norm.weight.
func Name(want string, names []string) (string, bool) {
	if len(want) > longest {
		return "", false
	}
	best, limit := "", len(want)/3+1
	var rows [2][]int
	for _, name := range names {
		if d := distance(want, name, limit, &rows); d < limit {
			best, limit = name, d
		}
	}
	if limit <= len(want)/3 {
		return best, true
	}
	for _, name := range names {
		if want != "" && name != "" && (strings.HasSuffix(name, "."+want) || strings.HasSuffix(want, "."+name)) {
			return name, true
		}
	}
	return "", false
}

// distance returns the number of bytes to insert, delete or replace to make b of a
// (Levenshtein's distance), or limit if there are more than limit−1.
func distance(a, b string, limit int, rows *[2][]int) int {
	if limit == 0 || len(a)-len(b) >= limit || len(b)-len(a) >= limit {
		return limit
	}
	for i := range rows {
		for len(rows[i]) <= len(b) {
			rows[i] = append(rows[i], 0)
		}
	}
	last, row := rows[0], rows[1]
	for j := range len(b) + 1 {
		last[j] = j
	}
	for i := range len(a) {
		row[0] = i + 1
		least := row[0]
		for j := range len(b) {
			d := last[j]
			if a[i] != b[j] {
				d = 1 + min(d, last[j+1], row[j])
			}
			row[j+1] = d
			least = min(least, d)
		}
		if least >= limit { // it never falls again
			return limit
		}
		last, row = row, last
	}
	return min(last[len(b)], limit)
}
