package wav_test

import (
	"bytes"
	"errors"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tandem-gpu/tandem/model/wav"
	"github.com/tandem-gpu/tandem/pass"
)

func TestDecode(t *testing.T) {
	t.Parallel()
	list := chunk{id: "LIST", body: []byte("INFOISFT\x04\x00\x00\x00abc\x00")}
	odd := chunk{id: "note", body: []byte("abc")}
	two := []float32{0.5, -1}
	half := pcm16(16384, -32768)
	ds64 := func(size uint64) chunk {
		b := le.AppendUint64(nil, 0)
		b = le.AppendUint64(b, size)
		b = le.AppendUint64(b, 0)
		b = le.AppendUint32(b, 1)
		b = append(b, "note"...)
		return chunk{id: "ds64", body: le.AppendUint64(b, 3)}
	}
	sized := func(c chunk, size uint32) chunk { c.size, c.zero = size, size == 0; return c }
	bigExtensible := fmtBody(be, 0xFFFE, 1, 16000, 2, 16)
	bigExtensible = append(bigExtensible, 0, 22, 0, 16, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0x10)
	bigExtensible = append(bigExtensible, guidTail[4:]...)

	cases := []struct {
		name      string
		file      []byte
		want      []float32
		bits      int
		valid     int // bits if 0
		channels  int
		encoding  wav.Encoding
		truncated bool
	}{
		// Encodings.
		{name: "8 bit", file: file(format(1, 1, 8), data(0, 128, 255, 192)), want: []float32{-1, 0, 127. / 128, 0.5}, bits: 8},
		{name: "16 bit", file: file(format(1, 1, 16), pcm16(-32768, 32767, 0, 1)), want: []float32{-1, 32767. / 32768, 0, 1. / 32768}},
		{name: "24 bit", file: file(format(1, 1, 24), data(0, 0, 0x80, 0xFF, 0xFF, 0x7F, 1, 0, 0, 0xFF, 0xFF, 0xFF)),
			want: []float32{-1, 8388607. / 8388608, 1. / 8388608, -1. / 8388608}, bits: 24},
		{name: "32 bit", file: file(format(1, 1, 32), data(0, 0, 0, 0x80, 0, 0, 0, 0x40, 1, 0, 0, 0)), want: []float32{-1, 0.5, 1. / (1 << 31)}, bits: 32},
		{name: "float 32", file: file(format(3, 1, 32), float32s(-1.5, 0.1, 1e-30)), want: []float32{-1.5, 0.1, 1e-30}, bits: 32, encoding: wav.Float},
		{name: "float 64", file: file(format(3, 1, 64), float64s(-1.5, 0.1)), want: []float32{-1.5, 0.1}, bits: 64, encoding: wav.Float},
		{name: "A-law", file: file(format(6, 1, 8), data(0xD5, 0x55, 0xAA, 0x2A, 0xC5)),
			want: []float32{8. / 32768, -8. / 32768, 32256. / 32768, -32256. / 32768, 264. / 32768}, bits: 8, encoding: wav.ALaw},
		{name: "mu-law", file: file(format(7, 1, 8), data(0xFF, 0x80, 0x00, 0xEF)),
			want: []float32{0, 32124. / 32768, -32124. / 32768, 132. / 32768}, bits: 8, encoding: wav.MuLaw},
		{name: "extensible 16", file: file(extensible(1, 1, 16, 16), half), want: two},
		{name: "extensible valid not told", file: file(extensible(1, 1, 16, 0), half), want: two},
		{name: "extensible 20 of 24", file: file(extensible(1, 1, 24, 20), data(0x1F, 0, 0x40, 0xFF, 0xFF, 0xFF)),
			want: []float32{0.5 + 1./(1<<19), -1. / (1 << 19)}, bits: 24, valid: 20},
		{name: "extensible 24 of 32", file: file(extensible(1, 1, 32, 24), data(0xFF, 1, 0, 0)), want: []float32{1. / (1 << 23)}, bits: 32, valid: 24},
		{name: "extensible 7 of 8", file: file(extensible(1, 1, 8, 7), data(129, 131, 127)), want: []float32{0, 2. / 128, -2. / 128}, bits: 8, valid: 7},
		{name: "extensible float", file: file(extensible(3, 1, 32, 32), float32s(0.25)), want: []float32{0.25}, bits: 32, encoding: wav.Float},
		{name: "extensible mu-law", file: file(extensible(7, 1, 8, 8), data(0xFF)), want: []float32{0}, bits: 8, encoding: wav.MuLaw},
		// Channels.
		{name: "stereo", file: file(format(1, 2, 16), pcm16(16384, 0, -32768, -16384)), want: []float32{0.25, -0.75}, channels: 2},
		{name: "stereo cancels", file: file(format(3, 2, 32), float32s(3e38, -3e38, 3e38, 3e38)), want: []float32{0, 3e38}, bits: 32, channels: 2, encoding: wav.Float},
		{name: "mean in float64", file: file(format(3, 3, 32), float32s(1<<25, 1, -1<<25)), want: []float32{1. / 3}, bits: 32, channels: 3, encoding: wav.Float},
		{name: "65535 channels", file: file(format(1, 65535, 8), data(bytes.Repeat([]byte{192}, 2*65535)...)), want: []float32{0.5, 0.5}, bits: 8, channels: 65535},
		// Chunks.
		{name: "other chunks", file: file(list, odd, format(1, 1, 16), odd, list, half, odd), want: two},
		{name: "odd chunk without padding", file: file(chunk{id: "note", body: []byte("abc"), bare: true}, format(1, 1, 16), half), want: two},
		{name: "odd fmt chunk", file: file(chunk{id: "fmt ", body: append(format(1, 1, 16).body, 0, 0, 0)}, half), want: two},
		{name: "long fmt chunk", file: file(chunk{id: "fmt ", body: append(format(1, 1, 16).body, make([]byte, 100)...)}, half), want: two},
		{name: "data first", file: file(odd, half, odd, format(1, 1, 16), odd), want: two},
		{name: "odd data first", file: file(data(0, 255, 128), format(1, 1, 8)), want: []float32{-1, 127. / 128, 0}, bits: 8},
		{name: "second data chunk", file: file(format(1, 1, 16), half, pcm16(1, 2, 3)), want: two},
		{name: "junk after data", file: append(file(format(1, 1, 16), half), "junk and more"...), want: two},
		// Lengths.
		{name: "no samples", file: file(format(1, 1, 16), data()), want: []float32{}},
		{name: "no samples, chunk after", file: file(format(1, 1, 16), data(), list), want: []float32{}},
		{name: "no samples, data first", file: file(data(), format(1, 1, 16)), want: []float32{}},
		{name: "length 0", file: fileOf("RIFF", le, 36, format(1, 1, 16), sized(half, 0)), want: two},
		{name: "length 0 in a true RIFF length", file: file(format(1, 1, 16), sized(half, 0)), want: two},
		{name: "length 0xFFFFFFFF", file: fileOf("RIFF", le, math.MaxUint32, format(1, 1, 16), sized(half, math.MaxUint32)), want: two},
		{name: "length 0xFFFFFFFF less header", file: fileOf("RIFF", le, math.MaxUint32, format(1, 1, 16), sized(half, math.MaxUint32-36)), want: two},
		{name: "length of SoX", file: fileOf("RIFF", le, 0x7FFFF024, format(1, 1, 16), sized(half, 0x7FFFF000)), want: two},
		{name: "RIFF length short", file: fileOf("RIFF", le, 20, format(1, 1, 16), half), want: two},
		{name: "RIFF length long", file: fileOf("RIFF", le, 1<<31, format(1, 1, 16), half), want: two},
		{name: "2 GiB claimed", file: file(format(1, 1, 16), sized(half, 1<<31)), want: two, truncated: true},
		{name: "truncated in a frame", file: file(format(1, 1, 16), chunk{id: "data", body: []byte{0, 0x40, 0}, size: 100, bare: true}), want: []float32{0.5}, truncated: true},
		{name: "part of a frame", file: file(format(1, 2, 16), pcm16(16384, 0, 7)), want: []float32{0.25}, channels: 2, truncated: true},
		{name: "streamed, part of a frame", file: file(format(1, 1, 16), sized(chunk{id: "data", body: []byte{0, 0x40, 0}, bare: true}, math.MaxUint32)), want: []float32{0.5}, truncated: true},
		// Containers.
		{name: "RIFX", file: fileOf("RIFX", be, 0, chunk{id: "fmt ", body: fmtBody(be, 1, 1, 16000, 2, 16)}, data(0x40, 0, 0x80, 0)), want: two},
		{name: "RIFX 24", file: fileOf("RIFX", be, 0, chunk{id: "fmt ", body: fmtBody(be, 1, 1, 16000, 3, 24)}, data(0x40, 0, 1)), want: []float32{0.5 + 1./(1<<23)}, bits: 24},
		{name: "RIFX extensible", file: fileOf("RIFX", be, 0, chunk{id: "fmt ", body: bigExtensible}, data(0x40, 0, 0x80, 0)), want: two},
		{name: "RF64", file: fileOf("RF64", le, math.MaxUint32, ds64(4), format(1, 1, 16), sized(half, math.MaxUint32), odd), want: two},
		{name: "BW64", file: fileOf("BW64", le, math.MaxUint32, ds64(4), format(1, 1, 16), sized(half, math.MaxUint32), odd), want: two},
		{name: "RF64 table", file: fileOf("RF64", le, math.MaxUint32, ds64(4), sized(odd, math.MaxUint32), format(1, 1, 16), sized(half, math.MaxUint32)), want: two},
		{name: "RF64 small", file: fileOf("RF64", le, math.MaxUint32, ds64(99), format(1, 1, 16), half, odd), want: two},
		{name: "RF64 data first", file: fileOf("RF64", le, math.MaxUint32, ds64(4), sized(half, math.MaxUint32), format(1, 1, 16)), want: two},
		{name: "RF64 streamed", file: fileOf("RF64", le, math.MaxUint32, ds64(0), format(1, 1, 16), sized(half, math.MaxUint32)), want: two},
		{name: "RF64 beyond any file", file: fileOf("RF64", le, math.MaxUint32, ds64(math.MaxUint64), format(1, 1, 16), sized(half, math.MaxUint32)), want: two},
		{name: "RF64 truncated", file: fileOf("RF64", le, math.MaxUint32, ds64(1<<40), format(1, 1, 16), sized(half, math.MaxUint32)), want: two, truncated: true},
		{name: "RF64 without ds64", file: fileOf("RF64", le, math.MaxUint32, format(1, 1, 16), sized(half, math.MaxUint32)), want: two},
	}
	for _, c := range cases {
		for _, in := range inputs {
			t.Run(c.name+"/"+in.name, func(t *testing.T) {
				t.Parallel()
				got, f, err := wav.Decode(in.open(c.file))
				require.NoError(t, err)
				require.Equal(t, c.want, got)
				want := wav.Format{
					Encoding: max(c.encoding, wav.PCM), Rate: 16000, Channels: max(c.channels, 1), Bits: max(c.bits, 8),
					Frames: int64(len(c.want)), Truncated: c.truncated,
				}
				if c.bits == 0 {
					want.Bits = 16
				}
				want.ValidBits = want.Bits
				if c.valid != 0 {
					want.ValidBits = c.valid
				}
				require.Equal(t, want, f)
			})
		}
	}
}

func TestDecodeRefuses(t *testing.T) {
	t.Parallel()
	broken := func(tag, channels, rate, align, bits int) []byte {
		return file(chunk{id: "fmt ", body: fmtBody(le, tag, channels, rate, align, bits)}, pcm16(1, 2, 3))
	}
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	head := file(format(1, 1, 16), pcm16(1))
	other := extensible(1, 1, 16, 16)
	other.body[39] = 0
	noExtra := extensible(1, 1, 16, 16)
	noExtra.body[16] = 0
	cases := []struct {
		name string
		file []byte
		want string
		is   error
	}{
		{"empty", nil, "empty input", pass.ErrInvalid},
		{"eleven bytes", head[:11], "RIFF header of 11 bytes, want 12", pass.ErrInvalid},
		{"magic alone", head[:12], "neither a fmt nor a data chunk", pass.ErrInvalid},
		{"within fmt", head[:30], "ends within the fmt chunk", pass.ErrInvalid},
		{"header only", head[:36], "no data chunk", pass.ErrInvalid},
		{"within a chunk header", head[:41], "no data chunk", pass.ErrInvalid},
		{"no fmt", file(pcm16(1)), "no fmt chunk", pass.ErrInvalid},
		{"streamed data first", file(chunk{id: "data", body: []byte{1, 2}, size: math.MaxUint32}, format(1, 1, 16)), "unknown length, and no fmt chunk", pass.ErrInvalid},
		{"short fmt", file(chunk{id: "fmt ", body: make([]byte, 14)}, pcm16(1)), "fmt chunk of 14 bytes", pass.ErrInvalid},
		{"short ds64", fileOf("RF64", le, 0, chunk{id: "ds64", body: make([]byte, 20)}, format(1, 1, 16), pcm16(1)), "ds64 chunk of 20 bytes", pass.ErrInvalid},
		{"FLAC", []byte("fLaC\x00\x00\x00\x22\x10\x00\x10\x00"), "FLAC", pass.ErrUnsupported},
		{"Ogg", []byte("OggS\x00\x02"), "Ogg", pass.ErrUnsupported},
		{"ID3", []byte("ID3\x04\x00\x00\x00\x00\x00\x00\x00\x00"), "MP3 (ID3 tag)", pass.ErrUnsupported},
		{"MP3", []byte("\xFF\xFB\x90\x64\x00\x00\x00\x00\x00\x00\x00\x00"), "MP3", pass.ErrUnsupported},
		{"ADTS", []byte("\xFF\xF1\x50\x80\x00\x00\x00\x00\x00\x00\x00\x00"), "AAC (ADTS)", pass.ErrUnsupported},
		{"MP4", []byte("\x00\x00\x00\x20ftypM4A "), "MP4", pass.ErrUnsupported},
		{"AVI", []byte("RIFF\x00\x00\x00\x00AVI LIST"), `form "AVI ", want WAVE`, pass.ErrUnsupported},
		{"raw", make([]byte, 64), "raw samples", pass.ErrInvalid},
		{"raw of -1", bytes.Repeat([]byte{0xFF}, 64), "raw samples", pass.ErrInvalid},
		{"text", []byte("hello"), `begins with "hell"`, pass.ErrInvalid},
		{"0 channels", broken(1, 0, 16000, 0, 16), "0 channels", pass.ErrInvalid},
		{"0 Hz", broken(1, 1, 0, 2, 16), "sample rate 0 Hz", pass.ErrInvalid},
		{"4 GHz", broken(1, 1, math.MaxUint32, 2, 16), "sample rate 4294967295 Hz", pass.ErrInvalid},
		{"7 bits", broken(1, 1, 16000, 1, 7), "PCM with 7 bits a sample: want 8, 16, 24 or 32", pass.ErrUnsupported},
		{"float 16", broken(3, 1, 16000, 2, 16), "float with 16 bits a sample: want 32 or 64", pass.ErrUnsupported},
		{"A-law 16", broken(6, 1, 16000, 2, 16), "A-law with 16 bits a sample: want 8", pass.ErrUnsupported},
		{"mu-law 16", broken(7, 1, 16000, 2, 16), "mu-law with 16 bits a sample: want 8", pass.ErrUnsupported},
		{"block align", broken(1, 2, 16000, 2, 16), "block align 2: want 4 (2 channels of 16 bits)", pass.ErrInvalid},
		{"block align 0", broken(1, 1, 16000, 0, 16), "block align 0: want 2", pass.ErrInvalid},
		{"too many channels", broken(1, 65535, 16000, 65534, 16), "block align 65534: want 131070", pass.ErrInvalid},
		{"ADPCM", broken(2, 1, 16000, 256, 4), "format tag 0x0002 (Microsoft ADPCM)", pass.ErrUnsupported},
		{"GSM", broken(0x31, 1, 8000, 65, 0), "format tag 0x0031 (GSM 6.10)", pass.ErrUnsupported},
		{"MP3 in WAVE", broken(0x55, 2, 44100, 1, 0), "format tag 0x0055 (MP3)", pass.ErrUnsupported},
		{"AAC in WAVE", broken(0xFF, 2, 44100, 1, 16), "format tag 0x00FF (AAC)", pass.ErrUnsupported},
		{"unknown tag", broken(0x1234, 1, 16000, 2, 16), "format tag 0x1234 (not known)", pass.ErrUnsupported},
		{"extensible ADPCM", file(extensible(2, 1, 16, 16), pcm16(1)), "format tag 0x0002 (Microsoft ADPCM)", pass.ErrUnsupported},
		{"extensible, other GUID", file(other, pcm16(1)), "sub-format 00000001-0000-0010-8000-00AA00389B00", pass.ErrUnsupported},
		{"extensible, short", broken(0xFFFE, 1, 16000, 2, 16), "extensible fmt chunk of 16 bytes, want 40", pass.ErrInvalid},
		{"extensible, no extension", file(noExtra, pcm16(1)), "with 0 bytes of extension, want 22", pass.ErrInvalid},
		{"17 of 16 valid bits", file(extensible(1, 1, 16, 17), pcm16(1)), "17 valid bits in a PCM sample of 16", pass.ErrInvalid},
		{"24 of 32 valid float bits", file(extensible(3, 1, 32, 24), float32s(1)), "24 valid bits in a float sample of 32", pass.ErrInvalid},
		{"NaN", file(format(3, 1, 32), float32s(0, 1, nan, inf)), "sample 2 of channel 0 is NaN", pass.ErrInvalid},
		{"infinite", file(format(3, 2, 32), float32s(0, 1, 1, inf)), "sample 1 of channel 1 is +Inf", pass.ErrInvalid},
		{"infinities cancel", file(format(3, 2, 32), float32s(inf, -inf)), "sample 0 of channel 0 is +Inf", pass.ErrInvalid},
		{"NaN of 64 bits", file(format(3, 1, 64), float64s(1, math.NaN())), "sample 1 of channel 0 is NaN", pass.ErrInvalid},
		{"beyond float32", file(format(3, 1, 64), float64s(1, 1e39)), "sample 1 is beyond the range of float32", pass.ErrInvalid},
	}
	for _, c := range cases {
		for _, in := range inputs {
			t.Run(c.name+"/"+in.name, func(t *testing.T) {
				t.Parallel()
				_, _, err := wav.Decode(in.open(c.file))
				require.ErrorIs(t, err, c.is)
				require.ErrorContains(t, err, "wav: ")
				require.ErrorContains(t, err, c.want)
			})
		}
	}
}

// G.711 codes are ordered by magnitude, once A-law's alternate inversion is undone, and
// adjacent steps are equal or double: both hold only if every exponent is right.
func TestCompandingIsMonotonic(t *testing.T) {
	t.Parallel()
	for tag, invert := range map[int]byte{6: 0x55 ^ 0x80, 7: 0xFF} {
		var codes []byte
		for magnitude := range 128 {
			codes = append(codes, byte(magnitude)^invert)
		}
		got, _, err := wav.Decode(bytes.NewReader(file(format(tag, 1, 8), data(codes...))))
		require.NoError(t, err)
		step := got[1] - got[0]
		for i := 1; i < len(got); i++ {
			next := got[i] - got[i-1]
			require.Greater(t, next, float32(0), "tag %d code %d", tag, i)
			if next > step {
				require.LessOrEqual(t, next, 2*step, "tag %d code %d", tag, i)
			}
			step = next
		}
		require.Greater(t, got[127], float32(0.98))
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(file(format(1, 1, 16), pcm16(1, 2, 3)))
	f.Add(file(pcm16(1, 2, 3), extensible(3, 2, 32, 32)))
	f.Add(file(format(7, 3, 8), chunk{id: "data", body: make([]byte, 9), size: 1 << 31}))
	f.Add(fileOf("RF64", le, math.MaxUint32, chunk{id: "ds64", body: make([]byte, 40)}, format(1, 1, 24), data(1, 2, 3)))
	f.Add(fileOf("RIFX", be, 0, chunk{id: "fmt ", body: fmtBody(be, 1, 1, 1, 2, 16)}, data(1, 2, 3)))
	f.Fuzz(func(t *testing.T, b []byte) {
		want, wantFormat, wantErr := wav.Decode(inputs[0].open(b))
		require.LessOrEqual(t, cap(want), 2*len(b)+4096)
		require.LessOrEqual(t, len(want), len(b))
		if wantErr != nil {
			require.True(t, errors.Is(wantErr, pass.ErrInvalid) || errors.Is(wantErr, pass.ErrUnsupported), wantErr)
		}
		got, format, err := wav.Decode(inputs[1].open(b))
		require.Equal(t, want, got)
		if wantErr != nil {
			require.EqualError(t, err, wantErr.Error())
			return
		}
		require.NoError(t, err)
		require.Equal(t, wantFormat, format)
	})
}

func TestNothingGiven(t *testing.T) {
	t.Parallel()
	_, err := wav.NewReader(nil)
	require.ErrorIs(t, err, pass.ErrInvalid)
	_, _, err = wav.Decode(nil)
	require.ErrorIs(t, err, pass.ErrInvalid)
	require.ErrorIs(t, wav.Write(nil, 16000, nil), pass.ErrInvalid)
	var r wav.Reader
	_, err = r.Read(make([]float32, 1))
	require.ErrorIs(t, err, pass.ErrInvalid)
}
