//go:build cgo && !js && (linux || darwin || windows)

package native

import (
	"context"
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tandem-gpu/tandem/gpu/internal/driver"
)

// A list that goes to the device in stretches does all its commands once, in order.
func TestSubmitInStretches(t *testing.T) {
	const source = `
@group(0) @binding(0) var<storage, read_write> x: array<u32>;
@compute @workgroup_size(1)
fn next() { x[0] = x[0] * 3u + 1u; }`
	d := openDevice(t, newProvider(t), driver.DeviceConfig{})
	p, err := d.CreatePipeline(driver.PipelineDesc{Label: "next", Source: source, Entry: "next", Bindings: []driver.BindingKind{driver.StorageReadWrite}})
	require.NoError(t, err)
	x, err := d.CreateBuffer(driver.BufferDesc{Size: 4, Usage: driver.Storage | driver.CopySrc | driver.CopyDst})
	require.NoError(t, err)
	out, err := d.CreateBuffer(driver.BufferDesc{Size: 4, Usage: driver.MapRead | driver.CopyDst})
	require.NoError(t, err)
	g, err := d.CreateBindGroup(p, []driver.Binding{{Buffer: x, Size: 4}})
	require.NoError(t, err)
	for _, stretch := range []int{0, 4, 8} {
		d.(*device).setStretch(stretch)
		for n := range 40 {
			t.Run(fmt.Sprintf("%d commands, %d at a time", n+2, stretch), func(t *testing.T) {
				commands := []driver.Command{driver.Clear(x, 0, 4)}
				want := uint32(0)
				for range n {
					commands = append(commands, driver.Dispatch(p, g, 1, 1, 1))
					want = want*3 + 1
				}
				commands = append(commands, driver.Copy(out, 0, x, 0, 4))
				_, err := d.Submit(commands)
				require.NoError(t, err)
				got := make([]byte, 4)
				require.NoError(t, d.ReadMapped(context.Background(), out, 0, got, patience))
				require.Equal(t, want, binary.LittleEndian.Uint32(got))
			})
		}
	}
}
