package cuda

import (
	"fmt"

	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/pass/backend"
)

func newCache(d *device, cfg pass.CacheConfig) (backend.Memory, error) {
	return nil, fmt.Errorf("cache: %w", pass.ErrUnsupported)
}
