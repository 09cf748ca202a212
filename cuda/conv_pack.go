package cuda

import (
	"context"
	"fmt"
	"io"
	"math"
	"sync"
	"unsafe"

	"github.com/tandem-gpu/tandem/cuda/kernels"
	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/pass/backend"
)

// Filled up to these multiples, the matrix of a convolution in FP32 needs no bounds: the
// products of a stage, and the channels of a tile.
const (
	convDepthGrain  = 16
	convColumnGrain = 64
)

// A convParam is the weights of a Conv1D or a Conv2D [out][in][taps]: as a matrix of F32
// [taps·in][out], in whose rows one tap follows the other as a kernel walks over its input.
// Forms for tensor cores are made of it when they are first needed.
type convParam struct {
	d             *device
	name          string
	typ           pass.DType // of the stored weights, whose values the matrix holds
	out, in, taps int
	stride        int // of a row of the matrix
	direct        *memory
	bias          *memory // nil: none

	mu      sync.Mutex
	lengths []float32 // of the rows of the matrix as vectors; nil: not measured
	forms   map[convLayout]*matrix
}

// Free implements backend.Memory.
func (p *convParam) Free() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.direct.Free()
	p.bias.Free()
	for _, m := range p.forms {
		m.Free()
	}
	p.forms = nil
}

// depth returns how many products a sum has.
func (p *convParam) depth() int { return p.taps * p.in }

// biasAt returns the address of the bias for a kernel; 0 if there is none.
func (p *convParam) biasAt() kernels.F32 {
	if p.bias == nil {
		return 0
	}
	return kernels.F32(p.bias.at)
}

// loadConv lays out a tensor [out][in][taps]. It travels as it is stored, and is turned on
// the device.
func (d *device) loadConv(ctx context.Context, name string, t pass.Tensor, out, in, taps int, bias []float32) (backend.Memory, error) {
	p := &convParam{d: d, name: name, typ: t.Type, out: out, in: in, taps: taps, stride: roundUp(out, convColumnGrain)}
	if err := p.load(ctx, t, bias); err != nil {
		p.Free()
		return nil, fmt.Errorf("conv weights %q: %w", name, err)
	}
	return p, nil
}

func (p *convParam) load(ctx context.Context, t pass.Tensor, bias []float32) (err error) {
	if bias != nil {
		if p.bias, err = p.d.upload(ctx, p.name+" bias", float32Bytes(bias)); err != nil {
			return err
		}
	}
	rows := roundUp(p.depth(), convDepthGrain)
	if p.direct, err = p.d.alloc(p.name, 4*rows*p.stride); err != nil {
		return err
	}
	bytes := int(t.Bytes())
	stored, err := p.d.alloc(p.name+" as stored", bytes)
	if err != nil {
		return err
	}
	defer stored.Free()
	if err := p.d.fill(ctx, stored, 0, func(dst []byte, from int) error { return readTensor(t, dst, from) }, bytes); err != nil {
		return err
	}
	return p.d.immediately(ctx, func(c *compiler) error {
		return run(c.call("conv1d_pack"), kernels.ConvPack{
			Stored: kernels.U32(stored.at), Matrix: kernels.F32(p.direct.at), Stride: int64(p.stride),
			Type: uint32(p.typ), Out: uint32(p.out), In: uint32(p.in), Taps: uint32(p.taps),
		}, grid{rows, 1, 1}, 0, pass.Cost{})
	})
}

// measure finds out how large the weights of each tap of each channel are, before a product
// first takes them as F16.
func (p *convParam) measure(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.lengths != nil {
		return nil
	}
	m := matrix{d: p.d, label: p.name, typ: pass.F32, rows: p.depth(), cols: p.out, stride: p.stride, values: p.direct}
	lengths, err := m.lengths(ctx)
	if err != nil {
		return err
	}
	for i, v := range lengths {
		if v == math.MaxFloat32 { // not finite, or nearly so
			lengths[i] = 0
		}
	}
	p.lengths = lengths
	p.d.tellRange(p.name, p.apart(1, func(int) int { return 0 }))
	return nil
}

// apart returns how far the weights of inputs are apart: those of a channel and of the taps
// that an input meets, which are numbered by phase where windows lie more than a step apart.
func (p *convParam) apart(phases int, phase func(tap int) int) float32 {
	features := make([]float32, phases*p.in)
	for i, v := range p.lengths {
		f := &features[phase(i/p.in)*p.in+i%p.in]
		*f = max(*f, v)
	}
	return apart(features)
}

// readTensor reads bytes of a tensor's data.
func readTensor(t pass.Tensor, dst []byte, from int) error {
	n, err := t.Data.ReadAt(dst, int64(from))
	if n == len(dst) {
		return nil
	}
	if err == nil || err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("tensor %q: %d bytes from %d: %w", t.Name, len(dst), from, err)
}

// float32Bytes returns the bytes of values.
func float32Bytes(v []float32) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(v))), 4*len(v))
}

// inQuads reports whether the rows of views are aligned to four elements.
func inQuads(views ...kernels.View) bool {
	for _, v := range views {
		if v.P%16 != 0 || v.Row%4 != 0 || v.Batch%4 != 0 {
			return false
		}
	}
	return true
}

// flag is a yes or no for a kernel.
func flag(b bool) uint32 {
	if b {
		return 1
	}
	return 0
}
