// Package moonshine runs the Moonshine models, tiny and base (Jeffries et al., Moonshine:
// speech recognition for live transcription and voice commands, 2024), on any device.
//
//	f, err := gguf.Open("moonshine-tiny-Q8_0.gguf")
//	cfg, err := moonshine.FromGGUF(f.Metadata())
//	m, err := moonshine.Load(ctx, dev, f, cfg)
//	result, err := m.Transcribe(ctx, samples, moonshine.Options{})
//
// Weights keep the types of their file. Tensors have the names of Hugging Face's
// checkpoints, with or without "model." before them, or those of transcribe.cpp; the
// output layer is the token embedding.
//
// The models take the samples of an utterance, mono at 16 kHz, as they are: from 56 ms to
// tens of seconds, and no longer than they were trained for, or they repeat themselves.
// Transcribe cuts longer audio where it is quiet. Utterances of a batch may have any
// lengths: what fills them up changes nothing. Decoding is greedy, on the device, several
// steps a submission.
//
// A [Session] makes a recording of the encoder for each of at most fourteen lengths, of
// whole seconds; from 2 s on, one is at most half as long again as the one before.
package moonshine
