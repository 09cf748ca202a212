package drivertest

import "github.com/tandem-gpu/tandem/cuda/internal/driver"

// Config says what the driver and its devices are like.
type Config struct {
	// Devices are those that the driver lists; nil: one [Hopper].
	Devices []Profile
	// None makes the driver list no device.
	None bool
	// Version of CUDA; 0: 13000.
	Version int
	// Path of the library; empty: "drivertest".
	Path string
	// Lazy makes the work of a stream wait: each Query or QueryEvent does one piece of
	// it, Synchronize all. Otherwise work is done where it is asked for.
	Lazy bool
	// Seed of the orders in which the nodes of graphs run.
	Seed uint64
	// Kernel runs a kernel; nil: kernels do nothing. An error loses the context, with the
	// code of a *driver.Error, else as a failed launch. Calls may come from several
	// goroutines at a time, for different streams.
	Kernel func(function string, l driver.Launch) error
	// Load says whether an image can be loaded, by a *driver.Error if not; nil: all can.
	Load func(image []byte) error
	// Functions describes the functions of all modules; nil: every name is one.
	Functions func(name string) (Resources, bool)
}

// Resources are what a kernel takes; zero fields are as those of a modest kernel.
type Resources struct {
	MaxThreads int // of a block; 0: 1024
	Registers  int // of a thread; 0: 32
	Static     int // bytes of shared memory
	Local      int // bytes of each thread
	Cluster    int // blocks; 0: none
}

// A Profile is a device.
type Profile struct {
	Name         string
	Capability   int // times ten
	SMs          int
	SharedMemory int // bytes that a block may have when allowed
	SharedPerSM  int
	Memory       uint64
	L2           int
	Clock        int // kHz
	MemoryClock  int // kHz
	MemoryBus    int // bits
	Integrated   bool
	TimeLimit    bool
	NoVirtual    bool // memory cannot be mapped at addresses
	Exclusive    bool // another process has it
}

// Hopper is a large device of capability 9.0.
func Hopper() Profile {
	return Profile{Name: "NVIDIA Test 90", Capability: 90, SMs: 132, SharedMemory: 227 << 10, SharedPerSM: 228 << 10,
		Memory: 16 << 30, L2: 50 << 20, Clock: 1980000, MemoryClock: 3201000, MemoryBus: 6144}
}

// Ampere is a device of capability 8.6 with a display.
func Ampere() Profile {
	return Profile{Name: "NVIDIA Test 86", Capability: 86, SMs: 28, SharedMemory: 99 << 10, SharedPerSM: 100 << 10,
		Memory: 8 << 30, L2: 3 << 20, Clock: 1777000, MemoryClock: 7501000, MemoryBus: 192, TimeLimit: true}
}

// Turing is a small device of capability 7.5.
func Turing() Profile {
	return Profile{Name: "NVIDIA Test 75", Capability: 75, SMs: 40, SharedMemory: 64 << 10, SharedPerSM: 64 << 10,
		Memory: 4 << 30, L2: 4 << 20, Clock: 1590000, MemoryClock: 5001000, MemoryBus: 256}
}

// attribute returns a property.
func (p *Profile) attribute(ordinal int, a driver.Attribute) (int, bool) {
	truth := map[bool]int{true: 1}
	v, ok := map[driver.Attribute]int{
		driver.MaxThreads: 1024, driver.SharedMemory: 48 << 10, driver.WarpSize: 32, driver.RegistersPerBlock: 65536,
		driver.ClockRate: p.Clock, driver.Multiprocessors: p.SMs, driver.KernelTimeLimit: truth[p.TimeLimit],
		driver.Integrated: truth[p.Integrated], driver.ComputeMode: 0, driver.PCIBus: ordinal + 1, driver.PCIDevice: 0,
		driver.MemoryClockRate: p.MemoryClock, driver.MemoryBusWidth: p.MemoryBus, driver.L2Size: p.L2,
		driver.ThreadsPerSM: p.threadsPerSM(), driver.CopyEngines: 2, driver.UnifiedAddressing: 1, driver.PCIDomain: 0,
		driver.CapabilityMajor: p.Capability / 10, driver.CapabilityMinor: p.Capability % 10,
		driver.SharedMemoryPerSM: p.SharedPerSM, driver.RegistersPerSM: 65536, driver.CooperativeLaunch: 1,
		driver.SharedMemoryOptIn: p.SharedMemory, driver.VirtualMemory: truth[!p.NoVirtual], driver.BlocksPerSM: p.blocksPerSM(),
		driver.PersistingL2Size: p.L2 / 2, driver.ReservedSharedBytes: p.reservedShared(),
		driver.ClusterLaunch: truth[p.Capability >= 90], driver.TensorMapAccess: truth[p.Capability >= 90],
	}[a]
	return v, ok
}

func (p *Profile) threadsPerSM() int {
	switch {
	case p.Capability == 75:
		return 1024
	case p.Capability == 86 || p.Capability == 89 || p.Capability >= 120:
		return 1536
	}
	return 2048
}

func (p *Profile) blocksPerSM() int {
	switch {
	case p.Capability == 80 || p.Capability == 90:
		return 32
	case p.Capability == 89 || p.Capability >= 100:
		return 24
	}
	return 16
}

// reservedShared is what the driver takes of the shared memory of each block.
func (p *Profile) reservedShared() int {
	if p.Capability == 75 {
		return 0
	}
	return 1 << 10
}
