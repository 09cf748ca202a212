package wav

import (
	"encoding/binary"
	"math"
)

// expand decodes len(dst) little-endian samples.
func (f *Format) expand(dst []float64, raw []byte) {
	switch f.Encoding {
	case PCM:
		f.expandPCM(dst, raw)
	case Float:
		expandFloat(dst, raw, f.Bits)
	case ALaw:
		for i := range dst {
			dst[i] = float64(expandALaw(raw[i])) / (1 << 15)
		}
	case MuLaw:
		for i := range dst {
			dst[i] = float64(expandMuLaw(raw[i])) / (1 << 15)
		}
	}
}

// expandPCM clears the bits below the valid ones: they are padding, and not always 0.
func (f *Format) expandPCM(dst []float64, raw []byte) {
	keep := int32(-1) << (f.Bits - f.ValidBits)
	switch f.Bits {
	case 8:
		for i := range dst {
			dst[i] = float64((int32(raw[i])-1<<7)&keep) / (1 << 7)
		}
	case 16:
		for i := range dst {
			v := int32(int16(binary.LittleEndian.Uint16(raw[2*i:])))
			dst[i] = float64(v&keep) / (1 << 15)
		}
	case 24:
		for i := range dst {
			b := raw[3*i : 3*i+3]
			v := int32(b[0]) | int32(b[1])<<8 | int32(int8(b[2]))<<16
			dst[i] = float64(v&keep) / (1 << 23)
		}
	case 32:
		for i := range dst {
			v := int32(binary.LittleEndian.Uint32(raw[4*i:]))
			dst[i] = float64(v&keep) / (1 << 31)
		}
	}
}

func expandFloat(dst []float64, raw []byte, bits int) {
	if bits == 32 {
		for i := range dst {
			dst[i] = float64(math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:])))
		}
		return
	}
	for i := range dst {
		dst[i] = math.Float64frombits(binary.LittleEndian.Uint64(raw[8*i:]))
	}
}

// expandALaw follows ITU-T G.711: sign, three bits of exponent, four of mantissa, every
// other bit inverted; the result is scaled to 16 bits.
func expandALaw(b byte) int32 {
	b ^= 0x55
	v := int32(b&0x0F)<<4 + 8
	if exponent := b >> 4 & 7; exponent > 0 {
		v = (v + 0x100) << (exponent - 1)
	}
	if b&0x80 == 0 {
		return -v
	}
	return v
}

// expandMuLaw follows ITU-T G.711: as A-law but all bits inverted and a bias of 33
// (132 in 16 bits), which makes 0 exact.
func expandMuLaw(b byte) int32 {
	const bias = 33 << 2
	b = ^b
	v := (int32(b&0x0F)<<3+bias)<<(b>>4&7) - bias
	if b&0x80 != 0 {
		return -v
	}
	return v
}

// reverseBytes turns round the byte order of samples of the given size.
func reverseBytes(raw []byte, size int) {
	for ; len(raw) >= size; raw = raw[size:] {
		for i, j := 0, size-1; i < j; i, j = i+1, j-1 {
			raw[i], raw[j] = raw[j], raw[i]
		}
	}
}
