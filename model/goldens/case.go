package goldens

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/tandem-gpu/tandem/model/internal/nearest"
	"github.com/tandem-gpu/tandem/model/safetensors"
	"github.com/tandem-gpu/tandem/model/wav"
	"github.com/tandem-gpu/tandem/pass"
)

// A Case is what case.json says. Close closes the file of outputs.
type Case struct {
	Name   string
	Model  string // what kind of network or part it is
	Seed   uint64
	Note   string // what it computes
	Config json.RawMessage

	Tensors map[string]Array  // weights
	Inputs  map[string]Array  // inputs
	Outputs map[string]Stored // expected
	Tied    map[string]string // weights that are another's, by name
	Audio   []Clip

	DecoderInputIDs   [][]int `json:"decoder_input_ids"`
	PredictorInputIDs []int   `json:"predictor_input_ids"`
	JointFrames       []int   `json:"joint_frames"`

	dir     string
	outputs *safetensors.File
}

// An Array says how weights or an input are made.
type Array struct {
	Shape         []int
	Scale, Offset float32
	Stored        string // name of the stored tensor that it is instead
	Rule          string // "": none; OneWhereAboveZero
	Axes          string
}

// OneWhereAboveZero is the rule of a mask: 1 where the value of the recipe is above 0,
// else 0.
const OneWhereAboveZero = "1 where > 0, else 0"

// A Stored tensor is an expected output.
type Stored struct {
	Shape []int
	Axes  string
	DType string  // F32, or I64 for ids, steps and positions
	RMS   float64 // root of the mean square
}

// A Clip is a part of a recording, with the number of frames that a front end makes of
// it.
type Clip struct {
	Clip    string // its name
	File    string // relative to the folder that holds the cases
	Start   int    // first sample
	Samples int
	Frames  int
}

const (
	maxFile     = 16 << 20 // bytes of case.json
	maxElements = 1 << 28  // of an array, so that a wrong shape allocates no machine full
)

// Folders returns the folders with a case in the given folder, and in those that the
// environment variable TANDEM_GOLDENS names (a list in the form of PATH). A folder that
// is named and has none is an error.
func Folders(dir string) ([]string, error) {
	var all []string
	for _, dir := range append([]string{dir}, filepath.SplitList(os.Getenv("TANDEM_GOLDENS"))...) {
		found, err := filepath.Glob(filepath.Join(dir, "*", "case.json"))
		if err != nil {
			return nil, fmt.Errorf("goldens: %s: %w", dir, err)
		}
		if len(found) == 0 {
			return nil, fmt.Errorf("goldens: %s: no folder with a case: %w", dir, fs.ErrNotExist)
		}
		for _, path := range found {
			all = append(all, filepath.Dir(path))
		}
	}
	return all, nil
}

// Open reads the case in a folder. The result must be closed.
func Open(dir string) (*Case, error) {
	c, err := open(dir)
	if err != nil {
		return nil, fmt.Errorf("goldens: %s: %w", filepath.Base(dir), err)
	}
	return c, nil
}

func open(dir string) (*Case, error) {
	path := filepath.Join(dir, "case.json")
	if info, err := os.Stat(path); err != nil {
		return nil, err
	} else if info.Size() > maxFile {
		return nil, fmt.Errorf("case.json: want at most %d bytes, given %d: %w", maxFile, info.Size(), pass.ErrInvalid)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	c, err := parse(text)
	if err != nil {
		return nil, err
	}
	c.dir = dir
	if c.outputs, err = safetensors.Open(filepath.Join(dir, "outputs.safetensors")); err != nil {
		return nil, err
	}
	return c, nil
}

// parse reads case.json and checks all sizes.
func parse(text []byte) (*Case, error) {
	c := &Case{}
	if err := json.Unmarshal(text, c); err != nil {
		return nil, errors.Join(fmt.Errorf("case.json: %w", err), pass.ErrInvalid)
	}
	for _, arrays := range []map[string]Array{c.Tensors, c.Inputs} {
		for name, a := range arrays {
			if err := checkShape(name, a.Shape); err != nil {
				return nil, err
			}
			if a.Rule != "" && a.Rule != OneWhereAboveZero {
				return nil, fmt.Errorf("case.json: %q: rule %q: want none or %q: %w", name, a.Rule, OneWhereAboveZero, pass.ErrUnsupported)
			}
		}
	}
	for name, s := range c.Outputs {
		if err := checkShape(name, s.Shape); err != nil {
			return nil, err
		}
		if s.DType != "F32" && s.DType != "I64" {
			return nil, fmt.Errorf("case.json: %q: want F32 or I64, given %q: %w", name, s.DType, pass.ErrUnsupported)
		}
	}
	if c.Model == "" || len(c.Outputs) == 0 {
		return nil, fmt.Errorf("case.json: want a model and at least one output, given %q and %d: %w", c.Model, len(c.Outputs), pass.ErrInvalid)
	}
	for _, clip := range c.Audio {
		if clip.Start < 0 || clip.Samples < 0 || clip.Frames < 0 || !filepath.IsLocal(clip.File) {
			return nil, fmt.Errorf("case.json: audio: want a file below the folder of the cases and a range of it, given %+v: %w", clip, pass.ErrInvalid)
		}
	}
	return c, nil
}

func checkShape(name string, shape []int) error {
	if n := (pass.Tensor{Shape: shape}).Len(); n < 0 || n > maxElements {
		return fmt.Errorf("case.json: %q: want at most %d elements, given shape %v: %w", name, maxElements, shape, pass.ErrInvalid)
	}
	return nil
}

// Close closes the file of outputs. It is safe on nil and when called again.
func (c *Case) Close() error {
	if c == nil {
		return nil
	}
	return c.outputs.Close()
}

// Configuration decodes the configuration of the case into v, as package json does.
func (c *Case) Configuration(v any) error {
	if err := json.Unmarshal(c.Config, v); err != nil {
		return fmt.Errorf("goldens: %s: config: %w", c.Name, errors.Join(err, pass.ErrInvalid))
	}
	return nil
}

// Tensor returns the named weights, or those that they are tied to, for loading.
func (c *Case) Tensor(name string) (pass.Tensor, error) {
	if to, ok := c.Tied[name]; ok {
		name = to
	}
	a, ok := c.Tensors[name]
	if !ok {
		return pass.Tensor{}, fmt.Errorf("goldens: %s: no tensor %q among %d%s: %w", c.Name, name, len(c.Tensors), nearest.Hint(name, c.Names()), pass.ErrInvalid)
	}
	n := pass.Tensor{Shape: a.Shape}.Len()
	return pass.Tensor{Name: name, Type: pass.F32, Shape: a.Shape, Data: newRecipe(name, c.Seed, n, a.Scale, a.Offset)}, nil
}

// Names returns the names of all weights, sorted, those that are another's among them.
func (c *Case) Names() []string {
	names := slices.AppendSeq(slices.Collect(maps.Keys(c.Tensors)), maps.Keys(c.Tied))
	slices.Sort(names)
	return slices.Compact(names)
}

// Float32s returns the values of the named weights.
func (c *Case) Float32s(name string) ([]float32, error) {
	t, err := c.Tensor(name)
	if err != nil {
		return nil, err
	}
	return t.Float32s()
}

// Input returns the named input, in the order of its axes.
func (c *Case) Input(name string) ([]float32, error) {
	a, ok := c.Inputs[name]
	if !ok {
		return nil, c.missing("input", name)
	}
	if a.Stored != "" {
		return c.stored(a.Stored, a.Shape)
	}
	values := make([]float32, pass.Tensor{Shape: a.Shape}.Len())
	Values(values, "input."+name, c.Seed, a.Scale, a.Offset)
	if a.Rule == OneWhereAboveZero {
		for i, v := range values {
			values[i] = 0
			if v > 0 {
				values[i] = 1
			}
		}
	}
	return values, nil
}

// Output returns the named output of type F32, in the order of its axes.
func (c *Case) Output(name string) ([]float32, error) {
	s, ok := c.Outputs[name]
	if !ok {
		return nil, c.missing("output", name)
	}
	return c.stored(name, s.Shape)
}

// Integers returns the named output of type I64, in the order of its axes.
func (c *Case) Integers(name string) ([]int64, error) {
	s, ok := c.Outputs[name]
	if !ok {
		return nil, c.missing("output", name)
	}
	v, err := c.outputs.Int64s(name)
	if err != nil {
		return nil, fmt.Errorf("goldens: %s: %w", c.Name, err)
	}
	if n := (pass.Tensor{Shape: s.Shape}).Len(); len(v) != n {
		return nil, fmt.Errorf("goldens: %s: %q: want %d elements, given %d: %w", c.Name, name, n, len(v), pass.ErrInvalid)
	}
	return v, nil
}

// stored reads a tensor of outputs.safetensors, which must have the given shape.
func (c *Case) stored(name string, shape []int) ([]float32, error) {
	t, err := c.outputs.Tensor(name)
	if err != nil {
		return nil, fmt.Errorf("goldens: %s: %w", c.Name, err)
	}
	if n := (pass.Tensor{Shape: shape}).Len(); t.Len() != n {
		return nil, fmt.Errorf("goldens: %s: %q: want %d elements, given %d: %w", c.Name, name, n, t.Len(), pass.ErrInvalid)
	}
	return t.Float32s()
}

// Samples returns the samples of a clip.
func (c *Case) Samples(clip Clip) ([]float32, error) {
	samples, _, err := wav.ReadFile(filepath.Join(filepath.Dir(c.dir), filepath.FromSlash(clip.File)))
	if err != nil {
		return nil, fmt.Errorf("goldens: %s: %w", c.Name, err)
	}
	if clip.Start > len(samples) || clip.Samples > len(samples)-clip.Start {
		return nil, fmt.Errorf("goldens: %s: clip %q: want %d samples from %d on, given %d in all: %w", c.Name, clip.Clip, clip.Samples, clip.Start, len(samples), pass.ErrInvalid)
	}
	return samples[clip.Start : clip.Start+clip.Samples], nil
}

func (c *Case) missing(kind, name string) error {
	return fmt.Errorf("goldens: %s: no %s %q: %w", c.Name, kind, name, pass.ErrInvalid)
}
