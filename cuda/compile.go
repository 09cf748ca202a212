package cuda

import (
	"context"
	"fmt"
	"reflect"
	"unsafe"

	"github.com/tandem-gpu/tandem/cuda/internal/driver"
	"github.com/tandem-gpu/tandem/cuda/kernels"
	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/pass/backend"
)

// A compiler turns the ops of one plan into launches. The file of each op family has its
// method: gemm in linear.go, conv1d in conv1d.go, and so on. Addresses in the workspace are
// provisional until the last op is compiled; see layout.go. Should the workspace move, the
// plan is compiled anew.
type compiler struct {
	d        *device
	plan     *backend.Plan
	ctx      context.Context // of the call that compiles
	index    int             // of the step being compiled
	step     pass.Checked
	fast     bool           // the math of the step: Fast, and it does not demand Exact
	scratch  []backend.Temp // memory that lives for one step, or from there to a later one
	launches []launch
	constant map[string]*memory // fixed words, by their bytes
	held     []*memory          // owned by the program
	spare    []*call            // that are done with
	kept     store
	watched  bool                 // a launch may set the status word
	chosen   map[string][2]string // what choose said, and why
	halves   []preparedRows       // that are there at this point of the recording
	users    [][]int              // steps that use a buffer
	used     []bool               // temporaries of which F32 elements are used
	tiles    map[tileShape]tileDecision
	convs    map[convAsked]convDecision
	maps     map[mapKey]tensorMap
}

// A launch is one run of a kernel as a family describes it.
type launch struct {
	*kernel
	label   string // the op, for Dump and error messages
	why     reason // how it came to this kernel, for Dump
	grid    [3]uint32
	shared  int
	args    []byte
	maps    []mapUse // among them, until they are made
	touches []touch
	cost    pass.Cost
	step    int
}

// A touch is a range of memory that a launch reads, or writes. Ranges order the launches:
// those that touch nothing in common, or only read it, may run side by side.
type touch struct {
	from, to driver.Pointer
	write    bool
}

// A region is scratch memory, or of a param.
type region struct {
	at           driver.Pointer
	bytes        int
	step, number int // if it is scratch: where it was taken, and which it is
}

// temporary returns scratch memory, aligned to 256 bytes, whose contents are undefined.
// It lives as long as the step, unless a later one keeps it.
func (c *compiler) temporary(bytes int) region {
	k := len(c.scratch)
	c.scratch = append(c.scratch, backend.Temp{Len: (bytes + 3) / 4, First: c.index, Last: c.index})
	return region{at: provisionalAt(firstInRange + len(c.plan.Temps) + k), bytes: bytes, step: c.index, number: k}
}

// keep makes scratch of an earlier step live as long as the step being compiled.
func (c *compiler) keep(r region) {
	if r.bytes > 0 {
		c.scratch[r.number].Last = c.index
	}
}

// at returns the address of an element of a buffer of the plan.
func (c *compiler) at(b pass.Buffer, element int) driver.Pointer {
	place := c.plan.Place(b)
	if place.State {
		return c.plan.States[place.Index].(*memory).at + driver.Pointer(4*element)
	}
	c.used[place.Index] = true
	return provisionalAt(firstInRange+place.Index) + driver.Pointer(4*element)
}

// words returns memory of the program with the given contents.
func (c *compiler) words(w []uint32) (region, error) {
	key := string(unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(w))), 4*len(w)))
	m, ok := c.constant[key]
	if !ok {
		var err error
		if m, err = c.d.upload(c.ctx, "constants", []byte(key)); err != nil {
			return region{}, err
		}
		c.constant[key] = m
		c.held = append(c.held, m)
	}
	return region{at: m.at, bytes: 4 * len(w)}, nil
}

// A call is a launch under construction. Its methods note what the kernel touches and
// return parameters for it; the first mistake sticks and comes out of run.
type call struct {
	c    *compiler
	l    launch
	err  error
	room [6]touch // for those of most kernels
}

// call begins a launch of the kernel with the given name in the table.
func (c *compiler) call(name string) *call {
	var k *call
	if n := len(c.spare); n > 0 {
		k, c.spare = c.spare[n-1], c.spare[:n-1]
	} else {
		k = new(call)
	}
	*k = call{c: c, l: launch{label: c.step.Op.Name(), step: c.index}}
	k.l.touches = k.room[:0]
	if k.l.kernel, k.err = c.d.kernels.get(name); k.err != nil {
		k.l.kernel = &kernel{entry: &kernels.Entry{Name: name}}
	}
	return k
}

// has reports whether the device has a kernel in the images that were loaded for it.
func (c *compiler) has(name string) bool { return c.d.kernels.has(name) }

// because says why this kernel was chosen, for Dump.
func (k *call) because(format string, a ...any) *call {
	k.l.why = reason{format, a}
	return k
}

// says is because for what has been put into words.
func (k *call) says(why string) *call {
	k.l.why = reason{format: why}
	return k
}

// A reason is put into words only for who asks.
type reason struct {
	format string
	args   []any // nil: it is in words
}

func (r reason) String() string {
	if r.args == nil {
		return r.format
	}
	return fmt.Sprintf(r.format, r.args...)
}

func (k *call) touch(at driver.Pointer, bytes int, write bool) {
	if bytes > 0 {
		k.l.touches = append(k.l.touches, touch{at, at + driver.Pointer(bytes), write})
	}
}

// span notes the use of a view and returns where its first element is; 0 for the zero
// view.
func (k *call) span(v pass.View, batch, rows, cols int, write bool) driver.Pointer {
	if v.IsZero() {
		return 0
	}
	first, end := pass.Arg{View: v, Batch: batch, Rows: rows, Cols: cols}.Range()
	at := k.c.at(v.Buffer, first)
	k.touch(at, 4*(end-first), write)
	return at
}

// read and write return the parameter for a view with explicit strides of batch × rows ×
// cols F32 elements. What is written may be read as well.
func (k *call) read(v pass.View, batch, rows, cols int) kernels.View {
	return kernels.View{P: kernels.F32(k.span(v, batch, rows, cols, false)), Row: int64(v.RowStride), Batch: int64(v.BatchStride)}
}

func (k *call) write(v pass.View, batch, rows, cols int) kernels.View {
	return kernels.View{P: kernels.F32(k.span(v, batch, rows, cols, true)), Row: int64(v.RowStride), Batch: int64(v.BatchStride)}
}

// readWords and writeWords are read and write for elements of any type.
func (k *call) readWords(v pass.View, batch, rows, cols int) kernels.Words {
	return kernels.Words{P: kernels.U32(k.span(v, batch, rows, cols, false)), Row: int64(v.RowStride), Batch: int64(v.BatchStride)}
}

func (k *call) writeWords(v pass.View, batch, rows, cols int) kernels.Words {
	return kernels.Words{P: kernels.U32(k.span(v, batch, rows, cols, true)), Row: int64(v.RowStride), Batch: int64(v.BatchStride)}
}

// from and to note that scratch, or memory of a cache, is read or written, and return its
// address.
func (k *call) from(r region) driver.Pointer { k.touch(r.at, r.bytes, false); return r.at }
func (k *call) to(r region) driver.Pointer   { k.touch(r.at, r.bytes, true); return r.at }

// index returns the parameter for an index that leads to count rows of limit.
func (k *call) index(x pass.Index, batch, count, limit int) kernels.Index {
	i := kernels.Index{Added: uint32(x.Addend())}
	if _, ok := x.Const(); ok {
		return i
	}
	v, each := x.View()
	n := 1
	if each {
		i.Each, n = 1, batch
	}
	i.P = kernels.U32(k.span(v, 1, 1, n, false))
	i.Status = k.status()
	i.Valid = uint32(min(max(limit-count-x.Addend()+1, 0), 1<<32-1))
	return i
}

// items returns the parameter for a number of each item, usual at most, which is also
// what the zero Items stands for.
func (k *call) items(x pass.Items, batch, usual int) kernels.Items {
	i := kernels.Items{Usual: uint32(usual)}
	if v := x.View(); !v.IsZero() {
		i.P = kernels.U32(k.span(v, 1, 1, batch, false))
		i.Status = k.status()
		return i
	}
	fixed := x.Fixed()
	if fixed == nil {
		return i
	}
	words := make([]uint32, len(fixed))
	for j, n := range fixed {
		words[j] = uint32(n)
	}
	r, err := k.c.words(words)
	if err != nil && k.err == nil {
		k.err = err
	}
	i.P = kernels.U32(r.at)
	return i
}

// status returns where the kernel sets bits, with an atomic or, when data on the device
// are beyond what the op allows. The run then fails.
func (k *call) status() kernels.U32 {
	k.c.watched = true
	return kernels.U32(provisionalAt(headRange) + headStatus)
}

// epilogue returns the parameter for an epilogue.
func epilogue(e pass.Epilogue) kernels.Epilogue {
	return kernels.Epilogue{Kind: uint32(e.Kind()), Alpha: e.Alpha()}
}

// A grid is the blocks of a launch in x, y and z. The x dimension takes 2³¹ − 1, the
// others 65,535: what may grow lies in x.
type grid [3]int

// launchSeconds is what a launch takes however little it does.
const launchSeconds = 1e-6

// run ends a call: it checks the parameters against the table and records the launch. A
// grid without blocks records nothing.
func run[A any](k *call, args A, g grid, shared int, cost pass.Cost) error {
	c := k.c
	if k.err != nil {
		return k.err
	}
	e := k.l.entry
	if got, want := reflect.TypeFor[A](), reflect.TypeOf(e.Args); got != want {
		return fmt.Errorf("kernel %s takes %v, given %v: %w", e.Name, want, got, pass.ErrInvalid)
	}
	if e.Shared >= 0 && shared != e.Shared {
		return fmt.Errorf("kernel %s takes %d bytes of shared memory, given %d: %w", e.Name, e.Shared, shared, pass.ErrInvalid)
	}
	if most := c.d.attributes.sharedMemory; shared > most {
		return fmt.Errorf("kernel %s: want %d bytes of shared memory, the device has %d: %w", e.Name, shared, most, pass.ErrUnsupported)
	}
	for i, n := range g {
		most := 65535
		if i == 0 {
			most = 1<<31 - 1
		}
		if n < 0 || n > most {
			return fmt.Errorf("kernel %s: grid %v: want at most %d blocks in dimension %d: %w", e.Name, g, most, i, pass.ErrUnsupported)
		}
		if n == 0 {
			return nil
		}
		k.l.grid[i] = uint32(n)
	}
	c.spare = append(c.spare, k)
	k.l.shared = shared
	k.l.args = c.kept.bytes(unsafe.Slice((*byte)(unsafe.Pointer(&args)), unsafe.Sizeof(args)))
	k.l.touches = c.kept.ranges(k.l.touches)
	cost.Bytes = max(cost.Bytes, launchSeconds*c.d.Rate().Bytes)
	k.l.cost = cost
	c.launches = append(c.launches, k.l)
	return nil
}

// A store is memory for what launches keep, many of them in one piece.
type store struct {
	args    []byte
	touches []touch
}

// bytes returns a copy, aligned as parameters of kernels may have to be.
func (s *store) bytes(b []byte) []byte {
	const align, piece = 64, 64 << 10
	from := up(len(s.args), align)
	if from+len(b) > cap(s.args) {
		s.args, from = make([]byte, 0, max(len(b), piece)), 0
	}
	s.args = s.args[:from+len(b)]
	copy(s.args[from:], b)
	return s.args[from : from+len(b) : from+len(b)]
}

func (s *store) ranges(t []touch) []touch {
	if len(s.touches)+len(t) > cap(s.touches) {
		s.touches = make([]touch, 0, max(len(t), 1<<10))
	}
	from := len(s.touches)
	s.touches = append(s.touches, t...)
	return s.touches[from:len(s.touches):len(s.touches)]
}

// compile turns all steps into launches.
func (c *compiler) compile() error {
	c.used = make([]bool, len(c.plan.Temps))
	c.launches = make([]launch, 0, len(c.plan.Steps)+len(c.plan.Steps)/4+4)
	if err := c.measure(); err != nil {
		return err
	}
	for i, step := range c.plan.Steps {
		if err := context.Cause(c.ctx); err != nil {
			return err
		}
		c.index, c.step = i, step
		c.forget(step)
		c.fast = c.plan.Math == pass.Fast && !demandsExact(step.Op)
		if err := c.op(step); err != nil {
			return fmt.Errorf("op %d: %s: %w", i, step.Op.Name(), err)
		}
	}
	return checkRanges(len(c.plan.Temps) + len(c.scratch))
}

// demandsExact reports whether an op allows no rounded operands in a Fast recording.
func demandsExact(op pass.Op) bool {
	switch op := op.(type) {
	case pass.Gemm:
		return op.Exact
	case pass.Conv1D:
		return op.Exact
	case pass.Conv2D:
		return op.Exact
	case pass.Attention:
		return op.Exact
	case pass.Attend:
		return op.Exact
	case pass.LSTM:
		return op.Exact
	}
	return false
}
