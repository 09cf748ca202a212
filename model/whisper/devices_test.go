package whisper

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tandem-gpu/tandem/model/internal/undertest"
	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/pass/cpu"
)

// onDevices runs a test on every device under test.
func onDevices(t *testing.T, test func(t *testing.T, dev pass.Device)) { undertest.Each(t, test) }

func openCPU(t testing.TB) pass.Device {
	dev, err := cpu.Open(cpu.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, dev.Close()) })
	return dev
}
