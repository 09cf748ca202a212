package weights

import (
	"context"
	"errors"
	"fmt"

	"github.com/tandem-gpu/tandem/pass"
)

// A Loader brings weights to a device, remembers them and the first error, after which
// it does nothing. It is itself the source that it was made with, and fails with that
// error, so that nothing more is read either. It is used by one goroutine.
type Loader struct {
	ctx    context.Context
	dev    pass.Device
	src    Source
	params []pass.Param
	err    error
}

// NewLoader makes a loader for a network. ctx ends the loading.
func NewLoader(ctx context.Context, dev pass.Device, src Source) *Loader {
	l := &Loader{ctx: ctx, dev: dev, src: src}
	if dev == nil || src == nil {
		l.err = fmt.Errorf("weights: want a device and a source, given nil: %w", pass.ErrInvalid)
	}
	return l
}

// Load loads w and returns its param. It takes the results of the functions of this
// package; err, if there is one, becomes the loader's.
func (l *Loader) Load(w pass.Weights, err error) pass.Param {
	l.Fail(err)
	if l.failed() != nil {
		return pass.Param{}
	}
	p, err := l.dev.Load(l.ctx, w)
	if err != nil {
		l.Fail(err)
		return pass.Param{}
	}
	l.params = append(l.params, p)
	return p
}

// Fail makes err the loader's error, unless it is nil or there is one.
func (l *Loader) Fail(err error) {
	if l.err == nil {
		l.err = err
	}
}

func (l *Loader) failed() error {
	if l.err == nil {
		if err := l.ctx.Err(); err != nil {
			l.err = fmt.Errorf("weights: %w", err)
		}
	}
	return l.err
}

// Tensor implements [Source].
func (l *Loader) Tensor(name string) (pass.Tensor, error) {
	if err := l.failed(); err != nil {
		return pass.Tensor{}, err
	}
	return l.src.Tensor(name)
}

// Has reports whether the source has the named tensor.
func (l *Loader) Has(name string) bool { return l.src != nil && Has(l.src, name) }

// Names implements [Source].
func (l *Loader) Names() []string {
	if l.src == nil {
		return nil
	}
	return l.src.Names()
}

// Params returns all params that were loaded, for [Unload], or the error, and then
// nothing stays on the device.
func (l *Loader) Params() ([]pass.Param, error) {
	if err := l.failed(); err != nil {
		params := l.params
		l.params = nil
		return nil, errors.Join(err, Unload(l.dev, params))
	}
	return l.params, nil
}

// Unload gives up params of a device, which may be closed.
func Unload(dev pass.Device, params []pass.Param) error {
	var errs []error
	for _, p := range params {
		if err := dev.Unload(p); !errors.Is(err, pass.ErrClosed) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
