package cuda

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tandem-gpu/tandem/cuda/internal/drivertest"
	"github.com/tandem-gpu/tandem/cuda/kernels"
	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/pass/passtest/cases"
)

// Every kernel of every tier that the device can execute computes something that is held
// against the truth. Those of other tiers are listed by TANDEM_CUDA_USED.
func TestEveryKernel(t *testing.T) {
	for _, tier := range []struct {
		name string
		gpu  drivertest.Profile
	}{
		{"sm_90a", drivertest.Hopper()},
		{"ptx_80", drivertest.Profile{Capability: 80, SMs: 108, SharedMemory: 227 << 10}},
		{"ptx_75", drivertest.Profile{Capability: 75, SMs: 40, SharedMemory: 227 << 10}},
		{"sm_80", roomy(80)},
		{"sm_75", roomy(75)},
	} {
		if onDevice() && (tier.name == "sm_75" || tier.name == "sm_80") || !onDevice() && tier.name[0] == 'p' {
			continue // a GPU of 9.0 runs no other cubins; the emulator runs no PTX
		}
		t.Run(tier.name, func(t *testing.T) {
			t.Parallel()
			e := &search{seen: &usage{}, boundaries: map[string]bool{}}
			e.dev = emulated(t, tier.gpu, Config{Logger: e.seen.logger()})
			defer e.dev.Close()
			require.Contains(t, e.dev.Info().Variants[0].Reason, tier.name)
			for _, c := range slices.Concat(uncommon(), ofWideRange()) {
				e.try(t, c)
			}
			proveHalves(t, e.dev)
			proveConvGLU(t, e.dev)
			all := slices.DeleteFunc(cases.All(), func(e cases.Entry) bool { return e.Full })
			const apart = 16 // cases beside each other are much alike
			for first := range apart {
				if len(e.missing(tier.name)) == 0 {
					break
				}
				for i := first; i < len(all); i += apart {
					e.try(t, all[i].Case())
				}
			}
			require.Empty(t, e.missing(tier.name), "kernels that no case leads to")
			t.Logf("%d kernels ran, in %d cases", e.seen.count(), e.ran)
		})
	}
}

// roomy is a device of a capability with shared memory for every kernel.
func roomy(capability int) drivertest.Profile {
	p := drivertest.Hopper()
	p.Name, p.Capability, p.SMs = fmt.Sprintf("NVIDIA Test %d", capability), capability, 40
	return p
}

// A search looks for cases, math and choices that lead to a kernel that has not run, and runs
// those.
type search struct {
	dev        pass.Device
	seen       *usage
	boundaries map[string]bool // that were gone through
	ran        int
}

// missing returns the kernels of a tier that have not run.
func (e *search) missing(name string) (names []string) {
	tier, err := kernels.TierNamed(name)
	if err != nil {
		return []string{err.Error()}
	}
	for _, f := range kernels.Families() {
		for _, k := range tier.Entries(f) {
			if e.dev.(opened).hw.kernels.has(k.Name) && !e.seen.has(k.Name) {
				names = append(names, k.Name)
			}
		}
	}
	return names
}

// try records a case in every way there is.
func (e *search) try(t *testing.T, c cases.Case) {
	t.Helper()
	r := trial{search: e, params: map[string]pass.Param{}, buffers: map[string]pass.Buffer{}, caches: map[string]pass.Cache{}}
	var err error
	r.ses, err = e.dev.NewSession(pass.SessionConfig{})
	require.NoError(t, err)
	defer r.ses.Close()
	r.placed, err = cases.Place(c, cases.Dense, 1)
	require.NoError(t, err)
	for _, p := range c.Params {
		r.params[p.Field], err = e.dev.Load(t.Context(), p.Weights)
		require.NoError(t, err)
		defer e.dev.Unload(r.params[p.Field])
	}
	for _, b := range r.placed.Buffers {
		r.buffers[b.Name], err = r.ses.Alloc(b.Type, len(b.Words))
		require.NoError(t, err)
	}
	for _, h := range c.Caches {
		r.caches[h.Field], err = r.ses.NewCache(h.Config)
		require.NoError(t, err)
	}
	for _, math := range []pass.Math{pass.Exact, pass.Fast} {
		if c.Math != pass.Fast || math == pass.Fast {
			r.c, r.math = c.In(math), math
			r.placed.Case = r.c // whose tolerance is that of the math
			r.explore(t)
		}
	}
}

// A trial is a case on its way through the choices.
type trial struct {
	*search
	c       cases.Case
	math    pass.Math
	placed  *cases.Placed
	ses     pass.Session
	params  map[string]pass.Param
	buffers map[string]pass.Buffer
	caches  map[string]pass.Cache
}

// explore records a case, and once more for each way of the choices that this brought up.
func (r *trial) explore(t *testing.T) {
	t.Helper()
	r.record(t)
	tunable := r.dev.(Tunable)
	for _, b := range tunable.Boundaries() {
		if r.boundaries[b.Name] {
			continue
		}
		r.boundaries[b.Name] = true
		for _, way := range b.Ways {
			tunable.Force(b.Name, way)
			r.explore(t)
		}
		tunable.Force(b.Name, "")
	}
}

// record records a case, and runs it if that has loaded a kernel.
func (r *trial) record(t *testing.T) {
	t.Helper()
	before := r.seen.count()
	op, err := r.placed.Op(r.buffers, r.params, r.caches)
	require.NoError(t, err)
	rec, err := r.ses.Record(t.Context(), pass.RecordOptions{Math: r.math}, func(p pass.Pass) { p.Do(op) })
	require.NoError(t, err, r.c.Name)
	defer rec.Close()
	if r.seen.count() == before {
		return
	}
	r.ran++
	for _, b := range r.placed.Buffers {
		require.NoError(t, r.ses.Write(t.Context(), r.buffers[b.Name].View(), hostData(b.Type, b.Words)))
	}
	for _, h := range r.c.Caches {
		fillCache(t, r.ses, r.caches[h.Field], h)
	}
	_, err = rec.Run(t.Context())
	require.NoError(t, err, r.c.Name)
	wanted, err := r.c.Want()
	require.NoError(t, err)
	for _, b := range r.placed.Buffers {
		data := hostData(b.Type, make([]uint32, len(b.Words)))
		require.NoError(t, r.ses.Read(t.Context(), r.buffers[b.Name].View(), data))
		words, ok := data.([]uint32)
		if !ok {
			words = cases.F32("", data.([]float32)).Words
		}
		require.NoError(t, r.placed.Check(b.Name, words, wanted), "%s, %v", r.c.Name, r.math)
	}
}

// fillCache appends what a case says that a cache holds.
func fillCache(t *testing.T, ses pass.Session, h pass.Cache, c cases.Cache) {
	t.Helper()
	put := func(values []float32) pass.View {
		b, err := ses.Alloc(pass.F32, len(values))
		require.NoError(t, err)
		require.NoError(t, ses.Write(t.Context(), b.View(), values))
		return b.View()
	}
	g, err := c.Config.Check()
	require.NoError(t, err)
	op := pass.Append{Cache: h, K: put(c.K), V: put(c.V), Batch: g.Batch, Rows: g.Capacity}
	rec, err := ses.Record(t.Context(), pass.RecordOptions{}, func(p pass.Pass) { p.Do(op) })
	require.NoError(t, err)
	_, err = rec.Run(t.Context())
	require.NoError(t, err)
}

// uncommon are cases of sizes that the suite's are too small for.
func uncommon() []cases.Case {
	var all []cases.Case
	gemm := func(rows, k, n int, typ pass.DType) {
		w := pass.LinearWeights{Parts: []pass.Tensor{cases.Encode("w", typ, cases.Recipe("w", 1, n*k, 0.1, 0), n, k)}}
		all = append(all, cases.Case{
			Name: fmt.Sprintf("gemm %d×%d×%d %v", rows, k, n, typ), Op: pass.Gemm{Rows: rows}, Outputs: []string{"C"},
			Inputs: []cases.Tensor{values("A", "normal", 1, rows, k)}, Params: []cases.Param{{Field: "W", Weights: w}},
		})
	}
	for _, typ := range []pass.DType{pass.F32, pass.F16} { // several tiles, and rounds of their stages
		gemm(200, 328, 200, typ)
	}
	for _, typ := range []pass.DType{pass.F32, pass.F16, pass.BF16, pass.Q8_0} {
		for _, rows := range []int{1, 4, 8, 20} {
			gemm(rows, 64, 40, typ)
		}
	}
	gemm(130, 2112, 70, pass.F32) // sums in parts
	gemm(130, 1600, 70, pass.F16) // more columns than a warp prepares
	for _, cols := range []int{500, 1281, 4097} {
		all = append(all, normCase(pass.LayerNorm{Rows: 3, Cols: cols}, 1, 3, cols, 1))
	}
	for _, cols := range []int{513, 4097} {
		all = append(all, rowCase(pass.L2Norm{Rows: 2, Cols: cols}, 1, 2, cols, 0))
	}
	for _, cols := range []int{513, 1537, 2049, 8193, 12290} {
		all = append(all, rowCase(pass.Softmax{Rows: 2, Cols: cols}, 1, 2, cols, 0), rowCase(pass.Argmax{Rows: 2, Cols: cols}, 1, 2, cols, 0))
	}
	for _, l := range []lstmCase{
		{in: 3, hidden: 30, layers: 1, directions: 1, batch: 9, time: 3},
		{in: 3, hidden: 60, layers: 1, directions: 1, batch: 9, time: 3},
		{in: 3, hidden: 128, layers: 1, directions: 2, batch: 9, time: 3},
		{in: 3, hidden: 200, layers: 1, directions: 2, batch: 9, time: 3},
		{in: 3, hidden: 40, layers: 1, directions: 1, batch: 9, time: 1},
	} {
		all = append(all, l.make())
	}
	return slices.Concat(all, uncommonAttention(), uncommonConvolutions(), uncommonMel())
}

// uncommonAttention are queries that are too many to read keys and values as they are, of
// every head dimension, with keys and values of either type.
func uncommonAttention() []cases.Case {
	var all []cases.Case
	const queries, heads = 150, 2 // several blocks of keys
	for _, dim := range []int{64, 128, 256} {
		tensor := func(name string, rows int) cases.Tensor { return values(name, "normal", 1, rows, heads*dim) }
		c := cases.Case{
			Name: fmt.Sprintf("attention of dimension %d", dim), Op: pass.Attention{Queries: queries, Keys: queries, Heads: heads, HeadDim: dim},
			Inputs: []cases.Tensor{tensor("Q", queries), tensor("K", queries), tensor("V", queries)}, Outputs: []string{"O"},
		}
		all = append(all, c)
		c.Name += ", relative"
		c.Inputs = append(slices.Clone(c.Inputs), tensor("Q2", queries), tensor("Positions", 2*queries-1))
		all = append(all, c)
		for i, typ := range []pass.DType{pass.F32, pass.F16} {
			queries := queries + 1 + i // of a size of their own: choices are called by sizes
			g := pass.CacheConfig{Type: typ, Heads: heads, HeadDim: dim, Capacity: queries, Batch: 1}
			held := make([]float32, queries*heads*dim)
			for i := range held {
				held[i] = float32(i%97-48) / 32 // binary16 holds it
			}
			all = append(all, cases.Case{
				Name: fmt.Sprintf("attend of dimension %d, %v", dim, typ), Op: pass.Attend{Queries: queries, Keys: pass.Const(queries), Causal: true},
				Inputs: []cases.Tensor{tensor("Q", queries)}, Caches: []cases.Cache{{Field: "Cache", Config: g, K: held, V: held}}, Outputs: []string{"O"},
			})
		}
	}
	return all
}

// uncommonConvolutions have more channels than are multiplied at a time, more steps than
// fit a tile of outputs, or more channels than a row that is normalised.
func uncommonConvolutions() []cases.Case {
	var all []cases.Case
	for _, size := range []int{1, 3} {
		for _, stride := range []int{1, 2} {
			all = append(all, cases.Case{
				Name: fmt.Sprintf("conv2d of many channels, %d×%d, stride %d", size, size, stride),
				Op:   pass.Conv2D{Height: 9 * stride, Width: 37 * stride, Stride: stride}, Outputs: []string{"Y"},
				Inputs: []cases.Tensor{values("X", "normal", 1, 9*37*stride*stride, 76)},
				Params: []cases.Param{{Field: "W", Weights: pass.Conv2DWeights{Weight: weights(72, 76, size, size)}}},
			})
		}
	}
	const steps, channels = 4200, 1030
	glu := pass.ConvGLUWeights{
		Weight: pass.Float32s("w", cases.Recipe("w", 1, 3*channels, 1, 0), channels, 3), Normalised: true,
		Gain: cases.Recipe("g", 1, channels, 0.5, 1), Shift: cases.Recipe("s", 1, channels, 1, 0),
	}
	return append(all, []cases.Case{
		{
			Name: "conv1d of many channels", Op: pass.Conv1D{In: 290, PadLeft: 1, PadRight: 1}, Outputs: []string{"Y"},
			Inputs: []cases.Tensor{values("X", "normal", 1, 290, 76)},
			Params: []cases.Param{{Field: "W", Weights: pass.ConvWeights{Weight: weights(72, 76, 3)}}},
		},
		{
			Name: "conv1d of many steps", Op: pass.Conv1D{In: steps, PadLeft: 1, PadRight: 1}, Outputs: []string{"Y"},
			Inputs: []cases.Tensor{values("X", "normal", 1, steps, 2)},
			Params: []cases.Param{{Field: "W", Weights: pass.ConvWeights{Weight: weights(5, 2, 3)}}},
		},
		{
			Name: "conv2d of many pixels", Op: pass.Conv2D{Height: 60, Width: 70}, Outputs: []string{"Y"},
			Inputs: []cases.Tensor{values("X", "normal", 1, 60*70, 2)},
			Params: []cases.Param{{Field: "W", Weights: pass.Conv2DWeights{Weight: weights(5, 2, 3, 3)}}},
		},
		{
			Name: "convglu of many channels", Op: pass.ConvGLU{Rows: 4}, Outputs: []string{"Y"},
			Inputs: []cases.Tensor{values("X", "normal", 1, 4, 2*channels)}, Params: []cases.Param{{Field: "W", Weights: glu}},
		},
	}...)
}

// uncommonMel are transforms that a block makes one of, and many short frames.
func uncommonMel() []cases.Case {
	var all []cases.Case
	for _, c := range []struct {
		fft, hop, samples int
		emphasis          float32
	}{{2048, 700, 2800, 0}, {2048, 700, 2800, 0.9}, {4096, 2000, 4100, 0}, {3000, 1000, 4100, 0.9}, {2, 1, 20_000, 0}} {
		w := pass.MelWeights{Window: cases.Recipe("window", 1, c.fft, 1, 0), FFT: c.fft, Hop: c.hop, Mels: 2,
			Bank: cases.Recipe("bank", 1, 2*(c.fft/2+1), 0.5, 1), PreEmphasis: c.emphasis, PerFrame: true}
		all = append(all, cases.Case{
			Name: fmt.Sprintf("logmel %d, emphasis %v", c.fft, c.emphasis), Op: pass.LogMel{Samples: c.samples}, Outputs: []string{"Y"},
			Params: []cases.Param{{Field: "W", Weights: w}},
			Inputs: []cases.Tensor{cases.F32("X", cases.Recipe("sound", 1, c.samples, 0.25, 0), 1, 1, c.samples)},
		})
	}
	return all
}
