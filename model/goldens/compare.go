package goldens

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/tandem-gpu/tandem/pass"
)

// Tolerances of an output: its relative error; see [Error].
const (
	EndExact  = 1e-4 // end of a network, and front ends
	PartExact = 2e-5 // everything else
	Fast      = 5e-3
)

// ends are the outputs at the end of a network. Margins are none: they are held as tightly
// as parts, though they are differences of logits after as many steps of a recurrence as
// there are tokens, and weights by the recipe let errors grow from step to step. In
// parakeet-tdt (26 tokens) margins are off by 8e-6 on the CPU and a software GPU. Rounding
// states alone gives 4e-6; sums of 160 products in float32, in one chain and random order,
// 2e-5 to 5e-5: too much, so an LSTM sums finer than that where it takes few steps.
var ends = []string{"logits", "log_probabilities", "embeddings", "joint"}

// Tolerance returns the largest error that an output may have. ".0" and the like, which
// tell items of a batch apart, make no difference.
func (c *Case) Tolerance(output string, m pass.Math) float64 {
	base, _, _ := strings.Cut(output, ".")
	switch {
	case m == pass.Fast:
		return Fast
	case c.Model == "front end" || slices.Contains(ends, base):
		return EndExact
	}
	return PartExact
}

// Error returns ‖got − want‖/‖want‖, in float64; +Inf where a value is not a number, or
// the lengths differ.
func Error(got, want []float32) float64 {
	if len(got) != len(want) {
		return math.Inf(1)
	}
	var off, size float64
	for i, w := range want {
		d := float64(got[i]) - float64(w)
		off += d * d
		size += float64(w) * float64(w)
	}
	switch {
	case off == 0:
		return 0
	case off != off || size == 0:
		return math.Inf(1)
	}
	return math.Sqrt(off / size)
}

// Results are outputs by name: []float32 where F32 is stored, []int64 where I64 is.
type Results map[string]any

// Check compares results with all outputs of the case, and writes a line for each to w.
// Its error names those that are missing, or off by more than [Case.Tolerance]; integers
// must be equal.
func (c *Case) Check(w io.Writer, got Results, m pass.Math) error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(c.Outputs)) {
		line, err := c.compare(name, got[name], m)
		if err != nil {
			err = fmt.Errorf("goldens: %s: %s: %w", c.Name, name, err)
			errs = append(errs, err)
			line = "failed"
		}
		if _, err := fmt.Fprintf(w, "%s: %s: %s\n", c.Name, name, line); err != nil {
			return err
		}
	}
	return errors.Join(errs...)
}

// compare compares one output, and describes how close it is.
func (c *Case) compare(name string, got any, m pass.Math) (string, error) {
	var of string
	switch got.(type) {
	case []int64:
		of = "I64"
	case []float32:
		of = "F32"
	}
	if dtype := c.Outputs[name].DType; of != "" && of != dtype {
		return "", fmt.Errorf("want %s, given %s: %w", dtype, of, pass.ErrInvalid)
	}
	switch got := got.(type) {
	case []int64:
		want, err := c.Integers(name)
		if err != nil {
			return "", err
		}
		if !slices.Equal(got, want) {
			return "", fmt.Errorf("want %v, given %v: %w", want, got, errDiffers)
		}
		return fmt.Sprintf("%d equal", len(want)), nil
	case []float32:
		want, err := c.Output(name)
		if err != nil {
			return "", err
		}
		if c.Model == "statistics-pooling" {
			return c.compareStatistics(name, got, want, m)
		}
		e, most := Error(got, want), c.Tolerance(name, m)
		if !(e <= most) {
			return "", fmt.Errorf("want a relative error of at most %.3g, given %.3g over %d elements: %w", most, e, len(want), errDiffers)
		}
		return fmt.Sprintf("error %.3g of %.3g", e, most), nil
	case nil:
		return "", errMissing
	}
	return "", fmt.Errorf("want []float32 or []int64, given %T: %w", got, pass.ErrInvalid)
}

var (
	errDiffers = errors.New("differs")
	errMissing = errors.New("missing")
)

// compareStatistics compares rows of means and deviations, each for itself. Deviations
// of 1e-5, which stand for none at all, have an absolute tolerance.
func (c *Case) compareStatistics(name string, got, want []float32, m pass.Math) (string, error) {
	columns := 0
	if shape := c.Outputs[name].Shape; len(shape) > 0 {
		columns = shape[len(shape)-1]
	}
	if len(got) != len(want) || columns == 0 || columns%2 != 0 {
		return "", fmt.Errorf("want %d elements in rows of means and deviations, given %d in rows of %d: %w", len(want), len(got), columns, pass.ErrInvalid)
	}
	const none, absolute = 1e-5, 1e-6
	var gotHalf, wantHalf [2][]float32
	floor := 0.0
	for i, v := range want {
		if i%columns >= columns/2 && v == none {
			floor = max(floor, math.Abs(float64(got[i])-none))
			if got[i] != got[i] {
				floor = math.Inf(1)
			}
			continue
		}
		half := i % columns / (columns / 2)
		gotHalf[half], wantHalf[half] = append(gotHalf[half], got[i]), append(wantHalf[half], v)
	}
	means, deviations, most := Error(gotHalf[0], wantHalf[0]), Error(gotHalf[1], wantHalf[1]), c.Tolerance(name, m)
	line := fmt.Sprintf("error of means %.3g, of deviations %.3g of %.3g; of deviations of none %.3g of %.3g", means, deviations, most, floor, absolute)
	if !(means <= most && deviations <= most && floor <= absolute) {
		return "", fmt.Errorf("%s: %w", line, errDiffers)
	}
	return line, nil
}
