// Package undertest has what the tests of networks share: the devices to run on, tensors
// in memory to load, and a device that counts what is loaded on it. Only tests import it.
package undertest

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/tandem-gpu/tandem"
	"github.com/tandem-gpu/tandem/pass"
)

// Each runs a test on each device under test, as a subtest of its name: those that the
// environment variable TANDEM_DEVICES names, separated by commas, as tandem.Open takes
// them; without it, the CPU and a software adapter. If there is no software adapter the
// test is skipped, or fails if TANDEM_REQUIRE_GPU is 1. A device that was named must be
// there.
func Each(t *testing.T, test func(t *testing.T, dev pass.Device)) {
	for _, name := range Names() {
		t.Run(name, func(t *testing.T) {
			test(t, Open(t, name))
		})
	}
}

// Open opens one of the devices, and closes it after the test.
func Open(t testing.TB, name string) pass.Device {
	t.Helper()
	dev, err := tandem.Open(context.Background(), name)
	if err != nil {
		if name == "software" && os.Getenv("TANDEM_DEVICES") == "" && os.Getenv("TANDEM_REQUIRE_GPU") != "1" {
			t.Skipf("NOT TESTED ON A SOFTWARE ADAPTER: %v", err)
		}
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := dev.Close(); err != nil {
			t.Error(err)
		}
	})
	return dev
}

// First returns the first device under test, for benchmarks.
func First(t testing.TB) pass.Device { return Open(t, Names()[0]) }

// Names returns the names of the devices under test.
func Names() []string {
	if list := os.Getenv("TANDEM_DEVICES"); list != "" {
		return slices.DeleteFunc(strings.Split(list, ","), func(s string) bool { return s == "" })
	}
	return []string{"cpu", "software"}
}
