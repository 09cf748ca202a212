package driver

import "strings"

// BufferUsage is the set of ways in which a buffer may be used.
type BufferUsage uint32

// The usages. MapRead goes with CopyDst alone and MapWrite with CopySrc alone, unless
// the device has FeatureMappedStorage.
const (
	MapRead  BufferUsage = 1 << iota // ReadMapped
	MapWrite                         // WriteMapped
	CopySrc                          // source of a copy
	CopyDst                          // target of a copy, a clear, a Write
	Storage                          // storage binding
	Uniform                          // uniform binding
	Resolve                          // target of resolved time stamps

	// AllUsages is the set of all of them.
	AllUsages = Resolve<<1 - 1
)

var usageNames = [...]string{"map-read", "map-write", "copy-src", "copy-dst", "storage", "uniform", "resolve"}

// String lists the usages by name.
func (u BufferUsage) String() string {
	var names []string
	for i, name := range usageNames {
		if u&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	if u&^AllUsages != 0 {
		names = append(names, "unknown")
	}
	return strings.Join(names, "|")
}

// BufferDesc describes a buffer.
type BufferDesc struct {
	Label string
	Size  uint64 // bytes, a multiple of 4 above 0
	Usage BufferUsage
}

// BindingKind says how a kernel uses one of its buffers.
type BindingKind uint8

// The binding kinds, with the WGSL declaration that each belongs to.
const (
	StorageRead      BindingKind = iota + 1 // var<storage, read>
	StorageReadWrite                        // var<storage, read_write>
	UniformBlock                            // var<uniform>
	UniformDynamic                          // var<uniform>, with an offset given by each dispatch
)

// String is the kind's name.
func (k BindingKind) String() string {
	switch k {
	case StorageRead:
		return "storage-read"
	case StorageReadWrite:
		return "storage-read-write"
	case UniformBlock:
		return "uniform"
	case UniformDynamic:
		return "uniform-dynamic"
	}
	return "unknown"
}

// MaxDynamic is how many UniformDynamic bindings a pipeline may have.
const MaxDynamic = 4

// PipelineDesc describes a compute pipeline.
type PipelineDesc struct {
	Label  string
	Source string // WGSL
	Entry  string // the kernel in it
	// Bindings are @group(0) @binding(0), @binding(1) and so on.
	Bindings []BindingKind
	// WorkgroupStorage is how many bytes of var<workgroup> the kernel declares. It is
	// held against the limit here because not every library does so.
	WorkgroupStorage uint32
}

// Binding is a range of a buffer. Offset is a multiple of the limit for its kind, and
// Size, a multiple of 4 above 0, is what the kernel sees.
type Binding struct {
	Buffer BufferID
	Offset uint64
	Size   uint64
}
