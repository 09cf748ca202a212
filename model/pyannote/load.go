package pyannote

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/tandem-gpu/tandem/model/internal/held"
	"github.com/tandem-gpu/tandem/model/internal/idle"
	"github.com/tandem-gpu/tandem/model/weights"
	"github.com/tandem-gpu/tandem/pass"
)

// A Model is a network on a device. It may be used from any goroutine: calls of Segment run
// at the same time, each in a session of its own. A [Session] is used by one goroutine at
// a time.
type Model struct {
	cfg    Config
	params held.Params

	waveNorm   pass.Param
	conv, norm [stages]pass.Param
	lstm       pass.Param
	linear     []pass.Param
	classifier pass.Param

	idle idle.Pool[*Session] // for Segment
}

// maxIdle is the number of sessions that are kept for later calls of Segment.
const maxIdle = 2

// Load brings a network to a device. Tensors have the names of pyannote's checkpoints:
// sincnet.wav_norm1d; sincnet.conv1d.0.filterbank.low_hz_ and band_hz_ [40][1], or the
// filters made of them as sincnet.conv1d.0.weight [80][1][251]; sincnet.conv1d.1 and 2;
// sincnet.norm1d.0 to 2; lstm.weight_ih_lN and so on, with _reverse for the backward
// direction, gates in the order i, f, g, o; linear.N; classifier. src is read during Load
// only. An error names the tensor, the shape that was wanted and the one given, and wraps
// pass.ErrInvalid, or is the device's or the source's; nothing is left on the device
// then. The device must stay open as long as the Model is used.
func Load(ctx context.Context, dev pass.Device, src weights.Source, cfg Config) (*Model, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	cfg.Linear = slices.Clone(cfg.Linear)
	m := &Model{cfg: cfg}
	m.idle.Most = maxIdle
	l := weights.NewLoader(ctx, dev, src)
	m.waveNorm = l.Load(weights.Norm(l, "sincnet.wav_norm1d", 1, true))
	m.conv[0] = l.Load(bank(l))
	m.conv[1] = l.Load(weights.Conv(l, "sincnet.conv1d.1", channels, filters, kernel, true))
	m.conv[2] = l.Load(weights.Conv(l, "sincnet.conv1d.2", channels, channels, kernel, true))
	for i := range m.norm {
		m.norm[i] = l.Load(weights.Norm(l, fmt.Sprint("sincnet.norm1d.", i), width(i), true))
	}
	m.lstm = l.Load(weights.LSTM(l, "lstm", channels, cfg.Hidden, cfg.Layers, 2))
	in := 2 * cfg.Hidden
	for i, out := range cfg.Linear {
		m.linear = append(m.linear, l.Load(weights.Linear(l, in, weights.Rows(fmt.Sprint("linear.", i), out, true))))
		in = out
	}
	m.classifier = l.Load(weights.Linear(l, in, weights.Rows("classifier", cfg.Classes, true)))
	if err := m.params.Take("pyannote", dev, l); err != nil {
		return nil, err
	}
	return m, nil
}

// width returns the channels of a convolution.
func width(stage int) int {
	if stage == 0 {
		return filters
	}
	return channels
}

// Config returns the size of the network.
func (m *Model) Config() Config {
	c := m.cfg
	c.Linear = slices.Clone(c.Linear)
	return c
}

// Segment takes any number of windows of up to 10 s, in a session of its own; see
// [Session.Segment].
func (m *Model) Segment(ctx context.Context, windows ...[]float32) ([][]float32, error) {
	return idle.Use(ctx, &m.idle, m.open, func(s *Session) ([][]float32, error) { return s.Segment(ctx, windows...) })
}

// Close gives up the network's weights and the sessions of Segment. Other sessions are
// closed on their own, before or after; they return pass.ErrClosed from now on. Close may
// be called again, and on nil.
func (m *Model) Close() error {
	if m == nil {
		return nil
	}
	return errors.Join(m.params.Close(), m.idle.Close())
}
