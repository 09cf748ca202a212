package cases

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tandem-gpu/tandem/pass"
)

func TestEveryCaseHoldsTogether(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, e := range All() {
		require.False(t, seen[e.Name], "two cases are called %s", e.Name)
		seen[e.Name] = true
		c := e.Case()
		require.Equal(t, e.Op, c.Op.Name(), e.Name)
		if e.Full {
			_, err := c.Resolve()
			require.NoError(t, err, e.Name)
			continue
		}
		for _, l := range Layouts() {
			p, err := Place(c, l, 1)
			require.NoError(t, err, e.Name)
			for _, b := range p.Buffers { // what was put in is found again
				if in, ok := find(c.Inputs, b.Name); ok {
					var got []uint32
					b.each(func(at int) { got = append(got, b.Words[at]) })
					require.True(t, slices.Equal(in.Words, got), "%s %s %v", e.Name, b.Name, l)
				}
			}
		}
		_, err := c.Want()
		require.NoError(t, err, e.Name)
	}
	require.Greater(t, len(seen), 300)
}

func TestRecipe(t *testing.T) {
	t.Parallel()
	require.Equal(t, []float32{0.80493808, -0.97421253, 0.43815970, 0.36018288}, Recipe("input.x", 1, 4, 1, 0))
	require.Equal(t, []float32{1.30293083, 1.45450687, 0.74581879, 0.99283719}, Recipe("resnet.bn1.running_var", 1, 4, 0.5, 1))
}

func TestEncodeRoundsToNearest(t *testing.T) {
	t.Parallel()
	values := []float32{0, 1, -2, 65504, 1e6, 6e-8, 1.00048828125, 1.00146484375, 3.14159265}
	for _, row := range []struct {
		typ  pass.DType
		want []float64
	}{
		{pass.F16, []float64{0, 1, -2, 65504, math.Inf(1), 0x1p-24, 1, 1.001953125, 3.140625}},
		{pass.BF16, []float64{0, 1, -2, 65536, 999424, 6.00703060626983642578125e-08, 1, 1, 3.140625}},
	} {
		got, err := decode(Encode("v", row.typ, values, len(values)))
		require.NoError(t, err)
		for i, w := range row.want {
			if math.IsInf(w, 0) || w == 0 {
				require.Equal(t, w, got[i], "%v of %v", row.typ, values[i])
				continue
			}
			require.InEpsilon(t, w, got[i], 1e-4, "%v of %v", row.typ, values[i])
		}
	}
	block := make([]float32, pass.Q8Block)
	block[3], block[9] = 12.7, -6.35
	got, err := decode(Encode("v", pass.Q8_0, block, pass.Q8Block))
	require.NoError(t, err)
	require.InEpsilon(t, 12.7, got[3], 1e-3)
	require.InEpsilon(t, -6.35, got[9], 1e-2)
	require.Zero(t, got[0])
}

// The package decodes by itself; pass must agree.
func TestDecodeAgreesWithPass(t *testing.T) {
	t.Parallel()
	for _, typ := range []pass.DType{pass.F32, pass.F16, pass.BF16, pass.Q8_0} {
		tensor := Encode("v", typ, Recipe("v", 3, 640, 9, 0), 20, 32)
		want, err := tensor.Float32s()
		require.NoError(t, err)
		got, err := decode(tensor)
		require.NoError(t, err)
		for i := range want {
			if want[i] != float32(got[i]) {
				t.Fatalf("%v element %d: %v, want %v", typ, i, got[i], want[i])
			}
		}
	}
}

func TestCompare(t *testing.T) {
	t.Parallel()
	nan32, inf := float32(math.NaN()), float32(math.Inf(1))
	want := F32("y", []float32{1, 2, nan32, inf, 0, 100}, 2, 3)
	same := F32("y", []float32{1, 2, nan32, inf, 0, 100})
	require.NoError(t, Compare(same, want, ExactTolerance).Err(ExactTolerance))
	for _, row := range []struct {
		at   int
		with float32
		says string
	}{
		{0, 1.1, "element 0 [0 0]: got 1.10"},
		{2, 3, "element 2 [0 2]: got 3, want NaN"},
		{3, -inf, "element 3 [1 0]: got -Inf, want +Inf"},
		{4, nan32, "element 4 [1 1]: got NaN, want 0"},
		{4, 0.01, "largest error 0.0001"},
	} {
		got := same.Float32s()
		got[row.at] = row.with
		err := Compare(F32("y", got), want, ExactTolerance).Err(ExactTolerance)
		require.ErrorContains(t, err, row.says)
	}
	// Logarithms: a quiet power may be far off, but not in sight of the loudest.
	log := Tolerance{L2: 5e-6, Max: 2e-5, Log: 1}
	powers := F32("y", []float32{10, 9, -5}, 3)
	require.NoError(t, Compare(F32("y", []float32{10, 9, -4.9}), powers, log).Err(log))
	require.ErrorContains(t, Compare(F32("y", []float32{10, 9, 1}), powers, log).Err(log), "largest error of a power 0.00012")
	require.ErrorContains(t, Compare(F32("y", []float32{10, 9.001, -5}), powers, log).Err(log), "power")
	require.ErrorContains(t, Compare(F32("y", []float32{10, 9, float32(math.NaN())}), powers, log).Err(log), "element 2")
	log.Log = 1e9 // nothing is far below: as without
	require.ErrorContains(t, Compare(F32("y", []float32{10, 9, -4.9}), powers, log).Err(log), "relative L2")
	zero := F32("y", []float32{float32(math.Copysign(0, -1))})
	require.Error(t, Compare(zero, F32("y", []float32{0}, 1), Tolerance{Match: Values}).Err(Tolerance{Match: Values}))
	require.NoError(t, Compare(zero, F32("y", []float32{0}, 1), ExactTolerance).Err(ExactTolerance))
	require.Error(t, Compare(Tensor{}, want, ExactTolerance).Err(ExactTolerance))
}

// Numbers on a device that lead beyond what there is are an error of the case, for
// package truth would stumble over them.
func TestNumbersBeyond(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, e := range All() {
		if e.Full {
			continue
		}
		c := e.Case()
		for i, in := range c.Inputs {
			isNumber := slices.Contains([]string{"Lengths", "KeyLengths", "StateRows", "At", "Keys", "Pos", "FromRow", "ToRow", "IDRow"}, in.Name)
			isNumber = isNumber || e.Op == "embed" && in.Name == "IDs" || in.Name == "Index" && len(c.Op.(pass.Advance).Stop) > 0
			if !isNumber || in.Type != pass.U32 || seen[e.Op+in.Name] {
				continue
			}
			seen[e.Op+in.Name] = true
			for _, far := range []uint32{1 << 20, 0xFFFFFFFF} {
				bad := in
				bad.Words = slices.Repeat([]uint32{far}, len(in.Words))
				spoiled := c
				spoiled.Inputs = slices.Clone(c.Inputs)
				spoiled.Inputs[i] = bad
				_, err := spoiled.Truth()
				require.ErrorIs(t, err, pass.ErrInvalid, "%s: %s", e.Name, in.Name)
				require.ErrorContains(t, err, in.Name)
			}
		}
	}
	require.GreaterOrEqual(t, len(seen), 20, "%v", seen)
}
