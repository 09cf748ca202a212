package asr

import (
	"context"
	"fmt"
	"time"

	"github.com/tandem-gpu/tandem/model/conformer"
	"github.com/tandem-gpu/tandem/model/ctc"
	"github.com/tandem-gpu/tandem/model/transducer"
	"github.com/tandem-gpu/tandem/pass"
)

// SampleRate is the number of samples in a second.
const SampleRate = 16000

// An Encoder makes frames of mel features.
type Encoder interface {
	// Frames returns how many mel frames of a clip of some samples count.
	Frames(samples int) int
	// Stages returns how many frames are left of some mel frames at each stage of the
	// subsampling: all of them at first, the encoder's own at last.
	Stages(mels int) []int
	// State makes what the encoder keeps in a session for windows of up to so many mel
	// frames; the zero Buffer if it keeps nothing.
	State(ctx context.Context, ses pass.Session, mels int) (pass.Buffer, error)
	// Encode records the encoder on x, [Items][Frames][bins], and returns a dense view
	// [Items][frames][width].
	Encode(p pass.Pass, in *conformer.Batch, x pass.View) pass.View
}

// A Network is an encoder with its front end and its heads, loaded on a device.
type Network struct {
	Device       pass.Device
	Encoder      Encoder
	FrontEnd     pass.Param       // of [pass.MelWeights]
	CTC          *ctc.Head        // nil: none
	Transducer   *transducer.Head // nil: none
	FrameSamples int              // samples from one frame of the encoder to the next
}

// A Head is what reads the encoder's frames.
type Head uint8

// The heads. BestHead is the transducer if the network has one, else CTC.
const (
	BestHead Head = iota
	CTCHead
	TransducerHead
)

// Windows that suit most networks.
const (
	DefaultWindow  = 30 * time.Second
	DefaultOverlap = 4 * time.Second
)

// A Config configures a recogniser. The zero value is good.
type Config struct {
	Label   string        // for error messages and dumps
	Latency pass.Latency  // of the session
	Math    pass.Math     // of the recordings
	Head    Head          // which one is used
	Window  time.Duration // longest audio that is recognised at once; 0: the network's
	Overlap time.Duration // of windows, less than half of one
	Batch   int           // windows at a time; 0: 8
	// Progress, if not nil, is called whenever windows are done, with how many of how many
	// are, on the goroutine that recognises.
	Progress func(done, all int)
}

// A Token is a token and when it is said, in frames of the encoder.
type Token struct {
	ID     int
	Frame  int // first frame
	Frames int // as far as the head says, at least 1
}

// IDs returns the ids of tokens.
func IDs(tokens []Token) []int {
	ids := make([]int, len(tokens))
	for i, t := range tokens {
		ids[i] = t.ID
	}
	return ids
}

// check returns the configuration with defaults, and the window and the overlap in
// samples, whole frames of the encoder.
func (c Config) check(net Network) (_ Config, window, overlap int, err error) {
	fail := func(format string, a ...any) (Config, int, int, error) {
		return c, 0, 0, fmt.Errorf("asr: %s: %w", fmt.Sprintf(format, a...), pass.ErrInvalid)
	}
	if net.Device == nil || net.Encoder == nil || net.FrameSamples < 1 || net.CTC == nil && net.Transducer == nil {
		return fail("want a network with a device, an encoder, the samples of a frame and a head")
	}
	if c.Head == BestHead {
		c.Head = TransducerHead
		if net.Transducer == nil {
			c.Head = CTCHead
		}
	}
	if c.Head == CTCHead && net.CTC == nil || c.Head == TransducerHead && net.Transducer == nil || c.Head > TransducerHead {
		return fail("head: want one that the network has, given %d", c.Head)
	}
	if c.Window == 0 {
		c.Window, c.Overlap = DefaultWindow, DefaultOverlap
	}
	if c.Window < time.Second || c.Window > 24*time.Hour || c.Overlap < 0 || c.Overlap >= c.Window/2 {
		return fail("want windows of 1 s to 24 h that overlap by less than half, given %v and %v", c.Window, c.Overlap)
	}
	if c.Batch == 0 {
		c.Batch = 8
	}
	if c.Batch < 1 || c.Batch > 1024 {
		return fail("batch: want 1 to 1024, given %d", c.Batch)
	}
	whole := func(d time.Duration) int {
		return int(d.Seconds()*SampleRate) / net.FrameSamples * net.FrameSamples
	}
	return c, whole(c.Window), whole(c.Overlap), nil
}
