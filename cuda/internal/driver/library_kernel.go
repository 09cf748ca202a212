//go:build (linux && (amd64 || arm64) && !android) || (windows && amd64)

package driver

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"sync"
	"unsafe"

	"github.com/ebitengine/purego"
	"github.com/tandem-gpu/tandem/pass"
)

// aligned returns n bytes at a multiple of a power of two.
func aligned(n, to int) []byte {
	b := make([]byte, n+to)
	skip := -int(uintptr(unsafe.Pointer(unsafe.SliceData(b)))) & (to - 1)
	return b[skip : skip+n : skip+n]
}

// LoadModule implements Driver.
func (l *library) LoadModule(image []byte) (Module, error) {
	if len(image) == 0 {
		return 0, fmt.Errorf("driver: load module: no image: %w", pass.ErrInvalid)
	}
	copied := aligned(len(image)+1, imageAlignment) // ends with a zero, as PTX must
	copy(copied, image)
	var (
		m       Module
		log     = make([]byte, compilerLogCapacity)
		options = [2]int32{jitErrorLog, jitErrorLogSize}
		values  = jitValues{unsafe.Pointer(&log[0]), uintptr(len(log))}
	)
	err := l.call(cuModuleLoadDataEx, uintptr(unsafe.Pointer(&m)), uintptr(unsafe.Pointer(&copied[0])), uintptr(len(options)),
		uintptr(unsafe.Pointer(&options)), uintptr(unsafe.Pointer(&values)))
	var failed *Error
	if errors.As(err, &failed) {
		said, _, _ := bytes.Cut(log, []byte{0})
		failed.Log = strings.Join(strings.Fields(strings.ToValidUTF8(string(said), "?")), " ")
	}
	return m, err
}

// UnloadModule implements Driver.
func (l *library) UnloadModule(m Module) error { return l.plain(cuModuleUnload, uintptr(m)) }

// Function implements Driver.
func (l *library) Function(m Module, name string) (Function, error) {
	var f Function
	word := append([]byte(name), 0)
	err := l.call(cuModuleGetFunction, uintptr(unsafe.Pointer(&f)), uintptr(m), uintptr(unsafe.Pointer(&word[0])))
	return f, err
}

// FunctionAttribute implements Driver.
func (l *library) FunctionAttribute(f Function, a FunctionAttribute) (int, error) {
	var v int32
	err := l.call(cuFuncGetAttribute, uintptr(unsafe.Pointer(&v)), uintptr(a), uintptr(f))
	return int(v), err
}

// AllowShared implements Driver.
func (l *library) AllowShared(f Function, bytes int) error {
	return l.plain(cuFuncSetAttribute, uintptr(f), uintptr(FunctionDynamicShared), uintptr(bytes))
}

// Occupancy implements Driver.
func (l *library) Occupancy(f Function, threads, shared int) (int, error) {
	var n int32
	err := l.call(cuOccupancyMaxActiveBlocksPerMultiprocessor, uintptr(unsafe.Pointer(&n)), uintptr(f), uintptr(threads), uintptr(shared))
	return int(n), err
}

// A streamLaunch is the memory of a call that launches a kernel. It stays in place. The
// driver copies the parameters before it returns.
type streamLaunch struct {
	words  [11]uintptr
	args   [1]unsafe.Pointer
	config launchConfig
	early  launchAttribute
}

var streamLaunches = sync.Pool{New: func() any {
	return &streamLaunch{early: launchAttribute{id: attributeEarly, value: attributeValue{word: 1}}}
}}

// Launch implements Driver. It allocates nothing: recordings that run once launch all their
// kernels so.
func (l *library) Launch(k Launch, s Stream) error {
	m := streamLaunches.Get().(*streamLaunch)
	m.args[0] = unsafe.Pointer(unsafe.SliceData(k.Args))
	args := uintptr(unsafe.Pointer(&m.args))
	e, words := cuLaunchKernel, 11
	if k.Early {
		e, words = cuLaunchKernelEx, 4
		m.config = launchConfig{grid: k.Grid, block: k.Block, shared: k.Shared, stream: s, attributes: unsafe.Pointer(&m.early), count: 1}
		m.words = [11]uintptr{uintptr(unsafe.Pointer(&m.config)), uintptr(k.Function), args}
	} else {
		g, b := k.Grid, k.Block
		m.words = [11]uintptr{uintptr(k.Function), uintptr(g[0]), uintptr(g[1]), uintptr(g[2]),
			uintptr(b[0]), uintptr(b[1]), uintptr(b[2]), uintptr(k.Shared), uintptr(s), args}
		if k.Cooperative {
			e, words = cuLaunchCooperativeKernel, 10
		}
	}
	r, _, _ := purego.SyscallN(l.entries[e], m.words[:words]...)
	m.args[0] = nil
	streamLaunches.Put(m)
	if code := int32(r); code != 0 {
		return l.failure(e, int(code))
	}
	return nil
}

// EncodeTensorMap implements Driver.
func (l *library) EncodeTensorMap(t TensorMap) ([128]byte, error) {
	var m [128]byte
	if err := l.optional(cuTensorMapEncodeTiled); err != nil {
		return m, err
	}
	rank := len(t.Size)
	if rank < 1 || rank > 5 || len(t.Stride) != rank-1 || len(t.Box) != rank || t.Step != nil && len(t.Step) != rank {
		return m, fmt.Errorf("driver: tensor map: %d sizes, %d strides, a box of %d, %d steps: want 1 to 5 sizes, one stride less, as many of the others: %w",
			rank, len(t.Stride), len(t.Box), len(t.Step), pass.ErrInvalid)
	}
	promotion, ok := map[int]uintptr{0: promotionNone, 64: 1, 128: 2, 256: 3}[t.Promote]
	if !ok {
		return m, fmt.Errorf("driver: tensor map: promotion to %d bytes: want 0, 64, 128 or 256: %w", t.Promote, pass.ErrInvalid)
	}
	var (
		size, stride [5]uint64
		box          [5]uint32
		step         = [5]uint32{1, 1, 1, 1, 1}
		made         = aligned(len(m), tensorMapAlignment)
	)
	copy(size[:], t.Size)
	copy(stride[:], t.Stride)
	copy(box[:], t.Box)
	copy(step[:], t.Step)
	err := l.call(cuTensorMapEncodeTiled, uintptr(unsafe.Pointer(&made[0])), uintptr(t.Type), uintptr(rank), uintptr(t.Address),
		uintptr(unsafe.Pointer(&size)), uintptr(unsafe.Pointer(&stride)), uintptr(unsafe.Pointer(&box)), uintptr(unsafe.Pointer(&step)),
		interleaveNone, uintptr(t.Swizzle), promotion, outsideIsZero)
	copy(m[:], made)
	return m, err
}
