//go:build ((linux || darwin) && (amd64 || arm64) && !android && !ios) || (windows && amd64)

package dawn

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tandem-gpu/tandem/gpu/internal/driver"
	"github.com/tandem-gpu/tandem/gpu/internal/driver/drivertest"
	"github.com/tandem-gpu/tandem/pass"
	"github.com/x448/float16"
)

// compute runs a kernel of one workgroup on words and returns what it made of them.
func compute(t *testing.T, d driver.Device, source string, words []uint32) []uint32 {
	t.Helper()
	size := uint64(4 * len(words))
	data := make([]byte, 0, size)
	for _, w := range words {
		data = binary.LittleEndian.AppendUint32(data, w)
	}
	id, err := d.CreateBuffer(driver.BufferDesc{Size: size, Usage: driver.Storage | driver.CopySrc | driver.CopyDst})
	require.NoError(t, err)
	down, err := d.CreateBuffer(driver.BufferDesc{Size: size, Usage: driver.MapRead | driver.CopyDst})
	require.NoError(t, err)
	p, g := drivertest.Updating(t, d, source, id, size)
	require.NoError(t, d.Write(id, 0, data))
	_, err = d.Submit([]driver.Command{driver.Dispatch(p, g, 1, 1, 1), driver.Copy(down, 0, id, 0, size)})
	require.NoError(t, err)
	require.NoError(t, d.ReadMapped(context.Background(), down, 0, data, patience))
	got := make([]uint32, len(words))
	for i := range got {
		got[i] = binary.LittleEndian.Uint32(data[4*i:])
	}
	return got
}

// withFeatures opens a device with features, or skips the test.
func withFeatures(t *testing.T, options Options, features driver.Feature) (*device, driver.Adapter) {
	t.Helper()
	p := newProvider(t, options)
	a := drivertest.Best(t, p)
	if lacking := features &^ a.Features; lacking != 0 {
		t.Skipf("%s lacks %v", a.Name, lacking)
	}
	return openDevice(t, p, driver.DeviceConfig{Features: features}), a
}

func TestF16AndSubgroups(t *testing.T) {
	d, a := withFeatures(t, Options{}, driver.FeatureF16|driver.FeatureSubgroups)
	require.Positive(t, a.MinSubgroup)
	require.LessOrEqual(t, a.MinSubgroup, a.MaxSubgroup)
	got := compute(t, d, `enable f16;
enable subgroups;
@group(0) @binding(0) var<storage, read_write> a: array<vec2<f16>>;
@compute @workgroup_size(64) fn main(@builtin(local_invocation_index) i: u32, @builtin(subgroup_size) n: u32) {
	let sum = subgroupAdd(a[i].x);
	a[i] = vec2<f16>(sum, f16(n));
}`, repeat(64, uint32(float16.Fromfloat32(1.5))))
	n := float16.Float16(got[0] >> 16).Float32()
	require.GreaterOrEqual(t, n, float32(a.MinSubgroup))
	require.LessOrEqual(t, n, float32(a.MaxSubgroup))
	require.Equal(t, 1.5*n, float16.Float16(got[0]).Float32())
}

func repeat(n int, word uint32) []uint32 {
	words := make([]uint32, n)
	for i := range words {
		words[i] = word
	}
	return words
}

// Every f16 shape that the adapter lists multiplies matrices of whole numbers exactly.
func TestSubgroupMatrix(t *testing.T) {
	d, a := withFeatures(t, Options{}, driver.FeatureF16|driver.FeatureSubgroups|driver.FeatureSubgroupMatrix)
	require.NotEmpty(t, a.Matrices)
	for _, c := range a.Matrices {
		t.Logf("%v, subgroups %d to %d", c, c.MinSubgroup, c.MaxSubgroup)
		if c.Component != driver.F16 || c.Result != driver.F32 {
			continue
		}
		m, n, k := int(c.M), int(c.N), int(c.K)
		// The buffer holds the left matrix, the right one and the result as f32.
		left, right := 0, m*k
		result := right + k*n
		words := make([]uint32, result+m*n)
		want := make([]float32, m*n)
		value := func(i int) float32 { return float32(i%7 - 3) }
		for i := range result {
			words[i] = math.Float32bits(value(i))
		}
		for i := range m {
			for j := range n {
				for x := range k {
					want[i*n+j] += value(left+i*k+x) * value(right+x*n+j)
				}
			}
		}
		source := fmt.Sprintf(`enable f16;
enable subgroups;
enable chromium_experimental_subgroup_matrix;
diagnostic(off, chromium.subgroup_matrix_uniformity);
@group(0) @binding(0) var<storage, read_write> a: array<f32>;
var<workgroup> half: array<f16, %[4]du>;
@compute @workgroup_size(%[5]d) fn main(@builtin(local_invocation_index) i: u32) {
	for (var j = i; j < %[4]du; j += %[5]du) { half[j] = f16(a[j]); }
	workgroupBarrier();
	let l = subgroupMatrixLoad<subgroup_matrix_left<f16, %[3]d, %[1]d>, row_major>(&half, 0u, %[3]du);
	let r = subgroupMatrixLoad<subgroup_matrix_right<f16, %[2]d, %[3]d>, row_major>(&half, %[6]du, %[2]du);
	var s: subgroup_matrix_result<f32, %[2]d, %[1]d>;
	s = subgroupMatrixMultiplyAccumulate(l, r, s);
	subgroupMatrixStore<row_major>(&a, %[4]du, s, %[2]du);
}`, m, n, k, result, c.MaxSubgroup, right)
		got := compute(t, d, source, words)
		for i, w := range want {
			require.Equal(t, math.Float32bits(w), got[result+i], "%v, element %d", c, i)
		}
	}
}

// An index outside of a binding reads inside of it: checks are on unless Options say
// otherwise.
func TestRobustness(t *testing.T) {
	if p := newProvider(t, Options{}); p.options.Unchecked {
		t.Skip("the environment switches checks off")
	}
	d, _ := withFeatures(t, Options{}, 0)
	secret, err := d.CreateBuffer(driver.BufferDesc{Size: 1024, Usage: driver.Storage | driver.CopyDst | driver.CopySrc})
	require.NoError(t, err)
	down, err := d.CreateBuffer(driver.BufferDesc{Size: 1024, Usage: driver.MapRead | driver.CopyDst})
	require.NoError(t, err)
	data := make([]byte, 1024)
	for i := range data {
		data[i] = 7
	}
	require.NoError(t, d.Write(secret, 0, data))
	p, g := drivertest.Updating(t, d, `@group(0) @binding(0) var<storage, read_write> a: array<u32>;
@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3<u32>) { a[id.x + 64u] = 0u; }`, secret, 256)
	_, err = d.Submit([]driver.Command{driver.Dispatch(p, g, 1, 1, 1), driver.Copy(down, 0, secret, 0, 1024)})
	require.NoError(t, err)
	require.NoError(t, d.ReadMapped(context.Background(), down, 0, data, patience))
	for i, b := range data[256:] {
		require.EqualValues(t, 7, b, "byte %d after the binding was written", i)
	}
}

// Kernels that do not compile give an error that names them, and leave the device as it
// was.
func TestInvalidShader(t *testing.T) {
	d, _ := withFeatures(t, Options{}, 0)
	for name, source := range map[string]string{
		"syntax":          "fn main(( {",
		"a type":          "@compute @workgroup_size(1) fn main() { let x: f32 = 1u; }",
		"without f16":     "enable f16;\n@compute @workgroup_size(1) fn main() { }",
		"unknown":         "enable matrix_units_of_tomorrow;\n@compute @workgroup_size(1) fn main() { }",
		"uneven barrier":  "@group(0) @binding(0) var<storage, read_write> a: array<u32>;\n@compute @workgroup_size(64) fn main(@builtin(local_invocation_index) i: u32) { if (a[i] > 1u) { workgroupBarrier(); } }",
		"recursion":       "fn f() { f(); }\n@compute @workgroup_size(1) fn main() { f(); }",
		"too much shared": "var<workgroup> a: array<u32, 1000000>;\n@compute @workgroup_size(1) fn main() { a[0] = 1u; }",
		"no text":         "\xff\xfe",
	} {
		_, err := d.CreatePipeline(driver.PipelineDesc{Label: "bad kernel", Source: source, Entry: "main", Bindings: []driver.BindingKind{driver.StorageReadWrite}})
		require.ErrorIs(t, err, pass.ErrInvalid, name)
		require.ErrorContains(t, err, `"bad kernel"`, name)
		t.Logf("%s: %.200v", name, err)
	}
	require.NoError(t, d.Err())
	require.Zero(t, d.Ledger())
}

// A GPU whose memory is full refuses, and goes on. Software adapters have the system's
// memory, which is not filled here.
func TestOutOfMemory(t *testing.T) {
	d, a := withFeatures(t, Options{}, 0)
	if a.Type != driver.Discrete {
		t.Skipf("%s has no memory of its own", a.Name)
	}
	size := a.Limits.MaxBufferSize / 4 * 4
	var err error
	var ids []driver.BufferID
	for err == nil && uint64(len(ids))*size < 1<<40 {
		var id driver.BufferID
		if id, err = d.CreateBuffer(driver.BufferDesc{Label: "one more", Size: size, Usage: driver.Storage | driver.CopyDst}); err == nil {
			ids = append(ids, id)
		}
	}
	t.Logf("%d buffers of %d bytes, then: %v", len(ids), size, err)
	require.ErrorIs(t, err, pass.ErrOutOfMemory)
	require.ErrorContains(t, err, "one more")
	require.NoError(t, d.Err())
	for _, id := range ids {
		require.NoError(t, d.DestroyBuffer(id))
	}
	require.Equal(t, []uint32{2}, compute(t, d, `@group(0) @binding(0) var<storage, read_write> a: array<u32>;
@compute @workgroup_size(1) fn main() { a[0] = a[0] + 1u; }`, []uint32{1}))
}
