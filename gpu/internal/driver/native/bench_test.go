//go:build cgo && !js && (linux || darwin || windows)

package native

import (
	"testing"

	"github.com/tandem-gpu/tandem/gpu/internal/driver"
	"github.com/tandem-gpu/tandem/gpu/internal/driver/drivertest"
)

// BenchmarkSubmit1000 is the host's time to check, encode and submit 1000 dispatches.
func BenchmarkSubmit1000(b *testing.B) {
	for name, storage := range map[string]int{"1 buffer": 1, "4 buffers": 4, "8 buffers": 8} {
		b.Run(name, func(b *testing.B) {
			d := openDevice(b, newProvider(b), driver.DeviceConfig{})
			drivertest.BenchmarkSubmit(b, d, drivertest.Thousand(b, d, storage))
		})
	}
}

// BenchmarkSubmitEmpty is the cost of a submission by itself, with the wait for it.
func BenchmarkSubmitEmpty(b *testing.B) {
	drivertest.BenchmarkSubmit(b, openDevice(b, newProvider(b), driver.DeviceConfig{}), nil)
}

func BenchmarkRead4(b *testing.B) {
	drivertest.BenchmarkRead4(b, openDevice(b, newProvider(b), driver.DeviceConfig{}))
}

func BenchmarkUpload16M(b *testing.B) {
	drivertest.BenchmarkUpload16M(b, openDevice(b, newProvider(b), driver.DeviceConfig{}))
}
