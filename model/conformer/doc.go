// Package conformer has what Conformer encoders share (Gulati et al., Conformer:
// Convolution-augmented transformer for speech recognition, 2020): the block, with
// attention by relative or by rotary positions, for items of a batch of unequal length.
//
// A block is
//
//	x += FF1(norm(x))/2;  x += attention(norm(x));  x += convolution(norm(x))
//	x += FF2(norm(x))/2;  x = norm(x)
//
// where FF is linear, x·sigmoid(x), linear, and the convolution is point-wise, a
// [pass.ConvGLU], point-wise. Weights have the names of NeMo below the prefix of a layer:
// norm_feed_forward1, feed_forward1.linear1, norm_self_att, self_attn.linear_q,
// conv.pointwise_conv1, conv.depthwise_conv, conv.batch_norm and so on; packages of
// networks show files under these names.
package conformer
