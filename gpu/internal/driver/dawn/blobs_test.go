//go:build ((linux || darwin) && (amd64 || arm64) && !android && !ios) || (windows && amd64)

package dawn

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"github.com/tandem-gpu/tandem/gpu/internal/driver"
	"github.com/tandem-gpu/tandem/gpu/internal/driver/drivertest"
)

func TestBlobCache(t *testing.T) {
	t.Parallel()
	require.Nil(t, openCache(cacheOff))
	dir := filepath.Join(t.TempDir(), "a", "b")
	c := openCache(dir)
	require.NotNil(t, c)
	require.Nil(t, c.load([]byte("key")))
	c.store([]byte("key"), []byte("value"))
	c.store([]byte("key2"), nil)
	require.Equal(t, "value", string(c.load([]byte("key"))))
	require.Nil(t, c.load([]byte("ke")))
	c.store([]byte("key"), []byte("another"))
	require.Equal(t, "another", string(c.load([]byte("key"))))

	// A file that was damaged, or belongs to another key, is none.
	path := c.path([]byte("key"))
	whole, err := os.ReadFile(path)
	require.NoError(t, err)
	for i := range whole {
		broken := append([]byte(nil), whole...)
		broken[i] ^= 1
		_, ok := decodeBlob([]byte("key"), broken)
		require.False(t, ok, "byte %d", i)
		_, ok = decodeBlob([]byte("key"), whole[:i])
		require.False(t, ok, "cut at %d", i)
	}

	// A folder that cannot be made or written is no cache, and no error.
	require.Nil(t, openCache(filepath.Join(path, "below a file")))
	require.NoError(t, os.RemoveAll(dir))
	c.store([]byte("key"), []byte("value"))
	require.Nil(t, c.load([]byte("key")))
}

func TestPrune(t *testing.T) {
	t.Parallel()
	c := openCache(t.TempDir())
	for i := range 5 {
		c.store([]byte{byte(i)}, make([]byte, 1000))
		old := c.path([]byte{byte(i)})
		info, err := os.Stat(old)
		require.NoError(t, err)
		// The higher the number, the older.
		require.NoError(t, os.Chtimes(old, info.ModTime(), info.ModTime().AddDate(0, 0, -i)))
	}
	c.prune(2500)
	for i := range 5 {
		require.Equal(t, i < 2, c.load([]byte{byte(i)}) != nil, "%d", i)
	}
}

// What one device compiled, the next one, of another provider, does not compile again.
func TestSecondStartCompilesNothing(t *testing.T) {
	dir := t.TempDir()
	start := func() (*blobCache, uint32) {
		p := newProvider(t, Options{Cache: dir})
		defer p.Close()
		d := openDevice(t, p, driver.DeviceConfig{})
		id, err := d.CreateBuffer(driver.BufferDesc{Size: 256, Usage: driver.Storage | driver.CopySrc})
		require.NoError(t, err)
		down, err := d.CreateBuffer(driver.BufferDesc{Size: 256, Usage: driver.MapRead | driver.CopyDst})
		require.NoError(t, err)
		commands := make([]driver.Command, 0, 4)
		for i := range 3 {
			p, g := drivertest.Updating(t, d, fmt.Sprintf(`@group(0) @binding(0) var<storage, read_write> a: array<u32>;
@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3<u32>) { a[id.x] = a[id.x] * 10u + %du; }`, i+1), id, 256)
			commands = append(commands, driver.Dispatch(p, g, 1, 1, 1))
		}
		_, err = d.Submit(append(commands, driver.Copy(down, 0, id, 0, 256)))
		require.NoError(t, err)
		got := make([]byte, 4)
		require.NoError(t, d.ReadMapped(context.Background(), down, 0, got, patience))
		require.NoError(t, d.Close())
		return d.cache, uint32(got[0])
	}
	first, value := start()
	require.EqualValues(t, 123, value)
	require.Positive(t, first.stores.Load(), "the library stored nothing")
	second, value := start()
	require.EqualValues(t, 123, value)
	t.Logf("first start: %d hits, %d misses, %d stores; second: %d, %d, %d", first.hits.Load(), first.misses.Load(), first.stores.Load(),
		second.hits.Load(), second.misses.Load(), second.stores.Load())
	require.Zero(t, second.stores.Load())
	require.Zero(t, second.misses.Load())
	require.Equal(t, 2*first.misses.Load(), second.hits.Load(), "each is asked for its size, then for itself")
}

// A library of another time, which calls with a key's address first, does no harm.
func TestCacheOfAnotherTime(t *testing.T) {
	t.Parallel()
	c := openCache(t.TempDir())
	id := caches.add(c)
	defer caches.remove(id)
	key := []byte("key")
	address := uintptr(unsafe.Pointer(&key[0]))
	require.Zero(t, onLoad(address, nil, 3, nil, 0, 0))
	require.Zero(t, onLoad(address, &key[0], 3, &key[0], id, 0))
	require.Zero(t, onStore(address, &key[0], 3, &key[0], id, 0))
	require.Zero(t, onStore(3, &key[0], address, &key[0], id, 0))
	require.Zero(t, c.stores.Load())
	onStore(3, &key[0], 3, &key[0], id, 0)
	got := make([]byte, 3)
	require.EqualValues(t, 3, onLoad(3, &key[0], 0, nil, id, 0))
	require.EqualValues(t, 3, onLoad(3, &key[0], 2, &got[0], id, 0))
	require.Equal(t, []byte{0, 0, 0}, got, "too small")
	require.EqualValues(t, 3, onLoad(3, &key[0], 3, &got[0], id, 0))
	require.Equal(t, key, got)
}

func FuzzDecodeBlob(f *testing.F) {
	f.Add([]byte("key"), encodeBlob([]byte("key"), []byte("value")))
	f.Add([]byte("ke"), encodeBlob([]byte("key"), nil))
	f.Add([]byte(""), []byte(blobMagic))
	f.Fuzz(func(t *testing.T, key, data []byte) {
		if value, ok := decodeBlob(key, data); ok {
			require.Equal(t, data, encodeBlob(key, value))
		}
	})
}
