package asr

import (
	"context"
	"fmt"
	"time"

	"github.com/tandem-gpu/tandem/model/conformer"
	"github.com/tandem-gpu/tandem/model/ctc"
	"github.com/tandem-gpu/tandem/model/transducer"
	"github.com/tandem-gpu/tandem/model/vocabulary"
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
	Name         string // for errors and dumps
	Device       pass.Device
	Encoder      Encoder
	FrontEnd     pass.Param       // of [pass.MelWeights]
	CTC          *ctc.Head        // nil: none
	Transducer   *transducer.Head // nil: none
	FrameSamples int              // samples from one frame of the encoder to the next
	Vocabulary   vocabulary.Vocabulary
	// Window and Overlap are those of sessions that are not asked for others; 0:
	// DefaultWindow and DefaultOverlap.
	Window, Overlap time.Duration
	// Usable, if not nil, is asked before anything is done. Its error, such as one that
	// wraps pass.ErrClosed, is that of the call.
	Usable func() error
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

// A SessionConfig configures a session. The zero value is good.
type SessionConfig struct {
	Batch int  // windows at a time; 0: 8
	Head  Head // which one is used
	// Window is the longest audio that is transcribed at once, and Overlap what a window has
	// of the one before, less than half; both are cut to whole frames of the encoder. A
	// Window of 0: the network's, with its Overlap.
	Window, Overlap time.Duration
	Math            pass.Math // of all recordings
	Latency         pass.Latency
}

// check returns the configuration with defaults, and the window and the overlap in
// samples, whole frames of the encoder.
func (c SessionConfig) check(net Network) (_ SessionConfig, window, overlap int, err error) {
	fail := func(format string, a ...any) (SessionConfig, int, int, error) {
		return c, 0, 0, fmt.Errorf("asr: session: %s: %w", fmt.Sprintf(format, a...), pass.ErrInvalid)
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
		c.Window, c.Overlap = net.Window, net.Overlap
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
