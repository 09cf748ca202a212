package whisper

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/pass/cpu"
)

// devices are the devices under test.
var devices = []struct {
	name string
	open func(context.Context) (pass.Device, error)
}{
	{"cpu", func(context.Context) (pass.Device, error) { return cpu.Open(cpu.Config{}) }},
}

// onDevices runs a test on every device.
func onDevices(t *testing.T, test func(t *testing.T, dev pass.Device)) {
	for _, d := range devices {
		t.Run(d.name, func(t *testing.T) {
			dev, err := d.open(t.Context())
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, dev.Close()) })
			test(t, dev)
		})
	}
}
