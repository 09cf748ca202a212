package dawn

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

// The sizes and offsets are those of the library's C header on 64-bit systems.
func TestLayouts(t *testing.T) {
	t.Parallel()
	var (
		info    adapterInfo
		l       limits
		device  deviceDescriptor
		entry   layoutEntry
		group   groupEntry
		p       pipelineDescriptor
		layout  pipelineLayoutDescriptor
		source  shaderSource
		buffer  bufferDescriptor
		options adapterOptions
		toggles togglesDescriptor
		cache   cacheDescriptor
		matrix  matrixConfigs
		query   querySetDescriptor
	)
	for _, c := range []struct {
		name        string
		given, want uintptr
	}{
		{"text", unsafe.Sizeof(text{}), 16},
		{"chained", unsafe.Sizeof(chained{}), 16},
		{"callbackInfo", unsafe.Sizeof(callbackInfo{}), 40},
		{"functionInfo", unsafe.Sizeof(functionInfo{}), 32},
		{"futureWait", unsafe.Sizeof(futureWait{}), 16},
		{"instanceDescriptor", unsafe.Sizeof(instanceDescriptor{}), 32},
		{"toggles", unsafe.Sizeof(toggles), 48},
		{"toggles.disabled", unsafe.Offsetof(toggles.disabled), 40},
		{"cache", unsafe.Sizeof(cache), 96},
		{"cache.load", unsafe.Offsetof(cache.load) + unsafe.Offsetof(cache.load.callback), 40},
		{"cache.store", unsafe.Offsetof(cache.store) + unsafe.Offsetof(cache.store.callback), 72},
		{"options", unsafe.Sizeof(options), 32},
		{"options.backend", unsafe.Offsetof(options.backend), 20},
		{"info", unsafe.Sizeof(info), 96},
		{"info.backend", unsafe.Offsetof(info.backend), 72},
		{"info.minSubgroup", unsafe.Offsetof(info.minSubgroup), 88},
		{"matrix", unsafe.Sizeof(matrix), 32},
		{"limits", unsafe.Sizeof(l), 152},
		{"limits.uniform", unsafe.Offsetof(l.maxUniformBufferBindingSize), 64},
		{"limits.buffer", unsafe.Offsetof(l.maxBufferSize), 96},
		{"limits.storage", unsafe.Offsetof(l.maxComputeWorkgroupStorageSize), 124},
		{"limits.immediate", unsafe.Offsetof(l.maxImmediateSize), 148},
		{"device", unsafe.Sizeof(device), 144},
		{"device.lost", unsafe.Offsetof(device.lost), 72},
		{"device.uncaptured", unsafe.Offsetof(device.uncaptured), 112},
		{"buffer", unsafe.Sizeof(buffer), 48},
		{"buffer.size", unsafe.Offsetof(buffer.size), 32},
		{"layout entry", unsafe.Sizeof(entry), 120},
		{"layout entry.buffer", unsafe.Offsetof(entry.buffer), 32},
		{"layout entry.buffer.minBindingSize", unsafe.Offsetof(entry.buffer.minBindingSize), 16},
		{"layoutDescriptor", unsafe.Sizeof(layoutDescriptor{}), 40},
		{"group entry", unsafe.Sizeof(group), 56},
		{"group entry.size", unsafe.Offsetof(group.size), 32},
		{"groupDescriptor", unsafe.Sizeof(groupDescriptor{}), 48},
		{"pipelineLayoutDescriptor", unsafe.Sizeof(layout), 48},
		{"pipelineDescriptor", unsafe.Sizeof(p), 80},
		{"pipelineDescriptor.entry", unsafe.Offsetof(p.entry), 48},
		{"shaderSource", unsafe.Sizeof(source), 32},
		{"moduleDescriptor", unsafe.Sizeof(moduleDescriptor{}), 24},
		{"querySetDescriptor", unsafe.Sizeof(query), 32},
	} {
		require.Equal(t, c.want, c.given, c.name)
	}
}

func TestCopyText(t *testing.T) {
	t.Parallel()
	data := []byte("loss\x00rest")
	require.Equal(t, "lo", copyText(&data[0], 2))
	require.Equal(t, "loss", copyText(&data[0], ^uintptr(0)))
	require.Empty(t, copyText(nil, ^uintptr(0)))
	require.Empty(t, copyText(&data[0], 0))
}
