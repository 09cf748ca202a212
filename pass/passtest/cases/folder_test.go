package cases

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tandem-gpu/tandem/model/safetensors"
	"github.com/tandem-gpu/tandem/pass"
)

var update = flag.Bool("update", false, "write testdata again")

// examples are the cases in testdata, one of every kind of content.
var examples = []string{
	"gemm/leaky(0.125)-bias-stacked-dual-3x23x9",
	"gemm/Q8_0-1x21x32",
	"conv1d/lengths-reflect-device-80x3to8-k4s2",
	"conv1d/residual(0.5)-11x5to7-k3s1",
	"lstm/rows-device-2x3-4to9-l2d1",
	"map/tanh-extreme-1x2x15",
	"magnitude/nan-1x3x5",
	"copy/both-each-F32-3x1x9",
	"fill/infinity-2x3x5",
	"embed/index-plus-3x2-9x20",
	"add/over-both-in-place-3x5x18",
	"scale/special-1x3x7",
	"swiglu/in-place-gate-first-2x3x18",
	"glu/nan-1x3x10",
	"layernorm/rotated-each-3x4x42",
	"groupnorm/lengths-in-place-device-4x12x10",
	"poolnorm/nan-ignored-1x12x5",
	"l2norm/mixed-1x2x5",
	"softmax/masked-rows-1x4x5",
	"logsoftmax/nan-1x5x9",
	"argmax/index-plus-3x2x5",
	"rope/index-each-interleaved-3x2x3x12-rot8",
	"attention/lengths-band(5,3)-5x9x19-2x8",
	"append/index-each-F16-3x21-2x12-3x2",
	"attend/prefill-causal-F32-3x50-3x12-3x9x9",
	"convglu/lengths-norm-4x13x22",
	"depthwiseconv2d/held-first-2x23x10x6",
	"conv2d/choice12-1x5x6x5to7-k3s1",
	"logmel/fft14-1x35",
	"statspool/mixed-1x3x9x5-4x9",
	"permute/order-2x3x4x6-0312",
	"advance/stop-done-3",
}

func exampleDir(name string) string {
	return filepath.Join("testdata", strings.NewReplacer("/", "-", "(", "", ")", "").Replace(name))
}

func entry(t *testing.T, name string) Case {
	for _, e := range All() {
		if e.Name == name {
			return e.Case()
		}
	}
	require.Fail(t, "no case of this name", name)
	return Case{}
}

func TestExamplesAreWhatWriteWrites(t *testing.T) {
	t.Parallel()
	for _, name := range examples {
		c := entry(t, name)
		if *update {
			require.NoError(t, Write(exampleDir(name), c))
		}
		dir := t.TempDir()
		require.NoError(t, Write(dir, c))
		for _, file := range []string{caseFile, tensorFile} {
			want, err := os.ReadFile(filepath.Join(dir, file))
			require.NoError(t, err)
			got, err := os.ReadFile(filepath.Join(exampleDir(name), file))
			require.NoError(t, err)
			require.True(t, string(want) == string(got), "%s of %s: run go test -update", file, name)
		}
	}
	found, err := FindDirs("testdata")
	require.NoError(t, err)
	require.Len(t, found, len(examples)+1) // and the one made by hand
}

// Every case survives being written and read.
func TestFoldersHoldEverything(t *testing.T) {
	t.Parallel()
	for _, e := range All() {
		if e.Full {
			continue
		}
		c := e.Case()
		var err error
		c.Wanted, err = c.Want()
		require.NoError(t, err)
		dir := t.TempDir()
		require.NoError(t, Write(dir, c), e.Name)
		got, err := ReadDir(dir)
		require.NoError(t, err, e.Name)
		want, err := c.Resolve()
		require.NoError(t, err)
		again, err := got.Resolve()
		require.NoError(t, err, e.Name)
		require.Equal(t, c.Name, got.Name)
		require.Equal(t, want.Cost, again.Cost, e.Name)
		require.Equal(t, c.Limits(), got.Limits(), e.Name)
		require.ElementsMatch(t, c.Outputs, got.Outputs, e.Name)
		require.Equal(t, encodeFields(want.Op), encodeFields(again.Op), e.Name)
		require.Equal(t, len(want.Args), len(again.Args), e.Name)
		for _, in := range c.Inputs {
			back, ok := find(got.Inputs, in.Name)
			require.True(t, ok, "%s: %s", e.Name, in.Name)
			require.Equal(t, in.Type, back.Type)
			require.Equal(t, len(in.Shape), len(back.Shape))
			require.True(t, equalWords(in.Words, back.Words), "%s: %s", e.Name, in.Name)
		}
		truth, err := got.Truth() // of the weights that were read
		require.NoError(t, err)
		for _, w := range c.Wanted {
			back, ok := find(got.Wanted, w.Name)
			require.True(t, ok, "%s: %s", e.Name, w.Name)
			require.True(t, equalWords(w.Words, back.Words), "%s: %s", e.Name, w.Name)
			back, ok = find(truth, w.Name)
			require.True(t, ok && equalWords(w.Words, back.Words), "%s: %s", e.Name, w.Name)
		}
	}
}

func equalWords(a, b []uint32) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// A folder as short as it may be, made by other means than Write.
func writeFolder(t *testing.T, json string, tensors ...safetensors.Tensor) string {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, caseFile), []byte(json), 0o666))
	if tensors != nil {
		f, err := os.Create(filepath.Join(dir, tensorFile))
		require.NoError(t, err)
		require.NoError(t, safetensors.Write(f, tensors, nil))
		require.NoError(t, f.Close())
	}
	return dir
}

func floatTensor(name string, values []float32, shape ...int) safetensors.Tensor {
	return safetensors.Of(pass.Float32s(name, values, shape...))
}

func TestShortFolders(t *testing.T) {
	t.Parallel()
	six := []float32{1, 2, 3, 4, 5, 6}
	dir := writeFolder(t, `{"op": "gemm", "fields": {"epilogue": "ReLU"}}`,
		floatTensor("A", six, 2, 3), floatTensor("W", []float32{1, 0, -1, 0, 1, 0}, 2, 3))
	c, err := ReadDir(dir)
	require.NoError(t, err)
	require.Equal(t, pass.Gemm{Rows: 2, Epilogue: pass.ReLU}, c.Op)
	require.Equal(t, filepath.Base(dir), c.Name)
	want, err := c.Want()
	require.NoError(t, err)
	require.Equal(t, []float32{0, 2, 0, 5}, want[0].Float32s())

	dir = writeFolder(t, `{"op": "conv1d", "fields": {"PadLeft": 1}, "tolerance": {"l2": 0.5}}`,
		floatTensor("X", six, 2, 3, 1), floatTensor("W", []float32{1, 1}, 1, 1, 2), safetensors.Int64s("Lengths", []int64{3, 1}, 2),
		floatTensor("want.Y", []float32{1, 3, 5, 4, 0, 0}, 2, 3, 1))
	c, err = ReadDir(dir)
	require.NoError(t, err)
	require.Equal(t, pass.Conv1D{Batch: 2, In: 3, PadLeft: 1}, c.Op)
	require.Equal(t, Tolerance{L2: 0.5, Max: 2e-5}, c.Limits())
	truth, err := c.Truth()
	require.NoError(t, err)
	require.Equal(t, []float32{1, 3, 5, 4, 0, 0}, truth[0].Float32s())

	dir = writeFolder(t, `{"op": "magnitude"}`, floatTensor("X", []float32{3, 4}, 1, 2))
	c, err = ReadDir(dir)
	require.NoError(t, err)
	require.Equal(t, pass.Magnitude{Rows: 1, Cols: 1}, c.Op)

	dir = writeFolder(t, `{"op": "copy", "fields": {"Rows": 1, "ToRow": 2}}`, floatTensor("From", six, 3, 2), floatTensor("To", six, 3, 2))
	c, err = ReadDir(dir)
	require.NoError(t, err)
	want, err = c.Want()
	require.NoError(t, err)
	require.Equal(t, []float32{1, 2, 3, 4, 1, 2}, want[0].Float32s())

	c, err = ReadDir(writeFolder(t, `{"op": "fill", "fields": {"Rows": 1, "Cols": 2, "Value": "-Inf"}}`))
	require.NoError(t, err)
	_, err = c.Want()
	require.NoError(t, err)
}

func TestBadFolders(t *testing.T) {
	t.Parallel()
	a := floatTensor("A", make([]float32, 6), 2, 3)
	w := floatTensor("W", make([]float32, 6), 2, 3)
	conv := func(more safetensors.Tensor) []safetensors.Tensor {
		return []safetensors.Tensor{floatTensor("X", make([]float32, 4), 4, 1), floatTensor("W", make([]float32, 1), 1, 1, 1), more}
	}
	for _, row := range []struct {
		json    string
		tensors []safetensors.Tensor
		says    []string
	}{
		{`{`, nil, []string{"case.json"}},
		{`{"op": "gem"}`, nil, []string{"op", "gemm", `"gem"`}},
		{`{"op": "gemm", "tolerence": {}}`, nil, []string{"tolerence"}},
		{`{"op": "gemm", "fields": {"Row": 1}}`, nil, []string{"fields", "Rows", `"Row"`}},
		{`{"op": "gemm", "fields": {"Rows": "two"}}`, nil, []string{"Rows", "whole number", `"two"`}},
		{`{"op": "gemm", "fields": {"Rows": 1e40}}`, nil, []string{"Rows", "whole number"}},
		{`{"op": "gemm", "fields": {"Epilogue": "swish"}}`, nil, []string{"Epilogue", "swish", "silu"}},
		{`{"op": "gemm", "fields": {"Epilogue": "leaky"}}`, nil, []string{"Epilogue", `"leaky(0.5)"`}},
		{`{"op": "gemm", "fields": {"Epilogue": "Residual"}}`, nil, []string{"Epilogue", `"residual(0.5)"`}},
		{`{"op": "gemm"} {}`, nil, []string{"want one JSON object"}},
		{`{"op": "gemm", "fields": {"Epilogue": "leaky(x)"}}`, nil, []string{"Epilogue", "leaky(x)"}},
		{`{"op": "conv1d", "fields": {"Padding": "mirror"}}`, nil, []string{"Padding", "mirror", "reflect"}},
		{`{"op": "gemm", "fields": {"Columns": 3}}`, nil, []string{"Columns", "[from, to]"}},
		{`{"op": "gemm", "fields": {"Columns": [1]}}`, nil, []string{"Columns", "[from, to]"}},
		{`{"op": "gemm", "fields": {"Columns": [0, 1, 2]}}`, nil, []string{"Columns", "[from, to]"}},
		{`{"op": "gemm", "fields": {"Rows": null}}`, nil, []string{"Rows", "whole number", "null"}},
		{`{"op": "gemm", "math": "quick"}`, nil, []string{"math", "quick", "fast"}},
		{`{"op": "gemm"}`, []safetensors.Tensor{a}, []string{`"W"`, `"A"`}},
		{`{"op": "gemm"}`, []safetensors.Tensor{w}, []string{"A: want a view"}},
		{`{"op": "gemm"}`, []safetensors.Tensor{a, w, floatTensor("B", nil, 0)}, []string{`"B"`, "gemm"}},
		{`{"op": "gemm"}`, []safetensors.Tensor{a, w, floatTensor("W.bais", nil, 0)}, []string{"W.bais"}},
		{`{"op": "gemm"}`, []safetensors.Tensor{a, w, floatTensor("W.bias", []float32{1}, 1)}, []string{"bias", "2", "1"}},
		{`{"op": "gemm", "fields": {"Rows": 3}}`, []safetensors.Tensor{a, w}, []string{"A", "[1 3 3]", "[2 3]"}},
		{`{"op": "gemm", "shapes": {"A": [3, 2]}}`, []safetensors.Tensor{a, w}, []string{`"A"`, "[3 2]", "[2 3]"}},
		{`{"op": "gemm", "shapes": {"X": [3, 2]}}`, []safetensors.Tensor{a, w}, []string{`"X"`}},
		{`{"op": "gemm"}`, []safetensors.Tensor{a, w, floatTensor("want.C", []float32{1}, 1)}, []string{"C", "[1 2 2]", "[1]"}},
		{`{"op": "gemm", "tolerance": {"match": "exactly"}}`, []safetensors.Tensor{a, w}, []string{"match", "exactly", "bits"}},
		{`{"op": "gemm", "tolerance": {"l2": -1}}`, []safetensors.Tensor{a, w}, []string{"l2", "-1"}},
		{`{"op": "gemm", "same": {"C": "B"}}`, []safetensors.Tensor{a, w}, []string{"same", "C", `"B"`}},
		{`{"op": "gemm", "outputs": ["D"]}`, []safetensors.Tensor{a, w}, []string{`"D"`}},
		{`{"op": "copy"}`, []safetensors.Tensor{floatTensor("From", nil, 0, 2)}, []string{"Rows"}},
		{`{"op": "rope", "fields": {"Heads": 1, "HeadDim": 2, "Style": "wholes"}}`, nil, []string{"Style", "halves", "wholes"}},
		{`{"op": "rope", "fields": {"Heads": 1, "HeadDim": 2}, "params": {"Table": {"Rot": "two"}}}`, nil, []string{"Table", "Rot", "whole number"}},
		{`{"op": "rope", "fields": {"Heads": 1, "HeadDim": 2}, "params": {"Table": {"Turns": 2}}}`, nil, []string{"Table", "Positions", "Turns"}},
		{`{"op": "rope", "fields": {"Heads": 1, "HeadDim": 2}, "params": {"Table": {"Positions": 2, "Rot": 2, "Base": 10}, "W": {}}}`, nil, []string{"params", `"W"`}},
		{`{"op": "attention", "fields": {"Heads": 1, "HeadDim": 4, "Mask": "band(1)"}}`, nil, []string{"Mask", "band(left,right)"}},
		{`{"op": "attention", "fields": {"Heads": 1, "HeadDim": 4}, "caches": {"Cache": {"heads": 1}}}`, nil, []string{"caches", `"Cache"`}},
		{`{"op": "permute", "fields": {"Dims": 4, "Order": [0, 1, 2, 3]}}`, nil, []string{"Dims", "list of whole numbers"}},
		{`{"op": "permute", "fields": {"Dims": [1, 2, 3], "Order": [0, 1, 2, 3]}}`, nil, []string{"Dims", "list of 4 whole numbers"}},
		{`{"op": "permute", "fields": {"Dims": [1, 1, 2, 3], "Order": [0, 1, 2, 3, 4]}}`, nil, []string{"Order", "list of 4 whole numbers"}},
		{`{"op": "attend", "caches": {"Cache": {"heads": 1, "headDim": 4}}}`, nil, []string{"Cache.K"}},
		{`{"op": "attend", "caches": {"Cache": {"heads": 1, "headDim": 4, "type": "F64"}}}`, []safetensors.Tensor{floatTensor("Cache.K", make([]float32, 8), 1, 2, 4)}, []string{"F64"}},
		{`{"op": "attend", "caches": {"Cache": {"heads": 1, "headDim": 4}}}`, []safetensors.Tensor{floatTensor("Cache.K", make([]float32, 8), 1, 2, 4), floatTensor("Cache.V", make([]float32, 4), 1, 1, 4)}, []string{"8 keys and values", "8 and 4"}},
		{`{"op": "conv1d"}`, []safetensors.Tensor{floatTensor("X", make([]float32, 4), 4, 1), floatTensor("W", make([]float32, 1), 1, 1, 1), floatTensor("Lengths", []float32{1}, 1)}, []string{"Lengths", "whole numbers"}},
		{`{"op": "conv1d"}`, []safetensors.Tensor{floatTensor("X", make([]float32, 4), 4, 1), floatTensor("W", make([]float32, 1), 1, 1, 1), safetensors.Int64s("Lengths", []int64{-1}, 1)}, []string{"Lengths", "-1"}},
		{`{"op": "conv1d"}`, conv(safetensors.Int64s("Lengths", []int64{5}, 1)), []string{"Lengths", "4", "5"}},
		{`{"op": "conv1d", "fields": {"Padding": "reflect", "PadLeft": 2}}`, conv(safetensors.Int64s("Lengths", []int64{2}, 1)), []string{"Lengths", "reflect"}},
		{`{"op": "conv1d"}`, conv(safetensors.Int64s("want.Y", []int64{1, 2, 3, 4}, 4, 1)), []string{"Y", "F32", "U32"}},
		{`{"op": "conv1d", "outputs": ["Y"]}`, conv(floatTensor("want.X", []float32{1, 2, 3, 4}, 4, 1)), []string{"wanted X"}},
		{`{"op": "copy", "fields": {"Rows": 2}}`, []safetensors.Tensor{floatTensor("From", make([]float32, 6), 3, 2), safetensors.Int64s("FromRow", []int64{2})}, []string{"FromRow", "1", "2"}},
		{`{"op": "fill", "fields": {"Rows": 1000000, "Cols": 1000000}}`, nil, []string{"To", "at most"}},
		{`{"op": "copy", "fields": {"Rows": 1, "Batch": 999999999, "Cols": 0}}`, []safetensors.Tensor{floatTensor("From", nil, 3, 0)}, []string{"From", "at most"}},
	} {
		_, err := ReadDir(writeFolder(t, row.json, row.tensors...))
		require.ErrorIs(t, err, pass.ErrInvalid, row.json)
		for _, s := range row.says {
			require.ErrorContains(t, err, s, row.json)
		}
	}
	_, err := ReadDir(t.TempDir())
	require.ErrorIs(t, err, os.ErrNotExist)

	dir := writeFolder(t, `{"op": "gemm"}`, a, w)
	path := filepath.Join(dir, tensorFile)
	whole, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, whole[:len(whole)-5], 0o666))
	_, err = ReadDir(dir)
	require.ErrorIs(t, err, pass.ErrInvalid)
	require.ErrorContains(t, err, tensorFile)
}

// The example in FORMAT.md is the folder by-hand, and right.
func TestExampleByHand(t *testing.T) {
	t.Parallel()
	c, err := ReadDir("testdata/by-hand")
	require.NoError(t, err)
	require.Equal(t, pass.Gemm{Rows: 2, Epilogue: pass.Leaky(0.5)}, c.Op)
	wanted, err := c.Want()
	require.NoError(t, err)
	truth, err := c.Truth()
	require.NoError(t, err)
	require.Equal(t, []float32{-1, 2.5, -1, 5.5}, wanted[0].Float32s())
	require.Equal(t, wanted[0].Words, truth[0].Words)
	text, err := os.ReadFile("FORMAT.md")
	require.NoError(t, err)
	example, err := os.ReadFile("testdata/by-hand/case.json")
	require.NoError(t, err)
	require.Contains(t, string(text), "```json\n"+string(example)+"```")
}
