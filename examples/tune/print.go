package main

import (
	"fmt"
	"strings"

	"github.com/tandem-gpu/tandem/cuda"
	"github.com/tandem-gpu/tandem/examples/internal/device"
)

// header says what is measured.
func (t *tuner) header() {
	k := t.ways.TuneKey()
	t.printf("device   %s, capability %d.%d, %d multiprocessors, %s\n", k.Device, k.Capability/10, k.Capability%10, k.SMs, k.Driver)
	t.printf("kernels  %s\n", k.Kernels)
	var math []string
	for _, m := range t.opt.math {
		math = append(math, m.String())
	}
	t.printf("math     %s\n", strings.Join(math, ", "))
}

// printf prints, and keeps the first error.
func (t *tuner) printf(format string, a ...any) {
	if _, err := fmt.Fprintf(t.stdout, format, a...); err != nil && t.writeErr == nil {
		t.writeErr = fmt.Errorf("standard output: %w", err)
	}
}

// print prints what was measured at a boundary.
func (t *tuner) print(q question, all []candidate, pinned string) {
	t.printf("\n%s\n", q.Name)
	for i := range all {
		c := &all[i]
		if c.err != nil {
			t.printf("  %-32s not taken: %s\n", c.way, device.Line(c.err))
			continue
		}
		var notes []string
		if i == 0 {
			notes = append(notes, "rule")
		}
		if c.way == q.Choice && i > 0 {
			notes = append(notes, "table")
		}
		if c.out {
			notes = append(notes, "far slower")
		}
		if c.way == pinned {
			notes = append(notes, "pinned")
		}
		line := fmt.Sprintf("  %-32s %10s   error %8.2g of %.2g   %s", c.way, microseconds(c.median()), c.timed.L2, c.timed.Limit.L2, strings.Join(notes, ", "))
		t.printf("%s\n", strings.TrimRight(line, " "))
	}
}

func microseconds(s float64) string { return fmt.Sprintf("%.2f µs", s*1e6) }

// finish writes the file, with the pins that are kept, and says what there is.
func (t *tuner) finish(kept []cuda.TunePin) error {
	pins := []cuda.TunePin{}
	for _, p := range kept {
		if !t.measured[p.Boundary] {
			pins = append(pins, p)
		}
	}
	old := len(pins)
	for _, p := range t.pins {
		pins = append(pins, p)
	}
	t.printf("\n%d boundaries measured, %d pinned, %d pins of the file kept\n", len(t.measured), len(t.pins), old)
	if t.opt.dry {
		t.printf("nothing written: --dry-run\n")
	} else {
		if err := cuda.WriteTuneFile(t.file, cuda.TuneFile{Key: t.ways.TuneKey(), Pins: pins}); err != nil {
			return fmt.Errorf("--out: %w", err)
		}
		if err := t.file.Commit(); err != nil {
			return fmt.Errorf("--out: %w", err)
		}
		t.printf("written: %s\n", t.opt.out)
	}
	return t.writeErr
}
