package passtest

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/pass/passtest/cases"
)

// cases runs every case as a sub-test, on one device.
func (s *suite) cases(t *testing.T) {
	s.runCases(t, func(e cases.Entry) bool {
		return (!e.Full || s.Full) && (s.Ops == nil || slices.Contains(s.Ops, e.Op))
	})
}

func (s *suite) runCases(t *testing.T, wanted func(cases.Entry) bool) {
	dev := s.open(t)
	seen := newCovered(dev.Info(), s.Math)
	for _, e := range cases.All() {
		if !wanted(e) {
			continue
		}
		ran := false
		passed := t.Run(e.Name, func(t *testing.T) {
			ran = true
			s.runCase(t, dev, e.Case())
		})
		if ran {
			seen.count(e.Op, passed)
		}
	}
	if path := os.Getenv("TANDEM_COVERAGE"); path != "" {
		ok(t, seen.save(path), "save coverage")
	}
}

// folders runs every case folder below a directory as a sub-test.
func (s *suite) folders(t *testing.T, dir string) {
	found, err := cases.FindDirs(dir)
	ok(t, err, "find case folders")
	if len(found) == 0 {
		t.Fatalf("no folder with a case.json below %s", dir)
	}
	dev := s.open(t)
	for _, folder := range found {
		name, err := filepath.Rel(dir, folder)
		ok(t, err, "name")
		t.Run(filepath.ToSlash(name), func(t *testing.T) {
			c, err := cases.ReadDir(folder)
			ok(t, err, "read")
			logTruth(t, c)
			s.runCase(t, dev, c)
		})
	}
}

// caseRoot returns the directory that TANDEM_CASES names, links followed.
func caseRoot(dir string) (string, error) {
	if !filepath.IsAbs(dir) { // tests run in the folder of their package
		return "", fmt.Errorf("want an absolute path, given %q: %w", dir, pass.ErrInvalid)
	}
	return filepath.EvalSymlinks(dir)
}

// logTruth says where the wanted outputs of a folder differ from package truth.
func logTruth(t testing.TB, c cases.Case) {
	t.Helper()
	truth, err := c.Truth()
	ok(t, err, "truth")
	for _, want := range c.Wanted {
		for _, computed := range truth {
			if computed.Name != want.Name {
				continue
			}
			if err := cases.Compare(computed, want, c.Limits()).Err(c.Limits()); err != nil {
				t.Logf("package truth differs from the folder's wanted values, which decide: %v", err)
			}
		}
	}
}

// runCase runs a case in every way. A folder's case runs in its own math; the others
// run in all kinds of math that the suite is asked for.
func (s *suite) runCase(t testing.TB, dev pass.Device, c cases.Case) {
	t.Helper()
	wanted, err := c.Want()
	ok(t, err, "wanted outputs")
	params := loaded(t, dev, c)
	ses := newSession(t, dev)
	var whole words
	for _, w := range s.ways(c) {
		placed, err := cases.Place(c.In(w.math), w.layout, 1)
		ok(t, err, "place")
		after := execute(t, ses, placed, params, w)
		for _, b := range placed.Buffers {
			if err := placed.Check(b.Name, after[b.Name], wanted); err != nil {
				t.Errorf("%v: %v", w, err)
			}
		}
		for _, h := range written(placed.Checked) {
			if err := c.CheckCache(h, floats(after[h]), wanted); err != nil {
				t.Errorf("%v: %v", w, err)
			}
		}
		switch {
		case w.parts && s.BySize: // within tolerance, as was checked above
		case w.parts:
			sameBits(t, "in parts", after, whole)
		case w.layout == cases.Awkward && !w.temps:
			whole = after
		}
	}
	ok(t, ses.Close(), "close the session")
	for _, p := range params {
		ok(t, dev.Unload(p), "unload")
	}
}

// ways returns how a case runs.
func (s *suite) ways(c cases.Case) []way {
	var ways []way
	for _, m := range s.Math {
		first := len(ways) == 0
		if !first && !multiplies(c) || c.Math == pass.Fast && m != pass.Fast {
			continue // without products, math makes no difference
		}
		ways = append(ways, way{layout: cases.Awkward, math: m}, way{layout: cases.Awkward, math: m, parts: true})
		if !first {
			continue
		}
		ways = append(ways,
			way{layout: cases.Dense, math: m, twice: true},
			way{layout: cases.Dense, math: m, temps: true, twice: true},
			way{layout: cases.Awkward, math: m, temps: true})
		if batched(c) {
			ways = append(ways, way{layout: cases.Interleaved, math: m}, way{layout: cases.Interleaved, math: m, temps: true})
		}
	}
	return ways
}

// multiplies reports whether the op of a case has products, of activations and weights or
// of activations alone.
func multiplies(c cases.Case) bool {
	switch c.Op.(type) {
	case pass.Attention, pass.Attend:
		return true
	}
	return len(c.Params) > 0
}

func batched(c cases.Case) bool {
	checked, err := c.Resolve()
	return err == nil && slices.ContainsFunc(checked.Args, func(a pass.Arg) bool { return a.Batch > 1 })
}
