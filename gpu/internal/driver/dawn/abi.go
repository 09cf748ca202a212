package dawn

import "unsafe"

// The structures of the library's C interface, in Go. Fields that hold Go pointers are
// of pointer types, so that what they point to lives as long as the structure.

// handle is an object of the library.
type handle = uintptr

// text is a WGPUStringView.
type text struct {
	data   *byte
	length uintptr
}

func textOf(s string) text { return text{unsafe.StringData(s), uintptr(len(s))} }

// String copies it.
func (t text) String() string { return copyText(t.data, t.length) }

// copyText copies a string of the library. A length of all ones means that it ends
// with a zero byte.
func copyText(data *byte, length uintptr) string {
	if data == nil {
		return ""
	}
	if length == ^uintptr(0) {
		for length = 0; *(*byte)(unsafe.Add(unsafe.Pointer(data), length)) != 0; length++ {
		}
	}
	return string(unsafe.Slice(data, length))
}

// chained is the head of an extension of a structure.
type chained struct {
	next  unsafe.Pointer
	sType uint32
	_     uint32
}

type callbackInfo struct {
	next      unsafe.Pointer
	mode      uint32
	_         uint32
	callback  uintptr
	userdata1 uintptr
	userdata2 uintptr
}

type futureWait struct {
	future    uint64
	completed uint32
	_         uint32
}

type instanceDescriptor struct {
	next         unsafe.Pointer
	featureCount uintptr
	features     *uint32
	limits       unsafe.Pointer
}

type togglesDescriptor struct {
	chained
	enabledCount  uintptr
	enabled       **byte
	disabledCount uintptr
	disabled      **byte
}

type functionInfo struct {
	next      unsafe.Pointer
	callback  uintptr
	userdata1 uintptr
	userdata2 uintptr
}

// cacheDescriptor has the two functions as such, without the infos around them, in
// libraries of 2025. There the place of load's callback is store's function, which
// onLoad recognises.
type cacheDescriptor struct {
	chained
	isolationKey text
	load         functionInfo
	store        functionInfo
}

type adapterOptions struct {
	next            unsafe.Pointer
	featureLevel    uint32
	powerPreference uint32
	forceFallback   uint32
	backend         uint32
	surface         handle
}

type adapterInfo struct {
	next                              unsafe.Pointer
	vendor, architecture              text
	device, description               text
	backend, kind, vendorID, deviceID uint32
	minSubgroup, maxSubgroup          uint32
}

type matrixConfigs struct {
	chained
	count   uintptr
	entries unsafe.Pointer
}

type limits struct {
	next                                      unsafe.Pointer
	maxTextureDimension1D                     uint32
	maxTextureDimension2D                     uint32
	maxTextureDimension3D                     uint32
	maxTextureArrayLayers                     uint32
	maxBindGroups                             uint32
	maxBindGroupsPlusVertexBuffers            uint32
	maxBindingsPerBindGroup                   uint32
	maxDynamicUniformBuffersPerPipelineLayout uint32
	maxDynamicStorageBuffersPerPipelineLayout uint32
	maxSampledTexturesPerShaderStage          uint32
	maxSamplersPerShaderStage                 uint32
	maxStorageBuffersPerShaderStage           uint32
	maxStorageTexturesPerShaderStage          uint32
	maxUniformBuffersPerShaderStage           uint32
	maxUniformBufferBindingSize               uint64
	maxStorageBufferBindingSize               uint64
	minUniformBufferOffsetAlignment           uint32
	minStorageBufferOffsetAlignment           uint32
	maxVertexBuffers                          uint32
	maxBufferSize                             uint64
	maxVertexAttributes                       uint32
	maxVertexBufferArrayStride                uint32
	maxInterStageShaderVariables              uint32
	maxColorAttachments                       uint32
	maxColorAttachmentBytesPerSample          uint32
	maxComputeWorkgroupStorageSize            uint32
	maxComputeInvocationsPerWorkgroup         uint32
	maxComputeWorkgroupSizeX                  uint32
	maxComputeWorkgroupSizeY                  uint32
	maxComputeWorkgroupSizeZ                  uint32
	maxComputeWorkgroupsPerDimension          uint32
	maxImmediateSize                          uint32
}

type deviceDescriptor struct {
	next         unsafe.Pointer
	label        text
	featureCount uintptr
	features     *uint32
	limits       *limits
	queueNext    unsafe.Pointer
	queueLabel   text
	lost         callbackInfo
	uncaptured   functionInfo
}

type bufferDescriptor struct {
	next   unsafe.Pointer
	label  text
	usage  uint64
	size   uint64
	mapped uint32
	_      uint32
}

type layoutEntry struct {
	_          unsafe.Pointer
	binding    uint32
	_          uint32
	visibility uint64
	_          uint64
	buffer     bufferLayout
	_          [8]uint64 // layouts of samplers and textures: none
}

type bufferLayout struct {
	_              unsafe.Pointer
	kind           uint32
	dynamic        uint32
	minBindingSize uint64
}

type layoutDescriptor struct {
	next    unsafe.Pointer
	label   text
	count   uintptr
	entries *layoutEntry
}

type groupEntry struct {
	_       unsafe.Pointer
	binding uint32
	_       uint32
	buffer  handle
	offset  uint64
	size    uint64
	_       [2]handle // sampler and texture: none
}

type groupDescriptor struct {
	next    unsafe.Pointer
	label   text
	layout  handle
	count   uintptr
	entries *groupEntry
}

type pipelineLayoutDescriptor struct {
	next          unsafe.Pointer
	label         text
	count         uintptr
	layouts       *handle
	immediateSize uint32
	_             uint32
}

type shaderSource struct {
	chained
	code text
}

type moduleDescriptor struct {
	next  unsafe.Pointer
	label text
}

type pipelineDescriptor struct {
	next          unsafe.Pointer
	label         text
	layout        handle
	computeNext   unsafe.Pointer
	module        handle
	entry         text
	constantCount uintptr
	constants     unsafe.Pointer
}

type querySetDescriptor struct {
	next  unsafe.Pointer
	label text
	kind  uint32
	count uint32
}

// The numbers of the library's interface that are the same in all versions that are
// taken. Those that are not are in a column.
const (
	statusSuccess = 1 // of WGPUStatus and of every callback's status

	waitSuccess  = 1
	waitTimedOut = 2

	modeWaitAnyOnly      = 1
	modeAllowSpontaneous = 3

	filterValidation  = 1
	filterOutOfMemory = 2
	filterInternal    = 3

	errorNone        = 1
	errorValidation  = 2
	errorOutOfMemory = 3

	lostDestroyed = 2
	lostCancelled = 3

	backendD3D12  = 4
	backendMetal  = 5
	backendVulkan = 6

	featureLevelCore = 2

	bindingUniform         = 2
	bindingStorage         = 3
	bindingReadOnlyStorage = 4

	queryTimestamp = 2
	stageCompute   = 4

	mapRead  = 1
	mapWrite = 2

	wgslSource = 2 // the type of shaderSource
)
