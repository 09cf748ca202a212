// Package gigaam has GigaAM v3, the speech recognition networks for Russian of Salute
// Developers: a Conformer encoder with rotary attention, with a head for CTC or for an
// RNN-T, over characters or pieces of words with punctuation.
//
//	f, err := gguf.Open("gigaam-v3-e2e-rnnt-Q8_0.gguf")
//	...
//	cfg, err := gigaam.FromGGUF(f.Metadata())
//	...
//	m, err := gigaam.Load(ctx, dev, f, cfg)
//	...
//	result, err := m.Transcribe(ctx, samples, asr.Options{})
//	fmt.Println(result.Text)
//
// # The network
//
// Features of 64 mels every 10 ms ([frontend.GigaAM]) pass two convolutions over time of 5
// with stride 2: a frame every 40 ms. The blocks of package conformer follow: rotary
// positions turn the normed input of the queries and keys, before their layers, and what
// the weights call a batch norm is a layer norm.
//
// # Files
//
// [Load] takes tensors by the names of the authors' checkpoints, also below "model.", and
// by those of transcribe.cpp (GGUF). The configuration comes from [FromGGUF] or [Preset].
// The front end is computed; the tables in files are the same.
//
// # Long audio
//
// The networks were trained on up to 25 s; the windows of a session are 24 s that
// overlap by 4 s if nothing else is asked for. See package asr.
package gigaam
