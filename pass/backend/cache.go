package backend

import (
	"fmt"

	"github.com/tandem-gpu/tandem/pass"
)

func (s *session) NewCache(cfg pass.CacheConfig) (h pass.Cache, err error) {
	defer guard(s.d.name, "new cache", &err)
	cfg, err = cfg.Check()
	if err != nil {
		return h, s.wrap("new cache", err)
	}
	err = s.own(&s.caches, func() (Memory, error) { return s.stream.NewCache(cfg) }, func(ref pass.Ref) any {
		h = pass.MakeCache(ref, cfg)
		return h
	})
	if err != nil {
		return pass.Cache{}, s.wrap("new cache", fmt.Errorf("%+v: %w", cfg, err))
	}
	return h, nil
}

func (s *session) FreeCache(h pass.Cache) error {
	m, err := s.cache(h)
	if err == nil {
		s.mu.Lock()
		_, ok := s.caches.remove(h.Ref().ID, h.Ref().Generation)
		s.mu.Unlock()
		if !ok {
			err = fmt.Errorf("%v: freed: %w", h, pass.ErrClosed)
		}
	}
	if err != nil {
		return s.wrap("free cache", err)
	}
	s.d.release(m)
	return nil
}

// cache returns what a handle of a cache names.
func (s *session) cache(h pass.Cache) (*shared, error) {
	ref := h.Ref()
	switch {
	case h.IsZero():
		return nil, fmt.Errorf("want a cache, given none: %w", pass.ErrInvalid)
	case ref.Device != s.d.number:
		return nil, fmt.Errorf("%v: of another device: %w", h, pass.ErrInvalid)
	case ref.Session != s.number:
		return nil, fmt.Errorf("%v: of another session: %w", h, pass.ErrInvalid)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	m, ok := s.caches.get(ref.ID, ref.Generation)
	if !ok {
		return nil, fmt.Errorf("%v: freed: %w", h, pass.ErrClosed)
	}
	if m.handle != h {
		return nil, fmt.Errorf("%v: no such handle: %w", h, pass.ErrInvalid)
	}
	return m, nil
}
