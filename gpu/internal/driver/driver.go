package driver

import (
	"context"
	"errors"
	"time"
)

// The names of a device's objects. Zero names nothing. A name is never reused while it
// could be mistaken for another object of any device of the process: names of other
// devices and of destroyed objects are refused with pass.ErrInvalid.
type (
	// BufferID names a buffer.
	BufferID uint64
	// PipelineID names a compute pipeline.
	PipelineID uint64
	// BindGroupID names a bind group.
	BindGroupID uint64
	// QueryID names a set of timestamp queries.
	QueryID uint64
)

// Serial numbers the submissions of one device from 1, in order.
type Serial uint64

// MaxInFlight is how many submissions of one device may be unfinished. More are
// refused with [ErrBusy]: some systems hang or lose the device when the queue grows
// into the thousands.
const MaxInFlight = 256

// ErrBusy: MaxInFlight submissions are unfinished. Wait for one, then submit again.
var ErrBusy = errors.New("too many submissions in flight")

// A Provider is one way to reach WebGPU devices.
type Provider interface {
	// Name is a short word for messages: "native", "dawn", "browser".
	Name() string
	// Adapters lists what the system offers, in its own order, software adapters and
	// duplicates over several APIs included: choosing is the caller's. The list is
	// never empty without an error; that error wraps pass.ErrNoDevice and says what
	// was looked for.
	Adapters(ctx context.Context) ([]Adapter, error)
	// Open opens the adapter with the given Index. It fails with pass.ErrNoDevice if
	// there is none or it has gone, and with pass.ErrUnsupported, naming what was
	// wanted and what is there, if it lacks a limit or a feature of cfg.
	Open(ctx context.Context, adapter int, cfg DeviceConfig) (Device, error)
	// Close gives back what the provider holds. Open devices stay usable. It is
	// idempotent.
	Close() error
}

// A Loaded provider speaks through a library that was found at run time.
type Loaded interface {
	Provider
	// Library is the path of that library.
	Library() string
}

// A Device is an open adapter and owns all objects made through it.
type Device interface {
	// Limits are the limits the device enforces: those asked for, or the adapter's.
	Limits() Limits
	// Features are the features the device was opened with.
	Features() Feature

	// CreateBuffer makes a buffer filled with zeros.
	CreateBuffer(desc BufferDesc) (BufferID, error)
	// DestroyBuffer frees the buffer. Submissions that use it finish first; bind
	// groups that hold it can no longer be dispatched. A buffer that is being read
	// or written by ReadMapped or WriteMapped is refused.
	DestroyBuffer(id BufferID) error
	// Write copies data into the buffer with the next Submit. Offset and length are
	// multiples of 4 and the buffer has CopyDst. The copy of data held until that
	// Submit is the device's, so this is for small blocks; large ones go through
	// WriteMapped and a copy.
	Write(id BufferID, offset uint64, data []byte) error
	// ReadMapped waits until the device is through with the buffer, which has
	// MapRead, and copies len(dst) bytes from offset into dst. Any offset and length
	// inside the buffer will do. It waits no longer than timeout; when it ends early
	// dst is as it was.
	ReadMapped(ctx context.Context, id BufferID, offset uint64, dst []byte, timeout time.Duration) error
	// WriteMapped is ReadMapped the other way, for buffers with MapWrite.
	WriteMapped(ctx context.Context, id BufferID, offset uint64, src []byte, timeout time.Duration) error

	// CreatePipeline compiles a kernel. The layout is the one described, never one
	// derived from the source.
	CreatePipeline(desc PipelineDesc) (PipelineID, error)
	// DestroyPipeline frees the pipeline. Bind groups made for it stay.
	DestroyPipeline(id PipelineID) error
	// CreateBindGroup binds buffers for a pipeline, one for each of its Bindings in
	// order. The group fits every pipeline of the device with the same Bindings.
	CreateBindGroup(pipeline PipelineID, bindings []Binding) (BindGroupID, error)
	// DestroyBindGroup frees the group, not its buffers.
	DestroyBindGroup(id BindGroupID) error

	// Submit runs the commands. All of them are checked first: on an error none runs.
	// The slice is not kept. It never waits; see [ErrBusy].
	Submit(commands []Command) (Serial, error)
	// Done reports the newest submission that is finished, with all before it. The
	// device cancels work silently on some systems and reports it finished: a caller
	// who must know looks for a value that the work itself wrote.
	Done() (Serial, error)
	// Wait returns when the submission is finished. It fails with pass.ErrTimeout
	// after timeout, with the cause if ctx ends first, and with Err if there is one,
	// which outranks both.
	Wait(ctx context.Context, serial Serial, timeout time.Duration) error
	// Err is the first error that no call returned: one that surfaced while work was
	// running, or the loss of the device (pass.ErrDeviceLost). It stays. Once the
	// device is lost every call but Limits, Features, Ledger and Close returns it.
	Err() error

	// Ledger counts what is alive.
	Ledger() Ledger
	// Close waits a bounded time for submitted work and frees every object. It is
	// idempotent. If the work does not end, it fails with pass.ErrTimeout and leaves
	// the memory that the device may still write to the end of the process.
	Close() error
}

// A Timer is a Device that can record time stamps in a command list; found by type
// assertion, and usable if the device was opened with [FeatureTimestamps]. A stamp is a
// count of ticks of unknown length: calibrate, and treat zero or negative differences
// as unknown.
type Timer interface {
	// CreateQueries makes room for count stamps, at most MaxQueries.
	CreateQueries(count uint32) (QueryID, error)
	// DestroyQueries frees them.
	DestroyQueries(id QueryID) error
}

// MaxQueries is the largest count of a query set.
const MaxQueries = 4096

// Ledger counts the live objects of a device. All fields are zero after Close.
type Ledger struct {
	Buffers    int    // buffers
	Bytes      uint64 // bytes in those buffers
	Pipelines  int    // pipelines
	BindGroups int    // bind groups
	Queries    int    // query sets
	InFlight   int    // submissions that were not seen to finish
}
