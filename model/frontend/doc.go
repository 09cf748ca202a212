// Package frontend has the audio front ends of speech networks, as weights of the op
// [pass.LogMel]: tables and rules that make features of samples at 16 kHz.
//
//	mel, err := dev.Load(ctx, frontend.Whisper(80))
//	...
//	p.Do(pass.LogMel{X: samples, W: mel, Y: features, Samples: n})
//
// A network works only with the features that it was trained on, and front ends differ
// in every detail: see the functions. Samples are in [−1, 1], as package wav reads them.
// Tables are computed in float64 and rounded once.
package frontend
