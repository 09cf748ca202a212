package tandem

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/tandem-gpu/tandem/cuda"
	"github.com/tandem-gpu/tandem/gpu"
	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/pass/cpu"
)

// A Candidate is a device that is there, or a backend that has none.
type Candidate struct {
	Backend string // the name in Open that leads to it: "cuda", "gpu", "software" or "cpu"
	Name    string // of the device, as its driver gives it; empty: the backend has no device
	Kind    string // "discrete", "integrated", "virtual", "unknown", "software" or "cpu"
	API     string // what it is reached through: "cuda", "vulkan", "metal", "d3d12", "go"
	Driver  string // the driver's own description; empty: unknown
	Usable  bool   // whether Open would take it, if it is asked for its backend
	Reason  string // why it is not usable, in one line
	// Adapter is all that is known of a "gpu" or "software" device; nil for others.
	Adapter *gpu.Adapter
	// GPU is all that is known of a "cuda" device; nil for others.
	GPU *cuda.GPU

	open func(context.Context) (pass.Device, error)
}

// Open opens this device and no other. It fails with [pass.ErrNoDevice] if the device
// is not usable or has gone since it was listed.
func (c Candidate) Open(ctx context.Context) (pass.Device, error) {
	if ctx == nil {
		return nil, fmt.Errorf("tandem: open: %w", errNoContext)
	}
	if c.open == nil {
		return nil, fmt.Errorf("tandem: open %s: %s: %w", strings.TrimSpace(c.Backend+" "+c.Name), c.Reason, pass.ErrNoDevice)
	}
	dev, err := c.open(ctx)
	if err != nil {
		return nil, err
	}
	if name := dev.Info().Name; name != c.Name {
		dev.Close()
		return nil, fmt.Errorf("tandem: open %s %s: the devices have changed, %s is in its place: %w", c.Backend, c.Name, name, pass.ErrNoDevice)
	}
	return dev, nil
}

// Devices lists the devices of every backend, usable or not, in an order that stays
// the same as long as the devices do. A backend without a device has one entry with
// the reason. The CPU is always there and comes last. When ctx ends, that is the
// reason of what was not looked at.
func Devices(ctx context.Context) []Candidate {
	var gpus []cuda.GPU
	var adapters []gpu.Adapter
	err := errNoContext
	if ctx != nil {
		gpus, err = cuda.Devices(ctx, cuda.Config{})
	}
	list := cudaCandidates(gpus, err)
	err = errNoContext
	if ctx != nil {
		adapters, err = gpu.Adapters(ctx, gpu.Config{Software: true})
	}
	list = append(list, adapterCandidates(adapters, err)...)
	return append(list, cpuCandidate())
}

// cudaCandidates turns what cuda.Devices returned into candidates.
func cudaCandidates(gpus []cuda.GPU, err error) []Candidate {
	if err != nil {
		return []Candidate{{Backend: "cuda", Reason: withoutPrefix(err, "cuda")}}
	}
	var list []Candidate
	for _, g := range gpus {
		c := Candidate{
			Backend: "cuda", Name: g.Name, Kind: g.Kind, API: "cuda", Driver: g.Driver, Usable: g.Usable, GPU: &g,
		}
		if c.Usable {
			c.open = func(ctx context.Context) (pass.Device, error) { return cuda.Open(ctx, cuda.Config{Device: g.UUID}) }
		} else {
			c.Reason = g.Reason
		}
		list = append(list, c)
	}
	return list
}

// adapterCandidates turns what gpu.Adapters returned into candidates.
func adapterCandidates(adapters []gpu.Adapter, err error) []Candidate {
	if err != nil {
		return []Candidate{{Backend: "gpu", Reason: withoutPrefix(err, "gpu")}}
	}
	var list []Candidate
	for _, a := range adapters {
		c := Candidate{
			Backend: "gpu", Name: a.Name, Kind: a.Kind, API: strings.Join(a.APIs, " "), Driver: a.Driver,
			Usable: a.Rank > 0, Adapter: &a,
		}
		if a.Kind == "software" {
			c.Backend = "software"
		}
		if c.Usable {
			index := strconv.Itoa(a.Index)
			c.open = func(ctx context.Context) (pass.Device, error) { return gpu.Open(ctx, gpu.Config{Adapter: index}) }
		} else {
			c.Reason = a.Reason
		}
		list = append(list, c)
	}
	return list
}

func cpuCandidate() Candidate {
	dev, err := cpu.Open(cpu.Config{})
	if err != nil {
		return Candidate{Backend: "cpu", Reason: withoutPrefix(err, "cpu")}
	}
	defer dev.Close()
	info := dev.Info()
	return Candidate{
		Backend: "cpu", Name: info.Name, Kind: info.Kind, API: info.API, Driver: info.Driver, Usable: true,
		open: func(context.Context) (pass.Device, error) { return cpu.Open(cpu.Config{}) },
	}
}

// withoutPrefix is the text of an error in one line, without the name that is printed
// beside it.
func withoutPrefix(err error, name string) string {
	lines := strings.FieldsFunc(err.Error(), func(r rune) bool { return r == '\n' || r == '\t' })
	return strings.TrimPrefix(strings.Join(lines, "; "), name+": ")
}
