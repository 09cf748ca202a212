// Package gguf reads and writes GGUF, the format of ggml: metadata and named tensors in
// one file.
//
// A file is, little-endian throughout,
//
//	magic "GGUF" · version · number of tensors · number of metadata
//	metadata     key · type · value, where an array has a type and a length of its own
//	tensors      name · dimensions, innermost first · type · offset
//	padding to a multiple of general.alignment (32 if it is not there)
//	the data, from where offsets count
//
// Versions 2 and 3 are read; 3 is written. The reader checks every count, length, size
// and offset against the file before it allocates by it, and that no tensors overlap.
// Metadata are read at once. Tensors are read from the file when their values are asked
// for, never before; a file that is opened by its path is mapped into memory where the
// system can do that. Shapes are the other way round than in the file: outermost axis
// first, as everywhere in this module.
//
// Errors wrap [pass.ErrInvalid] where a file is damaged or a name does not exist,
// [pass.ErrUnsupported] for versions, byte orders and element types that are not handled,
// [pass.ErrClosed] after Close.
package gguf
