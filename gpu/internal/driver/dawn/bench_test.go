//go:build ((linux || darwin) && (amd64 || arm64) && !android && !ios) || (windows && amd64)

package dawn

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tandem-gpu/tandem/gpu/internal/driver"
)

// thousand makes commands of a kernel that does next to nothing with its buffer, of two
// pipelines in turn with a dynamic offset each, as the native provider's benchmark does.
func thousand(b *testing.B, d driver.Device) []driver.Command {
	b.Helper()
	const source = `@group(0) @binding(0) var<storage, read_write> a: array<u32>;
@group(0) @binding(1) var<uniform> u: vec4<u32>;
@compute @workgroup_size(1) fn main() { a[0] = a[0] + u.x; }`
	id, err := d.CreateBuffer(driver.BufferDesc{Size: 256, Usage: driver.Storage})
	require.NoError(b, err)
	u, err := d.CreateBuffer(driver.BufferDesc{Size: 4096, Usage: driver.Uniform})
	require.NoError(b, err)
	var pipelines [2]driver.PipelineID
	for i := range pipelines {
		pipelines[i], err = d.CreatePipeline(driver.PipelineDesc{
			Label: "bench", Source: source, Entry: "main", Bindings: []driver.BindingKind{driver.StorageReadWrite, driver.UniformDynamic},
		})
		require.NoError(b, err)
	}
	g, err := d.CreateBindGroup(pipelines[0], []driver.Binding{{Buffer: id, Size: 256}, {Buffer: u, Size: 16}})
	require.NoError(b, err)
	commands := make([]driver.Command, 1000)
	for i := range commands {
		commands[i] = driver.Dispatch(pipelines[i%2], g, 1, 1, 1, uint32(i%16)*256)
	}
	return commands
}

// BenchmarkSubmit1000 is the host's time to check, encode and submit 1000 dispatches.
// Waiting is not counted.
func BenchmarkSubmit1000(b *testing.B) {
	d := openDevice(b, newProvider(b, Options{}), driver.DeviceConfig{})
	commands := thousand(b, d)
	submitted(b, d, commands, float64(len(commands)))
}

// BenchmarkSubmitEmpty is the cost of a submission by itself, with the wait for it.
func BenchmarkSubmitEmpty(b *testing.B) {
	submitted(b, openDevice(b, newProvider(b, Options{}), driver.DeviceConfig{}), nil, 1)
}

func submitted(b *testing.B, d driver.Device, commands []driver.Command, per float64) {
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
	b.ReportMetric(float64(spent.Nanoseconds())/float64(b.N)/per, "submit-ns/command")
}

// BenchmarkRead4 copies 4 bytes to a staging buffer and reads them: the latency of a
// result.
func BenchmarkRead4(b *testing.B) {
	d := openDevice(b, newProvider(b, Options{}), driver.DeviceConfig{})
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
	d := openDevice(b, newProvider(b, Options{}), driver.DeviceConfig{})
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

// BenchmarkStart is everything up to a compiled kernel, but for loading the library:
// cold with nothing in the cache of compiled kernels, warm with all of it.
func BenchmarkStart(b *testing.B) {
	start := func(b *testing.B, dir string) {
		p := newProvider(b, Options{Cache: dir})
		d, err := p.Open(context.Background(), best(b, p).Index, driver.DeviceConfig{})
		require.NoError(b, err)
		id, err := d.CreateBuffer(driver.BufferDesc{Size: 256, Usage: driver.Storage})
		require.NoError(b, err)
		addOne(b, d, id)
		b.StopTimer()
		require.NoError(b, d.Close())
		require.NoError(b, p.Close())
		b.StartTimer()
	}
	b.Run("cold", func(b *testing.B) {
		for range b.N {
			start(b, b.TempDir())
		}
	})
	b.Run("warm", func(b *testing.B) {
		dir := b.TempDir()
		start(b, dir)
		b.ResetTimer()
		for range b.N {
			start(b, dir)
		}
	})
}
