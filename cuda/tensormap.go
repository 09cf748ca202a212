package cuda

import "github.com/tandem-gpu/tandem/cuda/internal/driver"

// A mapKey is all that a tensor map is made of.
type mapKey struct {
	typ     driver.TensorType
	swizzle driver.Swizzle
	promote int
	address driver.Pointer
	rank    int
	size    [5]uint64
	stride  [4]uint64
	box     [5]uint32
}

// A tensorMap is what the driver made of a mapKey.
type tensorMap struct {
	made [128]byte
	err  error
}

// A mapUse is a tensor map among the parameters of a launch.
type mapUse struct {
	offset uintptr
	key    mapKey
}

// keyOf returns the key of a tensor without steps.
func keyOf(t driver.TensorMap) mapKey {
	key := mapKey{typ: t.Type, swizzle: t.Swizzle, promote: t.Promote, address: t.Address, rank: len(t.Size)}
	copy(key.size[:], t.Size)
	copy(key.stride[:], t.Stride)
	copy(key.box[:], t.Box)
	return key
}

// noteMap notes that the parameters have the map of a tensor at an offset, which is made when
// its address is known.
func (k *call) noteMap(offset uintptr, t driver.TensorMap) mapKey {
	key := keyOf(t)
	if k.l.maps == nil {
		k.l.maps = make([]mapUse, 0, 4) // of products in parts
	}
	k.l.maps = append(k.l.maps, mapUse{offset, key})
	return key
}

// tensorMap is noteMap, and asks now whether the driver makes a map of such a tensor at all, at
// another address, which is real.
func (k *call) tensorMap(offset uintptr, t driver.TensorMap, elsewhere driver.Pointer) error {
	key := k.noteMap(offset, t)
	if key.address&provisional != 0 {
		key.address = elsewhere
	}
	_, err := k.c.tensorMap(key)
	return err
}

// tensorMap returns the driver's map of a tensor. The operands of many launches of a
// recording are the same, and asking the driver takes longer than all else that a launch
// costs.
func (c *compiler) tensorMap(key mapKey) ([128]byte, error) {
	if m, ok := c.maps[key]; ok {
		return m.made, m.err
	}
	m := c.encode(key)
	if c.maps == nil {
		c.maps = map[mapKey]tensorMap{}
	}
	c.maps[key] = m
	return m.made, m.err
}

func (c *compiler) encode(key mapKey) (m tensorMap) {
	m.err = c.d.do(func() (err error) {
		m.made, err = c.d.drv.EncodeTensorMap(driver.TensorMap{
			Type: key.typ, Swizzle: key.swizzle, Promote: key.promote, Address: key.address,
			Size: key.size[:key.rank], Stride: key.stride[:key.rank-1], Box: key.box[:key.rank],
		})
		return err
	})
	return m
}
