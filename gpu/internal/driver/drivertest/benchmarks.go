package drivertest

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tandem-gpu/tandem/gpu/internal/driver"
)

// Thousand makes commands of a kernel that does next to nothing with so many buffers, of
// two pipelines in turn with a dynamic offset each.
func Thousand(b testing.TB, d driver.Device, storage int) []driver.Command {
	b.Helper()
	var source, use strings.Builder
	var kinds []driver.BindingKind
	var bindings []driver.Binding
	for i := range storage {
		fmt.Fprintf(&source, "@group(0) @binding(%d) var<storage, read_write> a%d: array<u32>;\n", i, i)
		fmt.Fprintf(&use, "a%d[0] = a%d[0] + u.x; ", i, i)
		id, err := d.CreateBuffer(driver.BufferDesc{Size: 256, Usage: driver.Storage})
		require.NoError(b, err)
		kinds, bindings = append(kinds, driver.StorageReadWrite), append(bindings, driver.Binding{Buffer: id, Size: 256})
	}
	fmt.Fprintf(&source, "@group(0) @binding(%d) var<uniform> u: vec4<u32>;\n@compute @workgroup_size(1) fn main() { %s}", storage, use.String())
	u, err := d.CreateBuffer(driver.BufferDesc{Size: 4096, Usage: driver.Uniform})
	require.NoError(b, err)
	kinds, bindings = append(kinds, driver.UniformDynamic), append(bindings, driver.Binding{Buffer: u, Size: 16})
	var pipelines [2]driver.PipelineID
	for i := range pipelines {
		pipelines[i], err = d.CreatePipeline(driver.PipelineDesc{Label: "bench", Source: source.String(), Entry: "main", Bindings: kinds})
		require.NoError(b, err)
	}
	g, err := d.CreateBindGroup(pipelines[0], bindings)
	require.NoError(b, err)
	commands := make([]driver.Command, 1000)
	for i := range commands {
		commands[i] = driver.Dispatch(pipelines[i%2], g, 1, 1, 1, uint32(i%16)*256)
	}
	return commands
}

// BenchmarkSubmit is the host's time to check, encode and submit commands; the metric is of
// one, or of the submission if there are none. Waiting is not in the metric.
func BenchmarkSubmit(b *testing.B, d driver.Device, commands []driver.Command) {
	b.Helper()
	b.ReportAllocs()
	var spent time.Duration
	for b.Loop() {
		start := time.Now()
		serial, err := d.Submit(commands)
		spent += time.Since(start)
		require.NoError(b, err)
		require.NoError(b, d.Wait(context.Background(), serial, patience))
	}
	b.ReportMetric(float64(spent.Nanoseconds())/float64(b.N)/float64(max(len(commands), 1)), "submit-ns/command")
}

// BenchmarkRead4 copies 4 bytes to a staging buffer and reads them: the latency of a
// result.
func BenchmarkRead4(b *testing.B, d driver.Device) {
	b.Helper()
	from, err := d.CreateBuffer(driver.BufferDesc{Size: 256, Usage: driver.CopySrc | driver.Storage})
	require.NoError(b, err)
	to, err := d.CreateBuffer(driver.BufferDesc{Size: 256, Usage: driver.MapRead | driver.CopyDst})
	require.NoError(b, err)
	commands := []driver.Command{driver.Copy(to, 0, from, 0, 256)}
	got := make([]byte, 4)
	b.ReportAllocs()
	for b.Loop() {
		_, err := d.Submit(commands)
		require.NoError(b, err)
		require.NoError(b, d.ReadMapped(context.Background(), to, 0, got, patience))
	}
}

// BenchmarkUpload16M writes 16 MiB through a mapped staging buffer and a copy.
func BenchmarkUpload16M(b *testing.B, d driver.Device) {
	b.Helper()
	const size = 16 << 20
	from, err := d.CreateBuffer(driver.BufferDesc{Size: size, Usage: driver.MapWrite | driver.CopySrc})
	require.NoError(b, err)
	to, err := d.CreateBuffer(driver.BufferDesc{Size: size, Usage: driver.Storage | driver.CopyDst})
	require.NoError(b, err)
	commands := []driver.Command{driver.Copy(to, 0, from, 0, size)}
	data := make([]byte, size)
	b.SetBytes(size)
	for b.Loop() {
		require.NoError(b, d.WriteMapped(context.Background(), from, 0, data, patience))
		serial, err := d.Submit(commands)
		require.NoError(b, err)
		require.NoError(b, d.Wait(context.Background(), serial, patience))
	}
}
