package gpu

import (
	"errors"
	"fmt"
	"runtime"
	"strings"

	"github.com/tandem-gpu/tandem/gpu/internal/driver"
	"github.com/tandem-gpu/tandem/gpu/internal/driver/dawn"
	"github.com/tandem-gpu/tandem/gpu/internal/driver/native"
	"github.com/tandem-gpu/tandem/pass"
)

const (
	providerNative = "native"
	providerDawn   = "dawn"
)

// setProvider understands the provider and what goes with it. Naming a library chooses
// it, unless a provider is named.
func (r *request) setProvider(provider, from, library string, getenv func(string) string) (err error) {
	switch provider {
	case "", providerNative, providerDawn:
	default:
		return fmt.Errorf("gpu: %s: want %s or %s, given %q: %w", from, providerNative, providerDawn, provider, pass.ErrInvalid)
	}
	if library != "" && provider == providerNative {
		return fmt.Errorf("gpu: Library: %q is for provider %s, %s is %q: %w", library, providerDawn, from, provider, pass.ErrInvalid)
	}
	if r.dawn, err = (dawn.Options{Library: library}).FromEnvironment(getenv); err != nil {
		return fmt.Errorf("gpu: %w", err)
	}
	r.provider = provider
	if provider == "" && r.dawn.Library != "" {
		r.provider = providerDawn
	}
	return nil
}

// newProvider opens the provider that was chosen and no other. Without a choice it is
// the native one, or Dawn where the native one is not in the program.
func newProvider(r request) (driver.Provider, error) {
	if runtime.GOOS == "js" {
		return nil, fmt.Errorf("the browser's WebGPU is not in this version; the cpu backend works: %w", pass.ErrNoDevice)
	}
	r.dawn.Debug = r.debug
	switch r.provider {
	case providerDawn:
		return dawn.New(r.dawn)
	case providerNative:
		return native.New(native.Options{Debug: r.debug})
	}
	p, err := native.New(native.Options{Debug: r.debug})
	if err == nil {
		return p, nil
	}
	p, without := dawn.New(r.dawn)
	if without != nil {
		return nil, errors.Join(err, without)
	}
	return p, nil
}

// providerName names a provider for Info, with the library if it was found at run time.
func providerName(p driver.Provider) string {
	if l, ok := p.(driver.Loaded); ok {
		return fmt.Sprintf("%s (%s)", p.Name(), l.Library())
	}
	return p.Name()
}

// whyNoMatrix says why matrix units are not used. The kernels are all portable ones.
func whyNoMatrix(a driver.Adapter, provider string) string {
	if len(a.Matrices) == 0 {
		return "no matrix units through provider " + provider
	}
	shapes := make([]string, len(a.Matrices))
	for i, m := range a.Matrices {
		shapes[i] = m.String()
	}
	return fmt.Sprintf("there are matrix units (%s), but no kernels for them in this version", strings.Join(shapes, ", "))
}
