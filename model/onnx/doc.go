// Package onnx reads the weights of an ONNX model: the initializers of its main graph,
// by name, and the values of the Constant nodes there. It doesn't interpret the graph;
// networks are written in Go and only take their weights from such files.
//
// The file is protocol-buffer wire format (ModelProto of onnx.proto), parsed by a small
// reader that bounds every length by the bytes that are there and does not recurse:
// subgraphs are passed over.
//
// Float, float16 and bfloat16 tensors are returned, whether they are stored as raw_data
// or in the typed fields. Tensors of other types, sparse ones and ones whose values lie
// in another file are listed; asking for them is an error that wraps
// [pass.ErrUnsupported] and says why. Errors for damaged files and for names that do
// not exist wrap [pass.ErrInvalid].
package onnx
