package cuda

import (
	"context"
	"fmt"

	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/pass/backend"
)

// op compiles one op.
func (c *compiler) op(step pass.Checked) error {
	switch op := step.Op.(type) {
	case pass.Fill:
		return c.fill(op, step.Cost)
	}
	return fmt.Errorf("no kernel: %w", pass.ErrUnsupported)
}

// load lays weights out on the device.
func (d *device) load(ctx context.Context, w pass.Weights, shape pass.ParamShape) (backend.Memory, error) {
	return nil, fmt.Errorf("weights %T: %w", w, pass.ErrUnsupported)
}
