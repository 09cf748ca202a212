package undertest

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/tandem-gpu/tandem/pass"
)

// A Counted device counts the params that are loaded on it and the sessions that are
// open, for tests of what stays after a failure.
type Counted struct {
	pass.Device
	held, sessions atomic.Int64
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

// NewSession implements pass.Device.
func (c *Counted) NewSession(cfg pass.SessionConfig) (pass.Session, error) {
	s, err := c.Device.NewSession(cfg)
	if err != nil {
		return nil, err
	}
	c.sessions.Add(1)
	return &countedSession{Session: s, device: c}, nil
}

// Sessions returns how many sessions are open.
func (c *Counted) Sessions() int { return int(c.sessions.Load()) }

type countedSession struct {
	pass.Session
	device *Counted
	once   sync.Once
}

// Close implements pass.Session.
func (s *countedSession) Close() error {
	s.once.Do(func() { s.device.sessions.Add(-1) })
	return s.Session.Close()
}
