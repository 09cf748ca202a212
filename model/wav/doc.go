// Package wav reads WAVE files as mono float32 samples, and writes 16-bit ones.
//
// It decodes linear PCM of 8 (unsigned), 16, 24 and 32 bits, IEEE float of 32 and 64
// bits, A-law and mu-law, each under its own format tag or in the extensible form,
// from RIFF, RIFX (big-endian) and RF64/BW64 (64-bit sizes) files. Any other encoding
// or container is named in the error, which wraps [pass.ErrUnsupported].
//
// # Samples
//
// PCM is scaled by a power of two: 8 bits as (x−128)/128, then x/2^15, x/2^23, x/2^31,
// so that a sample lies in [−1, 1); the largest 32-bit values round to 1. A-law and
// mu-law expand to 16-bit values (ITU-T G.711) and are scaled like those. Float samples
// are taken as they are, whatever their size; one that is NaN or infinite is an error.
// Several channels are mixed down to their arithmetic mean, which is computed in
// float64 and rounded once.
//
// # Tolerance
//
// Chunks may come in any order; the ones that are not needed are skipped. A data
// length of 0, of (almost) 2^32−1 or of the constant that SoX writes to a pipe means
// that the length was not known when the header was written: the data reach to the end
// of the input. The length in the RIFF header and the bytes per second are often wrong
// and decide nothing. Data that end early are read as far as they go, and
// [Format.Truncated] says so. Bytes after the data are ignored.
package wav
