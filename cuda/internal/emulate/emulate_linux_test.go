package emulate_test

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"github.com/tandem-gpu/tandem/cuda/internal/emulate"
	"github.com/x448/float16"
)

// args is Args of testdata/kernels.cc.
type args struct {
	x, y     unsafe.Pointer
	n, wrong uint32
	_        [40]byte
	tensor   [128]byte
}

// kernels compiles testdata/kernels.cc once.
var kernels = sync.OnceValues(func() (*emulate.Library, error) {
	dir, err := os.MkdirTemp("", "emulate")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	lib := filepath.Join(dir, "kernels.so")
	files, err := filepath.Glob("host/*.cc")
	if err != nil {
		return nil, err
	}
	flags := []string{"-std=c++17", "-O2", "-fPIC", "-shared", "-march=native", "-fvisibility=hidden", "-fstack-clash-protection",
		"--param=stack-clash-protection-guard-size=12", "-DTANDEM_EMULATED",
		"-DTANDEM_ARCH=90", "-Ihost", "-I../../kernels", "-o", lib, "testdata/kernels.cc"}
	if out, err := exec.Command("g++", append(flags, files...)...).CombinedOutput(); err != nil {
		return nil, &compileError{err, out}
	}
	return emulate.Open(lib)
})

type compileError struct {
	error
	out []byte
}

func (e *compileError) Error() string { return e.error.Error() + "\n" + string(e.out) }

func library(t *testing.T) *emulate.Library {
	t.Helper()
	if _, err := exec.LookPath("g++"); err != nil && os.Getenv("TANDEM_REQUIRE_EMULATED") == "" {
		t.Skip("SKIPPED: the emulator is compiled with g++, which is not there")
	}
	lib, err := kernels()
	require.NoError(t, err)
	return lib
}

// floats returns memory with a page behind it that nobody may touch.
func floats(t *testing.T, n int) []float32 {
	t.Helper()
	page := os.Getpagesize()
	size := (4*n + page - 1) / page * page
	b, err := syscall.Mmap(-1, 0, size+page, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	require.NoError(t, err)
	t.Cleanup(func() { syscall.Munmap(b) })
	require.NoError(t, syscall.Mprotect(b[size:], syscall.PROT_NONE))
	return unsafe.Slice((*float32)(unsafe.Pointer(&b[size-4*n])), n)
}

func launch(lib *emulate.Library, name string, a args, blocks, threads, shared uint32) error {
	return lib.Launch(name, emulate.Launch{
		Grid: [3]uint32{blocks, 1, 1}, Block: [3]uint32{threads, 1, 1}, Shared: shared,
		Args: unsafe.Slice((*byte)(unsafe.Pointer(&a)), unsafe.Sizeof(a)),
	})
}

func TestWarpsAndBlocks(t *testing.T) {
	lib := library(t)
	x, y := floats(t, 256), floats(t, 35)
	want := float32(0)
	for i := range x {
		x[i] = float32(i%17) - 8
		want += x[i]
	}
	require.NoError(t, launch(lib, "reduce", args{x: unsafe.Pointer(&x[0]), y: unsafe.Pointer(&y[0])}, 1, 256, 0))
	require.Equal(t, want, y[0])
	require.Equal(t, float32(8), y[1])
	positive := float32(0)
	for i := range 32 {
		lane := func(j int) float32 {
			if j < 0 || j > 31 {
				j = i
			}
			return x[32+j]
		}
		require.Equal(t, lane(5)+lane(i^1)+lane(i+1)+lane(i-2), y[2+i], i)
		if x[32+i] > 0 {
			positive++
		}
	}
	require.Equal(t, positive, y[34])
}

// A barrier that is missing shows in some order of threads, the right kernel in none.
func TestMissingBarrier(t *testing.T) {
	lib := library(t)
	x, y := floats(t, 64), floats(t, 64)
	for i := range x {
		x[i] = float32(i)
	}
	for _, wrong := range []uint32{0, 1} {
		differ := 0
		for range 8 {
			require.NoError(t, launch(lib, "reverse", args{x: unsafe.Pointer(&x[0]), y: unsafe.Pointer(&y[0]), wrong: wrong}, 1, 64, 256))
			for i := range y {
				if y[i] != x[63-i] {
					differ++
				}
			}
		}
		require.Equal(t, wrong == 1, differ > 0)
	}
}

func TestCopies(t *testing.T) {
	lib := library(t)
	x, y := floats(t, 128), floats(t, 128)
	for i := range x {
		x[i] = float32(i + 1)
	}
	a := args{x: unsafe.Pointer(&x[0]), y: unsafe.Pointer(&y[0]), n: 60}
	require.NoError(t, launch(lib, "copies", a, 1, 64, 512))
	for i := range y {
		want := x[i]
		if i >= 60 && i < 64 {
			want = 0
		}
		require.Equal(t, want, y[i], i)
	}
	a.wrong = 1
	require.NoError(t, launch(lib, "copies", a, 1, 64, 512))
	require.Equal(t, x[:60], y[:60])
	require.True(t, math.IsNaN(float64(y[64])), "the newer group was not waited for, its memory was never written")
}

func TestMisuse(t *testing.T) {
	lib := library(t)
	for i, c := range []struct {
		text   string
		n      uint32
		shared uint32
	}{
		{text: "", shared: 256},
		{text: "write at 0x", n: 64},
		{text: "read at 0x", n: 64},
		{text: "deadlock: ", n: 64},
		{text: "while other lanes of the warp are in"},
		{text: "a write beyond the dynamic shared memory of the block", shared: 256},
		{text: "which is not aligned"},
		{text: "the stack is full"},
		{text: "deadlock: threads wait in loops"},
		{text: ""},
	} {
		x, y := floats(t, 64), floats(t, 64)
		err := launch(lib, "misuse", args{x: unsafe.Pointer(&x[0]), y: unsafe.Pointer(&y[0]), n: c.n, wrong: uint32(i)}, 1, 64, c.shared)
		if c.text == "" {
			require.NoError(t, err, i)
		} else {
			require.ErrorContains(t, err, c.text, i)
			require.ErrorContains(t, err, "kernel misuse: ", i)
		}
		switch i {
		case 0:
			require.True(t, math.IsNaN(float64(y[5])))
		case 9:
			require.Equal(t, float32(16), y[0])
		}
	}
}

func TestWrongLaunches(t *testing.T) {
	lib := library(t)
	_, err := emulate.Open("testdata/none.so")
	require.ErrorIs(t, err, os.ErrNotExist)
	_, err = emulate.Open("testdata/kernels.cc")
	require.Error(t, err)
	require.ErrorContains(t, launch(lib, "nothing", args{}, 1, 64, 0), "kernel nothing is not in ")
	require.True(t, lib.Has("reduce"))
	require.False(t, lib.Has("nothing"))
	require.ErrorContains(t, launch(lib, "reduce", args{}, 1, 128, 0), "blocks of 256 threads, given 128")
	require.ErrorContains(t, launch(lib, "reduce", args{}, 0, 256, 0), "has no threads")
	require.ErrorContains(t, launch(lib, "ranks", args{}, 6, 64, 0), "clusters of 4 blocks, given 6")
	err = lib.Launch("reduce", emulate.Launch{Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{256, 1, 1}, Args: make([]byte, 24)})
	require.ErrorContains(t, err, "takes 192 bytes of arguments, given 24")
}

func TestProducts(t *testing.T) {
	lib := library(t)
	x, y := floats(t, 16*24), floats(t, 3*128)
	r := rand.New(rand.NewPCG(1, 2))
	for i := range x {
		x[i] = float32(r.IntN(64)-32) / 8
	}
	require.NoError(t, launch(lib, "products", args{x: unsafe.Pointer(&x[0]), y: unsafe.Pointer(&y[0])}, 1, 32, 4*16*24))
	for lane := range 32 {
		for i := range 4 {
			row, column := lane/4+8*(i/2), 2*(lane%4)+i%2
			sum := float32(0)
			for k := range 16 {
				sum += x[16*row+k] * x[256+8*k+column]
			}
			for kind := range 3 {
				want := sum
				if kind == 0 {
					want++
				}
				require.Equal(t, want, y[128*kind+4*lane+i], "product %d, lane %d, value %d", kind, lane, i)
			}
		}
	}
}

// A producer with bulk copies of a tensor and a warpgroup that multiplies. The tensor has
// planes of 128×n halves: A in the first 64 rows of the first, B in the second.
func TestWarpgroups(t *testing.T) {
	lib := library(t)
	const n = 192
	for _, c := range []struct {
		kernel  string
		columns int
		across  bool
	}{{"tile", 128, false}, {"tile_across", 128, true}, {"tile_registers", 64, false}} {
		x, y := make([]uint16, 2*n*n), floats(t, 64*c.columns)
		value := func(plane, row, column int) float32 {
			return float16.Frombits(x[(plane*n+row)*n+column]).Float32()
		}
		r := rand.New(rand.NewPCG(3, 4))
		for i := range x {
			x[i] = float16.Fromfloat32(float32(r.IntN(32)-16) / 4).Bits()
		}
		a := args{y: unsafe.Pointer(&y[0]), n: n}
		// As the driver of tests writes it: type F16, three dimensions, 128 bytes swizzled.
		a.tensor[0], a.tensor[1], a.tensor[2] = 6, 3, 3
		for i, size := range []uint16{64, 64, 1} {
			binary.LittleEndian.PutUint16(a.tensor[4+2*i:], size)
			binary.LittleEndian.PutUint16(a.tensor[14+2*i:], 1)
		}
		var pin runtime.Pinner
		pin.Pin(&x[0])
		binary.LittleEndian.PutUint64(a.tensor[24:], uint64(uintptr(unsafe.Pointer(&x[0]))))
		for i, size := range []uint64{n, n, 2} {
			binary.LittleEndian.PutUint64(a.tensor[32+8*i:], size)
		}
		for i, stride := range []uint64{2 * n, 2 * n * n} {
			binary.LittleEndian.PutUint64(a.tensor[72+8*i:], stride)
		}
		shared := uint32(64*128 + c.columns*128 + 16)
		require.NoError(t, launch(lib, c.kernel, a, 1, 256, shared), c.kernel)
		for row := range 64 {
			for column := range c.columns {
				sum := float32(0)
				for k := range n {
					b := value(1, column, k)
					if c.across {
						b = value(1, k, column)
					}
					sum += value(0, row, k) * b
				}
				require.Equal(t, sum, y[row*c.columns+column], "%s: row %d, column %d", c.kernel, row, column)
			}
		}
		before := y[0]
		a.wrong = 1
		require.NoError(t, launch(lib, c.kernel, a, 1, 256, shared), c.kernel)
		require.NotEqual(t, before, y[0], "sums that are not waited for are not there")
		pin.Unpin()
	}
}

// The device would wait for ever.
func TestRegistersOfWarpgroups(t *testing.T) {
	lib := library(t)
	require.NoError(t, launch(lib, "registers", args{}, 2, 384, 0))
	require.ErrorContains(t, launch(lib, "registers", args{wrong: 1}, 1, 384, 0), "wait in registers_more")
}

func TestCooperative(t *testing.T) {
	lib := library(t)
	y := floats(t, 17)
	a := args{y: unsafe.Pointer(&y[0])}
	l := emulate.Launch{Grid: [3]uint32{16, 1, 1}, Block: [3]uint32{64, 1, 1}, Cooperative: true, Args: unsafe.Slice((*byte)(unsafe.Pointer(&a)), unsafe.Sizeof(a))}
	require.NoError(t, lib.Launch("everyone", l))
	require.Equal(t, float32(1), y[16])
	y[0] = 0
	l.Cooperative = false
	require.ErrorContains(t, lib.Launch("everyone", l), "deadlock", "the other blocks do not run yet")
}

// The same seed gives the same run; launches may run side by side.
func TestSeeds(t *testing.T) {
	lib := library(t)
	x := floats(t, 64)
	for i := range x {
		x[i] = float32(i)
	}
	run := func(seed uint64) []float32 {
		y := floats(t, 64)
		lib.Seed(seed)
		require.NoError(t, launch(lib, "reverse", args{x: unsafe.Pointer(&x[0]), y: unsafe.Pointer(&y[0]), wrong: 1}, 1, 64, 256))
		bits := make([]float32, 64)
		for i := range y { // NaN is like NaN
			bits[i] = float32(math.Float32bits(y[i]))
		}
		return bits
	}
	first := run(7)
	require.Equal(t, first, run(7))
	require.NotEqual(t, first, run(8))

	var wait sync.WaitGroup
	errs := make([]error, 4)
	ys := make([][]float32, 4)
	for i := range ys {
		ys[i] = floats(t, 64)
	}
	for i := range ys {
		wait.Go(func() {
			for range 50 {
				errs[i] = launch(lib, "reverse", args{x: unsafe.Pointer(&x[0]), y: unsafe.Pointer(&ys[i][0])}, 4, 64, 256)
				if errs[i] != nil {
					return
				}
			}
		})
	}
	wait.Wait()
	for i := range ys {
		require.NoError(t, errs[i])
		require.Equal(t, x[0], ys[i][63])
	}
}

// Faults that are not a kernel's go to Go's handler.
func TestOtherFaults(t *testing.T) {
	lib := library(t)
	x, y := floats(t, 256), floats(t, 35)
	require.NoError(t, launch(lib, "reduce", args{x: unsafe.Pointer(&x[0]), y: unsafe.Pointer(&y[0])}, 1, 256, 0))
	var none *args
	require.Panics(t, func() { none.n++ })
}
