package cuda

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/tandem-gpu/tandem/cuda/internal/driver"
	"github.com/tandem-gpu/tandem/cuda/kernels"
	"github.com/tandem-gpu/tandem/pass"
)

// A matrix is weights on the device: rows of stride elements, zeros at their ends, each
// row a multiple of 16 bytes. Q8_0 has its bytes and the scales of its blocks apart.
// Tensor cores take other forms of it, which are made when a launch first needs them.
type matrix struct {
	d          *device
	label      string
	typ        pass.DType
	rows, cols int
	stride     int // elements
	values     *memory
	scales     *memory // of Q8_0: F16 [rows][stride/32]

	tensors []int // rows of those that it was loaded from, if it was from any

	mu       sync.Mutex
	apart    float32 // of features; 0: not measured
	narrowed *narrowed
	longest  *float32 // length of the longest row as a vector; nil: not known yet
}

// narrowed is a matrix as F16, scaled row by row.
type narrowed struct{ high, low, scales *memory }

// halves is a matrix, or some of its rows, as a right operand of products: F16 with an
// inverse scale for each row.
type halves struct {
	high, low driver.Pointer // low 0: high is exact, or rounding was asked for
	scales    driver.Pointer // F32; 0: all 1
	stride    int            // elements from row to row, a multiple of 8
	segment   int            // elements from a segment of the sum to the next
}

// elementBytes returns the size of an element in memory.
func elementBytes(t pass.DType) int {
	switch t {
	case pass.F16, pass.BF16:
		return 2
	case pass.Q8_0:
		return 1
	}
	return 4
}

// newMatrix allocates a matrix. Its values are for the caller to fill, with zeros at the
// ends of rows.
func (d *device) newMatrix(label string, t pass.DType, rows, cols int) (*matrix, error) {
	m := &matrix{d: d, label: label, typ: t, rows: rows, cols: cols}
	m.stride = roundUp(cols, 16/elementBytes(t))
	if t == pass.Q8_0 {
		m.stride = roundUp(cols, pass.Q8Block)
	}
	var err error
	if m.values, err = d.alloc(label, rows*m.stride*elementBytes(t)); err != nil {
		return nil, err
	}
	if t == pass.Q8_0 {
		if m.scales, err = d.alloc(label+" scales", rows*m.stride/pass.Q8Block*2); err != nil {
			m.values.Free()
			return nil, err
		}
	}
	return m, nil
}

// Free implements backend.Memory. It may be called on nil.
func (m *matrix) Free() {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.values.Free()
	m.scales.Free()
	m.narrowed.free()
	m.narrowed = nil
}

func (n *narrowed) free() {
	if n != nil {
		n.high.Free()
		n.low.Free()
		n.scales.Free()
	}
}

// at returns where a row of the values is.
func (m *matrix) at(row int) driver.Pointer {
	return m.values.at + driver.Pointer(row*m.stride*elementBytes(m.typ))
}

// scalesAt returns where the block scales of a row are; 0 if there are none.
func (m *matrix) scalesAt(row int) driver.Pointer {
	if m.scales == nil {
		return 0
	}
	return m.scales.at + driver.Pointer(row*m.stride/pass.Q8Block*2)
}

// halves returns the matrix for tensor cores. F16 is taken as it is. BF16 loses nothing in
// F16 once it is scaled, but for values 2^−24 and less of their row's largest. The others
// are split, if exact, into what F16 holds and what it leaves.
func (m *matrix) halves(ctx context.Context, exact bool) (halves, error) {
	if m.typ == pass.F16 {
		return halves{high: m.values.at, stride: m.stride}, nil
	}
	split := exact && m.typ != pass.BF16
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.narrowed == nil || split && m.narrowed.low == nil {
		if err := m.narrow(ctx, split); err != nil {
			return halves{}, fmt.Errorf("F16 form of %s: %w", m.label, err)
		}
	}
	h := halves{high: m.narrowed.high.at, scales: m.narrowed.scales.at, stride: roundUp(m.stride, 8)}
	if split {
		h.low = m.narrowed.low.at
	}
	return h, nil
}

// narrow makes the forms that are missing. Those that are there stay, since programs use
// them.
func (m *matrix) narrow(ctx context.Context, split bool) (err error) {
	n := m.narrowed
	args := m.narrowing()
	bytes := 2 * m.rows * roundUp(m.stride, 8)
	if n == nil {
		n = &narrowed{}
		if n.high, err = m.d.alloc(m.label+" as F16", bytes); err != nil {
			return err
		}
		if n.scales, err = m.d.alloc(m.label+" row scales", 4*m.rows); err != nil {
			n.free()
			return err
		}
		args.High, args.Scales = kernels.F16(n.high.at), kernels.F32(n.scales.at)
	}
	var low *memory
	if split {
		if low, err = m.d.alloc(m.label+" beyond F16", bytes); err != nil {
			if m.narrowed == nil {
				n.free()
			}
			return err
		}
		args.Low = kernels.F16(low.at)
	}
	if err = m.run(ctx, args); err != nil {
		low.Free()
		if m.narrowed == nil {
			n.free()
		}
		return err
	}
	n.low, m.narrowed = low, n
	return nil
}

// narrowing returns the parameters of the kernel that goes over the values, without what it
// is to make.
func (m *matrix) narrowing() kernels.Narrow {
	return kernels.Narrow{
		Values: kernels.U32(m.values.at), BlockScales: kernels.F16(m.scalesAt(0)),
		From: int64(m.stride), Stride: int64(roundUp(m.stride, 8)), Rows: uint32(m.rows), Columns: uint32(m.cols),
	}
}

// run goes over the values at once.
func (m *matrix) run(ctx context.Context, args kernels.Narrow) error {
	return m.d.immediately(ctx, func(c *compiler) error {
		k := c.call("tile_narrow_" + typeName(m.typ))
		return run(k, args, grid{m.rows, 1, 1}, 0, pass.Cost{Bytes: float64(m.values.bytes)})
	})
}

// reach returns the length of the longest row as a vector: the sum of its products with a
// vector is at most so many times the length of that.
func (m *matrix) reach(ctx context.Context) (float32, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.longest != nil {
		return *m.longest, nil
	}
	all, err := m.lengths(ctx)
	if err != nil {
		return 0, err
	}
	longest := slices.Max(all)
	m.longest = &longest
	return longest, nil
}

// lengths returns those of the rows as vectors. None is NaN.
func (m *matrix) lengths(ctx context.Context) ([]float32, error) {
	norms, err := m.d.alloc(m.label+" row lengths", 4*m.rows)
	if err != nil {
		return nil, err
	}
	defer norms.Free()
	args := m.narrowing()
	args.Norms = kernels.F32(norms.at)
	if err := m.run(ctx, args); err != nil {
		return nil, fmt.Errorf("row lengths of %s: %w", m.label, err)
	}
	all := make([]float32, m.rows)
	if err := m.d.fetch(ctx, float32Bytes(all), norms, 0); err != nil {
		return nil, fmt.Errorf("row lengths of %s: %w", m.label, err)
	}
	return all, nil
}

// typeName returns a type of weights as the names of kernels have it.
func typeName(t pass.DType) string {
	switch t {
	case pass.F16:
		return "f16"
	case pass.BF16:
		return "bf16"
	case pass.Q8_0:
		return "q8"
	}
	return "f32"
}
