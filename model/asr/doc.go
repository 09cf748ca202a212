// Package asr runs networks of speech recognition over audio of any length: from samples
// to text, and to tokens and when they are said.
//
//	s, err := m.NewSession(ctx, asr.SessionConfig{}) // of package parakeet or gigaam
//	...
//	result, err := s.Transcribe(ctx, samples, asr.Options{})
//
// # Windows
//
// Audio that is longer than a window is cut into windows that overlap. Each is transcribed
// by itself, several at a time, and where two overlap, they are joined in the middle half
// of the overlap, where the nearest token of either is farthest away: in a pause, if there
// is one. A window costs memory for its samples, its features and what the encoder needs
// for its frames, which is linear in its length, so memory is bounded by the window and
// the batch, however long the audio is. With the default window of 30 s that overlaps by
// 4 s, an hour is 139 windows.
//
// A window has less context at its ends than the audio has, and features that are
// normalised over a clip are so over the window. Audio up to the length of a window is
// transcribed as the network has it.
//
// # Recordings
//
// Windows are filled up to one of a few lengths, a whole window and shares of it down to a
// thirty-second, and tell the device how long they are; what fills them up changes
// nothing. A length is recorded when it first comes, for one window and, if it is that of
// a whole batch, for a batch: at most eighteen recordings serve all audio.
package asr
