package drivertest

import (
	"fmt"
	"math/rand/v2"
	"sync"

	"github.com/tandem-gpu/tandem/cuda/internal/driver"
)

// Driver is a driver on the host. It may be used by several goroutines at a time.
type Driver struct {
	config  Config
	devices []Profile

	mu       sync.Mutex
	idle     *sync.Cond // a stream has stopped working
	current  map[int]driver.Context
	next     uintptr // the last handle
	random   *rand.Rand
	calls    map[string]int
	faults   []*fault
	stalled  bool
	closed   bool
	leaks    []string
	contexts map[driver.Context]*scope
	pieces   map[driver.Pointer]*piece
	host     map[uintptr]*piece
	spaces   map[driver.Pointer]*space
	physical map[driver.Physical]*physical
	streams  map[driver.Stream]*stream
	events   map[driver.Event]*event
	modules  map[driver.Module]*scope
	function map[driver.Function]*function
	graphs   map[driver.Graph]*graph
	nodes    map[driver.Node]*node
	execs    map[driver.Exec]*exec
}

// scope is a context.
type scope struct {
	handle  driver.Context
	ordinal int
	held    uint64 // bytes of device memory
	lost    *driver.Error
}

// fault is a failure that was ordered.
type fault struct {
	call string // "": any
	in   int    // calls
	code int
}

// New makes a driver.
func New(c Config) *Driver {
	d := &Driver{
		config: c, devices: c.Devices, current: map[int]driver.Context{}, next: 0x1000, random: rand.New(rand.NewPCG(c.Seed, 1)),
		calls: map[string]int{}, contexts: map[driver.Context]*scope{}, pieces: map[driver.Pointer]*piece{}, host: map[uintptr]*piece{},
		spaces: map[driver.Pointer]*space{}, physical: map[driver.Physical]*physical{}, streams: map[driver.Stream]*stream{},
		events: map[driver.Event]*event{}, modules: map[driver.Module]*scope{}, function: map[driver.Function]*function{},
		graphs: map[driver.Graph]*graph{}, nodes: map[driver.Node]*node{}, execs: map[driver.Exec]*exec{},
	}
	d.idle = sync.NewCond(&d.mu)
	if d.devices == nil && !c.None {
		d.devices = []Profile{Hopper()}
	}
	return d
}

// Fail makes a call fail with a code: the n-th from now on (1: the next) of a method of
// driver.Driver, or of any if the name is empty. "Kernel" names the runs of kernels, in
// which every code loses the context, as those do everywhere for which
// [driver.Error.Fatal] holds.
func (d *Driver) Fail(call string, n, code int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.faults = append(d.faults, &fault{call, n, code})
}

// Calls returns how often a method was called.
func (d *Driver) Calls(call string) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.calls[call]
}

// Stall makes all work wait until Stall(false), as if a kernel did not end.
func (d *Driver) Stall(yes bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.stalled = yes
	d.idle.Broadcast()
}

// texts are what the driver calls codes.
var texts = map[int][2]string{
	driver.InvalidValue:          {"CUDA_ERROR_INVALID_VALUE", "invalid argument"},
	driver.OutOfMemory:           {"CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
	driver.DeviceUnavailable:     {"CUDA_ERROR_DEVICE_UNAVAILABLE", "CUDA-capable device(s) is/are busy or unavailable"},
	driver.NoDevice:              {"CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
	driver.InvalidDevice:         {"CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
	driver.InvalidImage:          {"CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"},
	driver.InvalidContext:        {"CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
	driver.NoBinaryForGPU:        {"CUDA_ERROR_NO_BINARY_FOR_GPU", "no kernel image is available for execution on the device"},
	driver.Uncorrectable:         {"CUDA_ERROR_ECC_UNCORRECTABLE", "uncorrectable ECC error encountered"},
	driver.InvalidPTX:            {"CUDA_ERROR_INVALID_PTX", "a PTX JIT compilation failed"},
	driver.UnsupportedPTXVersion: {"CUDA_ERROR_UNSUPPORTED_PTX_VERSION", "the provided PTX was compiled with an unsupported toolchain."},
	driver.InvalidHandle:         {"CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
	driver.NotFound:              {"CUDA_ERROR_NOT_FOUND", "named symbol not found"},
	driver.NotReady:              {"CUDA_ERROR_NOT_READY", "device not ready"},
	driver.IllegalAddress:        {"CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
	driver.LaunchOutOfResources:  {"CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", "too many resources requested for launch"},
	driver.LaunchTimeout:         {"CUDA_ERROR_LAUNCH_TIMEOUT", "the launch timed out and was terminated"},
	driver.ContextDestroyed:      {"CUDA_ERROR_CONTEXT_IS_DESTROYED", "context is destroyed"},
	driver.LaunchFailed:          {"CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
	driver.CooperativeTooLarge:   {"CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE", "too many blocks in cooperative launch"},
	driver.NotSupported:          {"CUDA_ERROR_NOT_SUPPORTED", "operation not supported"},
	driver.Unknown:               {"CUDA_ERROR_UNKNOWN", "unknown error"},
}

// Error makes an error of a code.
func Error(call string, code int) *driver.Error {
	t, ok := texts[code]
	if !ok {
		t = [2]string{fmt.Sprintf("CUDA_ERROR_%d", code), "no description"}
	}
	return &driver.Error{Code: code, Name: t[0], Text: t[1], Call: call}
}

// wrong makes an error that says what the driver would not.
func wrong(call string, code int, format string, a ...any) *driver.Error {
	e := Error(call, code)
	e.Text += ": " + fmt.Sprintf(format, a...)
	return e
}

// counted counts a call and returns the failure that was ordered for it.
func (d *Driver) counted(call string) *driver.Error {
	d.calls[call]++
	for i, f := range d.faults {
		if f.call != "" && f.call != call {
			continue
		}
		if f.in--; f.in == 0 {
			d.faults = append(d.faults[:i:i], d.faults[i+1:]...)
			return Error(call, f.code)
		}
	}
	return nil
}

// outside begins a call that needs no context. The lock is held.
func (d *Driver) outside(call string) error {
	if d.closed {
		return wrong(call, driver.Deinitialized, "the driver is closed")
	}
	if e := d.counted(call); e != nil {
		return e
	}
	return nil
}

// inside makes a call in the current context.
func (d *Driver) inside(call string, f func(c *scope) error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	c, err := d.enter(call)
	if err != nil {
		return err
	}
	return f(c)
}

// returning makes a call that gives something back. In a lost context it is given back as
// well, though the call fails.
func (d *Driver) returning(call string, f func(c *scope) error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	c, err := d.enter(call)
	if c == nil || err != nil && c.lost == nil {
		return err
	}
	if problem := f(c); err == nil {
		err = problem
	}
	return err
}

// enter begins a call that needs a context.
func (d *Driver) enter(call string) (*scope, error) {
	if d.closed {
		return nil, wrong(call, driver.Deinitialized, "the driver is closed")
	}
	c := d.contexts[d.current[thread()]]
	if c == nil {
		return nil, wrong(call, driver.InvalidContext, "none is current on this thread")
	}
	e := d.counted(call)
	switch {
	case c.lost != nil:
		return c, c.failure(call)
	case e == nil:
		return c, nil
	case e.Fatal():
		c.lost = e
	}
	return c, e
}

// failure is what calls in a lost context return.
func (c *scope) failure(call string) error {
	e := *c.lost
	e.Call = call
	return &e
}

// handle makes a new one.
func (d *Driver) handle() uintptr {
	d.next += 8
	return d.next
}
