package dawn

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
)

const (
	blobMagic = "tandem blob 1\n"
	// maxCache is how many bytes of compiled kernels are kept.
	maxCache = 256 << 20
	cacheOff = "off"
)

// blobCache keeps what the library compiled, a file for each key. Whatever goes wrong
// with a file, the kernel is compiled again: no error comes out. The library puts the
// driver and its own version into the keys.
type blobCache struct {
	dir                  string
	hits, misses, stores atomic.Int64
}

// openCache opens the folder given, or the user's; nil: nothing is kept.
func openCache(dir string) *blobCache {
	if dir == cacheOff {
		return nil
	}
	if dir == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			return nil
		}
		dir = filepath.Join(user, "tandem", "dawn", "kernels")
	}
	if os.MkdirAll(dir, 0o700) != nil {
		return nil
	}
	c := &blobCache{dir: dir}
	c.prune(maxCache)
	return c
}

func (c *blobCache) path(key []byte) string {
	sum := sha256.Sum256(key)
	return filepath.Join(c.dir, hex.EncodeToString(sum[:])+".blob")
}

// load returns the value of a key, or nil.
func (c *blobCache) load(key []byte) []byte {
	value, ok := decodeBlob(key, c.read(key))
	if !ok {
		c.misses.Add(1)
		return nil
	}
	c.hits.Add(1)
	return value
}

func (c *blobCache) read(key []byte) []byte {
	path := c.path(key)
	if info, err := os.Stat(path); err != nil || info.Size() > maxCache {
		return nil
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	return data
}

// store keeps a value. The file appears whole or not at all.
func (c *blobCache) store(key, value []byte) {
	f, err := os.CreateTemp(c.dir, "new-*")
	if err != nil {
		return
	}
	_, err = f.Write(encodeBlob(key, value))
	if f.Close() != nil || err != nil || os.Rename(f.Name(), c.path(key)) != nil {
		os.Remove(f.Name())
		return
	}
	c.stores.Add(1)
}

// encodeBlob writes a blob: magic, length of the key, key, checksum of the value, value.
func encodeBlob(key, value []byte) []byte {
	sum := sha256.Sum256(value)
	data := binary.LittleEndian.AppendUint64([]byte(blobMagic), uint64(len(key)))
	return append(append(append(data, key...), sum[:]...), value...)
}

// decodeBlob returns the value if the data is a whole blob of that key.
func decodeBlob(key, data []byte) (value []byte, ok bool) {
	head := binary.LittleEndian.AppendUint64([]byte(blobMagic), uint64(len(key)))
	data, ok = bytes.CutPrefix(data, append(head, key...))
	if !ok || len(data) <= sha256.Size {
		return nil, false
	}
	value = data[sha256.Size:]
	return value, sha256.Sum256(value) == [sha256.Size]byte(data)
}

// prune removes the oldest files until the rest is within the limit, and what broken
// runs left.
func (c *blobCache) prune(limit int64) {
	entries, err := os.ReadDir(c.dir)
	if err != nil {
		return
	}
	var files []fs.FileInfo
	var total int64
	for _, e := range entries {
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() {
			files = append(files, info)
			total += info.Size()
		}
	}
	slices.SortFunc(files, func(a, b fs.FileInfo) int { return a.ModTime().Compare(b.ModTime()) })
	for _, f := range files {
		if total <= limit {
			return
		}
		if os.Remove(filepath.Join(c.dir, f.Name())) == nil {
			total -= f.Size()
		}
	}
}
