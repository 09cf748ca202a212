// Package held has what every loaded network holds: its params on a device, until it is
// closed.
package held

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/tandem-gpu/tandem/model/weights"
	"github.com/tandem-gpu/tandem/pass"
)

// Params are the params of a network. They may be used from any goroutine.
type Params struct {
	network string // that errors begin with
	dev     pass.Device
	params  []pass.Param
	closed  atomic.Bool
}

// Take takes the params that a loader has loaded to a device, or returns its error, with
// the network's name before it.
func (p *Params) Take(network string, dev pass.Device, l *weights.Loader) error {
	params, err := l.Params()
	if err != nil {
		return fmt.Errorf("%s: %w", network, err)
	}
	p.network, p.dev, p.params = network, dev, params
	return nil
}

// Usable returns an error that wraps pass.ErrClosed after Close, and pass.ErrInvalid if
// nothing was taken.
func (p *Params) Usable() error {
	if p.dev == nil {
		return fmt.Errorf("model: not loaded: %w", pass.ErrInvalid)
	}
	if p.closed.Load() {
		return fmt.Errorf("%s: model: %w", p.network, pass.ErrClosed)
	}
	return nil
}

// NewSession opens a session that uses the params on their device.
func (p *Params) NewSession(ctx context.Context, latency pass.Latency) (pass.Session, error) {
	if err := p.Usable(); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("%s: session: %w", p.network, err)
	}
	s, err := p.dev.NewSession(pass.SessionConfig{Label: p.network, Latency: latency})
	if err != nil {
		return nil, fmt.Errorf("%s: session: %w", p.network, err)
	}
	return s, nil
}

// Close gives the params up. It does nothing when it is called again.
func (p *Params) Close() error {
	if p.closed.Swap(true) {
		return nil
	}
	if err := weights.Unload(p.dev, p.params); err != nil {
		return fmt.Errorf("%s: %w", p.network, err)
	}
	return nil
}
