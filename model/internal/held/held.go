// Package held has what every loaded network holds: its params on a device, until it is
// closed.
package held

import (
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

// Usable returns an error that wraps pass.ErrClosed after Close.
func (p *Params) Usable() error {
	if p.closed.Load() {
		return fmt.Errorf("%s: model: %w", p.network, pass.ErrClosed)
	}
	return nil
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
