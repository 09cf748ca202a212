package gpu

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tandem-gpu/tandem/gpu/internal/driver"
	"github.com/tandem-gpu/tandem/gpu/internal/driver/drivertest"
	"github.com/tandem-gpu/tandem/pass"
)

func TestCheckMark(t *testing.T) {
	t.Parallel()
	const serial, count = 7<<32 | 9, 41
	status, err := checkMark([]uint32{9, 7, 5, count}, serial, count)
	require.NoError(t, err)
	require.EqualValues(t, 5, status)
	for _, words := range [][]uint32{{9, 7, 0, count - 1}, {9, 7, 0, count + 1}, {8, 7, 0, count}, {9, 6, 0, count}, {0, 0, 0, 0}} {
		_, err := checkMark(words, serial, count)
		require.ErrorIs(t, err, pass.ErrDeviceLost, "%v", words)
	}
}

// A mark counts one, keeps the status of the run and clears it for the next kernel, on
// the device as in its double.
func TestMarkKernel(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, r *rig) {
		d, ctx := r.hw, context.Background()
		marked, err := newTimeline(d)
		require.NoError(t, err)
		defer marked.free()
		other, err := newTimeline(d)
		require.NoError(t, err)
		s := &stream{d: d, timeline: other}
		defer s.Close()
		m, err := s.Alloc(pass.U32, timelineSize)
		require.NoError(t, err)
		defer m.Free()
		written, err := d.alloc("written", 4)
		require.NoError(t, err)
		defer written.Free()
		require.NoError(t, s.Write(ctx, m, 0, []uint32{6, 0, 0, 0, 11, 12, 1, 40}))

		words, id := make([]uint32, timelineSize), m.(*memory).id
		commands, err := marked.markAfter([]driver.Command{driver.Copy(marked.state.id, 0, id, 0, 4*timelineSize)}, written)
		require.NoError(t, err)
		count, err := marked.submit(append(commands, driver.Copy(id, 0, marked.state.id, 0, 4*timelineSize)), 1)
		require.NoError(t, err)
		require.EqualValues(t, 1, count)
		require.NoError(t, s.Read(ctx, m, 0, words))
		require.Equal(t, []uint32{0, 0, 0, 0, 11, 12, 7, 41}, words[:8])
	})
}

// grumbling is a device on which work hangs for a reason that Err gives.
type grumbling struct {
	driver.Device
	reason error
}

func (g *grumbling) Err() error { return g.reason }

func (g *grumbling) ReadMapped(context.Context, driver.BufferID, uint64, []byte, time.Duration) error {
	return pass.ErrTimeout
}

func TestFirstErrorOutranksTimeout(t *testing.T) {
	t.Parallel()
	g := &grumbling{}
	r := memoryRig(t, drivertest.Config{}, options{}, func(d driver.Device) driver.Device { g.Device = d; return g })
	start, _ := replay(t, r)
	require.ErrorIs(t, start(), pass.ErrTimeout)
	g.reason = errors.New("a page fault")
	err := start()
	require.ErrorIs(t, err, g.reason)
	require.NotErrorIs(t, err, pass.ErrTimeout)
	g.reason = nil
}

// Readers that take their time do not hold up sessions that run.
func TestSlowLoadsLeaveRoom(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := memoryRig(t, drivertest.Config{}, options{}, nil)
		release, loading := make(chan struct{}), make(chan error)
		const loads = 2 * stagingSlots
		for range loads {
			go func() {
				_, err := r.Load(context.Background(), pass.LinearWeights{Name: "w", Parts: []pass.Tensor{{
					Name: "w", Type: pass.F32, Shape: []int{8, 8}, Data: cancelsAfter{0, func() { <-release }},
				}}})
				loading <- err
			}()
		}
		synctest.Wait()
		require.Len(t, r.hw.staging.loads, cap(r.hw.staging.loads))
		s, err := r.NewSession(pass.SessionConfig{})
		require.NoError(t, err)
		b, err := s.Alloc(pass.U32, 4)
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		require.NoError(t, s.Write(ctx, b.View(), []uint32{1, 2, 3, 4}))
		close(release)
		for range loads {
			require.NoError(t, <-loading)
		}
	})
}
