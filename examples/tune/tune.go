package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tandem-gpu/tandem/cuda"
	"github.com/tandem-gpu/tandem/examples/internal/atomicfile"
	"github.com/tandem-gpu/tandem/examples/internal/device"
	"github.com/tandem-gpu/tandem/examples/internal/kernel"
	"github.com/tandem-gpu/tandem/pass"
)

// A tuner measures on one device.
type tuner struct {
	program
	opt  options
	dev  pass.Device
	ways cuda.Tunable // the device again
	file *atomicfile.File

	seen     map[string]bool // boundaries that were met
	measured map[string]bool // those of them whose ways were measured
	pins     map[string]cuda.TunePin
	failed   []string
	writeErr error
}

// tune measures the chosen work and writes the file.
func (p program) tune(ctx context.Context, opt options) (err error) {
	dev, err := p.open(ctx, opt.device)
	if err != nil {
		return fmt.Errorf("device %s: %s", opt.device, device.Reason(err, opt.device))
	}
	defer func() { err = errors.Join(err, dev.Close()) }()
	// Not before the device is open: that there is none is the first thing to know.
	if opt.out == "" && !opt.dry {
		return wrongUsage("--out: want the name of a file, or --dry-run")
	}
	ways, ok := dev.(cuda.Tunable)
	if !ok {
		return fmt.Errorf("device %s: %s has no ways to choose from", opt.device, dev.Info().Backend)
	}
	chosen := opt.choose(p.work)
	if len(chosen) == 0 {
		return wrongUsage("--run: no op matches %q", opt.run)
	}
	kept, err := earlier(opt.out, ways.TuneKey(), opt.force)
	if err != nil {
		return err
	}
	var file *atomicfile.File
	if !opt.dry { // before hours of measuring
		if file, err = atomicfile.Create(opt.out); err != nil {
			return fmt.Errorf("--out: %w", err)
		}
		defer file.Discard()
	}
	t := &tuner{program: p, opt: opt, dev: dev, ways: ways, file: file, seen: map[string]bool{}, measured: map[string]bool{}, pins: map[string]cuda.TunePin{}}
	t.header()
	start := time.Now()
	jobs, stop := readied(chosen)
	defer stop()
	for i, w := range chosen {
		if opt.limit > 0 && time.Since(start) > opt.limit {
			fmt.Fprintf(p.stderr, "tune: %d of %d: --limit is over\n", i, len(chosen))
			break
		}
		fmt.Fprintf(p.stderr, "tune: %d of %d: %s\n", i+1, len(chosen), w.name)
		if err := t.measure(ctx, <-jobs[i]); err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			t.fail(w.name, err)
		}
	}
	if err := t.finish(kept); err != nil {
		return err
	}
	if t.failed != nil {
		return fmt.Errorf("failed: %s", strings.Join(t.failed, ", "))
	}
	return nil
}

// fail notes that something could not be measured; the rest is measured all the same.
func (t *tuner) fail(what string, err error) {
	t.failed = append(t.failed, what)
	t.printf("\n%s: failed: %s\n", what, device.Line(err))
}

// A question is a boundary that an op leads to.
type question struct {
	cuda.Boundary
	math  pass.Math
	under []forced // what must be forced to get there
}

type forced struct{ boundary, way string }

// measure measures every way at each boundary that an op leads to and that was not met
// before.
func (t *tuner) measure(ctx context.Context, made readyJob) error {
	if made.err != nil {
		return made.err
	}
	k, err := made.job.On(ctx, t.dev)
	if err != nil {
		return err
	}
	return errors.Join(t.each(ctx, k), k.Close())
}

// each asks what the op's recordings ask. What those in Exact math meet is measured and
// held against the limits in Exact: others may meet it too, by the same name.
func (t *tuner) each(ctx context.Context, k *kernel.Instance) error {
	for _, m := range []pass.Math{pass.Exact, pass.Fast} {
		if m == pass.Fast && !slices.Contains(t.opt.math, m) {
			continue
		}
		if err := t.discover(ctx, k, m); err != nil {
			return err
		}
		if err := t.askAll(ctx, k, t.news(m, nil), slices.Contains(t.opt.math, m)); err != nil {
			return err
		}
	}
	return nil
}

// discover records an op, so that the device remembers what it was asked to choose. Whose
// results are wrong is found out when ways are measured.
func (t *tuner) discover(ctx context.Context, k *kernel.Instance, m pass.Math) error {
	timed, err := k.Record(ctx, m)
	if err != nil {
		if errors.Is(err, kernel.ErrWrong) {
			return nil
		}
		return err
	}
	return timed.Close()
}

// news returns the boundaries that were not met before. The names of products come last,
// of which other steps are made: they are measured first.
func (t *tuner) news(m pass.Math, under []forced) []question {
	var list []question
	for _, b := range slices.Backward(t.ways.Boundaries()) {
		if !t.seen[b.Name] {
			t.seen[b.Name] = true
			list = append(list, question{b, m, under})
		}
	}
	return list
}

// askAll measures the ways at boundaries; or leaves them alone, so that they count as met.
func (t *tuner) askAll(ctx context.Context, k *kernel.Instance, list []question, measured bool) error {
	for _, q := range list {
		if !measured || len(q.Ways) < 2 {
			continue
		}
		if err := t.ask(ctx, k, q); err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			t.fail(q.Name, err)
		}
	}
	return nil
}

// ask measures the ways at one boundary and pins one if it is worth it.
func (t *tuner) ask(ctx context.Context, k *kernel.Instance, q question) (err error) {
	t.force(q.under)
	all := make([]candidate, len(q.Ways))
	defer func() {
		for i := range all {
			err = errors.Join(err, all[i].close())
		}
		t.ways.Force(q.Name, "")
		for _, f := range q.under {
			t.ways.Force(f.boundary, t.pins[f.boundary].Choice)
		}
		if p, ok := t.pins[q.Name]; ok { // as it will be with the file
			t.ways.Force(q.Name, p.Choice)
		}
	}()
	for i, way := range q.Ways {
		t.ways.Force(q.Name, way)
		all[i].way = way
		err := t.ready(ctx, k, q, &all[i])
		if err == nil && all[i].err == nil { // while the way is forced
			err = all[i].timed.Repeat(ctx, min(longRun, t.opt.time/20))
		}
		if err != nil {
			return err
		}
	}
	if err := compare(ctx, all, q.Choice, t.opt.time); err != nil {
		return err
	}
	pin, ok := decide(q.Boundary, all)
	t.measured[q.Name] = true
	if ok {
		t.pins[q.Name] = pin
	}
	t.print(q, all, pin.Choice)
	if all[0].err != nil {
		return fmt.Errorf("the rule's %s: %w", all[0].way, all[0].err)
	}
	return nil
}

func (t *tuner) force(list []forced) {
	for _, f := range list {
		t.ways.Force(f.boundary, f.way)
	}
}

// ready records an op in the way that is forced, and notes why it does not count if it
// fails or is wrong. Boundaries that only this way leads to are measured first.
func (t *tuner) ready(ctx context.Context, k *kernel.Instance, q question, c *candidate) error {
	if c.timed, c.err = k.Record(ctx, q.math); c.err != nil {
		return ctx.Err()
	}
	taken := slices.ContainsFunc(t.ways.Boundaries(), func(b cuda.Boundary) bool { return b.Name == q.Name && b.Choice == c.way })
	if !taken {
		c.err = errNotTaken
		return nil
	}
	news := t.news(q.math, append(slices.Clip(q.under), forced{q.Name, c.way}))
	if len(news) == 0 {
		return nil
	}
	if err := t.askAll(ctx, k, news, true); err != nil {
		return err
	}
	t.force(append(slices.Clip(q.under), forced{q.Name, c.way})) // measuring them took it back
	if err := c.timed.Close(); err != nil {
		return err
	}
	c.timed, c.err = k.Record(ctx, q.math)
	return ctx.Err()
}

var errNotTaken = errors.New("the device did not take it")
