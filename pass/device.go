package pass

import (
	"context"
	"io"
)

// A Device is something that runs recordings: one GPU through one API, or the CPU. It
// may be used from any goroutine. Close ends all its sessions and frees everything
// that was made on it; it may be called again, and in any order with other Closes.
type Device interface {
	// Info says what the device is and what it uses.
	Info() Info
	// Load brings weights to the device, where they are laid out as the device likes.
	// The tensors are read in pieces, and no longer than Load runs.
	Load(ctx context.Context, w Weights) (Param, error)
	// Unload gives up a param. Recordings that use it keep working; its memory is
	// freed when the last of them is closed.
	Unload(p Param) error
	// NewSession opens a session.
	NewSession(cfg SessionConfig) (Session, error)
	Close() error
}

// A Latency says how urgent the work of a session is.
type Latency uint8

// The latencies.
const (
	// Batch work is done in large parts.
	Batch Latency = iota
	// Interactive work is short and should start soon, even beside batch work.
	Interactive
)

// A SessionConfig configures a session. The zero value is good.
type SessionConfig struct {
	Label   string // for error messages and dumps
	Latency Latency
}

// A Session is an ordered queue of work with state of its own. What is started first
// runs first; Write and Read take their place in the order. One goroutine at a time
// may drive a session; other sessions do not matter to it. Close drops what has not
// begun, waits for the rest, and frees the session's buffers and recordings.
type Session interface {
	// Alloc makes a buffer of n elements, all zero, that outlives a run: state. n may
	// be 0. Type is F32 or U32.
	Alloc(t DType, n int) (Buffer, error)
	// Free gives up a buffer. Recordings that use it keep working; its memory is freed
	// when the last of them is closed.
	Free(b Buffer) error
	// NewCache makes an empty cache of keys and values.
	NewCache(cfg CacheConfig) (Cache, error)
	// FreeCache gives up a cache, as Free does a buffer.
	FreeCache(c Cache) error
	// Write fills the dense elements of v from data, a []float32 or []uint32 of the
	// buffer's type.
	Write(ctx context.Context, v View, data any) error
	// Read fills data, a []float32 or []uint32 of the buffer's type, from the dense
	// elements of v, after all work that was started before.
	Read(ctx context.Context, v View, data any) error
	// Record runs f once and compiles what it records. Recording touches no data. A
	// mistake inside f sticks: the first is what Record returns. f must not keep its
	// Pass.
	Record(ctx context.Context, opt RecordOptions, f func(Pass)) (Recording, error)
	Close() error
}

// RecordOptions configure a recording. The zero value is good.
type RecordOptions struct {
	Label string // for error messages and dumps
	Math  Math
	// Progress, if not nil, is called as a run goes on with the share of its cost that
	// is done, from 0 to 1, on a goroutine of the session. It must return soon.
	Progress func(done float64)
}

// A Pass records work. It lives as long as the callback of Record that it was handed
// to, and is used on that goroutine only.
type Pass interface {
	// Do records ops, in order.
	Do(ops ...Op)
	// Temp makes a temporary of n F32 or U32 elements that lives inside the recording.
	// Its elements are undefined until an op writes them.
	Temp(t DType, n int) Buffer
	// Input makes a buffer that each start fills with host data.
	Input(t DType, n int) Input
	// Output asks for n dense elements of v, as they are when all ops are done, to be
	// copied to the host by each run.
	Output(v View, n int) Output
}

// A Recording is compiled work, to be started as often as wanted.
type Recording interface {
	// Start queues a run and returns; every input must be bound once. The data are
	// copied before Start returns. When ctx ends, parts of the run that have not begun
	// are dropped and Wait returns the context's error; state that the run writes is
	// then undefined, recording and session stay usable.
	Start(ctx context.Context, binds ...Bind) (Run, error)
	// Run is Start, then Wait.
	Run(ctx context.Context, binds ...Bind) (Run, error)
	// Dump writes a description: ops, variants with reasons, memory, cost.
	Dump(w io.Writer) error
	// Close frees the recording after its runs are done. Runs that are done stay
	// readable.
	Close() error
}

// A RunState is the backend's side of a [Run].
type RunState interface {
	Wait(ctx context.Context, generation uint64) error
	Read(o Output, f32 []float32, u32 []uint32, generation uint64) error
	Close(generation uint64)
}

// A Run is one start of a recording. It is a value and may be used from any
// goroutine.
type Run struct {
	state      RunState
	generation uint64
}

// MakeRun is for backends: it makes the handle of a run.
func MakeRun(s RunState, generation uint64) Run { return Run{s, generation} }

// Wait returns when the run is done, with its error, or when ctx ends. The end of
// this ctx does not stop the run.
func (r Run) Wait(ctx context.Context) error {
	if r.state == nil {
		return errNoRun
	}
	return r.state.Wait(ctx, r.generation)
}

// ReadF32 copies an output of F32 elements to dst, which must have its length. The
// run must be done.
func (r Run) ReadF32(o Output, dst []float32) error {
	if r.state == nil {
		return errNoRun
	}
	return r.state.Read(o, dst, nil, r.generation)
}

// ReadU32 copies an output of U32 elements to dst, which must have its length. The
// run must be done.
func (r Run) ReadU32(o Output, dst []uint32) error {
	if r.state == nil {
		return errNoRun
	}
	return r.state.Read(o, nil, dst, r.generation)
}

// Close lets the recording use the run's memory for a later run, so that replaying
// allocates nothing. It is optional; the run cannot be used afterwards.
func (r Run) Close() {
	if r.state != nil {
		r.state.Close(r.generation)
	}
}

// Info describes a device.
type Info struct {
	Backend  string    // "cpu", "gpu", "cuda"
	Name     string    // of the device, as its driver gives it
	API      string    // what it is reached through: "go", "vulkan", "metal", "d3d12", "cuda"
	Provider string    // library behind the API, with its path if it was loaded
	Driver   string    // version of the driver
	Kind     string    // "discrete", "integrated", "virtual", "software", "cpu"
	Memory   int64     // bytes of device memory; 0: unknown
	Threads  int       // of a CPU device
	Limits   []Limit   // what bounds the size of one step of work
	Variants []Variant // fast variants, with the reason for each decision
}

// A Limit is a named number that bounds what a device does at once.
type Limit struct {
	Name  string
	Value int64
}

// A Variant is a fast way to compute an op that a device may or may not use.
type Variant struct {
	Name   string // "gemm.matrix"
	Used   bool
	Reason string // evidence for the decision
}
