package cpu

import (
	"context"

	"github.com/tandem-gpu/tandem/pass"
)

// lanes is the width of a panel.
const lanes = 8

// A panelRow holds the weights of eight outputs for one input.
type panelRow = [lanes]float32

// A matrix holds weights [n][k] in panels of eight outputs: panel p has, for each of
// the k inputs, the weights of outputs 8p … 8p+7. Outputs beyond n have weights 0.
type matrix struct {
	n, k int
	rows []panelRow // panel after panel
	bias []float32  // n
}

func panelsOf(n int) int { return (n + lanes - 1) / lanes }

// newMatrix makes zero weights. bias is nil or has n values.
func newMatrix(l *ledger, n, k int, bias []float32) (*matrix, error) {
	if err := l.reserve(panelsOf(n)*k, 4*lanes); err != nil {
		return nil, err
	}
	m := &matrix{n: n, k: k, rows: make([]panelRow, panelsOf(n)*k), bias: make([]float32, n)}
	copy(m.bias, bias)
	return m, nil
}

func (m *matrix) release(l *ledger) {
	if m != nil {
		l.release(int64(len(m.rows)) * 4 * lanes)
	}
}

// panel returns the weights of panel p.
func (m *matrix) panel(p int) []panelRow { return m.rows[p*m.k : (p+1)*m.k : (p+1)*m.k] }

// fill sets the weights of outputs from row on, from a tensor [outputs][k].
func (m *matrix) fill(ctx context.Context, t pass.Tensor, row int) error {
	return readTensor(ctx, t, func(from int, v []float32) {
		for len(v) > 0 {
			o, col := row+from/m.k, from%m.k
			n := min(len(v), m.k-col)
			panel, lane := m.panel(o / lanes)[col:col+n], o%lanes
			for i := range panel {
				panel[i][lane] = v[i]
			}
			v, from = v[n:], from+n
		}
	})
}

// fillTaps sets all weights from a tensor [outputs][in][kernel], with k = kernel·in:
// the channels of a tap lie together, as they do in the input.
func (m *matrix) fillTaps(ctx context.Context, t pass.Tensor, in, kernel int) error {
	return readTensor(ctx, t, func(from int, v []float32) {
		o, channel, tap := from/m.k, from%m.k/kernel, from%kernel
		for _, w := range v {
			m.rows[o/lanes*m.k+tap*in+channel][o%lanes] = w
			if tap++; tap == kernel {
				tap = 0
				if channel++; channel == in {
					channel = 0
					o++
				}
			}
		}
	})
}

// readTensor hands the elements of t to f in pieces, until ctx ends.
func readTensor(ctx context.Context, t pass.Tensor, f func(from int, v []float32)) error {
	const piece = 256 << 10 // a multiple of a Q8_0 block
	n := t.Len()
	buf := make([]float32, min(n, piece))
	for from := 0; from < n; from += piece {
		if err := ctx.Err(); err != nil {
			return err
		}
		v := buf[:min(piece, n-from)]
		if err := t.Decode(v, from); err != nil {
			return err
		}
		f(from, v)
	}
	return nil
}
