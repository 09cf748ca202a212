package gpu

import (
	"fmt"
	"maps"
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
// follow. Whoever asks for a kernel that is being compiled waits for it; different
// kernels are compiled side by side where the driver can.
func (k *kernels) get(want kernel) (*pipeline, error) {
	bindings := make([]driver.BindingKind, 0, 1+len(want.reads))
	bindings = append(bindings, driver.UniformBlock)
	for _, read := range want.reads {
		kind := driver.StorageReadWrite
		if read {
			kind = driver.StorageRead
		}
		bindings = append(bindings, kind)
	}
	return k.compiled(want, bindings)
}

// compiled returns the pipeline of a kernel with the given bindings. Kernels are told
// apart by their text; their names are there to find that again without expanding it.
func (k *kernels) compiled(want kernel, bindings []driver.BindingKind) (*pipeline, error) {
	kinds := make([]byte, len(bindings))
	for i, b := range bindings {
		kinds[i] = byte(b)
	}
	name := want.String() + string(kinds)
	k.mu.Lock()
	m := k.named[name]
	k.mu.Unlock()
	if m != nil {
		<-m.done
		return m.p, m.err
	}
	source, err := k.expand(want.shader, want.values)
	if err != nil {
		return nil, fmt.Errorf("kernel %v: %w: %w", want, err, pass.ErrInvalid)
	}
	text := want.entry + string(kinds) + source
	k.mu.Lock()
	m = k.made[text]
	if m != nil {
		k.named[name] = m
		k.mu.Unlock()
		<-m.done
		return m.p, m.err
	}
	m = &making{done: make(chan struct{})}
	k.made[text], k.named[name] = m, m
	k.mu.Unlock()

	m.p, m.err = k.compile(want, source, bindings)
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
