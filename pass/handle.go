package pass

import "fmt"

// A Ref identifies what a handle names. Backends make refs and look them up; two
// equal refs name the same thing. Numbers count from 1 and are never used twice
// within a process (device) or within their owner, except ID, which is told apart by
// Generation.
type Ref struct {
	Device     uint32 // the device it was made by
	Session    uint32 // the session it belongs to; 0 for params
	Recording  uint32 // the recording it lives in; 0 for state and params
	ID         uint32 // slot in the owner's table
	Generation uint32 // how often the slot was given out
}

// A Buffer is a handle to a row of elements on a device: state that outlives a run
// (from Session.Alloc), a temporary (Pass.Temp) or an input (Pass.Input). It is a
// value; copying it copies no data. The zero Buffer names nothing.
type Buffer struct {
	ref Ref
	typ DType
	n   int
}

// MakeBuffer is for backends: it makes the handle of n elements of type t.
func MakeBuffer(ref Ref, t DType, n int) Buffer { return Buffer{ref, t, n} }

// Ref returns what the handle refers to.
func (b Buffer) Ref() Ref { return b.ref }

// Type returns the type of the elements.
func (b Buffer) Type() DType { return b.typ }

// Len returns the number of elements.
func (b Buffer) Len() int { return b.n }

// IsZero reports whether the handle names nothing.
func (b Buffer) IsZero() bool { return b == Buffer{} }

// String describes the handle for error messages.
func (b Buffer) String() string {
	if b.IsZero() {
		return "no buffer"
	}
	kind := "buffer"
	if b.ref.Recording != 0 {
		kind = "temporary"
	}
	return fmt.Sprintf("%s %d.%d (%d %v)", kind, b.ref.ID, b.ref.Generation, b.n, b.typ)
}

// View returns the whole buffer as an argument.
func (b Buffer) View() View { return View{Buffer: b} }

// At returns the buffer from the given element on as an argument.
func (b Buffer) At(offset int) View { return View{Buffer: b, Offset: offset} }

// A View says where an argument of an op lies: rows of elements in a buffer, the
// same number of rows for each item of the batch. How many columns, rows and items
// there are is said by the op. The zero View is "not given".
type View struct {
	Buffer      Buffer
	Offset      int // first element
	RowStride   int // elements from one row to the next; 0: rows are dense
	BatchStride int // elements from one item to the next; 0: as many as its rows take
}

// At returns the view moved by the given number of elements.
func (v View) At(offset int) View { v.Offset += offset; return v }

// Rows returns the view with the given row stride in elements.
func (v View) Rows(stride int) View { v.RowStride = stride; return v }

// Batch returns the view with the given batch stride in elements.
func (v View) Batch(stride int) View { v.BatchStride = stride; return v }

// IsZero reports whether the view is not given.
func (v View) IsZero() bool { return v == View{} }

// An Input is a buffer that is filled with host data each time its recording is
// started. Ops may only read it.
type Input struct{ Buffer }

// MakeInput is for backends: it makes an input of the given buffer.
func MakeInput(b Buffer) Input { return Input{b} }

// F32 binds float32 data to the input for one start. The data are copied during
// Start and must have exactly the input's length.
func (in Input) F32(data []float32) Bind { return Bind{Input: in, F32: data} }

// U32 binds uint32 data to the input for one start; see [Input.F32].
func (in Input) U32(data []uint32) Bind { return Bind{Input: in, U32: data} }

// A Bind gives an input its data for one start of a recording. Exactly the field of
// the input's type is set.
type Bind struct {
	Input Input
	F32   []float32
	U32   []uint32
}

// An Output names data that a run copies back to the host; see [Run.ReadF32].
type Output struct {
	ref Ref
	typ DType
	n   int
}

// MakeOutput is for backends: it makes the handle of n elements of type t.
func MakeOutput(ref Ref, t DType, n int) Output { return Output{ref, t, n} }

// Ref returns what the handle refers to.
func (o Output) Ref() Ref { return o.ref }

// Type returns the type of the elements.
func (o Output) Type() DType { return o.typ }

// Len returns the number of elements.
func (o Output) Len() int { return o.n }

// A CacheConfig says what a cache of keys and values holds.
type CacheConfig struct {
	Heads    int
	HeadDim  int   // a multiple of 4, at most 256
	Capacity int   // positions
	Batch    int   // items; 0: one
	Type     DType // F32 or F16; 0: F32
}

// Check returns the configuration with its defaults made explicit.
func (g CacheConfig) Check() (CacheConfig, error) {
	if g.Batch == 0 {
		g.Batch = 1
	}
	if g.Type == 0 {
		g.Type = F32
	}
	var e extent
	n := -1
	if min(g.Heads, g.HeadDim, g.Capacity, g.Batch) > 0 {
		n = e.mul(e.mul(e.mul(g.Heads, g.HeadDim), g.Capacity), g.Batch)
	}
	if n < 0 || e.over || int64(n) > 1<<40 || g.HeadDim%4 != 0 || g.HeadDim > 256 || g.Type != F32 && g.Type != F16 {
		return g, fmt.Errorf("pass: cache: want heads, capacity and batch of at least 1, a head dimension that is a multiple of 4 up to 256, and F32 or F16, given %+v: %w", g, ErrInvalid)
	}
	return g, nil
}

// A Cache is a handle to the keys and values of an attention layer, kept by a session
// from run to run: positions 0, 1, 2, … for each item of a batch. How they lie is the
// backend's. It is a value.
type Cache struct {
	ref Ref
	cfg CacheConfig
}

// MakeCache is for backends: it makes the handle of a cache of a checked
// configuration.
func MakeCache(ref Ref, cfg CacheConfig) Cache { return Cache{ref, cfg} }

// Ref returns what the handle refers to.
func (h Cache) Ref() Ref { return h.ref }

// Config returns what the cache holds.
func (h Cache) Config() CacheConfig { return h.cfg }

// IsZero reports whether the handle names nothing.
func (h Cache) IsZero() bool { return h == Cache{} }

// String describes the handle for error messages.
func (h Cache) String() string {
	if h.IsZero() {
		return "no cache"
	}
	return fmt.Sprintf("cache %d.%d (%d × %d positions, %d heads of %d, %v)", h.ref.ID, h.ref.Generation,
		h.cfg.Batch, h.cfg.Capacity, h.cfg.Heads, h.cfg.HeadDim, h.cfg.Type)
}

// A Param is a handle to weights or a table on a device, loaded once by
// Device.Load, read-only and shared by all sessions of the device. It is a value.
type Param struct {
	ref   Ref
	shape ParamShape
}

// MakeParam is for backends: it makes the handle of a param of the given shape.
func MakeParam(ref Ref, shape ParamShape) Param { return Param{ref, shape} }

// Ref returns what the handle refers to.
func (p Param) Ref() Ref { return p.ref }

// Shape returns the geometry of what was loaded, such as a LinearShape; nil for the
// zero Param.
func (p Param) Shape() ParamShape { return p.shape }

// IsZero reports whether the handle names nothing.
func (p Param) IsZero() bool { return p == Param{} }

// String describes the handle for error messages.
func (p Param) String() string {
	if p.IsZero() {
		return "no param"
	}
	return fmt.Sprintf("param %d.%d (%v)", p.ref.ID, p.ref.Generation, p.shape)
}
