package drivertest

import (
	"encoding/binary"

	"github.com/tandem-gpu/tandem/cuda/internal/driver"
)

// EncodeTensorMap implements driver.Driver. Its maps are the fields of t one behind the
// other, little-endian: type, rank, swizzle and a byte of zero; box and step, five words
// of 16 bits each; then, at byte 24, the address, five sizes and four strides of 64 bits.
func (d *Driver) EncodeTensorMap(t driver.TensorMap) (m [128]byte, err error) {
	err = d.inside("EncodeTensorMap", func(c *scope) error {
		const call = "EncodeTensorMap"
		rank := len(t.Size)
		size, known := map[driver.TensorType]int{driver.TensorU8: 1, driver.TensorU16: 2, driver.TensorU32: 4,
			driver.TensorF16: 2, driver.TensorF32: 4, driver.TensorBF16: 2}[t.Type]
		switch {
		case d.devices[c.ordinal].Capability < 90:
			return Error(call, driver.NotSupported)
		case !known || rank < 1 || rank > 5 || len(t.Stride) != rank-1 || len(t.Box) != rank || t.Step != nil && len(t.Step) != rank:
			return wrong(call, driver.InvalidValue, "type %d, %d sizes, %d strides, a box of %d", t.Type, rank, len(t.Stride), len(t.Box))
		case t.Address == 0 || t.Address%16 != 0:
			return wrong(call, driver.InvalidValue, "address %#x", uint64(t.Address))
		}
		m[0], m[1], m[2] = byte(t.Type), byte(rank), byte(t.Swizzle)
		binary.LittleEndian.PutUint64(m[24:], uint64(t.Address))
		for i, n := range t.Size {
			step := uint32(1)
			if t.Step != nil {
				step = t.Step[i]
			}
			if n == 0 || n > 1<<32 || t.Box[i] == 0 || t.Box[i] > 256 || step == 0 || step > 8 {
				return wrong(call, driver.InvalidValue, "dimension %d: size %d, box %d, step %d", i, n, t.Box[i], step)
			}
			binary.LittleEndian.PutUint16(m[4+2*i:], uint16(t.Box[i]))
			binary.LittleEndian.PutUint16(m[14+2*i:], uint16(step))
			binary.LittleEndian.PutUint64(m[32+8*i:], n)
		}
		for i, n := range t.Stride {
			if n == 0 || n%16 != 0 || n >= 1<<40 {
				return wrong(call, driver.InvalidValue, "stride %d of dimension %d", n, i+1)
			}
			binary.LittleEndian.PutUint64(m[72+8*i:], n)
		}
		inner := int(t.Box[0]) * size
		span, ok := map[driver.Swizzle]int{driver.SwizzleNone: 1 << 20, driver.Swizzle32: 32, driver.Swizzle64: 64, driver.Swizzle128: 128}[t.Swizzle]
		if !ok || inner%16 != 0 || inner > span {
			return wrong(call, driver.InvalidValue, "a row of the box has %d bytes, swizzled %d", inner, t.Swizzle)
		}
		return nil
	})
	return m, err
}
