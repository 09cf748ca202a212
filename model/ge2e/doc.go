// Package ge2e says how alike voices are: the speaker encoder that was trained with the
// generalised end-to-end loss (Wan, Wang, Papir and Moreno, Generalized end-to-end loss
// for speaker verification, ICASSP 2018), as Resemblyzer publishes it.
//
//	m, err := ge2e.Load(ctx, dev, file, ge2e.Resemblyzer())
//	...
//	voice, err := m.Embed(ctx, samples) // mono at 16 kHz
//
// Embeddings have length 1: the cosine of the angle between two voices is their dot
// product, [Cosine], about 0.85 for one speaker and 0.53 for two with the published
// weights.
//
// # The network
//
// Audio is taken in windows of 1.6 s every 0.77 s. Of a window come 160 frames of the
// power of 40 mel bins, without a logarithm (see frontend.GE2E); they pass three LSTM
// layers of 256 units from a state of zeros. The last state of the last layer, [256],
// passes a linear layer and ReLU and is scaled to length 1. The embedding of a clip is
// the mean of those of its windows, scaled to length 1. Silence is not left out.
package ge2e
