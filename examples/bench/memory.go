package main

import (
	"bytes"
	"context"
	"fmt"
	"regexp"
	"strconv"

	"github.com/tandem-gpu/tandem/pass"
)

// A metered device counts what sessions hold on it.
type metered struct {
	pass.Device
	state     int64 // bytes of buffers and caches, those that were freed too
	workspace int64 // bytes, the sum over sessions
}

type meteredSession struct {
	pass.Session
	device *metered
	most   int64 // of the workspace
}

func (m *metered) NewSession(cfg pass.SessionConfig) (pass.Session, error) {
	s, err := m.Device.NewSession(cfg)
	if err != nil {
		return nil, err
	}
	return &meteredSession{Session: s, device: m}, nil
}

func (s *meteredSession) Alloc(t pass.DType, n int) (pass.Buffer, error) {
	b, err := s.Session.Alloc(t, n)
	if err == nil {
		s.device.state += t.Bytes(n)
	}
	return b, err
}

func (s *meteredSession) NewCache(cfg pass.CacheConfig) (pass.Cache, error) {
	c, err := s.Session.NewCache(cfg)
	if err == nil {
		cfg = c.Config()
		s.device.state += 2 * cfg.Type.Bytes(cfg.Batch*cfg.Capacity*cfg.Heads*cfg.HeadDim)
	}
	return c, err
}

func (s *meteredSession) Record(ctx context.Context, opt pass.RecordOptions, f func(pass.Pass)) (pass.Recording, error) {
	r, err := s.Session.Record(ctx, opt, f)
	if err != nil {
		return r, err
	}
	var dump bytes.Buffer
	if err := r.Dump(&dump); err != nil {
		return r, err
	}
	if n := workspaceBytes(dump.Bytes()); n > s.most {
		// Recordings of a session share one workspace: that of the largest.
		s.device.workspace += n - s.most
		s.most = n
	}
	return r, nil
}

// workspaceLine is how dumps say what a session's workspace has.
var workspaceLine = regexp.MustCompile(`(?m)^workspace: (?:.*the session's workspace has )?(\d+) bytes`)

// workspaceBytes finds the workspace in the dump of a recording; 0 if it does not say.
func workspaceBytes(dump []byte) int64 {
	m := workspaceLine.FindSubmatch(dump)
	if m == nil {
		return 0
	}
	n, err := strconv.ParseInt(string(m[1]), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// note says what a network with so many bytes of weights has on the device.
func (m *metered) note(weights int64) string {
	mb := func(n int64) string { return fmt.Sprintf("%.1f", float64(n)/1e6) }
	return fmt.Sprintf("%s MB: weights %s, workspace %s, state %s",
		mb(weights+m.workspace+m.state), mb(weights), mb(m.workspace), mb(m.state))
}
