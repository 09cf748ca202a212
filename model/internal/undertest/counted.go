package undertest

import (
	"context"
	"sync/atomic"

	"github.com/tandem-gpu/tandem/pass"
)

// A Counted device counts the params that are loaded on it, for tests of what stays
// after a failure.
type Counted struct {
	pass.Device
	held atomic.Int64
}

// Load implements pass.Device.
func (c *Counted) Load(ctx context.Context, w pass.Weights) (pass.Param, error) {
	p, err := c.Device.Load(ctx, w)
	if err == nil {
		c.held.Add(1)
	}
	return p, err
}

// Unload implements pass.Device.
func (c *Counted) Unload(p pass.Param) error {
	err := c.Device.Unload(p)
	if err == nil {
		c.held.Add(-1)
	}
	return err
}

// Held returns how many params were loaded and not unloaded.
func (c *Counted) Held() int { return int(c.held.Load()) }
