// Package transducer decodes transducers (Graves, Sequence transduction with recurrent
// neural networks, 2012): the predictor, which is an embedding and a stack of LSTM layers
// over the tokens so far, the joint network, and the greedy search, for plain ones
// (RNN-T) and for those that say how many frames a token lasts (TDT: Xu et al., Efficient
// sequence transduction by jointly predicting tokens and durations, 2023).
//
//	logits = out(relu(enc(frame) + pred(h)))
//
// [Load] brings a [Head] to a device. An encoder's recording has its frames projected to
// where a [Decoder] keeps them ([Head.Project], [Decoder.Frames]), and
// [Decoder.Greedy] finds the tokens.
//
// # Where it runs
//
// All of it runs on the device; the host only chooses what comes next. A step is one
// replay of one recording for all items of a batch: it reads three numbers for each item
// and returns one or two. The weights, 26 MB for the predictor of Parakeet, are read once
// for the batch, where a host would go through them for each token of each item. On the
// CPU nothing is lost by that: a step of the 0.6B network takes the 3 ms that its products
// take (BenchmarkStep measures it).
//
// The predictor's state moves on tokens only: after a blank an item takes part in the
// next step with an input of length 0, which leaves its state as it is.
package transducer
