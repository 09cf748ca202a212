// Package wespeaker says how alike voices are: the residual network ResNet34-LM of
// WeSpeaker (Wang et al., WeSpeaker: a research and production oriented speaker embedding
// learning toolkit, ICASSP 2023; He, Zhang, Ren and Sun, Deep residual learning for image
// recognition, CVPR 2016), with which pyannote tells speakers apart.
//
//	m, err := wespeaker.Load(ctx, dev, file, wespeaker.ResNet34())
//	...
//	embeddings, err := m.Embed(ctx, wespeaker.Window{Samples: samples, Masks: speakers})
//
// Embeddings have 256 elements and any length; what says how alike two are is the cosine
// of the angle between them.
//
// # The network
//
// A window of audio, 10 s as pyannote uses it, gives 80 mel bins of a frame every 10 ms
// (see frontend.Kaldi): an image of 80 lines, the bins, by as many columns as there are
// frames, with one channel. A convolution of 3×3 makes 32 channels of it; four stages of
// 3, 4, 6 and 3 residual blocks of two such convolutions follow, with 32, 64, 128 and 256
// channels, of which all but the first halve both sides of the image. Batch norms are
// folded into the convolutions when they are loaded, in float64. Of the last image,
// [10][125][256] for 10 s, mean and standard deviation over time are taken of each line
// and channel, 5120 numbers, and a linear layer makes the embedding of them.
//
// Masks weigh the time: of one window come embeddings of several speakers, each from the
// frames in which that speaker talks.
package wespeaker
