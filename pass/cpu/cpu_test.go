package cpu_test

import (
	"testing"

	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/pass/cpu"
	"github.com/tandem-gpu/tandem/pass/passtest"
)

func TestConformance(t *testing.T) {
	passtest.Run(t, func(t testing.TB) pass.Device {
		dev, err := cpu.Open(cpu.Config{})
		if err != nil {
			t.Fatal(err)
		}
		return dev
	})
}
