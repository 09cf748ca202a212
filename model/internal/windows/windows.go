// Package windows has what networks share that take audio in windows which do not
// depend on each other.
package windows

import (
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/tandem-gpu/tandem/model/internal/parallel"
	"github.com/tandem-gpu/tandem/pass"
)

// Next returns how many of some windows to take at once: most, or else the largest power
// of four that there are. So few recordings serve every number of windows, none of them
// with work that is thrown away.
func Next(left, most int) int {
	if left >= most {
		return most
	}
	n := 1
	for 4*n <= left {
		n *= 4
	}
	return n
}

// Finite returns an error that wraps pass.ErrInvalid if a value is NaN or infinite. what
// names the values.
func Finite(what string, values []float32) error {
	const few = 1 << 16 // which allocate nothing
	if len(values) < few && allFinite(values) || len(values) >= few && partsFinite(values) {
		return nil
	}
	i := slices.IndexFunc(values, func(v float32) bool { return v-v != 0 })
	if i < 0 { // changed meanwhile
		return nil
	}
	return fmt.Errorf("%s %d: want a finite value, given %v: %w", what, i, values[i], pass.ErrInvalid)
}

// partsFinite looks at parts side by side.
func partsFinite(values []float32) bool {
	var some atomic.Bool
	parallel.For(len(values), 4, func(from, to int) {
		if !allFinite(values[from:to]) {
			some.Store(true)
		}
	})
	return !some.Load()
}

// allFinite looks at eight values at a time: 0·v is not 0 for those that are not finite,
// and what is added to it stays so.
func allFinite(values []float32) bool {
	for len(values) >= 8 {
		v := values[:8:8]
		if (0*v[0]+0*v[1])+(0*v[2]+0*v[3])+((0*v[4]+0*v[5])+(0*v[6]+0*v[7])) != 0 {
			return false
		}
		values = values[8:]
	}
	for _, v := range values {
		if v-v != 0 {
			return false
		}
	}
	return true
}

// A Trace is told of the intermediate results of a recording by name.
type Trace func(name string, values []float32)

// Traced are the intermediate results that a recording brings back.
type Traced struct {
	names []string
	outs  []pass.Output
}

// Keep brings n elements from v on back, as they are now, if somebody wants to be told.
func (t *Traced) Keep(p pass.Pass, to Trace, name string, v pass.View, n int) {
	if to == nil {
		return
	}
	// Apart, since the memory may be used again.
	kept := p.Temp(pass.F32, n).View()
	p.Do(pass.Copy{From: v, To: kept, Rows: 1, Cols: n})
	t.names, t.outs = append(t.names, name), append(t.outs, p.Output(kept, n))
}

// Report hands the results of a run on, in the order in which they were kept.
func (t *Traced) Report(run pass.Run, to Trace) error {
	for i, out := range t.outs {
		values := make([]float32, out.Len())
		if err := run.ReadF32(out, values); err != nil {
			return err
		}
		to(t.names[i], values)
	}
	return nil
}
