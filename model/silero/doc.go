// Package silero finds speech in audio: the voice activity network Silero VAD, v5 or v6,
// for 16 kHz, and the rule that makes segments of its probabilities.
//
// [Load] brings the network to a device, once. Then
//
//   - [Model.Probabilities] takes audio that is there as a whole,
//   - a [Stream] takes one signal as it arrives, in pieces of any size,
//   - [Streams] takes many signals that come and go, a chunk of each at a time.
//
// Each gives a probability of speech for every chunk of 512 samples, 32 ms.
// [Segments] makes segments of them, and a [Detector] does so while they arrive.
//
// # The network
//
// A chunk and the last 64 samples of the one before it (zeros at first), 576 samples,
// are extended by 64 on the right, by reflection. A convolution of 256 taps and stride
// 128 gives 4 frames of a 129-bin spectrum, real and imaginary; their magnitudes pass
// four convolutions (129→128, 128→64 and 64→64 with stride 2, 64→128; kernels of 3, ReLU),
// which leave one frame of 128 features. An LSTM of 128 units follows, then ReLU, a
// linear layer and a sigmoid. Only the LSTM carries state from chunk to chunk, so all
// else is done for many chunks at once.
//
// v5 and v6 differ in their weights alone. Those of v6 are part of this package
// ([Embedded]). They are the work of the Silero Team, under the MIT licence:
//
//	Copyright (c) 2020-present Silero Team
//
// LICENSE.silero-vad in this folder has its text.
package silero
