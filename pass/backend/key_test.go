package backend

import (
	"reflect"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"github.com/tandem-gpu/tandem/pass"
)

// Plans of recordings that are the same have the same key, and no others.
func TestKey(t *testing.T) {
	t.Parallel()
	linear := func(id uint32) pass.Param {
		return pass.MakeParam(pass.Ref{Device: 1, ID: id, Generation: 1}, pass.LinearShape{N: 4, K: 4, Type: pass.F32})
	}
	state := func(id uint32) pass.View {
		return pass.MakeBuffer(pass.Ref{Device: 1, Session: 1, ID: id, Generation: 1}, pass.F32, 64).View()
	}
	type variant struct {
		math            pass.Math
		state, param    uint32
		rows, swapped   int
		epilogue        pass.Epilogue
		lengths         pass.Items
		from, out, last int
		more            bool
	}
	key := func(number uint32, v variant) []byte {
		temp := func(id uint32) pass.View {
			return pass.MakeBuffer(pass.Ref{Device: 1, Session: 1, Recording: number, ID: id, Generation: 1}, pass.F32, 64).View()
		}
		p := &Plan{
			Label: string(rune('a' + number)), Math: v.math,
			Temps:   []Temp{{Type: pass.F32, Len: 64, First: 0, Last: 1 + v.last}, {Type: pass.F32, Len: 64, First: 1, Last: 2}},
			Outputs: []Output{{Place: Place{Index: 1}, Type: pass.F32, Offset: v.out, Len: 1}},
		}
		ops := []pass.Op{
			pass.Gemm{A: state(v.state), W: linear(v.param), C: temp(1), Rows: v.rows, Epilogue: v.epilogue},
			pass.GroupNorm{X: temp(1 + uint32(v.swapped)).At(v.from), Y: temp(2 - uint32(v.swapped)), Rows: 1, Lengths: v.lengths},
		}
		if v.more {
			ops = append(ops, ops[1])
		}
		for _, op := range ops {
			p.Steps = append(p.Steps, pass.Checked{Op: op})
		}
		return p.key(nil)
	}
	usual := variant{state: 1, param: 1, rows: 4, epilogue: pass.Residual(1), lengths: pass.Fixed(3)}
	require.NotEmpty(t, key(1, usual))
	require.Equal(t, key(1, usual), key(2, usual), "numbers of recordings and labels do not matter")
	seen := map[string]string{string(key(1, usual)): "usual"}
	for name, change := range map[string]func(v *variant){
		"math":      func(v *variant) { v.math = pass.Fast },
		"state":     func(v *variant) { v.state = 2 },
		"param":     func(v *variant) { v.param = 2 },
		"rows":      func(v *variant) { v.rows = 5 },
		"swapped":   func(v *variant) { v.swapped = 1 },
		"epilogue":  func(v *variant) { v.epilogue = pass.Residual(2) },
		"lengths":   func(v *variant) { v.lengths = pass.Fixed(2) },
		"more of":   func(v *variant) { v.lengths = pass.Fixed(3, 3) },
		"in memory": func(v *variant) { v.lengths = pass.ItemsIn(state(3)) },
		"offset":    func(v *variant) { v.from = 4 },
		"output":    func(v *variant) { v.out = 1 },
		"lifetime":  func(v *variant) { v.last = 1 },
		"more":      func(v *variant) { v.more = true },
	} {
		v := usual
		change(&v)
		k := string(key(3, v))
		require.NotContains(t, seen, k, name)
		seen[k] = name
	}
}

// Places count the buffers of the session in the order in which recordings name them.
func TestKeyOfOrder(t *testing.T) {
	t.Parallel()
	key := func(ids ...uint32) []byte {
		p := &Plan{Outputs: []Output{{Place: Place{State: true}, Type: pass.F32, Len: 1}}}
		for _, id := range ids {
			p.states = append(p.states, pass.Ref{Device: 1, Session: 1, ID: id, Generation: 1})
		}
		return p.key(nil)
	}
	require.Equal(t, key(1, 2), key(1, 2))
	require.NotEqual(t, key(1, 2), key(2, 1))
	require.NotEqual(t, key(1), key(1, 2))
}

// A temporary is no state, of whatever number.
func TestKeyOfState(t *testing.T) {
	t.Parallel()
	key := func(recording uint32) []byte {
		b := pass.MakeBuffer(pass.Ref{Device: 1, Session: 1, Recording: recording, ID: 1, Generation: 1}, pass.F32, 4)
		return (&Plan{Steps: []pass.Checked{{Op: pass.Fill{To: b.View(), Rows: 1, Cols: 4}}}}).key(nil)
	}
	require.Equal(t, key(1), key(2))
	require.NotEqual(t, key(0), key(1))
}

func TestKeyOfSlices(t *testing.T) {
	t.Parallel()
	key := func(stop ...uint32) []byte {
		return (&Plan{Steps: []pass.Checked{{Op: pass.Advance{Stop: stop}}}}).key(nil)
	}
	require.Equal(t, key(1, 2), key(1, 2))
	require.NotEqual(t, key(1, 2), key(1, 3))
	require.NotEqual(t, key(1, 2), key(1))
}

// All ops that there are can be told apart.
func TestKeysOfAllOps(t *testing.T) {
	t.Parallel()
	for _, op := range []pass.Op{
		pass.LSTM{}, pass.Gemm{}, pass.Conv1D{}, pass.Map{}, pass.Magnitude{}, pass.Copy{}, pass.Fill{}, pass.LayerNorm{}, pass.GroupNorm{},
		pass.PoolNorm{}, pass.L2Norm{}, pass.Softmax{}, pass.LogSoftmax{}, pass.Argmax{}, pass.Rope{}, pass.Add{}, pass.Scale{}, pass.SwiGLU{},
		pass.GLU{}, pass.Embed{}, pass.Permute{}, pass.Advance{}, pass.StatsPool{}, pass.Attention{}, pass.Attend{}, pass.Append{}, pass.Conv2D{},
		pass.ConvGLU{}, pass.DepthwiseConv2D{}, pass.LogMel{},
	} {
		require.NotNil(t, (&Plan{Steps: []pass.Checked{{Op: op}}}).key(nil), "%T", op)
	}
}

// Memory of keys that nobody needs any more is that of later ones; those that are needed stay
// as they are.
func TestKeysThatAreGivenUp(t *testing.T) {
	t.Parallel()
	var k keeper
	key := func(rows int) []byte {
		b := pass.MakeBuffer(pass.Ref{Device: 1, Session: 1, ID: 1, Generation: 1}, pass.F32, 64)
		return (&Plan{Steps: []pass.Checked{{Op: pass.Fill{To: b.View(), Rows: rows, Cols: 4}}}}).key(k.room())
	}
	for i := range 50 {
		program := &keepable{fakeProgram: &fakeProgram{s: &fakeStream{f: newFake()}}}
		k.put(kept{program, key(i), 1})
		k.put(kept{program, key(i + 1), 1})
		again := key(i)
		_, ok := k.take(again)
		require.True(t, ok)
		for range 3 {
			require.NotEqual(t, again, key(-1))
		}
		require.Equal(t, key(i), again)
		_, ok = k.take(key(i + 1))
		require.True(t, ok)
		require.Empty(t, k.kept)
	}
}

// What lies between the fields of an op says nothing.
func TestKeysOfUnevenMemory(t *testing.T) {
	t.Parallel()
	key := func(op pass.Gemm) []byte { return (&Plan{Steps: []pass.Checked{{Op: op}}}).key(nil) }
	clean := pass.Gemm{Rows: 3}
	uneven, some := clean, 0
	for _, g := range layoutOf(reflect.TypeFor[pass.Gemm]()).gaps {
		if g.to-g.from >= 8 {
			continue // an interface or a slice
		}
		for i := g.from; i < g.to; i++ {
			*(*byte)(unsafe.Add(unsafe.Pointer(&uneven), i)) = 0xFF
			some++
		}
	}
	require.Positive(t, some)
	require.Equal(t, key(clean), key(uneven))
	uneven.Rows++
	require.NotEqual(t, key(clean), key(uneven))
}
