package passtest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/pass/passtest/cases"
)

// A tally counts the cases of an op.
type tally struct {
	Cases  int `json:"cases"`
	Passed int `json:"passed"`
}

// A covered device is what a suite found of it.
type covered struct {
	Backend  string           `json:"backend"`
	API      string           `json:"api"`
	Provider string           `json:"provider,omitempty"`
	Name     string           `json:"name"`
	Kind     string           `json:"kind"`
	Math     []string         `json:"math"`
	Ops      map[string]tally `json:"ops"`
}

// newCovered begins to count for a device.
func newCovered(info pass.Info, math []pass.Math) *covered {
	c := &covered{Backend: info.Backend, API: info.API, Name: info.Name, Kind: info.Kind, Ops: map[string]tally{}}
	if info.Provider != "" { // without the folder, which differs from machine to machine
		c.Provider = filepath.Base(strings.Fields(info.Provider)[0])
	}
	for _, m := range math {
		c.Math = append(c.Math, m.String())
	}
	return c
}

func (c *covered) count(op string, passed bool) {
	n := c.Ops[op]
	n.Cases++
	if passed {
		n.Passed++
	}
	c.Ops[op] = n
}

// same reports whether both are of one device.
func (c *covered) same(d *covered) bool {
	return c.Backend == d.Backend && c.API == d.API && c.Provider == d.Provider && c.Name == d.Name
}

// save merges the counts into a file: an op that ran replaces what was there of it. Test
// programs may do so at the same time.
func (c *covered) save(path string) error {
	unlock, err := lockFile(path + ".lock")
	if err != nil {
		return err
	}
	defer unlock()
	all, err := readCoverage(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	i := slices.IndexFunc(all, c.same)
	if i < 0 {
		all = append(all, c)
	} else {
		for op, n := range c.Ops {
			all[i].Ops[op] = n
		}
		all[i].Kind, all[i].Math = c.Kind, c.Math
	}
	text, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		return fmt.Errorf("passtest: coverage: %w", err)
	}
	if err := os.WriteFile(path, append(text, '\n'), 0o666); err != nil {
		return fmt.Errorf("passtest: coverage: %w", err)
	}
	return nil
}

// lockFile makes a file that no other program has, and returns how to give it up.
func lockFile(path string) (unlock func(), err error) {
	for range 500 {
		f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL, 0o666)
		if err == nil {
			return func() { _ = f.Close(); _ = os.Remove(path) }, nil
		}
		if !errors.Is(err, os.ErrExist) {
			return nil, fmt.Errorf("passtest: coverage: %w", err)
		}
		time.Sleep(20 * time.Millisecond)
	}
	return nil, fmt.Errorf("passtest: coverage: %s stays locked: %w", path, pass.ErrTimeout)
}

func readCoverage(path string) ([]*covered, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("passtest: coverage: %w", err)
	}
	var all []*covered
	if err := json.Unmarshal(text, &all); err != nil {
		return nil, fmt.Errorf("passtest: coverage: %s: %w: %w", path, err, pass.ErrInvalid)
	}
	for i, c := range all {
		if c == nil || c.Ops == nil {
			return nil, fmt.Errorf("passtest: coverage: %s: device %d: want ops, given none: %w", path, i, pass.ErrInvalid)
		}
	}
	return all, nil
}

// WriteCoverage writes, in Markdown, what the file of TANDEM_COVERAGE says: for each op
// and device how many cases passed. A cell of "–" is an op that did not run there.
func WriteCoverage(w io.Writer, path string) error {
	all, err := readCoverage(path)
	if err != nil {
		return err
	}
	slices.SortFunc(all, func(a, b *covered) int { return strings.Compare(a.title(), b.title()) })
	var b strings.Builder
	b.WriteString("| op |")
	for _, c := range all {
		fmt.Fprintf(&b, " %s |", c.title())
	}
	b.WriteString("\n|---|" + strings.Repeat("---|", len(all)) + "\n")
	for _, op := range cases.Ops() {
		fmt.Fprintf(&b, "| %s |", op)
		for _, c := range all {
			fmt.Fprintf(&b, " %s |", c.cell(op))
		}
		b.WriteString("\n")
	}
	b.WriteString("\n| backend | device | kind | math |\n|---|---|---|---|\n")
	for _, c := range all {
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", c.title(), c.Name, c.Kind, strings.Join(c.Math, ", "))
	}
	_, err = io.WriteString(w, b.String())
	return err
}

// title names the backend, the API and the provider.
func (c *covered) title() string {
	title := c.Backend
	for _, s := range []string{c.API, c.Provider} {
		if s != "" && s != title {
			title += ", " + s
		}
	}
	return title
}

func (c *covered) cell(op string) string {
	switch n := c.Ops[op]; {
	case n.Cases == 0:
		return "–"
	case n.Passed < n.Cases:
		return fmt.Sprintf("**%d of %d**", n.Passed, n.Cases)
	default:
		return fmt.Sprint(n.Cases)
	}
}
