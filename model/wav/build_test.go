package wav_test

import (
	"bytes"
	"encoding/binary"
	"io"
	"math"
	"testing/iotest"
)

// A file builder that can get everything wrong on purpose.

type chunk struct {
	id   string
	body []byte
	size uint32 // instead of len(body), if not 0
	zero bool   // size 0 instead of len(body)
	bare bool   // no padding
}

var le, be = binary.LittleEndian, binary.BigEndian

func file(chunks ...chunk) []byte { return fileOf("RIFF", le, 0, chunks...) }

func fileOf(kind string, order binary.AppendByteOrder, riffSize uint32, chunks ...chunk) []byte {
	body := []byte("WAVE")
	for _, c := range chunks {
		size := uint32(len(c.body))
		if c.size != 0 || c.zero {
			size = c.size
		}
		body = append(body, c.id...)
		body = order.AppendUint32(body, size)
		body = append(body, c.body...)
		if len(c.body)%2 != 0 && !c.bare {
			body = append(body, 0)
		}
	}
	if riffSize == 0 {
		riffSize = uint32(len(body))
	}
	return append(order.AppendUint32([]byte(kind), riffSize), body...)
}

func fmtBody(order binary.AppendByteOrder, tag, channels, rate, align, bits int) []byte {
	b := order.AppendUint16(nil, uint16(tag))
	b = order.AppendUint16(b, uint16(channels))
	b = order.AppendUint32(b, uint32(rate))
	b = order.AppendUint32(b, uint32(rate*align))
	b = order.AppendUint16(b, uint16(align))
	return order.AppendUint16(b, uint16(bits))
}

func format(tag, channels, bits int) chunk {
	return chunk{id: "fmt ", body: fmtBody(le, tag, channels, 16000, channels*bits/8, bits)}
}

const guidTail = "\x00\x00\x10\x00\x80\x00\x00\xAA\x00\x38\x9B\x71"

func extensible(tag, channels, bits, valid int) chunk {
	b := fmtBody(le, 0xFFFE, channels, 16000, channels*bits/8, bits)
	b = le.AppendUint16(b, 22)
	b = le.AppendUint16(b, uint16(valid))
	b = le.AppendUint32(b, 0)
	b = le.AppendUint32(b, uint32(tag))
	return chunk{id: "fmt ", body: append(b, guidTail...)}
}

func data(body ...byte) chunk { return chunk{id: "data", body: body} }

func pcm16(values ...int16) chunk {
	var b []byte
	for _, v := range values {
		b = le.AppendUint16(b, uint16(v))
	}
	return data(b...)
}

func float32s(values ...float32) chunk {
	var b []byte
	for _, v := range values {
		b = le.AppendUint32(b, math.Float32bits(v))
	}
	return data(b...)
}

func float64s(values ...float64) chunk {
	var b []byte
	for _, v := range values {
		b = le.AppendUint64(b, math.Float64bits(v))
	}
	return data(b...)
}

// inputs are the ways in which a file can arrive: they must not matter.
var inputs = []struct {
	name string
	open func([]byte) io.Reader
}{
	{"seekable", func(b []byte) io.Reader { return bytes.NewReader(b) }},
	{"stream", func(b []byte) io.Reader { return struct{ io.Reader }{bytes.NewReader(b)} }},
	{"byte by byte", func(b []byte) io.Reader { return iotest.OneByteReader(bytes.NewReader(b)) }},
	{"data with EOF", func(b []byte) io.Reader { return iotest.DataErrReader(bytes.NewReader(b)) }},
}
