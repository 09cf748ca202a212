// Package weights is where networks get their weights from: a [Source] of named tensors,
// checked against the shapes that the network wants, in the forms that devices load.
//
// A Source is an open file of package safetensors, gguf or onnx. [Renamed] and [Under]
// show one under other names, so that a network is written for the names of one
// publisher. [Tensor] and [Values] fetch what must have a shape; [Linear], [Conv],
// [Conv2D], [Norm], [LSTM] and [BatchNorm] put weights together by the names that
// PyTorch gives them: NAME.weight, NAME.bias and so on. A [Loader] brings them to a
// device:
//
//	l := weights.NewLoader(ctx, dev, src)
//	n.conv = l.Load(weights.Conv(l, "encoder.conv1", 384, 80, 3, true))
//	n.qkv = l.Load(weights.Linear(l, 384, weights.Rows("q_proj", 384, true),
//		weights.Rows("k_proj", 384, false), weights.Rows("v_proj", 384, true)))
//	n.norm = l.Load(weights.Norm(l, "encoder.layer_norm", 384, true))
//	n.params, err = l.Params()
//
// Errors name the tensor, the shape that was wanted and the one given. They wrap what the
// source returns, or [pass.ErrInvalid] where a tensor does not fit or holds a value that
// is not finite.
package weights
