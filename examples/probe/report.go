package main

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"github.com/tandem-gpu/tandem"
	"github.com/tandem-gpu/tandem/cuda"
	"github.com/tandem-gpu/tandem/examples/internal/device"
	"github.com/tandem-gpu/tandem/gpu"
	"github.com/tandem-gpu/tandem/pass"
)

// A Report is what --json prints without --device.
type Report struct {
	Version     string    `json:"version"`     // of the tandem module; "(devel)" in its own tree
	Go          string    `json:"go"`          // version of the Go toolchain
	Platform    string    `json:"platform"`    // "linux/amd64"
	Cgo         bool      `json:"cgo"`         // whether the program was built with cgo, which the gpu backend needs
	Devices     []Device  `json:"devices"`     // every device, and every backend without one
	Vulkan      Search    `json:"vulkan"`      // where Vulkan's loader and drivers were looked for
	Modules     []Module  `json:"modules"`     // kernel drivers of GPUs; Linux only
	Environment []Setting `json:"environment"` // the variables that are read, set or not
}

// A Device is a device that was found, or a backend that has none.
type Device struct {
	Device   string    `json:"device,omitempty"`    // its name for --device: "cuda:0"; absent: the backend has no device
	Backend  string    `json:"backend"`             // "cuda", "gpu", "software" or "cpu", as for --device
	Adapter  *int      `json:"adapter,omitempty"`   // number of a GPU adapter, as for TANDEM_ADAPTER
	Name     string    `json:"name,omitempty"`      // as its driver gives it; absent: the backend has no device
	Kind     string    `json:"kind,omitempty"`      // "discrete", "integrated", "virtual", "unknown", "software" or "cpu"
	APIs     []string  `json:"apis,omitempty"`      // that reach it, the preferred one first
	Provider string    `json:"provider,omitempty"`  // library behind the API
	Driver   string    `json:"driver,omitempty"`    // the driver's own description
	Vendor   string    `json:"vendor,omitempty"`    // the vendor's name
	VendorID string    `json:"vendor_id,omitempty"` // hexadecimal: PCI vendor, or a Khronos number above ffff
	DeviceID string    `json:"device_id,omitempty"` // hexadecimal: PCI device
	Memory   int64     `json:"memory"`              // bytes; 0: unknown
	Threads  int       `json:"threads,omitempty"`   // of a CPU device
	CUDA     *CUDA     `json:"cuda,omitempty"`      // what only a "cuda" device has
	Limits   []Limit   `json:"limits,omitempty"`    // bounds for one step of work
	Features []string  `json:"features,omitempty"`  // abilities beyond the standard's
	Variants []Variant `json:"variants,omitempty"`  // fast ways to compute, used or not
	Usable   bool      `json:"usable"`              // whether it was opened just now
	OpenMS   float64   `json:"open_ms,omitempty"`   // how long that took, in milliseconds
	Reason   string    `json:"reason,omitempty"`    // why it is not usable; else its place in the order of choice
}

// CUDA is what there is to say about an NVIDIA GPU behind the cuda backend.
type CUDA struct {
	Number     int    `json:"number"`            // as for TANDEM_CUDA_DEVICE
	UUID       string `json:"uuid"`              // "GPU-…", as nvidia-smi prints it
	Capability string `json:"capability"`        // "9.0"
	SMs        int    `json:"multiprocessors"`   // that the driver lets be used
	Library    string `json:"library"`           // path of the driver's library
	Kernels    string `json:"kernels,omitempty"` // images that kernels are taken from: "sm_90a"; absent: it was not opened
}

// A Limit is a named bound.
type Limit struct {
	Name  string `json:"name"`
	Value int64  `json:"value"`
}

// A Variant is a fast way to compute that a device may or may not use.
type Variant struct {
	Name   string `json:"name"`
	Used   bool   `json:"used"`
	Reason string `json:"reason"` // evidence for the decision
}

// A Setting is an environment variable.
type Setting struct {
	Name    string `json:"name"`
	Meaning string `json:"meaning"`
	Value   string `json:"value"` // empty: not set
}

// A source is a device to report on.
type source struct {
	tandem.Candidate
	open func(context.Context) (pass.Device, error)
}

// devicesHere lists the devices of this machine. Listing is bounded like opening one.
func devicesHere(ctx context.Context, timeout time.Duration) []source {
	listing, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	var list []source
	for _, c := range tandem.Devices(listing) {
		list = append(list, source{c, func(ctx context.Context) (pass.Device, error) {
			ctx, cancel := context.WithTimeout(ctx, timeout)
			defer cancel()
			return c.Open(ctx)
		}})
	}
	return list
}

// collect opens each device that should be usable, and reports on all.
func collect(ctx context.Context, list []source) *Report {
	r := &Report{Devices: []Device{}}
	for _, s := range list {
		r.Devices = append(r.Devices, s.report(ctx))
	}
	return r
}

func (s source) report(ctx context.Context) Device {
	d := Device{Device: device.Name(s.Candidate), Backend: s.Backend, Name: s.Name, Kind: s.Kind, Driver: s.Driver, Reason: s.Reason}
	if s.API != "" {
		d.APIs = strings.Fields(s.API)
	}
	if g := s.GPU; g != nil {
		d.Memory = g.Memory
		d.CUDA = &CUDA{
			Number: g.Ordinal, UUID: g.UUID, Capability: fmt.Sprintf("%d.%d", g.Capability/10, g.Capability%10),
			SMs: g.SMs, Library: g.Library,
		}
	}
	if a := s.Adapter; a != nil {
		d.Adapter = &a.Index
		d.Vendor, d.VendorID, d.DeviceID = a.Vendor, fmt.Sprintf("%04x", a.VendorID), fmt.Sprintf("%04x", a.DeviceID)
		d.Features, d.Reason = a.Features, a.Reason
		if s.Backend == "software" && s.Usable {
			d.Reason = "taken only when asked for"
		}
		d.Limits = offered(a.Limits)
	}
	if !s.Usable {
		return d
	}
	start := time.Now()
	dev, err := s.open(ctx)
	if err != nil {
		d.Reason = device.Line(err)
		return d
	}
	d.Usable, d.OpenMS = true, milliseconds(time.Since(start))
	d.take(dev.Info())
	if err := dev.Close(); err != nil {
		d.Usable, d.Reason = false, device.Line(err)
	}
	return d
}

// offered returns the limits of an adapter, under the names that an open device gives
// them.
func offered(l gpu.Limits) []Limit {
	return []Limit{
		{"buffer bytes", l.BufferSize},
		{"binding bytes", l.BindingSize},
		{"storage bindings", int64(l.StorageBuffers)},
		{"workgroups", int64(l.Workgroups)},
		{"invocations", int64(l.Invocations)},
		{"shared memory bytes", int64(l.SharedMemory)},
	}
}

// take copies what only an open device knows.
func (d *Device) take(info pass.Info) {
	d.Provider, d.Memory, d.Threads = info.Provider, info.Memory, info.Threads
	if info.Limits != nil {
		d.Limits = nil
	}
	for _, l := range info.Limits {
		d.Limits = append(d.Limits, Limit(l))
	}
	for _, v := range info.Variants {
		if d.CUDA != nil && v.Name == "kernels" {
			d.CUDA.Kernels = v.Reason
		}
		d.Variants = append(d.Variants, Variant(v))
	}
}

func (r *Report) usable() bool {
	for _, d := range r.Devices {
		if d.Usable {
			return true
		}
	}
	return false
}

// describeHost adds what is not about one device. It comes after the devices, when the
// libraries are loaded.
func (r *Report) describeHost() {
	r.Go, r.Platform = runtime.Version(), runtime.GOOS+"/"+runtime.GOARCH
	r.Version = "unknown"
	if info, ok := debug.ReadBuildInfo(); ok {
		r.Version = moduleVersion(info)
		for _, s := range info.Settings {
			if s.Key == "CGO_ENABLED" {
				r.Cgo = s.Value == "1"
			}
		}
	}
	r.Vulkan = searchVulkan(runtime.GOOS, os.Getenv)
	r.Modules = modules("/sys/module", "/proc/sys/kernel/osrelease")
	for _, v := range gpu.Environment() {
		r.Environment = append(r.Environment, Setting{v.Name, v.Meaning, v.Value})
	}
	for _, v := range cuda.Environment() {
		r.Environment = append(r.Environment, Setting{v.Name, v.Meaning, v.Value})
	}
	for _, v := range loaderVariables(runtime.GOOS) {
		v.Value = os.Getenv(v.Name)
		r.Environment = append(r.Environment, v)
	}
}

// moduleVersion returns the version of tandem, which is the main module or one that it
// requires.
func moduleVersion(info *debug.BuildInfo) string {
	const path = "github.com/tandem-gpu/tandem"
	for _, m := range append(info.Deps, &info.Main) {
		if m.Path == path && m.Version != "" {
			return m.Version
		}
	}
	return "(devel)"
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
