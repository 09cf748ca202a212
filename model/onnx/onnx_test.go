package onnx_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"github.com/tandem-gpu/tandem/model/onnx"
	"github.com/tandem-gpu/tandem/pass"
)

// A writer of the wire format.

func number(field int, v uint64) []byte {
	return binary.AppendUvarint(binary.AppendUvarint(nil, uint64(field)<<3), v)
}

func message(field int, parts ...[]byte) []byte {
	body := bytes.Join(parts, nil)
	b := binary.AppendUvarint(nil, uint64(field)<<3|2)
	return append(binary.AppendUvarint(b, uint64(len(body))), body...)
}

func text(field int, s string) []byte { return message(field, []byte(s)) }

func float(field int, v float32) []byte {
	b := binary.AppendUvarint(nil, uint64(field)<<3|5)
	return binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
}

func floats(v ...float32) []byte {
	var b []byte
	for _, x := range v {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
	}
	return b
}

func packed(v ...uint64) []byte {
	var b []byte
	for _, x := range v {
		b = binary.AppendUvarint(b, x)
	}
	return b
}

// tensor is the body of a TensorProto.
func tensor(name string, dataType uint64, dims []uint64, more ...[]byte) []byte {
	return append(bytes.Join(more, nil), bytes.Join([][]byte{message(1, packed(dims...)), number(2, dataType), text(8, name)}, nil)...)
}

func model(graph ...[]byte) []byte {
	return append(number(1, 8), message(7, graph...)...)
}

func initializer(body []byte) []byte { return message(5, body) }

func constant(output string, attributes ...[]byte) []byte {
	return message(1, bytes.Join(attributes, nil), text(2, output), text(4, "Constant"))
}

func TestTensor(t *testing.T) {
	t.Parallel()
	two := []uint64{2}
	value := func(body []byte) []byte { return message(5, text(1, "value"), message(5, body)) }
	for _, c := range []struct {
		name  string
		graph [][]byte
		dtype pass.DType
		shape []int
		want  []float32
	}{
		{"raw", [][]byte{initializer(tensor("x", 1, []uint64{1, 2}, message(9, floats(1, -2))))}, pass.F32, []int{1, 2}, []float32{1, -2}},
		{"packed", [][]byte{initializer(tensor("x", 1, two, message(4, floats(1, -2))))}, pass.F32, []int{2}, []float32{1, -2}},
		{"unpacked", [][]byte{initializer(tensor("x", 1, two, float(4, 1), float(4, -2)))}, pass.F32, []int{2}, []float32{1, -2}},
		{"packed in parts", [][]byte{initializer(tensor("x", 1, []uint64{4}, message(4, floats(1, -2)), float(4, 3), message(4, floats(4))))}, pass.F32, []int{4}, []float32{1, -2, 3, 4}},
		{"unpacked dims", [][]byte{initializer(append(tensor("x", 1, nil, message(9, floats(1, -2))), append(number(1, 2), number(1, 1)...)...))}, pass.F32, []int{2, 1}, []float32{1, -2}},
		{"scalar", [][]byte{initializer(tensor("x", 1, nil, message(9, floats(3))))}, pass.F32, []int{}, []float32{3}},
		{"no elements", [][]byte{initializer(tensor("x", 1, []uint64{0, 3}))}, pass.F32, []int{0, 3}, []float32{}},
		{"float16 raw", [][]byte{initializer(tensor("x", 10, two, message(9, []byte{0, 0x3C, 0, 0xB8})))}, pass.F16, []int{2}, []float32{1, -0.5}},
		{"float16 typed", [][]byte{initializer(tensor("x", 10, two, message(5, packed(0x3C00, 0xB800))))}, pass.F16, []int{2}, []float32{1, -0.5}},
		{"float16 unpacked", [][]byte{initializer(tensor("x", 10, two, number(5, 0x3C00), number(5, 0xB800)))}, pass.F16, []int{2}, []float32{1, -0.5}},
		{"bfloat16 raw", [][]byte{initializer(tensor("x", 16, two, message(9, []byte{0x80, 0x3F, 0, 0xC0})))}, pass.BF16, []int{2}, []float32{1, -2}},
		{"bfloat16 typed", [][]byte{initializer(tensor("x", 16, two, message(5, packed(0x3F80, 0xC000))))}, pass.BF16, []int{2}, []float32{1, -2}},
		{"constant", [][]byte{constant("x", value(tensor("other", 1, two, message(9, floats(1, -2)))))}, pass.F32, []int{2}, []float32{1, -2}},
		{"unknown fields", [][]byte{number(99, 7), initializer(tensor("x", 1, two, message(9, floats(1, -2)), text(12, "doc"), number(77, 1))), text(2, "g"),
			append(binary.AppendUvarint(nil, 78<<3|1), make([]byte, 8)...)}, pass.F32, []int{2}, []float32{1, -2}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f, err := onnx.Parse(model(c.graph...))
			require.NoError(t, err)
			require.Equal(t, []string{"x"}, f.Names())
			p, err := f.Tensor("x")
			require.NoError(t, err)
			require.Equal(t, "x", p.Name)
			require.Equal(t, c.dtype, p.Type)
			require.Equal(t, c.shape, p.Shape)
			got, err := p.Float32s()
			require.NoError(t, err)
			require.Equal(t, c.want, got)
		})
	}
}

func TestNames(t *testing.T) {
	t.Parallel()
	b := model(initializer(tensor("b", 7, nil)), initializer(tensor("", 1, nil)), initializer(tensor("", 1, nil)))
	b = append(b, message(7, initializer(tensor("a", 1, nil, float(4, 1))), // a graph in two parts
		message(1, text(4, "Relu"), text(2, "y"), message(5, text(1, "value"), message(5, tensor("no", 1, nil)))),
		constant("ints", message(5, text(1, "value_ints"))))...)
	f, err := onnx.Parse(b)
	require.NoError(t, err)
	require.Equal(t, []string{"a", "b"}, f.Names())
}

// These can be listed, but not read.
func TestTensorRefuses(t *testing.T) {
	t.Parallel()
	location := message(13, text(1, "location"), text(2, "weights.bin"))
	huge := []uint64{1 << 32, 1 << 32}
	for _, c := range []struct {
		name string
		body []byte
		want string
		is   error
	}{
		{"INT64", tensor("x", 7, nil, message(9, make([]byte, 8))), `tensor "x": type INT64: want FLOAT`, pass.ErrUnsupported},
		{"DOUBLE", tensor("x", 11, nil, message(9, make([]byte, 8))), "type DOUBLE", pass.ErrUnsupported},
		{"no type", tensor("x", 0, nil), "type UNDEFINED", pass.ErrUnsupported},
		{"unknown type", tensor("x", 1<<40, nil), "type 1099511627776", pass.ErrUnsupported},
		{"external", tensor("x", 1, []uint64{2}, number(14, 1), location), "another file (external data, \"weights.bin\")", pass.ErrUnsupported},
		{"external, not marked", tensor("x", 1, []uint64{2}, location), "weights.bin", pass.ErrUnsupported},
		{"external, no place", tensor("x", 1, []uint64{2}, number(14, 1)), "external data", pass.ErrUnsupported},
		{"short", tensor("x", 1, []uint64{3}, message(9, floats(1, 2))), "8 bytes, want 12 for FLOAT and shape [3]", pass.ErrInvalid},
		{"long", tensor("x", 1, []uint64{1}, message(4, floats(1, 2))), "8 bytes, want 4", pass.ErrInvalid},
		{"no data", tensor("x", 1, []uint64{1}), "0 bytes, want 4", pass.ErrInvalid},
		{"short float16", tensor("x", 10, []uint64{3}, message(5, packed(1, 2))), "4 bytes, want 6", pass.ErrInvalid},
		{"both", tensor("x", 1, []uint64{1}, message(4, floats(1)), message(9, floats(1))), "both raw and typed", pass.ErrInvalid},
		{"negative dim", tensor("x", 1, []uint64{math.MaxUint64}), "shape [-1]", pass.ErrInvalid},
		{"product wraps to 0", tensor("x", 1, huge), "shape [4294967296 4294967296]", pass.ErrInvalid},
		{"bytes wrap to 0", tensor("x", 1, []uint64{1 << 62}), "shape [4611686018427387904]", pass.ErrInvalid},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f, err := onnx.Parse(model(initializer(c.body)))
			require.NoError(t, err)
			require.Equal(t, []string{"x"}, f.Names())
			_, err = f.Tensor("x")
			require.ErrorIs(t, err, c.is)
			require.ErrorContains(t, err, "onnx: ")
			require.ErrorContains(t, err, c.want)
		})
	}
	f, err := onnx.Parse(model(message(15, message(1, tensor("x", 1, []uint64{1}, float(4, 1))), message(2, tensor("", 7, nil)))))
	require.NoError(t, err)
	require.Equal(t, []string{"x"}, f.Names())
	_, err = f.Tensor("x")
	require.ErrorIs(t, err, pass.ErrUnsupported)
	require.ErrorContains(t, err, "sparse")
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	good := initializer(tensor("x", 1, nil, float(4, 1)))
	raw := func(b ...byte) []byte { return b }
	deep := bytes.Repeat([]byte{0x3B}, 1000) // group within group
	for _, c := range []struct {
		name string
		file []byte
		want string
	}{
		{"empty", nil, "empty input"},
		{"no graph", number(1, 8), "it has no graph"},
		{"text", []byte("<html><body>not found</body></html>"), "no ONNX model"},
		{"cut", model(good)[:len(model(good))-1], "want"},
		{"cut within a key", append(model(good), 0x80), "ends within a number"},
		{"long number", append(raw(0x08), bytes.Repeat([]byte{0x80}, 20)...), "beyond 64 bits"},
		{"number of 65 bits", append(append(raw(0x08), bytes.Repeat([]byte{0xFF}, 9)...), 2), "beyond 64 bits"},
		{"endless number", append(raw(0x08), bytes.Repeat([]byte{0x80}, 9)...), "ends within a number"},
		{"field 0", raw(0x00, 0), "field number 0"},
		{"field beyond 29 bits", append(binary.AppendUvarint(nil, 1<<32), 0), "field number 536870912"},
		{"group", raw(0x3B, 0x3C), "wire type 3"},
		{"groups", deep, "wire type 3"},
		{"wire type 7", raw(0x3F), "wire type 7"},
		{"length of 2^63", append(raw(0x3A), binary.AppendUvarint(nil, 1<<63)...), "0 bytes, want 9223372036854775808"},
		{"length beyond the end", raw(0x3A, 5, 1), "1 bytes, want 5"},
		{"short fixed 32", raw(0x0D, 1, 2, 3), "3 bytes, want 4"},
		{"short fixed 64", raw(0x09, 1, 2, 3), "3 bytes, want 8"},
		{"graph is a number", number(7, 1), "field 7: wire type 0, want 2"},
		{"initializer is a number", model(number(5, 1)), "field 5: wire type 0, want 2"},
		{"node is a number", model(number(1, 1)), "field 1: wire type 0, want 2"},
		{"type is text", model(initializer(text(2, "x"))), "field 2: wire type 2, want 0"},
		{"name is a number", model(initializer(number(8, 1))), "field 8: wire type 0, want 2"},
		{"raw is a number", model(initializer(number(9, 1))), "field 9: wire type 0, want 2"},
		{"dims are floats", model(initializer(float(1, 1))), "field 1: wire type 5, want 2"},
		{"cut dims", model(initializer(message(1, raw(0x80)))), "ends within a number"},
		{"half a float", model(initializer(message(4, make([]byte, 6)))), "6 bytes are not whole floats"},
		{"cut float16", model(initializer(tensor("x", 10, nil, message(5, raw(0x80))))), `tensor "x": field 5: ends within a number`},
		{"bad external", model(initializer(tensor("x", 1, nil, message(13, raw(0x80))))), "ends within a number"},
		{"bad sparse", model(message(15, number(1, 1))), "sparse initializer"},
		{"bad node", model(message(1, raw(0x80))), "node: "},
		{"bad constant", model(constant("c", message(5, text(1, "value"), message(5, raw(0x80))))), `constant "c"`},
		{"bad attribute", model(constant("c", message(5, raw(0x80)))), `constant "c"`},
		{"twice", model(good, good), `"x" comes twice`},
		{"constant of the same name", model(good, constant("x", message(5, text(1, "value"), message(5, tensor("", 1, nil))))), `"x" comes twice`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := onnx.Parse(c.file)
			require.ErrorIs(t, err, pass.ErrInvalid)
			require.ErrorContains(t, err, "onnx: ")
			require.ErrorContains(t, err, c.want)
		})
	}
}

// Dimensions that promise much cost nothing.
func TestAllocationsAreBounded(t *testing.T) {
	b := model(initializer(tensor("x", 1, []uint64{1 << 40}, message(9, floats(1)))))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f, err := onnx.Parse(b)
	require.NoError(t, err)
	_, err = f.Tensor("x")
	require.Error(t, err)
	runtime.ReadMemStats(&after)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(1<<20))
}

func TestReadFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "a.onnx")
	require.NoError(t, os.WriteFile(path, model(initializer(tensor("x", 1, nil, float(4, 1)))), 0o600))
	f, err := onnx.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, []string{"x"}, f.Names())
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	_, err = onnx.ReadFile(path)
	require.ErrorIs(t, err, pass.ErrInvalid)
	require.ErrorContains(t, err, "a.onnx: empty input")
	_, err = onnx.ReadFile(dir)
	require.ErrorContains(t, err, "directory")
	_, err = onnx.ReadFile(filepath.Join(dir, "none"))
	require.ErrorIs(t, err, os.ErrNotExist)
	_, err = onnx.Read(iotest.ErrReader(io.ErrClosedPipe))
	require.ErrorIs(t, err, io.ErrClosedPipe)
	_, err = onnx.Read(strings.NewReader(""))
	require.ErrorIs(t, err, pass.ErrInvalid)
}

func TestSilero(t *testing.T) {
	t.Parallel()
	f, err := onnx.ReadFile("../silero/silero_vad_16k.onnx")
	require.NoError(t, err)
	shapes := map[string][]int{
		"model.stft.forward_basis_buffer":     {258, 1, 256},
		"model.encoder.0.reparam_conv.weight": {128, 129, 3},
		"model.encoder.0.reparam_conv.bias":   {128},
		"model.encoder.1.reparam_conv.weight": {64, 128, 3},
		"model.encoder.1.reparam_conv.bias":   {64},
		"model.encoder.2.reparam_conv.weight": {64, 64, 3},
		"model.encoder.2.reparam_conv.bias":   {64},
		"model.encoder.3.reparam_conv.weight": {128, 64, 3},
		"model.encoder.3.reparam_conv.bias":   {128},
		"model.decoder.rnn.weight_ih":         {512, 128},
		"model.decoder.rnn.weight_hh":         {512, 128},
		"model.decoder.rnn.bias_ih":           {512},
		"model.decoder.rnn.bias_hh":           {512},
		"model.decoder.decoder.2.weight":      {1, 128, 1},
		"model.decoder.decoder.2.bias":        {1},
	}
	total := 0
	for name, shape := range shapes {
		p, err := f.Tensor(name)
		require.NoError(t, err)
		require.Equal(t, pass.F32, p.Type)
		require.Equal(t, shape, p.Shape, name)
		values, err := p.Float32s()
		require.NoError(t, err)
		total += len(values)
		energy := 0.0
		for _, v := range values {
			energy += float64(v) * float64(v)
		}
		require.Greater(t, energy, 0.0, name)
		require.Less(t, energy/float64(len(values)), 100.0, name)
	}
	require.Equal(t, 309633, total)
	_, err = f.Tensor("model.decoder.rnn.weight_hi")
	require.ErrorIs(t, err, pass.ErrInvalid)
	require.ErrorContains(t, err, `nearest is "model.decoder.rnn.weight_hh"`)
}

func FuzzParse(f *testing.F) {
	f.Add(model(initializer(tensor("x", 1, []uint64{1, 2}, message(9, floats(1, -2))))))
	f.Add(model(initializer(tensor("x", 10, []uint64{2}, number(5, 1), number(5, 2))), message(15, message(1, tensor("y", 1, nil)))))
	f.Add(model(constant("c", message(5, text(1, "value"), message(5, tensor("", 1, nil, float(4, 1)))))))
	f.Add(model(initializer(tensor("x", 1, []uint64{2}, number(14, 1), message(13, text(1, "location"), text(2, "w"))))))
	f.Fuzz(func(t *testing.T, b []byte) {
		file, err := onnx.Parse(b)
		if err != nil {
			require.ErrorIs(t, err, pass.ErrInvalid)
			return
		}
		for _, name := range file.Names() {
			p, err := file.Tensor(name)
			if err != nil {
				require.True(t, errors.Is(err, pass.ErrInvalid) || errors.Is(err, pass.ErrUnsupported), err)
				continue
			}
			values, err := p.Float32s()
			require.NoError(t, err)
			require.LessOrEqual(t, len(values), len(b))
		}
	})
}

func TestReadNothing(t *testing.T) {
	_, err := onnx.Read(nil)
	require.ErrorIs(t, err, pass.ErrInvalid)
}
