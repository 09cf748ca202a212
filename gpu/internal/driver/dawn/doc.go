// Package dawn drives Vulkan, Metal and Direct3D 12 through a Dawn library that is
// loaded at run time, without cgo. Over the native provider it has f16, subgroups and
// matrix units where the device does, and it compiles kernels with Tint.
//
// The library is loaded from an explicit path or from the cache folder, never by a
// search: see [Find]. Dawn's C interface changes with its versions and carries no
// version number, so [New] goes by the functions that the library exports: it must fit
// one column of a table, and is refused with the reason if it does not. What the
// functions do not show is probed when a device is opened: every feature asked for has
// to be accepted by the compiler.
//
// Structures are written as Go structs of the same layout, which a test pins. Callbacks
// are a fixed few, made once, because there is a bounded number of them and they are
// never freed; what they carry back are numbers that are looked up, never pointers to
// Go memory. Package guard refuses what the library would answer with an abort. One
// mutex a device covers all calls that change something; waits are bounded slices
// without it, and kernels compile side by side.
package dawn
