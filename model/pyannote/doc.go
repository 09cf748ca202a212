// Package pyannote says who talks when within some seconds: the network segmentation-3.0
// of pyannote.audio (Bredin, pyannote.audio 2.1 speaker diarization pipeline, Interspeech
// 2023; Plaquet and Bredin, Powerset multi-class cross entropy loss for neural speaker
// diarization, Interspeech 2023).
//
//	m, err := pyannote.Load(ctx, dev, file, pyannote.Segmentation3())
//	...
//	classes, err := m.Segment(ctx, window) // mono at 16 kHz, at most 10 s
//
// The result are logarithms of the probabilities of 7 classes for each frame: nobody
// talks; speaker 0, 1 or 2; speakers 0 and 1, 0 and 2, 1 and 2. Who is who differs from
// window to window. Frame i is computed from the 991 samples from 270·i on, and from all
// others through the layers that see the whole window.
//
// # The network
//
// Samples are normalised over the window. 80 band-pass filters of 251 taps (Ravanelli and
// Bengio, Speaker recognition from raw waveform with SincNet, SLT 2018) with stride 10
// follow, absolute values, the largest of 3 steps; then twice a convolution of 5 taps, of
// 60 channels, and the largest of 3 steps. After each of the three comes a normalisation
// over the window and leaky ReLU. Four LSTM layers of both directions, of 128 units each,
// two linear layers of 128 with leaky ReLU, a linear layer and log-softmax make the
// classes.
package pyannote
