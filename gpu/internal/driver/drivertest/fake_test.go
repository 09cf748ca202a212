package drivertest_test

import (
	"testing"

	"github.com/tandem-gpu/tandem/gpu/internal/driver"
	"github.com/tandem-gpu/tandem/gpu/internal/driver/drivertest"
)

func TestDeviceInMemory(t *testing.T) {
	t.Parallel()
	drivertest.Run(t, func(testing.TB) driver.Device {
		return drivertest.New(drivertest.Config{
			Kernels: drivertest.Kernels(), MemoryBudget: drivertest.Budget, Features: driver.FeatureTimestamps,
		})
	})
}
