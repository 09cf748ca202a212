package driver

import (
	"fmt"
	"strings"

	"github.com/tandem-gpu/tandem/pass"
)

// Adapter describes one way to reach one device: the same card appears once for each
// API that offers it.
type Adapter struct {
	Index    int         // for Provider.Open
	Name     string      // the device's name, such as "NVIDIA H200"
	Vendor   string      // the vendor's name, or its number in hexadecimal if unknown
	VendorID uint32      // PCI vendor, or a Khronos number above 0xffff
	DeviceID uint32      // PCI device
	API      API         // how it is reached
	Type     AdapterType // what it is
	Driver   string      // the driver's own description, empty if it gives none
	Limits   Limits      // the most that Open can ask for
	Features Feature     // all that Open can ask for
	// MinSubgroup and MaxSubgroup bound the invocations of a subgroup; 0: unknown.
	MinSubgroup, MaxSubgroup uint32
	// Matrices are the shapes that FeatureSubgroupMatrix multiplies.
	Matrices []MatrixConfig
}

// MatrixConfig is one shape that matrix units multiply: a left matrix of M rows and K
// columns by a right one of K rows and N columns, added to a result of M rows and N
// columns.
type MatrixConfig struct {
	Component Component // of the factors
	Result    Component // of the result
	M, N, K   uint32
	// MinSubgroup and MaxSubgroup bound the subgroups that it works on.
	MinSubgroup, MaxSubgroup uint32
}

// String is the shape as "f16->f32 16x16x16".
func (c MatrixConfig) String() string {
	return fmt.Sprintf("%s->%s %dx%dx%d", c.Component, c.Result, c.M, c.N, c.K)
}

// Component is a type of matrix elements, as WGSL names it.
type Component string

// The component types.
const (
	F32 Component = "f32"
	F16 Component = "f16"
	U32 Component = "u32"
	I32 Component = "i32"
	U8  Component = "u8"
	I8  Component = "i8"
)

// API is a graphics API under WebGPU.
type API string

// The APIs.
const (
	Vulkan   API = "vulkan"
	Metal    API = "metal"
	D3D12    API = "d3d12"
	Browser  API = "browser"
	OtherAPI API = "other"
)

// AdapterType says what an adapter is.
type AdapterType string

// The adapter types. CPU is a software implementation.
const (
	Discrete   AdapterType = "discrete"
	Integrated AdapterType = "integrated"
	Virtual    AdapterType = "virtual"
	CPU        AdapterType = "cpu"
	Unknown    AdapterType = "unknown"
)

// Feature is a set of optional abilities.
type Feature uint32

// The features.
const (
	// FeatureTimestamps: the device is a working Timer.
	FeatureTimestamps Feature = 1 << iota
	// FeatureMappedStorage: MapRead and MapWrite go with every other usage. Worth
	// asking for where device memory is the host's.
	FeatureMappedStorage
	// FeatureF16: kernels may use the f16 type.
	FeatureF16
	// FeatureSubgroups: kernels may use subgroup operations.
	FeatureSubgroups
	// FeatureSubgroupSizes: kernels may fix their subgroups' size.
	FeatureSubgroupSizes
	// FeatureSubgroupMatrix: kernels may use matrix units, in the adapter's shapes. Ask
	// for FeatureSubgroups with it, and for FeatureF16 where a shape has that type.
	FeatureSubgroupMatrix

	allFeatures = FeatureSubgroupMatrix<<1 - 1
)

var featureNames = [...]string{"timestamps", "mapped-storage", "f16", "subgroups", "subgroup-sizes", "subgroup-matrix"}

// String lists the features by name.
func (f Feature) String() string {
	if f == 0 {
		return "none"
	}
	var names []string
	for i, name := range featureNames {
		if f&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	if rest := f &^ allFeatures; rest != 0 {
		names = append(names, fmt.Sprintf("unknown(%#x)", uint32(rest)))
	}
	return strings.Join(names, ",")
}

// DeviceConfig says how to open an adapter.
type DeviceConfig struct {
	// Label names the device in the library's own messages.
	Label string
	// Limits asks for particular limits; a zero field takes the adapter's. The device
	// enforces them, so low ones test what a lesser device would do.
	Limits Limits
	// Features are those needed; the device has no others.
	Features Feature
	// MemoryBudget bounds the bytes in live buffers; zero is no bound. Going over it is
	// pass.ErrOutOfMemory, before the system is asked.
	MemoryBudget uint64
}

// Limits bounds what a device accepts. Sizes are in bytes.
type Limits struct {
	MaxBufferSize          uint64 // of one buffer
	MaxStorageBindingSize  uint64 // of one storage binding
	MaxUniformBindingSize  uint64 // of one uniform binding
	MaxStorageBuffers      uint32 // storage bindings of a pipeline
	MaxUniformBuffers      uint32 // uniform bindings of a pipeline
	MaxDynamicUniforms     uint32 // of those, with a dynamic offset
	MaxBindings            uint32 // all bindings of a pipeline
	MaxBindGroups          uint32 // bind groups of a pipeline; the seam uses one
	MaxWorkgroups          uint32 // workgroups of a dispatch in each dimension
	MaxInvocations         uint32 // invocations of a workgroup
	MaxWorkgroupSizeX      uint32 // workgroup size in x
	MaxWorkgroupSizeY      uint32 // workgroup size in y
	MaxWorkgroupSizeZ      uint32 // workgroup size in z
	MaxWorkgroupStorage    uint32 // shared memory of a workgroup
	StorageOffsetAlignment uint32 // storage offsets are multiples of it; a lower bound
	UniformOffsetAlignment uint32 // uniform offsets are multiples of it; a lower bound
}

type limitField struct {
	name    string
	value   uint64
	set     func(uint64)
	minimum bool // the limit is a lower bound: less is better
}

func (l *Limits) fields() []limitField {
	wide := func(name string, p *uint64) limitField {
		return limitField{name: name, value: *p, set: func(v uint64) { *p = v }}
	}
	narrow := func(name string, p *uint32) limitField {
		return limitField{name: name, value: uint64(*p), set: func(v uint64) { *p = uint32(v) }}
	}
	align := func(name string, p *uint32) limitField {
		f := narrow(name, p)
		f.minimum = true
		return f
	}
	return []limitField{
		wide("MaxBufferSize", &l.MaxBufferSize),
		wide("MaxStorageBindingSize", &l.MaxStorageBindingSize),
		wide("MaxUniformBindingSize", &l.MaxUniformBindingSize),
		narrow("MaxStorageBuffers", &l.MaxStorageBuffers),
		narrow("MaxUniformBuffers", &l.MaxUniformBuffers),
		narrow("MaxDynamicUniforms", &l.MaxDynamicUniforms),
		narrow("MaxBindings", &l.MaxBindings),
		narrow("MaxBindGroups", &l.MaxBindGroups),
		narrow("MaxWorkgroups", &l.MaxWorkgroups),
		narrow("MaxInvocations", &l.MaxInvocations),
		narrow("MaxWorkgroupSizeX", &l.MaxWorkgroupSizeX),
		narrow("MaxWorkgroupSizeY", &l.MaxWorkgroupSizeY),
		narrow("MaxWorkgroupSizeZ", &l.MaxWorkgroupSizeZ),
		narrow("MaxWorkgroupStorage", &l.MaxWorkgroupStorage),
		align("StorageOffsetAlignment", &l.StorageOffsetAlignment),
		align("UniformOffsetAlignment", &l.UniformOffsetAlignment),
	}
}

// Override returns l with the fields of with that are not zero.
func (l Limits) Override(with Limits) Limits {
	fields := l.fields()
	for i, w := range with.fields() {
		if w.value != 0 {
			fields[i].set(w.value)
		}
	}
	return l
}

// Grant returns the limits and the features of a device opened on an adapter with cfg.
// What the adapter does not have is named, all of it, in an error that wraps
// pass.ErrUnsupported. Providers call it before they ask the system, whose own refusal
// says less.
func (a Adapter) Grant(cfg DeviceConfig) (Limits, Feature, error) {
	want := cfg.Limits
	offered := a.Limits.fields()
	var missing []string
	for i, w := range want.fields() {
		have := offered[i]
		switch {
		case w.value == 0:
			continue
		case w.minimum && w.value&(w.value-1) != 0:
			return Limits{}, 0, fmt.Errorf("driver: open %s: limit %s: wanted a power of two, given %d: %w",
				a.Name, w.name, w.value, pass.ErrInvalid)
		case w.minimum && w.value < have.value, !w.minimum && w.value > have.value:
			missing = append(missing, fmt.Sprintf("%s wanted %d, offered %d", w.name, w.value, have.value))
		}
	}
	if lacking := cfg.Features &^ a.Features; lacking != 0 {
		missing = append(missing, fmt.Sprintf("features wanted %v, offered %v", cfg.Features, a.Features))
	}
	if missing != nil {
		return Limits{}, 0, fmt.Errorf("driver: open %s (%s): %s: %w",
			a.Name, a.API, strings.Join(missing, "; "), pass.ErrUnsupported)
	}
	return a.Limits.Override(want), cfg.Features, nil
}
