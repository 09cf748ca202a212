package gpu

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/tandem-gpu/tandem/gpu/internal/driver"
	"github.com/tandem-gpu/tandem/pass"
)

// A system is what Open and Adapters look at.
type system struct {
	getenv   func(string) string
	provider func(request) (driver.Provider, error)
}

// host is the system that the program runs on.
var host = system{getenv: os.Getenv, provider: newProvider}

// Open opens an adapter as a device. Without a name in cfg or in the environment, those
// that [Adapters] ranks are tried in order, each through its APIs in order. When none
// opens, the error wraps ErrNoDevice and has every adapter with the reason, or what was
// looked for; it wraps ErrUnsupported too if an adapter lacks something that cfg wants.
// A value in cfg or the environment that names nothing, or a name that fits several
// adapters, is ErrInvalid. When ctx ends, Open returns its error at once; drivers cannot
// be interrupted, so a device that is still to come is closed when it comes.
func Open(ctx context.Context, cfg Config) (pass.Device, error) { return host.open(ctx, cfg) }

func (s system) open(ctx context.Context, cfg Config) (pass.Device, error) {
	r, err := cfg.resolve(s.getenv)
	if err != nil {
		return nil, err
	}
	return bounded(ctx, "open", func() (pass.Device, error) {
		p, err := s.provider(r)
		if err != nil {
			return nil, fmt.Errorf("gpu: open: %w", err)
		}
		defer p.Close()
		return openBest(ctx, p, r)
	}, func(d pass.Device) { d.Close() })
}

// openBest opens the best adapter of a provider that works.
func openBest(ctx context.Context, p driver.Provider, r request) (pass.Device, error) {
	found, err := p.Adapters(ctx)
	if err != nil {
		return nil, fmt.Errorf("gpu: open: %w", err)
	}
	list, err := judge(merge(found), r)
	if err != nil {
		return nil, err
	}
	var failed []error
	for _, c := range list {
		r.log.Debug("gpu adapter", "adapter", c.String(), "rank", c.Rank, "reason", c.Reason)
		for _, way := range c.ways {
			if ctx.Err() != nil {
				return nil, fmt.Errorf("gpu: open: %w", context.Cause(ctx))
			}
			d, err := openWay(ctx, p, way, r)
			if err == nil {
				r.log.Info("gpu device opened", "adapter", c.String(), "api", way.API, "reason", c.Reason)
				return d, nil
			}
			r.log.Warn("gpu adapter failed", "adapter", c.String(), "api", way.API, "error", err)
			failed = append(failed, fmt.Errorf("%d: %s through %s: %w", c.Index, c.Name, way.API, err))
		}
	}
	e := &openError{failed: failed}
	for _, c := range list {
		if c.Rank == 0 && !c.other {
			e.declined = append(e.declined, c.String()+": "+c.Reason)
		}
	}
	return nil, e
}

// openWay opens one adapter. The features are those that the backend knows how to use.
func openWay(ctx context.Context, p driver.Provider, a driver.Adapter, r request) (pass.Device, error) {
	features := a.Features & driver.FeatureTimestamps
	if kind := kindOf(a); kind == kindIntegrated || kind == kindSoftware {
		features |= a.Features & driver.FeatureMappedStorage
	}
	d, err := p.Open(ctx, a.Index, driver.DeviceConfig{Label: "tandem", Limits: r.limits, Features: features, MemoryBudget: r.budget})
	if err != nil {
		return nil, err
	}
	return newDevice(d, a, options{provider: providerName(p), watchdog: r.watchdog, log: r.log}), nil
}

// An openError says why no adapter was opened.
type openError struct {
	failed   []error
	declined []string
}

// Error implements error.
func (e *openError) Error() string {
	var parts []string
	for _, err := range e.failed {
		parts = append(parts, err.Error())
	}
	text := "gpu: open: "
	if len(parts) == 0 {
		text += "no adapter that may be taken: "
	}
	return text + strings.Join(append(parts, e.declined...), "; ")
}

// Unwrap makes the causes known to errors.Is.
func (e *openError) Unwrap() []error { return append([]error{pass.ErrNoDevice}, e.failed...) }

// bounded runs f and returns what it returns, or ctx's error as soon as ctx ends. What
// f returns after that goes to discard, if that is not nil.
func bounded[T any](ctx context.Context, what string, f func() (T, error), discard func(T)) (T, error) {
	type result struct {
		value T
		err   error
	}
	var none T
	if ctx == nil {
		return none, fmt.Errorf("gpu: %s: want a context, given nil: %w", what, pass.ErrInvalid)
	}
	if ctx.Err() != nil {
		return none, fmt.Errorf("gpu: %s: %w", what, context.Cause(ctx))
	}
	done := make(chan result)
	go func() {
		var r result
		defer func() {
			if p := recover(); p != nil {
				r = result{err: fmt.Errorf("gpu: %s: panic: %v: %w", what, p, pass.ErrNoDevice)}
			}
			select {
			case done <- r:
			case <-ctx.Done():
				if r.err == nil && discard != nil {
					discard(r.value)
				}
			}
		}()
		r.value, r.err = f()
	}()
	select {
	case r := <-done:
		return r.value, r.err
	case <-ctx.Done():
		return none, fmt.Errorf("gpu: %s: %w", what, context.Cause(ctx))
	}
}
