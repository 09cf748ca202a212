package cuda

import (
	"context"
	"reflect"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"github.com/tandem-gpu/tandem/cuda/internal/driver"
	"github.com/tandem-gpu/tandem/cuda/internal/drivertest"
	"github.com/tandem-gpu/tandem/cuda/kernels"
	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/pass/backend"
)

// Provisional addresses stand for places in their range, or a little before it; what is none
// stays.
func TestLayout(t *testing.T) {
	t.Parallel()
	l := layout{1 << 20, 3 << 20, 2 << 20}
	for number, begin := range l {
		for _, by := range []int{0, 4, 1 << 40, -16} {
			require.Equal(t, begin+driver.Pointer(by), l.real(provisionalAt(number)+driver.Pointer(by)))
		}
		require.Zero(t, provisionalAt(number)%(1<<20), "alignment is that of real addresses")
	}
	require.Equal(t, driver.Pointer(1<<50), l.real(1<<50))
	require.Zero(t, l.real(0))
	last := provisionalAt(mostRanges - 1)
	require.Equal(t, driver.Pointer(mostRanges-1), (last-provisional)>>rangeShift)
	require.NoError(t, checkRanges(mostRanges-firstInRange))
	require.ErrorIs(t, checkRanges(mostRanges), pass.ErrUnsupported)
}

func TestPointers(t *testing.T) {
	t.Parallel()
	type inner struct {
		N uint64
		P [2]kernels.U32
	}
	type args struct {
		A kernels.F32
		V kernels.View
		_ uint64
		I inner
		H kernels.F16
		B kernels.I8
		M kernels.TensorMap
	}
	var a args
	require.Equal(t, []uintptr{
		unsafe.Offsetof(a.A), unsafe.Offsetof(a.V), unsafe.Offsetof(a.I) + 8, unsafe.Offsetof(a.I) + 16, unsafe.Offsetof(a.H), unsafe.Offsetof(a.B),
	}, pointers(reflect.TypeFor[args]()))
}

// What is compiled has real addresses only: within the workspace, in parameters, in tensor
// maps and where launches touch memory. A map is made once of a tensor, whoever uses it.
func TestAddressesAreReal(t *testing.T) {
	t.Parallel()
	maps := &mapCounter{hostDriver: hostDriver{drivertest.New(drivertest.Config{})}}
	cfg, err := Config{Ways: map[string]string{"": "wide 128x64"}}.resolve()
	require.NoError(t, err)
	dev, err := open(context.Background(), maps, cfg)
	require.NoError(t, err)
	defer dev.Close()
	d := dev.(opened).hw
	s, err := newStream(d, pass.SessionConfig{})
	require.NoError(t, err)
	defer s.Close()
	w, err := d.load(t.Context(), pass.LinearWeights{Parts: []pass.Tensor{weights(64, 64)}}, pass.LinearShape{N: 64, K: 64, Type: pass.F32})
	require.NoError(t, err)
	defer w.Free()
	m := w.(*linearParam)
	c := &compiler{d: d, ctx: t.Context(), plan: &backend.Plan{Temps: make([]backend.Temp, 2)}, fast: true, used: make([]bool, 2)}
	c.step = pass.Checked{Op: pass.Gemm{}}
	half, err := m.halves(t.Context(), false)
	require.NoError(t, err)
	left := prepared{high: c.temporary(130 * 128), scales: c.temporary(130 * 4), rows: 130, stride: 64}
	p := product{
		a: left, items: 1, lines: 1, width: 130, step: 64, w: half, columns: pass.Span{To: 64}, segments: 1, depth: 64,
		out: func(k *call) kernels.View {
			r := region{at: provisionalAt(firstInRange), bytes: 130 * 64 * 4}
			return kernels.View{P: kernels.F32(k.to(r)), Row: 64}
		},
	}
	require.NoError(t, c.tile(p, pass.Cost{}))
	require.NoError(t, c.tile(p, pass.Cost{}))
	asked := len(maps.asked)
	require.Equal(t, 2, asked, "of the weights, and whether there is one of such rows")
	const workspace = 1 << 40
	require.NoError(t, c.settle(workspace, []int{64, 128, 1 << 20, 1 << 21}))
	require.Len(t, maps.asked, asked+1)
	require.Equal(t, driver.Pointer(workspace+4<<20), maps.asked[asked])
	require.Len(t, c.launches, 2)
	for _, l := range c.launches {
		for _, offset := range l.pointers {
			require.Zero(t, *(*driver.Pointer)(unsafe.Pointer(&l.args[offset]))&provisional)
		}
		args := (*kernels.WideTile)(unsafe.Pointer(&l.args[0]))
		require.Equal(t, kernels.F16(workspace+4<<20), args.Tile.A)
		require.Equal(t, kernels.F32(workspace+4<<21), args.Tile.AScale)
		require.Equal(t, kernels.F32(workspace+4*64), args.Tile.C.P)
		require.NotZero(t, args.A)
		require.NotEqual(t, args.A, args.B)
		require.Contains(t, l.touches, touch{workspace + 4*64, workspace + 4*64 + 130*64*4, true})
	}
}

// mapCounter notes the addresses of the tensor maps that are made.
type mapCounter struct {
	hostDriver
	asked []driver.Pointer
}

func (m *mapCounter) EncodeTensorMap(t driver.TensorMap) ([128]byte, error) {
	m.asked = append(m.asked, t.Address)
	return m.hostDriver.EncodeTensorMap(t)
}
