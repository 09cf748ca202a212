//go:build ((linux || darwin) && (amd64 || arm64) && !android && !ios) || (windows && amd64)

package dawn

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tandem-gpu/tandem/gpu/internal/driver"
	"github.com/tandem-gpu/tandem/gpu/internal/driver/drivertest"
)

// allowance is how many bytes may be held when memory has settled.
func allowance(bytes int) int {
	if underRace {
		return math.MaxInt
	}
	return bytes
}

// waiting is how many operations have no outcome yet.
func waiting() int {
	operations.mu.Lock()
	defer operations.mu.Unlock()
	return len(operations.entries)
}

// 20,000 callbacks arrive while the collector runs all the time: a submission's, a
// map's and an error scope's.
func TestCallbacksWhileCollecting(t *testing.T) {
	d := openDevice(t, newProvider(t, Options{}), driver.DeviceConfig{})
	drivertest.Collect(t)
	n := drivertest.Rounds(3400)
	drivertest.RoundTrips(t, d, n, func() { require.NoError(t, d.scoped("nothing", func() {})) })
	t.Logf("%d callbacks", 6*n)
	done, err := d.Done()
	require.NoError(t, err)
	require.EqualValues(t, n, done)
	// What another test gave up may take a moment to end.
	require.Eventually(t, func() bool { return waiting() == 0 }, patience, time.Millisecond, "operations without an outcome")
}

func TestEightGoroutinesWhileCollecting(t *testing.T) {
	d := openDevice(t, newProvider(t, Options{}), driver.DeviceConfig{})
	drivertest.Collect(t)
	drivertest.Hammer(t, d, 8, drivertest.Rounds(30))
}

func TestManySubmissions(t *testing.T) {
	d := openDevice(t, newProvider(t, Options{}), driver.DeviceConfig{})
	drivertest.ManySubmissions(t, d, drivertest.Rounds(3000), allowance(4<<20))
}

func TestOpenAndClose(t *testing.T) {
	drivertest.OpenAndClose(t, newProvider(t, Options{}), drivertest.Rounds(100), allowance(8<<20))
	require.Empty(t, devices.entries)
}

// Providers come and go, too, and share one instance, of which some drivers have few to
// give.
func TestOpenAndCloseProviders(t *testing.T) {
	a, b := newProvider(t, Options{}), newProvider(t, Options{})
	drivertest.Best(t, a)
	drivertest.Best(t, b)
	require.Equal(t, a.instance, b.instance)
	cycle := func(n int) {
		for range n {
			p := newProvider(t, Options{})
			d, err := p.Open(context.Background(), 0, driver.DeviceConfig{})
			require.NoError(t, err)
			require.NoError(t, p.Close())
			require.NoError(t, d.Close())
		}
	}
	drivertest.Settles(t, allowance(8<<20), func() { cycle(drivertest.Rounds(10)) })
}
