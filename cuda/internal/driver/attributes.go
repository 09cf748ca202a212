package driver

// An Attribute is a property of a device, by its number in the driver's API.
type Attribute int

// The attributes that the backend reads.
const (
	MaxThreads          Attribute = 1 // of a block
	SharedMemory        Attribute = 8 // of a block, without asking for more; bytes
	WarpSize            Attribute = 10
	RegistersPerBlock   Attribute = 12
	ClockRate           Attribute = 13 // kHz
	Multiprocessors     Attribute = 16
	KernelTimeLimit     Attribute = 17 // 1: kernels that take seconds are ended
	Integrated          Attribute = 18 // 1: shares the host's memory
	ComputeMode         Attribute = 20 // 0: any process may use it
	PCIBus              Attribute = 33
	PCIDevice           Attribute = 34
	MemoryClockRate     Attribute = 36 // kHz
	MemoryBusWidth      Attribute = 37 // bits
	L2Size              Attribute = 38 // bytes
	ThreadsPerSM        Attribute = 39
	CopyEngines         Attribute = 40
	UnifiedAddressing   Attribute = 41
	PCIDomain           Attribute = 50
	CapabilityMajor     Attribute = 75
	CapabilityMinor     Attribute = 76
	SharedMemoryPerSM   Attribute = 81 // bytes
	RegistersPerSM      Attribute = 82
	CooperativeLaunch   Attribute = 95
	SharedMemoryOptIn   Attribute = 97  // of a block, after AllowShared; bytes
	VirtualMemory       Attribute = 102 // 1: Reserve and Map work
	BlocksPerSM         Attribute = 106
	PersistingL2Size    Attribute = 108 // bytes
	ReservedSharedBytes Attribute = 111 // of each block, by the driver
	ClusterLaunch       Attribute = 120
	TensorMapAccess     Attribute = 127
)

// A FunctionAttribute is a property of a kernel.
type FunctionAttribute int

// The attributes of kernels.
const (
	FunctionMaxThreads    FunctionAttribute = 0
	FunctionShared        FunctionAttribute = 1 // static shared memory, bytes
	FunctionConst         FunctionAttribute = 2
	FunctionLocal         FunctionAttribute = 3 // bytes of each thread in device memory: spills
	FunctionRegisters     FunctionAttribute = 4
	FunctionPTXVersion    FunctionAttribute = 5 // 90: compiled for compute_90
	FunctionBinaryVersion FunctionAttribute = 6 // 90: code for sm_90
	FunctionDynamicShared FunctionAttribute = 8 // allowed, bytes
)

// A TensorType is the type of a TensorMap's elements.
type TensorType int

// The types that kernels use.
const (
	TensorU8   TensorType = 0
	TensorU16  TensorType = 1
	TensorU32  TensorType = 2
	TensorF16  TensorType = 6
	TensorF32  TensorType = 7
	TensorBF16 TensorType = 9
)

// A Swizzle is how 16-byte pieces of a box are exchanged in shared memory, so that a
// column of it lies in different banks.
type Swizzle int

// The patterns, by the bytes of a row after which they repeat.
const (
	SwizzleNone Swizzle = iota
	Swizzle32
	Swizzle64
	Swizzle128
)
