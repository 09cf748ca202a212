package dawn

import (
	"fmt"
	"strconv"

	"github.com/tandem-gpu/tandem/pass"
)

// The environment variables that [FromEnvironment] reads.
const (
	EnvLibrary   = "TANDEM_DAWN"            // path of the library
	EnvUnchecked = "TANDEM_DAWN_UNCHECKED"  // 1: kernels' indices go unchecked
	EnvNVIDIAF16 = "TANDEM_DAWN_NVIDIA_F16" // 0: no f16 on NVIDIA devices under Vulkan
	EnvCache     = "TANDEM_DAWN_CACHE"      // folder of compiled kernels; "off": none
)

// Options configures the provider.
type Options struct {
	// Library is the path of the library; empty: see [Find].
	Library string
	// Unchecked leaves out the checks of array indices in kernels. It is only for
	// kernels that have passed their tests with the checks on.
	Unchecked bool
	// NoNVIDIAF16 keeps f16, and the matrix shapes that have it, off NVIDIA devices
	// under Vulkan, as the library does by itself: some of its own tests of f16 fail
	// there.
	NoNVIDIAF16 bool
	// Cache is the folder in which compiled kernels are kept for the next start; empty:
	// one in the user's cache folder; "off": nothing is kept.
	Cache string
	// Debug lets the library print to standard error while it looks for adapters.
	Debug bool
}

// FromEnvironment fills the fields that are not set from the environment.
func (o Options) FromEnvironment(getenv func(string) string) (Options, error) {
	if o.Library == "" {
		o.Library = getenv(EnvLibrary)
	}
	if o.Cache == "" {
		o.Cache = getenv(EnvCache)
	}
	for _, v := range []struct {
		name  string
		value *bool
		sense bool
	}{{EnvUnchecked, &o.Unchecked, true}, {EnvNVIDIAF16, &o.NoNVIDIAF16, false}} {
		text := getenv(v.name)
		if text == "" || *v.value {
			continue
		}
		given, err := strconv.ParseBool(text)
		if err != nil {
			return Options{}, fmt.Errorf("dawn: %s: want 1 or 0, given %q: %w", v.name, text, pass.ErrInvalid)
		}
		*v.value = given == v.sense
	}
	return o, nil
}
