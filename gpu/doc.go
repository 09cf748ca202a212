// Package gpu is the backend for GPUs through WebGPU: Vulkan, Metal and Direct3D 12.
//
//	dev, err := gpu.Open(ctx, gpu.Config{})
//	defer dev.Close()
//
// # How an adapter is chosen
//
// [Adapters] lists every adapter with its rank, or the reason why it is not taken.
//
//   - One device under several APIs is one adapter. Metal is preferred, then Vulkan,
//     then Direct3D 12. OpenGL is never taken.
//   - Discrete devices come first, then integrated, virtual and unknown ones; within a
//     kind those with the better API, then as the system lists them.
//   - Software adapters, which compute on the CPU, are taken only when they are named
//     or when Config.Software is set, and then after all others.
//   - Devices whose limits are too low for the kernels are declined, with the limits.
//   - Config.Adapter names one: by index, by name, by kind or by a part of the name. A
//     name that fits several adapters is an error that lists them; two cards of the
//     same make are told apart by index. Nothing else is opened in place of a named
//     adapter. Without a name the ranked adapters are tried in order.
//
// A field of [Config] that is set wins over its environment variable. A value that
// names nothing is an error that lists what is there.
//
// # Environment
//
//	TANDEM_ADAPTER          adapter to take: index, name or part of it, or kind
//	TANDEM_API              API to reach it through: vulkan, metal or d3d12
//	TANDEM_SOFTWARE         1: take a software adapter where there is no hardware
//	TANDEM_PROVIDER         what is behind the API: native or dawn
//	TANDEM_DAWN             path of a Dawn library, which is then used
//	TANDEM_DAWN_UNCHECKED   1: indices in kernels go unchecked with dawn
//	TANDEM_DAWN_NVIDIA_F16  0: no f16 on NVIDIA devices under Vulkan with dawn
//	TANDEM_DAWN_CACHE       folder where dawn keeps compiled kernels; off: nowhere
//	TANDEM_WATCHDOG         longest time for one part of a run, such as 30s
//	TANDEM_DEBUG            1: warnings of the library on standard error, and validation layers
//
// The Vulkan loader has variables of its own: VK_DRIVER_FILES (formerly
// VK_ICD_FILENAMES) replaces its search for drivers.
//
// # Platforms
//
//	Linux    Vulkan             cgo; libvulkan.so.1 and a driver at run time
//	macOS    Metal              cgo
//	Windows  Vulkan, Direct3D   cgo
//
// The native library is linked into the program through cgo, so a C compiler is needed
// to build and no library of ours at run time. Without cgo (CGO_ENABLED=0), a Dawn
// library is loaded at run time, if there is one: "make dawn" fetches it. It also has
// f16, subgroups and matrix units. Where there is neither, and on other platforms,
// js/wasm among them, the package builds, and Open and Adapters return an error that
// says so and wraps [pass.ErrNoDevice]; package cpu works everywhere.
package gpu
