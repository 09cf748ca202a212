package gpu

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/tandem-gpu/tandem/gpu/internal/driver"
	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/shaders"
)

// A pipeline is a kernel compiled for the device.
type pipeline struct {
	id     driver.PipelineID
	kernel kernel
	took   time.Duration // to compile
}

// kernels compiles kernels, each once, and keeps them as long as the device.
type kernels struct {
	drv    driver.Device
	expand func(shader string, v shaders.Values) (string, error)

	mu    sync.Mutex
	made  map[string]*making // by text
	named map[string]*making // by shader and constants
	took  time.Duration      // to compile all of them
}

// making is a pipeline that is, or is being, compiled.
type making struct {
	done chan struct{} // closed when p and err are set
	p    *pipeline
	err  error
}

func newKernels(drv driver.Device) *kernels {
	return &kernels{drv: drv, expand: shaders.Expand, made: map[string]*making{}, named: map[string]*making{}}
}

// get returns the pipeline of a kernel: @binding(0) is the uniform block, the operands
// follow, of which reads says whether they are only read. Whoever asks for a kernel that is
// being compiled waits for it; different kernels are compiled side by side where the driver
// can.
func (k *kernels) get(want kernel, reads ...bool) (*pipeline, error) {
	var room [16]driver.BindingKind
	bindings := append(room[:0], driver.UniformDynamic)
	for _, read := range reads {
		bindings = append(bindings, bindingKind(read))
	}
	return k.compiled(want, bindings)
}

// bindingKind returns how an operand is bound.
func bindingKind(read bool) driver.BindingKind {
	if read {
		return driver.StorageRead
	}
	return driver.StorageReadWrite
}

// compiled returns the pipeline of a kernel with the given bindings. Kernels are told
// apart by their text; their names are there to find that again without expanding it.
func (k *kernels) compiled(want kernel, bindings []driver.BindingKind) (*pipeline, error) {
	var room [512]byte
	name := want.key(room[:0], bindings)
	k.mu.Lock()
	m := k.named[string(name)]
	k.mu.Unlock()
	if m != nil {
		<-m.done
		return m.p, m.err
	}
	source, err := k.expand(want.shader, want.values)
	if err != nil {
		return nil, fmt.Errorf("kernel %v: %w: %w", want, err, pass.ErrInvalid)
	}
	text := string(appendKinds([]byte(want.entry), bindings)) + source
	k.mu.Lock()
	m = k.made[text]
	if m != nil {
		k.named[string(name)] = m
		k.mu.Unlock()
		<-m.done
		return m.p, m.err
	}
	m = &making{done: make(chan struct{})}
	k.made[text], k.named[string(name)] = m, m
	k.mu.Unlock()

	m.p, m.err = k.compile(want, source, slices.Clone(bindings))
	k.mu.Lock()
	if m.err == nil {
		k.took += m.p.took
	} else { // what failed for want of memory may work later
		maps.DeleteFunc(k.made, func(_ string, other *making) bool { return other == m })
		maps.DeleteFunc(k.named, func(_ string, other *making) bool { return other == m })
	}
	k.mu.Unlock()
	close(m.done)
	return m.p, m.err
}

func (k *kernels) compile(want kernel, source string, bindings []driver.BindingKind) (*pipeline, error) {
	start := time.Now()
	id, err := k.drv.CreatePipeline(driver.PipelineDesc{Label: want.shader, Source: source, Entry: want.entry, Bindings: bindings})
	if err != nil {
		return nil, fmt.Errorf("kernel %v: %w", want, &brief{err})
	}
	return &pipeline{id: id, kernel: want, took: time.Since(start)}, nil
}

// key appends what tells kernels apart before their text is known: shader, entry point,
// constants and bindings.
func (k kernel) key(to []byte, bindings []driver.BindingKind) []byte {
	to = append(append(append(append(to, k.shader...), 0), k.entry...), 0)
	names := make([]string, 0, 32)
	for name := range k.values {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		to = append(append(to, name...), 0)
		switch v := k.values[name].(type) {
		case int:
			to = strconv.AppendInt(append(to, 'i'), int64(v), 10)
		case bool:
			to = strconv.AppendBool(append(to, 'b'), v)
		case string:
			to = append(append(to, 's'), v...)
		default:
			to = fmt.Appendf(to, "%T %v", v, v) // which no shader takes
		}
		to = append(to, 0)
	}
	return appendKinds(to, bindings)
}

func appendKinds(to []byte, bindings []driver.BindingKind) []byte {
	for _, b := range bindings {
		to = append(to, byte(b))
	}
	return to
}

// String names the kernel for messages: shader, entry point and constants.
func (k kernel) String() string {
	return k.shader + "." + k.entry + strings.TrimPrefix(fmt.Sprint(map[string]any(k.values)), "map")
}

// brief is an error cut to its first lines: a compiler's message may quote the source.
type brief struct{ error }

const briefLength = 600

// Error implements error.
func (b *brief) Error() string {
	text := b.error.Error()
	if len(text) > briefLength {
		text = text[:briefLength] + " …"
	}
	return text
}

// Unwrap returns the error itself.
func (b *brief) Unwrap() error { return b.error }

// count returns how many kernels were compiled, and how long that took.
func (k *kernels) count() (n int, took time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.made), k.took
}

// free destroys all pipelines. Nobody is compiling.
func (k *kernels) free() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, m := range k.made {
		if m.p != nil {
			k.drv.DestroyPipeline(m.p.id)
		}
	}
	clear(k.made)
	clear(k.named)
}
