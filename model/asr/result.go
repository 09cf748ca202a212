package asr

// Options say how to transcribe. The zero value is good.
type Options struct {
	// Progress, if not nil, is called now and then with the share of the audio that is
	// done, up to 1, on the goroutine of the caller.
	Progress func(done float64)
}

// A Result is the text of audio.
type Result struct {
	Text   string // "" if the network has no vocabulary
	Tokens []Token
}

// A Token is a token and when it is said, in frames of the encoder; see
// [Session.FrameDuration].
type Token struct {
	ID     int
	Frame  int // first frame
	Frames int // as far as the head says, at least 1
}

// IDs returns the ids of the tokens.
func (r Result) IDs() []int {
	ids := make([]int, len(r.Tokens))
	for i, t := range r.Tokens {
		ids[i] = t.ID
	}
	return ids
}
