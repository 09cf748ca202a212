package driver

import "unsafe"

// Structures of the driver's API. Their layouts are the C compiler's; see structs_test.go.

// kernelNodeParams is CUDA_KERNEL_NODE_PARAMS_v2.
type kernelNodeParams struct {
	function Function
	grid     [3]uint32
	block    [3]uint32
	shared   uint32
	_        uint32
	params   unsafe.Pointer // of an array of pointers to the parameters
	extra    unsafe.Pointer
	kernel   uintptr
	context  Context // 0: the current one
}

// memLocation is CUmemLocation.
type memLocation struct {
	kind int32
	id   int32
}

// memAllocationProp is CUmemAllocationProp.
type memAllocationProp struct {
	kind     int32
	handles  int32
	location memLocation
	win32    unsafe.Pointer
	flags    [8]byte
}

// memAccess is CUmemAccessDesc.
type memAccess struct {
	location memLocation
	flags    int32
}

// edgeData is CUgraphEdgeData.
type edgeData struct {
	fromPort uint8
	toPort   uint8
	kind     uint8
	_        [5]uint8
}

// attributeValue is CUlaunchAttributeValue, of which the first word is used.
type attributeValue struct {
	word int32
	_    [60]uint8
}

// launchAttribute is CUlaunchAttribute.
type launchAttribute struct {
	id    int32
	_     uint32
	value attributeValue
}

// launchConfig is CUlaunchConfig.
type launchConfig struct {
	grid, block [3]uint32
	shared      uint32
	_           uint32
	stream      Stream
	attributes  unsafe.Pointer
	count       uint32
	_           uint32
}

// jitValues are the values of the options jitErrorLog and jitErrorLogSize: an array of
// pointers, in which a number stands where a pointer would.
type jitValues struct {
	log  unsafe.Pointer
	size uintptr
}

// Numbers of the API.
const (
	memoryPinned     = 1
	locationDevice   = 1
	accessReadWrite  = 3
	edgeProgrammatic = 1
	portProgrammatic = 1

	streamNonBlocking   = 1
	attributeCoop       = 2
	attributeEarly      = 6
	jitErrorLog         = 5
	jitErrorLogSize     = 6
	granularityMinimum  = 0
	interleaveNone      = 0
	promotionNone       = 0
	outsideIsZero       = 0
	tensorMapAlignment  = 128
	imageAlignment      = 64
	compilerLogCapacity = 8 << 10
)

// devicePhysical are the properties of memory on a device.
func devicePhysical(ordinal int) memAllocationProp {
	return memAllocationProp{kind: memoryPinned, location: memLocation{kind: locationDevice, id: int32(ordinal)}}
}
