package goldens

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tandem-gpu/tandem/model/safetensors"
	"github.com/tandem-gpu/tandem/pass"
)

// write makes a folder with a case of the given model and outputs.
func write(t *testing.T, model string, outputs map[string]Stored, tensors ...safetensors.Tensor) *Case {
	t.Helper()
	dir := t.TempDir()
	text, err := json.Marshal(map[string]any{
		"name": "small", "model": model, "seed": 3, "config": map[string]any{"heads": 2},
		"tensors": map[string]any{"w": map[string]any{"shape": []int{2, 2}, "scale": 0.5, "offset": 1}},
		"tied":    map[string]string{"v": "w"},
		"inputs": map[string]any{
			"m": map[string]any{"shape": []int{3}, "scale": 1, "rule": OneWhereAboveZero},
			"s": map[string]any{"shape": []int{1}, "stored": "input.s"},
			"z": map[string]any{"shape": []int{2, 0}},
		},
		"outputs": outputs,
	})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "case.json"), text, 0o600))
	var b bytes.Buffer
	require.NoError(t, safetensors.Write(&b, tensors, nil))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "outputs.safetensors"), b.Bytes(), 0o600))
	c, err := Open(dir)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

func floats(name string, v ...float32) safetensors.Tensor {
	return safetensors.Of(pass.Float32s(name, v, len(v)))
}

func TestCase(t *testing.T) {
	t.Parallel()
	c := write(t, "some", map[string]Stored{"y": {[]int{1}, "", "F32", 0}, "n": {[]int{3}, "", "I64", 0}}, floats("input.s", 42), safetensors.Int64s("n", []int64{1, 2}, 2))
	w, err := c.Float32s("w")
	require.NoError(t, err)
	want := make([]float32, 4)
	Values(want, "w", 3, 0.5, 1)
	require.Equal(t, want, w)
	v, err := c.Tensor("v")
	require.NoError(t, err)
	require.Equal(t, "w", v.Name)
	require.Equal(t, []int{2, 2}, v.Shape)
	require.Equal(t, []string{"v", "w"}, c.Names())

	Values(want[:3], "input.m", 3, 1, 0)
	m, err := c.Input("m")
	require.NoError(t, err)
	for i := range m {
		require.Equal(t, want[i] > 0, m[i] == 1)
		require.Equal(t, want[i] <= 0, m[i] == 0)
	}
	s, err := c.Input("s")
	require.NoError(t, err)
	require.Equal(t, []float32{42}, s)
	s, err = c.InputOf("s", 1)
	require.NoError(t, err)
	require.Equal(t, []float32{42}, s)
	shape, err := c.TensorAxes("w", 2)
	require.NoError(t, err)
	require.Equal(t, []int{2, 2}, shape)
	shape, err = c.OutputAxes("y", 1)
	require.NoError(t, err)
	require.Equal(t, []int{1}, shape)

	var config struct{ Heads int }
	require.NoError(t, c.Configuration(&config))
	require.Equal(t, 2, config.Heads)
	for _, err := range []error{
		second(c.Tensor("x")), second(c.Float32s("x")), second(c.Input("x")), second(c.Output("x")), second(c.Integers("x")),
		second(c.Output("y")), second(c.Integers("n")),
		second(c.InputAxes("x", 1)), second(c.InputAxes("m", 2)), second(c.InputAxes("z", 2)), second(c.TensorAxes("w", 1)), second(c.TensorAxes("v", 2)),
		second(c.OutputAxes("x", 1)), second(c.OutputAxes("y", 0)), second(c.InputOf("m", 2)), second(c.InputOf("m", 3, 1)),
		c.Configuration(&[]int{}), second(c.Samples(Clip{Clip: "x", File: "none.wav"})),
	} {
		require.ErrorContains(t, err, "goldens: small: ")
	}
	require.NoError(t, c.Close())
	require.NoError(t, (*Case)(nil).Close())
}

func second[T any](_ T, err error) error { return err }

func TestCheck(t *testing.T) {
	t.Parallel()
	ids := safetensors.Int64s("ids", []int64{1, 2}, 2)
	c := write(t, "some", map[string]Stored{
		"logits": {[]int{2}, "", "F32", 0}, "part.1": {[]int{2}, "", "F32", 0}, "ids": {[]int{2}, "", "I64", 0},
	}, floats("logits", 3, 4), floats("part.1", 3, 4), ids)
	for _, r := range []struct {
		logits, part []float32
		ids          []int64
		m            pass.Math
		want         []string // what the error says
	}{
		{[]float32{3, 4}, []float32{3, 4}, []int64{1, 2}, pass.Exact, nil},
		{[]float32{3, 4.0004}, []float32{3, 4.00009}, []int64{1, 2}, pass.Exact, nil},
		{[]float32{3, 4.0006}, []float32{3, 4.00011}, []int64{1, 2}, pass.Exact, []string{"logits: want", "part.1: want"}},
		{[]float32{3, 4.02}, []float32{3, 4.02}, []int64{1, 2}, pass.Fast, nil},
		{[]float32{3, 4.03}, []float32{3, 4.03}, []int64{1, 3}, pass.Fast, []string{"logits: want", "part.1: want", "ids: want [1 2], given [1 3]"}},
		{[]float32{3, float32(math.NaN())}, []float32{3}, []int64{1, 2}, pass.Fast, []string{"logits: want", "part.1: want"}},
	} {
		var out bytes.Buffer
		err := c.Check(&out, Results{"logits": r.logits, "part.1": r.part, "ids": r.ids}, r.m)
		require.Equal(t, 3, bytes.Count(out.Bytes(), []byte("\n")), "a line for each output")
		if r.want == nil {
			require.NoError(t, err)
			continue
		}
		for _, w := range r.want {
			require.ErrorContains(t, err, w)
		}
	}
	err := c.Check(&bytes.Buffer{}, Results{"logits": []float32{3, 4}, "part.1": []float64{3, 4}}, pass.Exact)
	require.ErrorContains(t, err, "ids: missing")
	require.ErrorContains(t, err, "part.1: want []float32 or []int64, given []float64")
	require.NotContains(t, err.Error(), "logits")
	err = c.Check(&bytes.Buffer{}, Results{"logits": []int64{3, 4}, "part.1": []float32{3, 4}, "ids": []float32{1, 2}}, pass.Exact)
	require.ErrorContains(t, err, "logits: want F32, given I64")
	require.ErrorContains(t, err, "ids: want I64, given F32")
}

func TestCheckStatistics(t *testing.T) {
	t.Parallel()
	c := write(t, "statistics-pooling", map[string]Stored{"p": {[]int{4}, "", "F32", 0}}, floats("p", 3, 1e-5, 4, 1e-5))
	for _, r := range []struct {
		got []float32
		ok  bool
	}{
		{[]float32{3, 1e-5, 4, 1e-5}, true},
		{[]float32{3, 1e-5, 4, 1.09e-5}, true},
		{[]float32{3, 1e-5, 4, 1.2e-5}, false},
		{[]float32{3, 1e-5, 4, float32(math.NaN())}, false},
		{[]float32{3, 1e-5, 4.0001, 1e-5}, false},
		{[]float32{3.0001, 1e-5, 4, 1e-5}, false},
		{[]float32{3, 1e-5, 4}, false},
	} {
		err := c.Check(&bytes.Buffer{}, Results{"p": r.got}, pass.Exact)
		require.Equal(t, r.ok, err == nil, "%v: %v", r.got, err)
	}
}

func TestFolders(t *testing.T) {
	dir := filepath.Join("..", "testdata", "goldens")
	t.Setenv("TANDEM_GOLDENS", "")
	own, err := Folders(dir)
	require.NoError(t, err)
	require.Contains(t, own, filepath.Join(dir, "conv2d-block"))
	require.NotContains(t, own, filepath.Join(dir, "audio"))
	t.Setenv("TANDEM_GOLDENS", dir+string(filepath.ListSeparator)+dir)
	all, err := Folders(dir)
	require.NoError(t, err)
	require.Len(t, all, 3*len(own))
	t.Setenv("TANDEM_GOLDENS", t.TempDir())
	_, err = Folders(dir)
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestSamples(t *testing.T) {
	t.Parallel()
	c, err := Open(filepath.Join("..", "testdata", "goldens", "frontend-kaldi80"))
	require.NoError(t, err)
	defer c.Close()
	clip := c.Audio[0]
	all, err := c.Samples(clip)
	require.NoError(t, err)
	clip.Start, clip.Samples = 5003, len(all)-5003
	part, err := c.Samples(clip)
	require.NoError(t, err)
	require.Equal(t, all[5003:], part)
	clip.Samples++
	_, err = c.Samples(clip)
	require.ErrorIs(t, err, pass.ErrInvalid)
}

// wrong are texts of cases that are refused, each for one reason.
var wrong = map[string]string{
	"text":         `{`,
	"null":         `null`,
	"no model":     `{"outputs": {"y": {"shape": [1], "dtype": "F32"}}}`,
	"no outputs":   `{"model": "m", "outputs": {}}`,
	"type":         caseOf(`"seed": "x"`),
	"huge tensor":  caseOf(`"tensors": {"w": {"shape": [1000000, 1000000]}}`),
	"overflow":     caseOf(`"inputs": {"w": {"shape": [4294967296, 4294967296, 16]}}`),
	"negative":     `{"model": "m", "outputs": {"y": {"shape": [-1], "dtype": "F32"}}}`,
	"output type":  `{"model": "m", "outputs": {"y": {"shape": [1], "dtype": "F64"}}}`,
	"rule":         caseOf(`"inputs": {"x": {"shape": [1], "rule": "2 where > 0"}}`),
	"clip range":   caseOf(`"audio": [{"file": "audio/a.wav", "start": -1}]`),
	"clip outside": caseOf(`"audio": [{"file": "../../a.wav"}]`),
}

// caseOf returns the text of a case with a model and an output, and more.
func caseOf(more string) string {
	return `{"model": "m", "outputs": {"y": {"shape": [1], "dtype": "F32"}}, ` + more + `}`
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	_, err := parse([]byte(caseOf(`"seed": 1`)))
	require.NoError(t, err)
	for name, text := range wrong {
		_, err := parse([]byte(text))
		require.Error(t, err, name)
		require.True(t, errors.Is(err, pass.ErrInvalid) || errors.Is(err, pass.ErrUnsupported), "%s: %v", name, err)
	}
}

// What is parsed can be asked for everything that it names.
func FuzzParse(f *testing.F) {
	for _, text := range wrong {
		f.Add([]byte(text))
	}
	for _, name := range []string{"attention-relative", "frontend-kaldi80", "statistics-pooling"} {
		text, err := os.ReadFile(filepath.Join("..", "testdata", "goldens", name, "case.json"))
		require.NoError(f, err)
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		c, err := parse(text)
		if err != nil {
			return
		}
		for name := range c.Tensors {
			w, err := c.Tensor(name)
			if c.Tied[name] == "" {
				require.NoError(t, err)
				require.LessOrEqual(t, w.Len(), maxElements)
			}
		}
		for _, clip := range c.Audio {
			require.True(t, filepath.IsLocal(clip.File))
		}
	})
}
