// Package driver is the part of NVIDIA's driver API that tandem uses, as Go calls. It is
// a seam: the real driver is reached through purego, without cgo or a toolkit, and
// package drivertest has one that computes on the host.
package driver

// MinVersion is the oldest CUDA version of a driver that is taken.
const MinVersion = 12000

// Handles of the driver. 0 is none.
type (
	Pointer  uint64 // of device memory
	Context  uintptr
	Stream   uintptr
	Event    uintptr
	Module   uintptr
	Function uintptr
	Graph    uintptr
	Node     uintptr
	Exec     uintptr // an instantiated graph
	Physical uint64  // memory that is mapped to addresses; see Reserve
)

// Driver is the driver's entry points. Its methods are called on one thread for each
// context (see [Thread]), on which the context is current. Errors are *[Error].
type Driver interface {
	// Path returns that of the library, as the system found it.
	Path() string
	// Version returns that of the CUDA API which the driver implements: 13000 for 13.0.
	Version() (int, error)
	DeviceCount() (int, error)
	DeviceName(ordinal int) (string, error)
	DeviceUUID(ordinal int) ([16]byte, error)
	DeviceMemory(ordinal int) (uint64, error)
	Attribute(ordinal int, a Attribute) (int, error)

	CreateContext(ordinal int) (Context, error) // and makes it current
	DestroyContext(c Context) error             // and makes none current, if c was
	SetCurrent(c Context) error                 // 0: none
	Current() (Context, error)
	MemInfo() (free, total uint64, err error)
	PriorityRange() (least, greatest int, err error)

	Alloc(bytes uint64) (Pointer, error)
	Free(p Pointer) error
	// HostAlloc makes page-locked memory of the host, at the same address on the device.
	HostAlloc(bytes uint64) (uintptr, error)
	HostFree(p uintptr) error

	// Reserve sets addresses apart; Create makes memory that Map puts at some of them, read
	// and written by the device with the ordinal. All sizes are multiples of Granularity.
	Granularity(ordinal int) (uint64, error)
	Reserve(bytes uint64) (Pointer, error)
	Unreserve(p Pointer, bytes uint64) error
	Create(ordinal int, bytes uint64) (Physical, error)
	Release(m Physical) error
	Map(ordinal int, p Pointer, bytes uint64, m Physical) error
	Unmap(p Pointer, bytes uint64) error

	// Work in the order of a stream. Host memory must be page-locked.
	CopyToDevice(dst Pointer, src uintptr, bytes uint64, s Stream) error
	CopyToHost(dst uintptr, src Pointer, bytes uint64, s Stream) error
	CopyOnDevice(dst, src Pointer, bytes uint64, s Stream) error
	Set32(dst Pointer, value uint32, n uint64, s Stream) error
	Launch(l Launch, s Stream) error
	LaunchGraph(e Exec, s Stream) error

	CreateStream(priority int) (Stream, error) // that does not wait for the default stream
	DestroyStream(s Stream) error
	Synchronize(s Stream) error
	Query(s Stream) (done bool, err error)

	CreateEvent() (Event, error) // with timing
	DestroyEvent(e Event) error
	Record(e Event, s Stream) error
	QueryEvent(e Event) (done bool, err error)
	Elapsed(from, to Event) (milliseconds float32, err error)

	// LoadModule takes a cubin, or PTX, which ends with a zero byte; PTX is compiled. An
	// error holds the compiler's log.
	LoadModule(image []byte) (Module, error)
	UnloadModule(m Module) error
	Function(m Module, name string) (Function, error)
	FunctionAttribute(f Function, a FunctionAttribute) (int, error)
	// AllowShared lets a function have that much dynamic shared memory.
	AllowShared(f Function, bytes int) error
	// Occupancy returns how many blocks of a function are resident on a multiprocessor.
	Occupancy(f Function, threads, shared int) (int, error)

	CreateGraph() (Graph, error)
	DestroyGraph(g Graph) error
	// AddKernel adds a node; AddEdges says what it runs after.
	AddKernel(g Graph, l Launch) (Node, error)
	AddEdges(g Graph, edges []Edge) error
	Instantiate(g Graph) (Exec, error)
	// Upload brings an instantiated graph to the device in the order of a stream, which its
	// first launch would do.
	Upload(e Exec, s Stream) error
	DestroyExec(e Exec) error

	// EncodeTensorMap makes a map for the bulk tensor copies of capability 9.0 and up.
	EncodeTensorMap(t TensorMap) ([128]byte, error)

	// Close gives the library up. No context is left.
	Close() error
}

// A Launch is one run of a kernel.
//
// Early lets one in a stream begin when the blocks of the kernel before it have said that
// dependents may, as a programmatic edge does in a graph, where the edges say it: the kernel
// waits for the other's end itself. It takes capability 9.0, and a kernel right before it.
type Launch struct {
	Function    Function
	Grid, Block [3]uint32
	Shared      uint32 // dynamic shared memory, bytes
	Args        []byte // the one struct that the kernel takes
	Cooperative bool   // all blocks are resident at once; not with Early
	Early       bool   // in a stream
}

// An Edge says that To runs after From: when all of From's blocks are done, or, if
// Programmatic, when they have said that dependents may begin; the kernel then waits
// itself.
type Edge struct {
	From, To     Node
	Programmatic bool
}

// A TensorMap describes a tensor of up to five dimensions, innermost first, and the box of
// it that one copy moves.
type TensorMap struct {
	Type    TensorType
	Address Pointer  // a multiple of 16
	Size    []uint64 // elements of each dimension
	Stride  []uint64 // bytes from one to the next of dimensions 1 and up; multiples of 16
	Box     []uint32 // elements
	Step    []uint32 // elements from one to the next in the box; nil: 1
	Swizzle Swizzle
	Promote int // bytes that a miss in L2 fetches: 0, 64, 128 or 256
}
