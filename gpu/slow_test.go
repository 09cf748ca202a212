package gpu

import (
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tandem-gpu/tandem/gpu/internal/driver"
	"github.com/tandem-gpu/tandem/gpu/internal/driver/drivertest"
)

// A crowd notes the most submissions that are unfinished at once, seen from the one that
// adds to them: nobody has to look at the right moment.
type crowd struct {
	driver.Device
	most atomic.Int32
}

func (c *crowd) Submit(commands []driver.Command) (driver.Serial, error) {
	serial, err := c.Device.Submit(commands)
	for n := int32(c.Device.Ledger().InFlight); ; {
		old := c.most.Load()
		if n <= old || c.most.CompareAndSwap(old, n) {
			return serial, err
		}
	}
}

// Two parts of a session are in flight, not more, and slow ones give right results.
func TestSlowCompletion(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := &crowd{}
		r := memoryRig(t, drivertest.Config{Faults: drivertest.Faults{Delay: 20 * time.Millisecond}}, options{}, func(d driver.Device) driver.Device { c.Device = d; return c })
		r.hw.rate = crawl
		start, _ := recordChain(t, r, 6)
		start() // what recording has sent is finished, too
		c.most.Store(0)
		for range 3 {
			start()
		}
		require.EqualValues(t, 2, c.most.Load())
	})
}

// busy refuses submissions now and then, as a device with many sessions does.
type busy struct {
	driver.Device
	count atomic.Int32
}

func (b *busy) Submit(c []driver.Command) (driver.Serial, error) {
	if b.count.Add(1)%2 == 0 {
		return 0, fmt.Errorf("test: %w", driver.ErrBusy)
	}
	return b.Device.Submit(c)
}

func TestBusyDevice(t *testing.T) {
	t.Parallel()
	b := &busy{}
	r := memoryRig(t, drivertest.Config{}, options{}, func(d driver.Device) driver.Device { b.Device = d; return b })
	require.NoError(t, work(r))
	require.Greater(t, b.count.Load(), int32(10))
}
