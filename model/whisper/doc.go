// Package whisper runs the Whisper models, tiny to large-v3-turbo (Radford et al., Robust
// speech recognition via large-scale weak supervision, 2022), on any device.
//
//	f, err := gguf.Open("whisper-tiny.en-q8_0.gguf")
//	cfg, err := whisper.FromGGUF(f.Metadata())
//	m, err := whisper.Load(ctx, dev, f, cfg)
//	result, err := m.Transcribe(ctx, samples, whisper.Options{})
//
// Weights keep the types of their file. Tensors have the names of Hugging Face's
// checkpoints, with or without "model." before them, or those of transcribe.cpp; the
// output layer is the token embedding.
//
// Audio, mono at 16 kHz, is taken in windows of 30 s, the last filled up with zeros. For
// each the encoder runs once, and brings the keys and values of all cross-attention to
// the device's caches. Decoding is greedy. [Plain] and [Raw] run wholly on the device,
// several steps a submission; the rules of [Timestamps] depend on sums of probabilities,
// so that there the host reads the logits of each step and chooses.
//
// A [Session] holds a batch of windows, with caches, workspace and at most about twenty
// recordings, whatever the length of the audio.
package whisper
