package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/tandem-gpu/tandem/examples/internal/atomicfile"
	"github.com/tandem-gpu/tandem/examples/internal/device"
	"github.com/tandem-gpu/tandem/pass"
)

// A group is a family of cases.
type group struct {
	name  string
	cases []benchmarkCase
}

// groups lists everything that is measured. A new family is a file with its table, and a
// line here; a new case is a line of its table.
func groups() []group {
	return []group{
		{"overhead", slices.Concat(overheadCases, transferCases)},
		{"copy", copyCases},
		{"gemm", gemmCases},
		{"matvec", matvecCases},
		{"attention", attentionCases},
		{"rowwise", rowwiseCases},
		{"conv1d", conv1DCases},
		{"conv2d", conv2DCases},
		{"convglu", convGLUCases},
		{"logmel", melCases},
		{"lstm", lstmCases},
		{"silero", sileroCases},
		{"networks", networkCases},
	}
}

// A benchmarkCase is something to measure.
type benchmarkCase struct {
	name  string // within its group: "512x512x512/f32"
	shape string // what the name does not say
	// make makes the host's side: data that all devices share.
	make func() (setup, error)
	// steady: the same work whenever it is done, fit to show a drift of the clocks.
	steady bool
	// large: it is measured only if --run is given and matches.
	large bool
}

// A setup readies a case on a device.
type setup func(ctx context.Context, t *target) (*ready, error)

// A ready is a case that is set up on a device, its results checked.
type ready struct {
	// once does it once and returns how long what counts took.
	once  func(ctx context.Context) (time.Duration, error)
	ops   int           // in one run; times are given for one of them
	cost  pass.Cost     // of one op; zero: it has no rate
	audio time.Duration // that one op goes through; 0: none
	// first is what the checked run took, if runs are of one op: it counts if it was so
	// long that it is not repeated.
	first time.Duration
	// single: it cannot be had twice, so it is not repeated.
	single bool
	note   string // what else was found out
	close  func() error
}

// benchmark measures the chosen cases and prints what it finds. Cases that fail do not
// keep others from being measured.
func benchmark(ctx context.Context, opt options, chosen []benchmarkCase, stdout io.Writer) (err error) {
	var targets []*target
	defer func() {
		for _, t := range targets {
			err = errors.Join(err, t.dev.Close())
		}
	}()
	for _, name := range []string{opt.device, opt.compare} {
		if name == "" {
			continue
		}
		t, err := openTarget(ctx, name, opt)
		if err != nil {
			return err
		}
		targets = append(targets, t)
	}
	var file *atomicfile.File
	if opt.json != "" { // before hours of measuring
		if file, err = atomicfile.Create(opt.json); err != nil {
			return fmt.Errorf("--json: %w", err)
		}
		defer file.Discard()
	}
	r := newReport(opt, targets, stdout)
	r.header()
	var failed []string
	drift := -1
	for i, c := range chosen {
		if drift < 0 && c.steady {
			drift = i
		}
		if !r.measure(ctx, c, targets) {
			failed = append(failed, c.name)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	if drift >= 0 && len(chosen) > 1 && !r.drift(ctx, chosen[drift], targets) {
		failed = append(failed, chosen[drift].name+" again")
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if file != nil {
		if err := r.writeJSON(file); err != nil {
			return fmt.Errorf("--json: %w", err)
		}
		if err := file.Commit(); err != nil {
			return fmt.Errorf("--json: %w", err)
		}
	}
	if r.writeErr != nil {
		return fmt.Errorf("standard output: %w", r.writeErr)
	}
	if failed != nil {
		return fmt.Errorf("failed: %s", strings.Join(failed, ", "))
	}
	return nil
}

// measure measures a case on all targets and prints it. It returns whether all is well.
func (r *report) measure(ctx context.Context, c benchmarkCase, targets []*target) bool {
	results := measureOn(ctx, c, targets, r.opt.pace)
	return ctx.Err() == nil && r.rows(c, results)
}

// drift measures a case once more and says by how much it differs from its first time.
func (r *report) drift(ctx context.Context, c benchmarkCase, targets []*target) bool {
	before := r.find(c.name)
	c.name += " again"
	results := measureOn(ctx, c, targets, r.opt.pace)
	for i := range results {
		if i < len(before) && before[i].Error == "" && results[i].Error == "" {
			change := results[i].Median/before[i].Median - 1
			results[i].Note = fmt.Sprintf("drift %+.1f %%", 100*change)
		}
	}
	return ctx.Err() == nil && r.rows(c, results)
}

// measureOn sets a case up on each target, then measures them in turn: A B A B.
func measureOn(ctx context.Context, c benchmarkCase, targets []*target, p pace) []result {
	results := make([]result, len(targets))
	samples := make([]samples, len(targets))
	readies := make([]*ready, len(targets))
	fail := func(i int, err error) {
		results[i] = result{Name: c.name, Shape: c.shape, Device: targets[i].name, Error: device.Line(err)}
	}
	set, err := c.make()
	for i, t := range targets {
		if err != nil {
			fail(i, err)
			continue
		}
		rd, err := set(ctx, t)
		if err != nil {
			fail(i, err)
			continue
		}
		readies[i] = rd
	}
	runtime.GC() // not while the clock runs
	rounds := 1
	if len(targets) > 1 {
		rounds = 2
		p.time /= time.Duration(rounds)
	}
	for range rounds {
		for i, rd := range readies {
			if rd == nil || results[i].Error != "" {
				continue
			}
			if err := samples[i].take(ctx, rd, p); err != nil {
				fail(i, err)
			}
		}
	}
	for i, rd := range readies {
		if rd == nil {
			continue
		}
		if results[i].Error == "" {
			results[i] = samples[i].result(rd)
			results[i].Name, results[i].Shape, results[i].Device = c.name, c.shape, targets[i].name
		}
		if err := rd.close(); err != nil && results[i].Error == "" {
			fail(i, err)
		}
	}
	return results
}
