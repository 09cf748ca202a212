package gpu

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tandem-gpu/tandem/gpu/internal/driver"
	"github.com/tandem-gpu/tandem/gpu/internal/driver/drivertest"
	"github.com/tandem-gpu/tandem/pass"
)

// sequence returns n words that count from first on.
func sequence(n int, first uint32) []uint32 {
	words := make([]uint32, n)
	for i := range words {
		words[i] = first + uint32(i)
	}
	return words
}

func TestStateIsWrittenAndRead(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, r *rig) {
		ctx := context.Background()
		s, err := r.NewSession(pass.SessionConfig{})
		require.NoError(t, err)
		const n = 1<<20 + 77 // more than a slot of the staging ring
		b, err := s.Alloc(pass.U32, n)
		require.NoError(t, err)
		got := make([]uint32, n)
		require.NoError(t, s.Read(ctx, b.View(), got))
		require.NoError(t, equal(make([]uint32, n), got), "new state is zero")
		want := sequence(n, 1000)
		require.NoError(t, s.Write(ctx, b.View(), want))
		require.NoError(t, s.Write(ctx, b.At(5), []uint32{1, 2, 3}))
		copy(want[5:], []uint32{1, 2, 3})
		require.NoError(t, s.Read(ctx, b.View(), got))
		require.NoError(t, equal(want, got))
		part := make([]uint32, 2)
		require.NoError(t, s.Read(ctx, b.At(7), part))
		require.Equal(t, want[7:9], part)
	})
}

func TestInputsAndOutputs(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 100, transferWords + 3} { // the last goes through the staging ring
		onEach(t, func(t *testing.T, r *rig) {
			ctx := context.Background()
			s, err := r.NewSession(pass.SessionConfig{})
			require.NoError(t, err)
			state, err := s.Alloc(pass.U32, n+9)
			require.NoError(t, err)
			var a, b, none pass.Input
			var sum, all pass.Output
			rec, err := s.Record(ctx, pass.RecordOptions{}, func(p pass.Pass) {
				a, b, none = p.Input(pass.U32, n), p.Input(pass.U32, 3), p.Input(pass.U32, 0)
				x := p.Temp(pass.U32, n+5)
				p.Do(fillWith(x.View(), n+5, 7), dense(a.View(), x.At(1), n), dense(x.View(), state.At(4), n+5), dense(b.View(), state.At(2), 3))
				sum, all = p.Output(x.At(1), n), p.Output(state.View(), n+9)
			})
			require.NoError(t, err)
			for i := range uint32(4) {
				run, err := rec.Run(ctx, a.U32(sequence(n, i)), b.U32([]uint32{90 + i, 91, 92}), none.U32(nil))
				require.NoError(t, err)
				got := make([]uint32, n)
				require.NoError(t, run.ReadU32(sum, got))
				require.NoError(t, equal(sequence(n, i), got))
				got = make([]uint32, n+9)
				require.NoError(t, run.ReadU32(all, got))
				want := append([]uint32{0, 0, 90 + i, 91, 92}, sequence(n, i)...)
				require.NoError(t, equal(append(want, 7, 7, 7, 7), got))
				run.Close()
			}
		})
	}
}

// A recording that needs a larger workspace may be compiled while a run of another one
// is between two parts: that run keeps the memory that it began with.
func TestWorkspaceGrowsBesideARun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := memoryRig(t, drivertest.Config{Faults: drivertest.Faults{Delay: 2 * time.Millisecond}}, options{}, nil)
		r.hw.rate = crawl
		ctx := context.Background()
		s, err := r.NewSession(pass.SessionConfig{})
		require.NoError(t, err)
		var in pass.Input
		var out pass.Output
		record := func(n, ops int) pass.Recording {
			rec, err := s.Record(ctx, pass.RecordOptions{}, func(p pass.Pass) {
				in = p.Input(pass.U32, n)
				x, y := p.Temp(pass.U32, n), p.Temp(pass.U32, n)
				p.Do(dense(in.View(), x.View(), n))
				for range ops {
					p.Do(dense(x.View(), y.View(), n))
					x, y = y, x
				}
				out = p.Output(x.View(), n)
			})
			require.NoError(t, err)
			return rec
		}
		first := record(10, 20)
		firstIn, firstOut := in, out
		got := make([]uint32, 10)
		for i := range 3 {
			run, err := first.Start(ctx, firstIn.U32(sequence(10, 7)))
			require.NoError(t, err)
			time.Sleep(10 * time.Millisecond)
			larger := record(1000*(i+1), 2)
			require.NoError(t, run.Wait(ctx))
			require.NoError(t, run.ReadU32(firstOut, got))
			require.Equal(t, sequence(10, 7), got)
			_, err = larger.Run(ctx, in.U32(sequence(1000*(i+1), 9)))
			require.NoError(t, err)
			require.NoError(t, larger.Close())
		}
		require.NoError(t, first.Close())
		ledger := r.fake.Ledger()
		kept := 2 * 4 * (1000 + 2000 + 3000) // inputs and outputs of the larger ones, should they come again
		require.Less(t, ledger.Bytes, uint64(4*slotWords+40_000+kept), "what was outgrown is freed: %+v", ledger)
	})
}

// What a larger recording replaces is freed at once if no run needs it.
func TestOutgrownWorkspaceIsFreed(t *testing.T) {
	t.Parallel()
	r := memoryRig(t, drivertest.Config{}, options{}, nil)
	ctx := context.Background()
	s, err := r.NewSession(pass.SessionConfig{})
	require.NoError(t, err)
	const largest = 3 << 20
	for n := 1 << 20; n <= largest; n += 1 << 20 {
		rec, err := s.Record(ctx, pass.RecordOptions{}, func(p pass.Pass) {
			p.Do(fillWith(p.Temp(pass.U32, n).View(), n, 1))
		})
		require.NoError(t, err)
		require.NoError(t, rec.Close())
	}
	require.Less(t, r.fake.Ledger().Bytes, uint64(4*(largest+slotWords)+4096))
}

// More state than one mark can depend on takes a chain of marks.
func TestManyWrittenBuffers(t *testing.T) {
	t.Parallel()
	limits := driver.Limits{MaxStorageBuffers: 3}
	test := func(t *testing.T, r *rig) {
		ctx := context.Background()
		s, err := r.NewSession(pass.SessionConfig{})
		require.NoError(t, err)
		var states []pass.Buffer
		for range 9 {
			b, err := s.Alloc(pass.U32, 5)
			require.NoError(t, err)
			states = append(states, b)
		}
		rec, err := s.Record(ctx, pass.RecordOptions{}, func(p pass.Pass) {
			for i, b := range states {
				p.Do(fillWith(b.View(), 5, uint32(i)))
			}
		})
		require.NoError(t, err)
		for range 3 {
			_, err := rec.Run(ctx)
			require.NoError(t, err)
		}
		got := make([]uint32, 5)
		require.NoError(t, s.Read(ctx, states[8].View(), got))
		require.Equal(t, []uint32{8, 8, 8, 8, 8}, got)
		require.EqualValues(t, 1+3*5+1, r.streams[0].timeline.count, "an upload of constants, three runs of nine buffers, two a mark, and a read")
	}
	t.Run("memory", func(t *testing.T) { test(t, memoryRig(t, drivertest.Config{Limits: limits}, options{}, nil)) })
	t.Run("vulkan", func(t *testing.T) { test(t, vulkanRig(t, driver.DeviceConfig{Limits: limits}, options{}, nil)) })
}
