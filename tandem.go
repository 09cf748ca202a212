// Package tandem opens devices for neural compute by name.
//
//	dev, err := tandem.Open(ctx, "cuda", "gpu", "cpu")
//	defer dev.Close()
//
// What a device does is in package pass; networks that run on one are in the packages
// under model. Programs that want one backend only, or settings, open it themselves:
// cuda.Open, gpu.Open and cpu.Open return the same [pass.Device].
package tandem

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tandem-gpu/tandem/cuda"
	"github.com/tandem-gpu/tandem/gpu"
	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/pass/cpu"
)

// A backend is one of the names that Open knows.
type backend struct {
	name string
	open func(context.Context) (pass.Device, error)
}

// backends in the order of Devices. TANDEM_ADAPTER and its like apply to "gpu", and
// TANDEM_CUDA_DEVICE to "cuda"; what "software" says about the adapter wins over them.
var backends = []backend{
	{"cuda", func(ctx context.Context) (pass.Device, error) { return cuda.Open(ctx, cuda.Config{}) }},
	{"gpu", func(ctx context.Context) (pass.Device, error) { return gpu.Open(ctx, gpu.Config{}) }},
	{"software", func(ctx context.Context) (pass.Device, error) {
		return gpu.Open(ctx, gpu.Config{Adapter: "software"})
	}},
	{"cpu", func(context.Context) (pass.Device, error) { return cpu.Open(cpu.Config{}) }},
}

var errNoContext = fmt.Errorf("want a context, given nil: %w", pass.ErrInvalid)

// Open tries devices in the order given and returns the first that opens:
//
//	"cuda"      NVIDIA GPUs through the CUDA driver; package cuda says which one is taken
//	"gpu"       hardware GPUs through WebGPU; package gpu says which one is taken
//	"software"  WebGPU on the CPU, through a software adapter; for tests
//	"cpu"       plain Go; works everywhere
//
// No other device is ever used. When all fail, the error wraps [pass.ErrNoDevice] and
// has the reason of each, and wraps those reasons too. Names that are unknown, or none
// at all, are ErrInvalid before anything is opened. Open goes no further in the list
// when ctx ends, or when a device fails with ErrInvalid: then an environment variable,
// such as TANDEM_ADAPTER, has a value that names nothing here.
func Open(ctx context.Context, names ...string) (pass.Device, error) {
	return open(ctx, backends, names)
}

func open(ctx context.Context, known []backend, names []string) (pass.Device, error) {
	if ctx == nil {
		return nil, fmt.Errorf("tandem: open: %w", errNoContext)
	}
	var chosen []backend
	for _, name := range names {
		i := slices.IndexFunc(known, func(b backend) bool { return b.name == name })
		if i < 0 {
			return nil, fmt.Errorf("tandem: open: no device is called %q; the names are %s: %w", name, join(known), pass.ErrInvalid)
		}
		chosen = append(chosen, known[i])
	}
	if chosen == nil {
		return nil, fmt.Errorf(`tandem: open: no device named; list those that may be used, in order, such as "gpu", "cpu"; `+
			"the names are %s: %w", join(known), pass.ErrInvalid)
	}
	var failed openError
	for _, b := range chosen {
		if ctx.Err() != nil {
			return nil, fmt.Errorf("tandem: open: %w", context.Cause(ctx))
		}
		dev, err := b.open(ctx)
		if err == nil {
			return dev, nil
		}
		if ctx.Err() != nil || errors.Is(err, pass.ErrInvalid) {
			return nil, fmt.Errorf("tandem: open: %w", err)
		}
		failed = append(failed, reason{b.name, err})
	}
	return nil, failed
}

func join(list []backend) string {
	var names []string
	for _, b := range list {
		names = append(names, b.name)
	}
	return strings.Join(names, ", ")
}

type reason struct {
	name string
	err  error
}

// An openError holds why each device of a list failed.
type openError []reason

// Error has a line for each device, if there are several.
func (e openError) Error() string {
	separator := " "
	if len(e) > 1 {
		separator = "\n\t"
	}
	text := "tandem: no device:"
	for _, r := range e {
		text += separator + r.name + ": " + withoutPrefix(r.err, r.name)
	}
	return text
}

// Unwrap makes the causes known to errors.Is.
func (e openError) Unwrap() []error {
	all := []error{pass.ErrNoDevice}
	for _, r := range e {
		all = append(all, r.err)
	}
	return all
}
