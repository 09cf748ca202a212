// Package safetensors reads and writes the safetensors format: named tensors in one
// file, with a JSON header. It also reads sharded models, through their index file.
//
// A file is
//
//	8 bytes   length n of the header, little-endian
//	n bytes   {"NAME": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, …,
//	          "__metadata__": {"KEY": "VALUE"}}, padded with spaces
//	the rest  the tensors, row-major and little-endian; offsets count from here
//
// The reader checks everything before it allocates by it: the header fits the file, the
// tensors cover the rest of it exactly once, without gaps, and the size of each is that
// of its type and shape. Element types without a [pass.DType] are read as int64 or
// float64. Values are read from the file when they are asked for, never before; files that
// are opened by their path are mapped into memory where the system can do that.
//
// Errors wrap [pass.ErrInvalid] where a file is damaged or a name does not exist,
// [pass.ErrUnsupported] where an element type is not handled, [pass.ErrClosed] after
// Close.
package safetensors
