// Package shaders holds tandem's WebGPU kernels as WGSL text, and specialises them.
//
// A file is a kernel family: linear.wgsl, conv1d.wgsl and so on. Others, like
// epilogue.wgsl, hold pieces that families share by name. The files are text templates:
// tile sizes, element types and options are put in as constants before the text is
// compiled, because the dialect that all WebGPU implementations share has no other way
// to size an array. [Expand] does that; the same constants always give the same text,
// which callers use as the key of compiled pipelines.
//
// # Dialect
//
// The text keeps to what naga 0.19 and Tint both accept. Every literal has its type
// (1u, 1.0), array sizes are single literals, there is no override and no enable, and a
// barrier stands only where all invocations of a workgroup come by. Numbers that change
// from dispatch to dispatch come in the uniform block at binding 0, buffers follow from
// binding 1 on.
//
// # Rounding
//
// Kernels of one op that differ in tile, width of loads or number of rows must give the
// same bits, but a driver may contract a·b + c to one rounding in one of them and not in
// another, and WGSL cannot forbid it. So no product is added to anything but by fma. What
// must be rounded before it is added to, quotients and square roots included, goes through
// settled in fine.wgsl.
//
// # Special values
//
// A driver may compile with mathematics that ignore NaN, so nothing here relies on a
// comparison being false for one: NaN is recognised by its bits. What only moves data
// moves u32, never f32, so that no payload is lost.
package shaders
