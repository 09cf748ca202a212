package cases

import (
	"fmt"

	"github.com/tandem-gpu/tandem/pass"
)

// batchSizes are the batches that every op is held to, beside one item: in front of, at
// and behind what a warp has, and those that networks run with.
func batchSizes() []int { return []int{7, 32, 33, 64} }

// ragged returns a length for each of n items, from 0 to most. The first is the longest.
func ragged(n, most int) []int {
	lengths := make([]int, n)
	for b := range lengths {
		lengths[b] = most - b%(most+1)
	}
	return lengths
}

// ascending returns an index for each of n items, from 0 to most.
func ascending(n, most int) []uint32 {
	indices := make([]uint32, n)
	for b := range indices {
		indices[b] = uint32(b * 3 % (most + 1))
	}
	return indices
}

// batchEntries makes cases of many small items of an op.
func batchEntries(op string) []Entry {
	var all []Entry
	for _, n := range batchSizes() {
		all = append(all, batchEntry(op, n))
	}
	return all
}

// batchEntry makes a case of n items, most with lengths, rows or indices of their own.
func batchEntry(op string, n int) Entry {
	label := fmt.Sprintf("batch%d", n)
	onDevice := n%2 == 0
	switch op {
	case "gemm":
		return gemmSpec{rows: 3, batch: n, n: []int{20, 17}, k: 40, bias: true, epilogue: pass.GELU}.entry(label)
	case "embed":
		return embedSpec{op: pass.Embed{Batch: n, Rows: 2}, n: 50, k: 24, ids: 4, positions: 9, idRow: ascending(n, 2), pos: ascending(n, 7)}.entry(label)
	case "conv1d":
		op := pass.Conv1D{Batch: n, In: 9, Stride: 2, PadLeft: 1, PadRight: 1, Epilogue: pass.ReLU}
		return convSpec{op: op, channels: 12, out: 20, ker: 3, bias: true, lengths: ragged(n, 9), onDevice: onDevice}.entry(label)
	case "lstm":
		return lstmSpec{in: 9, hidden: 20, layers: 2, directions: 2, batch: n, time: 4, state: inPlace, lengths: ragged(n, 4), onDevice: onDevice}.entry(label)
	case "logmel":
		return melSpec{weights: MelUsers()["gigaam"], batch: n, samples: 640, lengths: ragged(n, 640), onDevice: onDevice}.entry(label)
	case "append":
		g := pass.CacheConfig{Type: pass.F16, Heads: 2, HeadDim: 8, Capacity: 9, Batch: n}
		return appendSpec{cfg: g, op: pass.Append{Batch: n, Rows: 2}, at: ascending(n, 7)}.entry(label)
	case "attend":
		g := pass.CacheConfig{Type: pass.F16, Heads: 2, HeadDim: 16, Capacity: 20, Batch: n}
		return attendSpec{cfg: g, op: pass.Attend{Batch: n, Queries: 2, Causal: true}, keys: ascending(n, 20)}.entry(label)
	case "attention":
		op := pass.Attention{Batch: n, Queries: 11, Keys: 13, Heads: 2, HeadDim: 16}
		return attentionSpec{op: op, lengths: ragged(n, 11), keyLengths: ragged(n, 13), onDevice: onDevice}.entry(label)
	case "depthwiseconv2d":
		op := pass.DepthwiseConv2D{Batch: n, Time: 7, Frequency: 6}
		return depthwiseSpec{op: op, channels: 9, first: n%2 == 1, bias: true, lengths: ragged(n, 7), onDevice: onDevice}.entry(label)
	case "conv2d":
		return conv2DSpec{op: pass.Conv2D{Batch: n, Height: 4, Width: 5, ReLU: true}, in: 8, out: 12, size: 3, bias: true, residual: true}.entry(label)
	}
	if e, ok := batchOfRows(op, label, n); ok {
		return e
	}
	return batchOfMoves(op, label, n)
}

// batchOfRows is batchEntry of the ops that make rows of rows.
func batchOfRows(op, label string, n int) (Entry, bool) {
	onDevice := n%2 == 0
	s := rowSpec{batch: n, rows: 3, cols: 21, params: normParam(21, true)}
	switch op {
	case "layernorm":
		s.op = pass.LayerNorm{Batch: n, Rows: 3, Cols: 21}
	case "groupnorm":
		s.op, s.lengths, s.onDevice = pass.GroupNorm{Batch: n, Rows: 3, Cols: 21}, ragged(n, 3), onDevice
	case "poolnorm":
		s.rows, s.lengths, s.onDevice = 7, ragged(n, 7), onDevice
		s.op = pass.PoolNorm{Batch: n, Rows: 7, Cols: 21, Pool: 2, Abs: true, Epilogue: pass.Leaky(0.125)}
	case "l2norm":
		s.op, s.params = pass.L2Norm{Batch: n, Rows: 3, Cols: 21}, nil
	case "softmax":
		s.op, s.params = pass.Softmax{Batch: n, Rows: 3, Cols: 21}, nil
	case "logsoftmax":
		s.op, s.params = pass.LogSoftmax{Batch: n, Rows: 3, Cols: 21}, nil
	case "scale":
		s.op, s.params = pass.Scale{Batch: n, Rows: 3, Cols: 21, Factor: -0.3}, nil
	case "swiglu":
		s.op, s.params, s.cols = pass.SwiGLU{Batch: n, Rows: 3, Cols: 21}, nil, 42
	case "glu":
		s.op, s.params, s.cols = pass.GLU{Batch: n, Rows: 3, Cols: 21}, nil, 42
	case "convglu":
		s.rows, s.cols, s.values = 5, 42, scaled(2, 0)
		s.op, s.params = pass.ConvGLU{Batch: n, Rows: 5}, gluParam(21, 5, pass.F32, true, true, 0)
		s.lengths, s.onDevice = ragged(n, 5), onDevice
	case "map":
		return mapEntry(label, pass.Map{Batch: n, Rows: 3, Cols: 21, Epilogue: pass.SiLU}, usual), true
	case "magnitude":
		return magnitudeEntry(label, pass.Magnitude{Batch: n, Rows: 3, Cols: 21}, usual), true
	case "add":
		return addEntry(label, pass.Add{Batch: n, Rows: 3, Cols: 21, OverBatch: onDevice}, usual, true), true
	default:
		return Entry{}, false
	}
	return s.entry(label), true
}

// batchOfMoves is batchEntry of the ops that are left.
func batchOfMoves(op, label string, n int) Entry {
	switch op {
	case "argmax":
		return argmaxSpec{op: pass.Argmax{Batch: n, Rows: 2, Cols: 21, IDRows: 9}, toRow: ascending(n, 7)}.entry(label)
	case "rope":
		return ropeEntry(label, pass.Rope{Batch: n, Rows: 2, Heads: 3, HeadDim: 12}, pass.RopeWeights{Positions: 90, Rot: 8, Base: 100}, ascending(n, 88)...)
	case "statspool":
		weight := func(m, i, _ int) float32 { return float32((7*i+3*m)%11) / 11 }
		return statsPoolEntry(label, pass.StatsPool{Batch: n, Height: 2, Width: 6, Channels: 5, Count: 2, Frames: 11}, weight, usual)
	case "permute":
		return permuteEntry(label, [4]int{n, 3, 4, 5}, [4]int{0, 3, 1, 2})
	case "copy":
		return copySpec{op: pass.Copy{Batch: n, Rows: 2, Cols: 5}, from: 7, to: 4, fromRow: ascending(n, 5), toRow: ascending(n, 2)}.entry(label)
	case "fill":
		return fillEntry(label, pass.Fill{Batch: n, Rows: 3, Cols: 5, Value: 1.25})
	case "advance":
		ids := make([]uint32, 4*n)
		for i := range ids {
			ids[i] = uint32(i % 5)
		}
		return advanceSpec{op: pass.Advance{By: 1, IDRows: 4}, index: ascending(n, 3), ids: ids, stops: []uint32{2}, done: make([]uint32, n)}.entry(label)
	}
	panic("cases: no batch of " + op)
}
