// Package parakeet has the Parakeet speech recognition networks of NVIDIA: a FastConformer
// encoder (Rekesh et al., Fast Conformer with linearly scalable attention, 2023) with a
// head for CTC, for an RNN-T or for a TDT; 0.6B, 1.1B and the 110M hybrid. Those that
// stream in chunks are not among them, nor is attention within a window.
//
//	f, err := gguf.Open("parakeet-tdt-0.6b-v3-Q8_0.gguf")
//	...
//	cfg, err := parakeet.FromGGUF(f.Metadata())
//	...
//	m, err := parakeet.Load(ctx, dev, f, cfg)
//	...
//	result, err := m.Transcribe(ctx, samples, asr.Options{})
//	fmt.Println(result.Text)
//
// # The network
//
// Features of 80 or 128 mels every 10 ms ([frontend.Parakeet]) are an image that three
// convolutions of 3×3 with stride 2, the last two depthwise and with a point-wise one
// after them, make eight times smaller each way: a frame every 80 ms. A linear layer, in
// some variants a factor of √width, and the blocks of package conformer follow, with
// attention by relative positions over all frames.
//
// # Files
//
// [Load] takes tensors by the names of three publishers: those of transformers
// (safetensors), of NeMo, and of transcribe.cpp (GGUF). The configuration comes from
// [FromJSON], [FromGGUF] or [Preset].
//
// # Long audio
//
// Attention is over all frames of a window, so memory grows with the window and not with
// the audio; see package asr for windows and how they are joined. The features are
// normalised over each window, as the networks were trained on clips.
package parakeet
