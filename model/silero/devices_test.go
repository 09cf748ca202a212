package silero

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tandem-gpu/tandem/model/internal/undertest"
	"github.com/tandem-gpu/tandem/pass"
)

// devices are the devices under test.
var devices = undertest.Names()

// onDevices runs a test with the embedded network on every device under test.
func onDevices(t *testing.T, test func(t *testing.T, model *Model)) {
	undertest.Each(t, func(t *testing.T, dev pass.Device) { test(t, load(t, dev)) })
}

func load(t testing.TB, dev pass.Device) *Model {
	model, err := Load(context.Background(), dev, Embedded())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, model.Close()) })
	return model
}

// tolerance is the largest difference to the probabilities of ONNX Runtime.
const tolerance = 1e-5

func requireClose(t *testing.T, want, got []float32, what ...any) {
	t.Helper()
	require.Len(t, got, len(want), what...)
	for i := range want {
		require.InDelta(t, want[i], got[i], tolerance, "%v: chunk %d", what, i)
	}
}
