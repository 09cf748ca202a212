package ge2e

import (
	"context"
	"errors"

	"github.com/tandem-gpu/tandem/model/frontend"
	"github.com/tandem-gpu/tandem/model/internal/held"
	"github.com/tandem-gpu/tandem/model/internal/idle"
	"github.com/tandem-gpu/tandem/model/weights"
	"github.com/tandem-gpu/tandem/pass"
)

// A Model is a network on a device. It may be used from any goroutine: calls of Embed run
// at the same time, each in a session of its own. A [Session] is used by one goroutine at
// a time.
type Model struct {
	cfg    Config
	params held.Params

	mel, lstm, linear pass.Param

	idle idle.Pool[*Session] // for Embed
}

// maxIdle is the number of sessions that are kept for later calls of Embed.
const maxIdle = 2

// mels are the bins of the front end.
const mels = 40

// Load brings a network to a device. The tensors are lstm.weight_ih_lN [4·hidden][40 or
// hidden], lstm.weight_hh_lN [4·hidden][hidden], lstm.bias_ih_lN and lstm.bias_hh_lN
// [4·hidden] with the gates in the order i, f, g, o, linear.weight [width][hidden] and
// linear.bias [width]; others are not looked at. src is read during Load only. An error
// names the tensor, the shape that was wanted and the one given, and wraps
// pass.ErrInvalid, or is the device's or the source's; nothing is left on the device
// then. The device must stay open as long as the Model is used.
func Load(ctx context.Context, dev pass.Device, src weights.Source, cfg Config) (*Model, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	m := &Model{cfg: cfg}
	m.idle.Most = maxIdle
	l := weights.NewLoader(ctx, dev, src)
	mel := frontend.GE2E()
	mel.PadLeft, mel.PadRight = 0, 0 // windows are cut with the samples around them
	m.mel = l.Load(mel, nil)
	m.lstm = l.Load(weights.LSTM(l, "lstm", mels, cfg.Hidden, cfg.Layers, 1))
	m.linear = l.Load(weights.Linear(l, cfg.Hidden, weights.Rows("linear", cfg.Width, true)))
	if err := m.params.Take("ge2e", dev, l); err != nil {
		return nil, err
	}
	return m, nil
}

// Config returns the size of the network.
func (m *Model) Config() Config { return m.cfg }

// Embed takes a clip, in a session of its own; see [Session.Embed].
func (m *Model) Embed(ctx context.Context, samples []float32) (Utterance, error) {
	return idle.Use(ctx, &m.idle, m.open, func(s *Session) (Utterance, error) { return s.Embed(ctx, samples) })
}

// Close gives up the network's weights and the sessions of Embed. Other sessions are
// closed on their own, before or after; they return pass.ErrClosed from now on. Close may
// be called again, and on nil.
func (m *Model) Close() error {
	if m == nil {
		return nil
	}
	return errors.Join(m.params.Close(), m.idle.Close())
}
