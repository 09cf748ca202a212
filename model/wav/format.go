package wav

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/tandem-gpu/tandem/pass"
)

// The format tags that are decoded.
const (
	tagPCM        = 0x0001
	tagFloat      = 0x0003
	tagALaw       = 0x0006
	tagMuLaw      = 0x0007
	tagExtensible = 0xFFFE
)

// subFormat is the tail of a sub-format GUID whose first two bytes are a format tag.
const subFormat = "\x00\x00\x00\x00\x10\x00\x80\x00\x00\xAA\x00\x38\x9B\x71"

// tagNames names the encodings that are met in the wild but not decoded.
var tagNames = map[uint16]string{
	0x0002: "Microsoft ADPCM",
	0x0005: "IBM CVSD",
	0x0008: "DTS",
	0x0010: "OKI ADPCM",
	0x0011: "IMA ADPCM",
	0x0012: "MediaSpace ADPCM",
	0x0014: "G.723 ADPCM",
	0x0017: "Dialogic OKI ADPCM",
	0x0020: "Yamaha ADPCM",
	0x0022: "DSP Group TrueSpeech",
	0x0031: "GSM 6.10",
	0x0040: "G.721 ADPCM",
	0x0041: "G.728 CELP",
	0x0042: "Microsoft G.723.1",
	0x0045: "G.726 ADPCM",
	0x0050: "MPEG layer 1 or 2",
	0x0055: "MP3",
	0x0061: "Duck DK4 ADPCM",
	0x0062: "Duck DK3 ADPCM",
	0x0064: "G.726 ADPCM",
	0x0065: "G.722 ADPCM",
	0x0083: "G.729",
	0x0092: "AC-3 over S/PDIF",
	0x00FF: "AAC",
	0x0111: "G.723.1",
	0x0130: "ACELP.net",
	0x0160: "Windows Media Audio 1",
	0x0161: "Windows Media Audio 2",
	0x0162: "Windows Media Audio Professional",
	0x0163: "Windows Media Audio Lossless",
	0x0164: "Windows Media Audio over S/PDIF",
	0x1600: "AAC in ADTS",
	0x1602: "AAC in LOAS",
	0x1610: "HE-AAC",
	0x2000: "AC-3",
	0x2001: "DTS",
	0x4243: "G.726 ADPCM",
	0x566F: "Vorbis",
	0x674F: "Vorbis",
	0x6750: "Vorbis",
	0x6751: "Vorbis",
	0x676F: "Vorbis",
	0x6770: "Vorbis",
	0x6771: "Vorbis",
	0x704F: "Opus",
	0xA106: "AAC",
	0xA109: "Speex",
	0xF1AC: "FLAC",
}

func undecodable(tag uint16) error {
	name := tagNames[tag]
	if name == "" {
		name = "not known"
	}
	return fmt.Errorf("format tag 0x%04X (%s): want PCM, float, A-law or mu-law: %w", tag, name, pass.ErrUnsupported)
}

// parseFormat reads a fmt chunk, of which b holds up to the first 40 bytes:
//
//	0 tag · 2 channels · 4 rate · 8 bytes per second · 12 block align · 14 bits
//	16 size of the extension · 18 valid bits · 20 channel mask · 24 sub-format GUID
//
// The numbers 16-bit but for the rate, the bytes per second and the mask.
func parseFormat(b []byte, order binary.ByteOrder) (Format, error) {
	if len(b) < 16 {
		return Format{}, fmt.Errorf("fmt chunk of %d bytes, want at least 16: %w", len(b), pass.ErrInvalid)
	}
	tag := order.Uint16(b)
	rate := order.Uint32(b[4:])
	align := int(order.Uint16(b[12:]))
	f := Format{Channels: int(order.Uint16(b[2:])), Bits: int(order.Uint16(b[14:])), Frames: -1}
	f.ValidBits = f.Bits
	if tag == tagExtensible {
		var err error
		if tag, err = f.extend(b, order); err != nil {
			return Format{}, err
		}
	}
	depths := ""
	switch tag {
	case tagPCM:
		f.Encoding, depths = PCM, "8, 16, 24 or 32"
	case tagFloat:
		f.Encoding, depths = Float, "32 or 64"
	case tagALaw:
		f.Encoding, depths = ALaw, "8"
	case tagMuLaw:
		f.Encoding, depths = MuLaw, "8"
	default:
		return Format{}, undecodable(tag)
	}
	switch {
	case f.Channels == 0:
		return Format{}, fmt.Errorf("0 channels: %w", pass.ErrInvalid)
	case rate == 0:
		return Format{}, fmt.Errorf("sample rate 0 Hz: %w", pass.ErrInvalid)
	case rate > math.MaxInt32:
		return Format{}, fmt.Errorf("sample rate %d Hz: want at most %d: %w", rate, math.MaxInt32, pass.ErrInvalid)
	case !f.depthDecodable():
		return Format{}, fmt.Errorf("%v with %d bits a sample: want %s: %w", f.Encoding, f.Bits, depths, pass.ErrUnsupported)
	case align != f.frameBytes():
		return Format{}, fmt.Errorf("block align %d: want %d (%d channels of %d bits): %w",
			align, f.frameBytes(), f.Channels, f.Bits, pass.ErrInvalid)
	case f.ValidBits < 1 || f.ValidBits > f.Bits || f.ValidBits != f.Bits && f.Encoding != PCM:
		return Format{}, fmt.Errorf("%d valid bits in a %v sample of %d: %w", f.ValidBits, f.Encoding, f.Bits, pass.ErrInvalid)
	}
	f.Rate = int(rate)
	return f, nil
}

// extend reads the extensible part: it sets ValidBits and returns the tag of the
// sub-format.
func (f *Format) extend(b []byte, order binary.ByteOrder) (uint16, error) {
	if len(b) < 40 {
		return 0, fmt.Errorf("extensible fmt chunk of %d bytes, want 40: %w", len(b), pass.ErrInvalid)
	}
	if extra := order.Uint16(b[16:]); extra < 22 {
		return 0, fmt.Errorf("extensible fmt chunk with %d bytes of extension, want 22: %w", extra, pass.ErrInvalid)
	}
	if valid := int(order.Uint16(b[18:])); valid != 0 { // 0: not told
		f.ValidBits = valid
	}
	guid := b[24:40]
	tag := order.Uint16(guid)
	tail := guid[2:]
	if order == binary.BigEndian {
		// The GUID's first three fields are numbers: 32, 16 and 16 bits.
		tag = order.Uint16(guid[2:])
		tail = []byte{guid[1], guid[0], guid[5], guid[4], guid[7], guid[6]}
		tail = append(tail, guid[8:]...)
	}
	if string(tail) != subFormat {
		return 0, fmt.Errorf("sub-format %08X-%04X-%04X-%X-%X (not known): want PCM, float, A-law or mu-law: %w",
			order.Uint32(guid), order.Uint16(guid[4:]), order.Uint16(guid[6:]), guid[8:10], guid[10:], pass.ErrUnsupported)
	}
	return tag, nil
}

func (f *Format) depthDecodable() bool {
	switch f.Encoding {
	case PCM:
		return f.Bits == 8 || f.Bits == 16 || f.Bits == 24 || f.Bits == 32
	case Float:
		return f.Bits == 32 || f.Bits == 64
	}
	return f.Bits == 8
}
