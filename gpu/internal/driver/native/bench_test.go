//go:build cgo && !js && (linux || darwin || windows)

package native

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tandem-gpu/tandem/gpu/internal/driver"
)

// thousand makes commands of a kernel that does next to nothing with its buffers.
func thousand(b *testing.B, d driver.Device, storage int) []driver.Command {
	b.Helper()
	source := ""
	var kinds []driver.BindingKind
	var bindings []driver.Binding
	use := ""
	for i := range storage {
		name := string(rune('a' + i))
		source += "@group(0) @binding(" + string(rune('0'+i)) + ") var<storage, read_write> " + name + ": array<u32>;\n"
		use += name + "[0] = " + name + "[0] + u.x; "
		id, err := d.CreateBuffer(driver.BufferDesc{Size: 256, Usage: driver.Storage})
		require.NoError(b, err)
		kinds, bindings = append(kinds, driver.StorageReadWrite), append(bindings, driver.Binding{Buffer: id, Size: 256})
	}
	source += "@group(0) @binding(" + string(rune('0'+storage)) + ") var<uniform> u: vec4<u32>;\n@compute @workgroup_size(1) fn main() { " + use + "}"
	u, err := d.CreateBuffer(driver.BufferDesc{Size: 4096, Usage: driver.Uniform})
	require.NoError(b, err)
	kinds, bindings = append(kinds, driver.UniformDynamic), append(bindings, driver.Binding{Buffer: u, Size: 16})
	var pipelines [2]driver.PipelineID
	for i := range pipelines {
		pipelines[i], err = d.CreatePipeline(driver.PipelineDesc{Label: "bench", Source: source, Entry: "main", Bindings: kinds})
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

// BenchmarkSubmit1000 is the host's time to check, encode and submit 1000 dispatches,
// of two pipelines in turn with a dynamic offset each. Waiting is not counted.
func BenchmarkSubmit1000(b *testing.B) {
	for name, storage := range map[string]int{"1 buffer": 1, "4 buffers": 4, "8 buffers": 8} {
		b.Run(name, func(b *testing.B) {
			d := openDevice(b, newProvider(b), driver.DeviceConfig{})
			commands := thousand(b, d, storage)
			b.ReportAllocs()
			var spent time.Duration
			for b.Loop() {
				start := time.Now()
				serial, err := d.Submit(commands)
				spent += time.Since(start)
				require.NoError(b, err)
				require.NoError(b, d.Wait(context.Background(), serial, patience))
			}
			b.ReportMetric(float64(spent.Nanoseconds())/float64(b.N)/1000, "submit-ns/dispatch")
		})
	}
}

// BenchmarkSubmitEmpty is the cost of a submission by itself, with the wait for it.
func BenchmarkSubmitEmpty(b *testing.B) {
	d := openDevice(b, newProvider(b), driver.DeviceConfig{})
	b.ReportAllocs()
	var spent time.Duration
	for b.Loop() {
		start := time.Now()
		serial, err := d.Submit(nil)
		spent += time.Since(start)
		require.NoError(b, err)
		require.NoError(b, d.Wait(context.Background(), serial, patience))
	}
	b.ReportMetric(float64(spent.Nanoseconds())/float64(b.N), "submit-ns")
}

// BenchmarkRead4 copies 4 bytes to a staging buffer and reads them: the latency of a
// result.
func BenchmarkRead4(b *testing.B) {
	d := openDevice(b, newProvider(b), driver.DeviceConfig{})
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
func BenchmarkUpload16M(b *testing.B) {
	const size = 16 << 20
	d := openDevice(b, newProvider(b), driver.DeviceConfig{})
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
