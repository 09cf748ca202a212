//go:build ((linux || darwin) && (amd64 || arm64) && !android && !ios) || (windows && amd64)

package dawn

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tandem-gpu/tandem/gpu/internal/driver"
	"github.com/tandem-gpu/tandem/gpu/internal/driver/drivertest"
)

// BenchmarkSubmit1000 is the host's time to check, encode and submit 1000 dispatches.
func BenchmarkSubmit1000(b *testing.B) {
	for name, storage := range map[string]int{"1 buffer": 1, "4 buffers": 4, "8 buffers": 8} {
		b.Run(name, func(b *testing.B) {
			d := openDevice(b, newProvider(b, Options{}), driver.DeviceConfig{})
			drivertest.BenchmarkSubmit(b, d, drivertest.Thousand(b, d, storage))
		})
	}
}

// BenchmarkSubmitEmpty is the cost of a submission by itself, with the wait for it.
func BenchmarkSubmitEmpty(b *testing.B) {
	drivertest.BenchmarkSubmit(b, openDevice(b, newProvider(b, Options{}), driver.DeviceConfig{}), nil)
}

func BenchmarkRead4(b *testing.B) {
	drivertest.BenchmarkRead4(b, openDevice(b, newProvider(b, Options{}), driver.DeviceConfig{}))
}

func BenchmarkUpload16M(b *testing.B) {
	drivertest.BenchmarkUpload16M(b, openDevice(b, newProvider(b, Options{}), driver.DeviceConfig{}))
}

// BenchmarkStart is everything up to a compiled kernel, but for loading the library:
// cold with nothing in the cache of compiled kernels, warm with all of it.
func BenchmarkStart(b *testing.B) {
	start := func(b *testing.B, dir string) {
		p := newProvider(b, Options{Cache: dir})
		d, err := p.Open(context.Background(), drivertest.Best(b, p).Index, driver.DeviceConfig{})
		require.NoError(b, err)
		id, err := d.CreateBuffer(driver.BufferDesc{Size: 256, Usage: driver.Storage})
		require.NoError(b, err)
		drivertest.AddOne(b, d, id)
		b.StopTimer()
		require.NoError(b, d.Close())
		require.NoError(b, p.Close())
		b.StartTimer()
	}
	b.Run("cold", func(b *testing.B) {
		for range b.N {
			start(b, b.TempDir())
		}
	})
	b.Run("warm", func(b *testing.B) {
		dir := b.TempDir()
		start(b, dir)
		b.ResetTimer()
		for range b.N {
			start(b, dir)
		}
	})
}
