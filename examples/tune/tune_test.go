package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	"github.com/tandem-gpu/tandem/cuda"
	"github.com/tandem-gpu/tandem/examples/internal/kernel"
	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/pass/cpu"
	"github.com/tandem-gpu/tandem/pass/passtest/cases"
)

var (
	product = work{"product", kernel.Gemm(9, 8, 8, pass.F32)}
	row     = work{"row", kernel.Gemm(1, 8, 8, pass.F32)}
	tiles   = work{"tiles", kernel.Conv1D(pass.Conv1D{In: 9}, pass.ConvShape{Out: 4, In: 2, Kernel: 3})}
	heads   = work{"heads", kernel.Attention(1, 4, 4, 2, 4)}

	kernelLimit = cases.ExactTolerance
)

func read(t *testing.T, path string) cuda.TuneFile {
	t.Helper()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	f, err := cuda.ReadTuneFile(bytes.NewReader(data))
	require.NoError(t, err)
	return f
}

// The quickest way whose results are right is pinned, where it is quicker than the rule's.
func TestTune(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		out := filepath.Join(t.TempDir(), "tune.json")
		d := newFake(t)
		code, stdout, stderr := tune(t, d, []work{product, row, tiles, heads}, "--out", out)
		require.Equal(t, exitGood, code, stderr)
		require.Equal(t, "tune: 1 of 4: product\ntune: 2 of 4: row\ntune: 3 of 4: tiles\ntune: 4 of 4: heads\n", stderr)
		const measured = ` +[0-9.]+ µs   error +[0-9.e-]+ of `
		wanted := []string{
			`device   Made Up 9000, capability 9\.0, 132 multiprocessors, CUDA 13\.0`,
			`kernels  abc`,
			`math     exact, fast`,
			``,
			`product exact`,
			`  rule` + measured + `5e-06   rule`,
			`  quick` + measured + `5e-06   pinned`,
			`  slow` + measured + `5e-06   far slower`,
			`  wrong +not taken: wrong result, not timed: from element \d+: C: relative L2 error .+`,
			``,
			`product fast`,
			`  rule` + measured + `0\.001   rule`,
			`  quick` + measured + `0\.001   pinned`,
			`  slow` + measured + `0\.001   far slower`,
			`  wrong +not taken: wrong result, not timed: .+`,
			``,
			`few rows`,
			`  rule` + measured + `5e-06   rule`,
			`  slow` + measured + `5e-06   far slower`,
			``,
			`product of tiles`,
			`  rule` + measured + `5e-06   rule`,
			`  quick` + measured + `5e-06   pinned`,
			``,
			`conv1d`,
			`  slow` + measured + `5e-06   rule`,
			`  tiles` + measured + `5e-06   pinned`,
			``,
			`5 boundaries measured, 4 pinned, 0 pins of the file kept`,
			`written: .+tune\.json`,
		}
		lines := strings.Split(strings.TrimSuffix(stdout, "\n"), "\n")
		require.Len(t, lines, len(wanted), stdout)
		for i, w := range wanted {
			require.Regexp(t, "^"+w+"$", lines[i])
		}

		f := read(t, out)
		require.Equal(t, fakeKey, f.Key)
		choices := map[string]string{}
		for _, p := range f.Pins {
			choices[p.Boundary] = p.Choice
			require.Less(t, p.Seconds, 0.97*p.Rule, p.Boundary)
			require.Less(t, p.Error, p.Bound, p.Boundary)
			if p.Boundary == "conv1d" { // tiles are timed with the product that was pinned
				require.InDelta(t, 6e-3, p.Seconds, 4e-3)
			}
		}
		require.Equal(t, map[string]string{"product exact": "quick", "product fast": "quick", "product of tiles": "quick", "conv1d": "tiles"}, choices)
		require.Equal(t, choices, d.forced, "what is pinned is used while the rest is measured, and nothing else is left forced")
	})
}

// Ways take turns, in both orders, so that what changes with time strikes all of them; one
// that is far slower than another takes no part.
func TestInTurn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newFake(t)
		code, _, stderr := tune(t, d, []work{product}, "--dry-run", "--math", "exact")
		require.Equal(t, exitGood, code, stderr)
		require.Equal(t, []string{"slow", "rule", "quick", "rule", "quick", "rule"}, d.ran[len(d.ran)-6:])
	})
}

// Short ops are repeated, and each way in its own recording.
func TestShortOps(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		op := work{"map", kernel.Kernel{Op: pass.Map{Rows: 1, Cols: 8}, Args: []string{"X", "Y"}}}
		code, stdout, stderr := tune(t, newFake(t), []work{op}, "--dry-run", "--math", "exact")
		require.Equal(t, exitGood, code, stderr)
		require.Regexp(t, `\n  short .*pinned\n`, stdout)
	})
}

func TestMath(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for math, want := range map[string][]string{"exact": {"few rows", "product exact"}, "fast": {"product fast"}} {
			d := newFake(t)
			code, stdout, stderr := tune(t, d, []work{product, row}, "--dry-run", "--math", math)
			require.Equal(t, exitGood, code, stderr)
			for _, b := range []string{"few rows", "product exact", "product fast"} {
				check := require.NotContains
				for _, w := range want {
					if w == b {
						check = func(t require.TestingT, s, contains any, a ...any) { require.Contains(t, s, contains, a...) }
					}
				}
				check(t, stdout, "\n"+b+"\n", math)
			}
		}
	})
}

func TestDryRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		out := filepath.Join(t.TempDir(), "tune.json")
		code, stdout, stderr := tune(t, newFake(t), []work{product}, "--out", out, "--dry-run", "--math", "exact")
		require.Equal(t, exitGood, code, stderr)
		require.Contains(t, stdout, "1 boundaries measured, 1 pinned, 0 pins of the file kept\nnothing written: --dry-run\n")
		require.NoFileExists(t, out)
	})
}

// A file for the same key keeps what is not measured; one for another is refused before
// anything is measured.
func TestFileThatIsThere(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		out := filepath.Join(t.TempDir(), "tune.json")
		other := cuda.TunePin{Boundary: "other", Choice: "x", Seconds: 1, Rule: 2, Error: 0, Bound: 1}
		stale := cuda.TunePin{Boundary: "few rows", Choice: "slow", Seconds: 1, Rule: 2, Error: 0, Bound: 1}
		put := func(k cuda.TuneKey) []byte {
			var b bytes.Buffer
			require.NoError(t, cuda.WriteTuneFile(&b, cuda.TuneFile{Key: k, Pins: []cuda.TunePin{other, stale}}))
			require.NoError(t, os.WriteFile(out, b.Bytes(), 0o644))
			return b.Bytes()
		}
		put(fakeKey)
		code, stdout, stderr := tune(t, newFake(t), []work{row}, "--out", out)
		require.Equal(t, exitGood, code, stderr)
		require.Contains(t, stdout, "1 boundaries measured, 0 pinned, 1 pins of the file kept")
		require.Equal(t, []cuda.TunePin{other}, read(t, out).Pins)

		older := fakeKey
		older.Driver = "CUDA 12.9"
		before := put(older)
		code, stdout, stderr = tune(t, newFake(t), []work{row}, "--out", out)
		require.Equal(t, exitFailed, code)
		require.Empty(t, stdout)
		require.Contains(t, stderr, "was made for {Device:Made Up 9000 Capability:90 SMs:132 Driver:CUDA 12.9 Kernels:abc}, this is")
		require.Contains(t, stderr, "--force overwrites it")
		after, err := os.ReadFile(out)
		require.NoError(t, err)
		require.Equal(t, before, after)
		code, _, stderr = tune(t, newFake(t), []work{row}, "--out", out, "--force")
		require.Equal(t, exitGood, code, stderr)
		require.Equal(t, cuda.TuneFile{Format: 1, Key: fakeKey, Pins: []cuda.TunePin{}}, read(t, out))

		require.NoError(t, os.WriteFile(out, []byte("notes"), 0o644))
		code, _, stderr = tune(t, newFake(t), []work{row}, "--out", out)
		require.Equal(t, exitFailed, code)
		require.Contains(t, stderr, "is no tune file")
	})
}

// What fails is said, and does not keep the rest from being measured and written.
func TestFailures(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for name, tc := range map[string]struct {
			spoil  func(*fakeGPU)
			says   string
			pinned int
		}{
			"the rule is wrong":     {func(d *fakeGPU) { d.wrong = "rule" }, "product exact: failed: the rule's rule: wrong result", 0},
			"a way breaks":          {func(d *fakeGPU) { d.breaks = "slow" }, "slow +not taken: out of memory", 1},
			"recording is no good":  {func(d *fakeGPU) { d.breaks = "rule" }, "product: failed: out of memory", 0},
			"it is the best's turn": {func(d *fakeGPU) { d.breaks = "quick" }, "quick +not taken: out of memory", 0},
		} {
			out := filepath.Join(t.TempDir(), "tune.json")
			d := newFake(t)
			tc.spoil(d)
			code, stdout, stderr := tune(t, d, []work{product}, "--out", out, "--math", "exact")
			require.Regexp(t, tc.says, stdout, name)
			if strings.Contains(tc.says, "failed") {
				require.Equal(t, exitFailed, code, name)
				require.Contains(t, stderr, "tune: failed: product", name)
			} else {
				require.Equal(t, exitGood, code, name)
			}
			require.Len(t, read(t, out).Pins, tc.pinned, name)
		}
	})
}

func TestDecide(t *testing.T) {
	t.Parallel()
	of := func(way string, seconds float64, err error) candidate {
		return candidate{way: way, timed: &kernel.Timed{L2: 1e-7, Limit: kernelLimit}, err: err, runs: []float64{seconds}}
	}
	wrong := errors.New("wrong")
	out := of("c", 0.1, nil)
	out.out = true
	for name, tc := range map[string]struct {
		choice string
		all    []candidate
		want   string
	}{
		"3 % are enough":              {"a", []candidate{of("a", 1, nil), of("b", 0.97, nil)}, "b"},
		"less is not":                 {"a", []candidate{of("a", 1, nil), of("b", 0.971, nil)}, ""},
		"the best of several":         {"a", []candidate{of("a", 1, nil), of("b", 0.9, nil), of("c", 0.8, nil)}, "c"},
		"nor one that gave up":        {"a", []candidate{of("a", 1, nil), out}, ""},
		"never one that is wrong":     {"a", []candidate{of("a", 1, nil), of("b", 0.5, wrong)}, ""},
		"nothing beside a wrong one":  {"a", []candidate{of("a", 1, wrong), of("b", 0.5, nil)}, ""},
		"the rule's, not the table's": {"b", []candidate{of("a", 0.9, nil), of("b", 1, nil)}, "a"},
		"the table's is good":         {"b", []candidate{of("a", 1, nil), of("b", 0.9, nil)}, ""},
	} {
		pin, ok := decide(cuda.Boundary{Name: "x", Choice: tc.choice}, tc.all)
		require.Equal(t, tc.want, pin.Choice, name)
		require.Equal(t, tc.want != "", ok, name)
		if ok {
			require.Equal(t, tc.all[0].runs[0], pin.Rule, name)
			require.Equal(t, kernelLimit.L2, pin.Bound, name)
		}
	}
}

func TestMedian(t *testing.T) {
	t.Parallel()
	c := candidate{runs: []float64{3, 1, 2}}
	require.Equal(t, 2.0, c.median())
	c.runs = append(c.runs, 10)
	require.Equal(t, 2.5, c.median())
	require.Equal(t, []float64{3, 1, 2, 10}, c.runs)
}

func TestCommandLine(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		args, says string
		code       int
	}{
		{"--help", "Measures the ways to compute on a GPU", exitGood},
		{"--list --run product|row", "product\nrow\n", exitGood},
		{"", "--device: want the name of a GPU, given none", exitUsage},
		{"--device fake", "--out: want the name of a file, or --dry-run", exitUsage},
		{"--device fake --dry-run --run nothing", `--run: no op matches "nothing"`, exitUsage},
		{"--device fake --run (", "--run: error parsing regexp", exitUsage},
		{"--device fake --math sloppy", `--math: want exact, fast or both, given "sloppy"`, exitUsage},
		{"--device fake --time 0s", "--time: want a time above 0, given 0s", exitUsage},
		{"--nosuch", "flag provided but not defined: -nosuch", exitUsage},
		{"more", `unexpected argument "more"`, exitUsage},
		{"--device fake --dry-run", "tune: stopped", exitFailed},
	} {
		var out, errs strings.Builder
		p := program{work: []work{product, row, tiles}, stdout: &out, stderr: &errs}
		p.open = func(context.Context, string) (pass.Device, error) {
			if strings.HasSuffix(tc.args, "fake --dry-run") {
				return nil, errors.New("stopped")
			}
			return newFake(t), nil
		}
		require.Equal(t, tc.code, p.run(t.Context(), strings.Fields(tc.args)), tc.args)
		switch tc.code {
		case exitGood:
			require.True(t, strings.HasPrefix(out.String(), tc.says), tc.args)
			require.Empty(t, errs.String(), tc.args)
		case exitUsage:
			require.True(t, strings.HasPrefix(errs.String(), "tune: "+tc.says), errs.String())
			require.True(t, strings.HasSuffix(errs.String(), "; see tune --help\n"), tc.args)
		default:
			require.Equal(t, "tune: device fake: stopped\n", errs.String())
		}
	}
}

// Without a GPU the program says why there is none.
func TestNoGPU(t *testing.T) {
	if strings.Contains(os.Getenv("TANDEM_DEVICES"), "cuda") {
		t.Skip("there is a GPU")
	}
	t.Setenv("TANDEM_CUDA_LIBRARY", filepath.Join(t.TempDir(), "none.so"))
	t.Setenv("TANDEM_CUDA_TUNE", "nosuch.json")
	var out, errs strings.Builder
	p := program{open: openDevice, work: workList(), stdout: &out, stderr: &errs}
	require.Equal(t, exitFailed, p.run(t.Context(), []string{"--device", "cuda"}))
	require.Regexp(t, `^tune: device cuda: open: .*none\.so.*no device; .*TANDEM_CUDA_LIBRARY\n$`, errs.String())
	_, set := os.LookupEnv("TANDEM_CUDA_TUNE")
	require.False(t, set, "an earlier tune file would change what is measured")
}

func TestNotTunable(t *testing.T) {
	t.Parallel()
	dev, err := cpu.Open(cpu.Config{})
	require.NoError(t, err)
	code, _, stderr := tune(t, dev, []work{row}, "--dry-run")
	require.Equal(t, exitFailed, code)
	require.Equal(t, "tune: device fake: cpu has no ways to choose from\n", stderr)
}

func TestInterrupted(t *testing.T) {
	t.Parallel()
	out := filepath.Join(t.TempDir(), "tune.json")
	ctx, cancel := context.WithCancel(t.Context())
	var errs strings.Builder
	p := program{work: []work{row}, stdout: io.Discard, stderr: &errs}
	p.open = func(context.Context, string) (pass.Device, error) { cancel(); return newFake(t), nil }
	require.Equal(t, exitInterrupted, p.run(ctx, []string{"--device", "fake", "--out", out}))
	require.True(t, strings.HasSuffix(errs.String(), "tune: interrupted\n"), errs.String())
	left, err := os.ReadDir(filepath.Dir(out))
	require.NoError(t, err)
	require.Empty(t, left)
}

// An output that cannot be written to is an error, not silence.
func TestBrokenOutput(t *testing.T) {
	t.Parallel()
	r, w := io.Pipe()
	require.NoError(t, r.Close())
	var errs strings.Builder
	p := program{work: []work{heads}, stdout: w, stderr: &errs}
	p.open = func(context.Context, string) (pass.Device, error) { return newFake(t), nil }
	require.Equal(t, exitFailed, p.run(t.Context(), []string{"--device", "fake", "--dry-run"}))
	require.Contains(t, errs.String(), "standard output")
	code, stdout, stderr := tune(t, newFake(t), []work{heads}, "--out", filepath.Join(t.TempDir(), "no", "such"))
	require.Equal(t, exitFailed, code)
	require.Contains(t, stderr, "tune: --out: ")
	require.Empty(t, stdout, "it was measured first")
}

func TestWorkList(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, w := range workList() {
		require.False(t, seen[w.name], w.name)
		require.Equal(t, mostTruth, w.Bound, w.name)
		seen[w.name] = true
	}
	for _, name := range []string{"whisper-large/gemm/1500x1280x5120/F16", "whisper-tiny/attention/32x1500x6x64", "parakeet-2min/attention/relative-1501x8x128", "segmentation/lstm/32x589-60to128-l4d2"} {
		require.True(t, seen[name], name)
	}
}
