package held

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tandem-gpu/tandem/model/internal/undertest"
	"github.com/tandem-gpu/tandem/model/weights"
	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/pass/cpu"
)

// A broken device unloads nothing.
type broken struct{ pass.Device }

var errBroken = errors.New("broken")

func (broken) Unload(pass.Param) error { return errBroken }

// A listener keeps what a session was configured with.
type listener struct {
	pass.Device
	heard pass.SessionConfig
}

func (l *listener) NewSession(cfg pass.SessionConfig) (pass.Session, error) {
	l.heard = cfg
	return l.Device.NewSession(cfg)
}

func TestParams(t *testing.T) {
	t.Parallel()
	dev, err := cpu.Open(cpu.Config{})
	require.NoError(t, err)
	loader := func() *weights.Loader {
		l := weights.NewLoader(t.Context(), dev, undertest.Source{})
		l.Load(pass.RopeWeights{Name: "turns", Positions: 4, Rot: 4, Base: 10000}, nil)
		return l
	}
	var p, none Params
	require.ErrorIs(t, none.Usable(), pass.ErrInvalid)
	require.NoError(t, none.Close())
	require.NoError(t, p.Take("net", dev, loader()))
	require.NoError(t, p.Usable())
	require.Len(t, p.params, 1)
	listening := &listener{Device: dev}
	p.dev = listening
	session, err := p.NewSession(t.Context(), pass.Interactive)
	require.NoError(t, err)
	require.NoError(t, session.Close())
	require.Equal(t, pass.SessionConfig{Label: "net", Latency: pass.Interactive}, listening.heard)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = p.NewSession(ended, pass.Batch)
	require.ErrorIs(t, err, context.Canceled)
	for range 2 {
		require.NoError(t, p.Close())
		err := p.Usable()
		require.ErrorIs(t, err, pass.ErrClosed)
		require.EqualError(t, err, "net: model: closed")
		_, err = p.NewSession(t.Context(), pass.Batch)
		require.ErrorIs(t, err, pass.ErrClosed)
	}
	require.ErrorIs(t, dev.Unload(p.params[0]), pass.ErrClosed, "they are given up")

	var failed Params
	l := loader()
	l.Fail(errBroken)
	err = failed.Take("net", dev, l)
	require.ErrorIs(t, err, errBroken)
	require.EqualError(t, err, "net: broken")

	var stuck Params
	require.NoError(t, stuck.Take("net", broken{dev}, loader()))
	require.EqualError(t, stuck.Close(), "net: broken")
	require.NoError(t, stuck.Close(), "it was told once")
	require.NoError(t, dev.Close())
}
