package wav

import (
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"slices"
	"syscall"
)

// An Encoding is the way in which samples are stored.
type Encoding uint8

// The encodings that are decoded.
const (
	PCM   Encoding = iota + 1 // linear, 8 bits unsigned, more bits signed
	Float                     // IEEE 754
	ALaw                      // ITU-T G.711 A-law
	MuLaw                     // ITU-T G.711 mu-law
)

// String returns the name of the encoding.
func (e Encoding) String() string {
	switch e {
	case PCM:
		return "PCM"
	case Float:
		return "float"
	case ALaw:
		return "A-law"
	case MuLaw:
		return "mu-law"
	}
	return fmt.Sprintf("Encoding(%d)", uint8(e))
}

// A Format says what a file holds.
type Format struct {
	Encoding  Encoding
	Rate      int // frames per second, > 0
	Channels  int // samples in a frame, > 0
	Bits      int // bits that a sample occupies: 8, 16, 24, 32 or 64
	ValidBits int // bits of a sample that count, the upper ones; at most Bits

	// Frames is the number of samples of each channel, or -1 while it is not known.
	// Until the data have been read it is what the header claims, cut to the length of
	// the input where that can be found out by seeking: do not allocate by it otherwise.
	Frames int64
	// Truncated reports that the data end before their declared length, or within a
	// frame. Where the input cannot seek, that is known once the data have been read.
	Truncated bool
}

// String describes the format in a few words.
func (f Format) String() string {
	plural := "s"
	if f.Channels == 1 {
		plural = ""
	}
	return fmt.Sprintf("%v %d bit, %d Hz, %d channel%s", f.Encoding, f.Bits, f.Rate, f.Channels, plural)
}

// frameBytes returns the size of a frame.
func (f Format) frameBytes() int { return f.Channels * f.Bits / 8 }

// Decode reads a whole file and returns its samples, mixed down to one channel. How far
// it reads behind the data is not specified. An error wraps pass.ErrInvalid where the
// input is not a proper WAVE file, pass.ErrUnsupported where its encoding is not among
// those of this package, and else what the input returned.
func Decode(r io.Reader) ([]float32, Format, error) {
	samples, format, err := decode(r)
	if err != nil {
		return nil, format, fmt.Errorf("wav: %w", err)
	}
	return samples, format, nil
}

// ReadFile is [Decode] of the file at path, which its errors name.
func ReadFile(path string) ([]float32, Format, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, Format{}, fmt.Errorf("wav: %w", err)
	}
	defer file.Close()
	if info, err := file.Stat(); err == nil && info.IsDir() {
		err := &fs.PathError{Op: "read", Path: path, Err: syscall.EISDIR}
		return nil, Format{}, fmt.Errorf("wav: %w", err)
	}
	samples, format, err := decode(file)
	if err != nil {
		return nil, format, fmt.Errorf("wav: %s: %w", path, err)
	}
	return samples, format, nil
}

func decode(in io.Reader) ([]float32, Format, error) {
	r, err := newReader(in)
	if err != nil {
		return nil, Format{}, err
	}
	samples := []float32{}
	if r.src.size >= 0 && r.format.Frames > 0 && r.format.Frames <= math.MaxInt32 {
		// The length comes from the input itself here, so it can be trusted. One more
		// element lets the end be seen without growing.
		samples = make([]float32, 0, r.format.Frames+1)
	}
	for {
		if len(samples) == cap(samples) {
			samples = slices.Grow(samples, 4096)
		}
		n, err := r.read(samples[len(samples):cap(samples)])
		samples = samples[:len(samples)+n]
		if err == io.EOF {
			return samples, r.format, nil
		}
		if err != nil {
			return nil, r.format, err
		}
	}
}
