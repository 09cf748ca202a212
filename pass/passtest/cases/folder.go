package cases

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tandem-gpu/tandem/model/safetensors"
	"github.com/tandem-gpu/tandem/pass"
)

// The files of a case folder, and what the names of wanted outputs begin with.
const (
	caseFile    = "case.json"
	tensorFile  = "tensors.safetensors"
	wantPrefix  = "want."
	maxCaseFile = 1 << 20 // bytes
)

// caseJSON is case.json; see FORMAT.md.
type caseJSON struct {
	Name      string                     `json:"name,omitempty"`
	Note      string                     `json:"note,omitempty"`
	Op        string                     `json:"op"`
	Fields    map[string]json.RawMessage `json:"fields,omitempty"`
	Params    map[string]paramJSON       `json:"params,omitempty"`
	Caches    map[string]cacheJSON       `json:"caches,omitempty"`
	Shapes    map[string][]int           `json:"shapes,omitempty"`
	Math      string                     `json:"math,omitempty"`
	Tolerance *toleranceJSON             `json:"tolerance,omitempty"`
	Outputs   []string                   `json:"outputs,omitempty"`
	Same      map[string]string          `json:"same,omitempty"`
}

// paramJSON are the fields of weights that are not tensors.
type paramJSON = map[string]json.RawMessage

// cacheJSON is the geometry of a cache that its tensors do not give.
type cacheJSON struct {
	Heads   int    `json:"heads"`
	HeadDim int    `json:"headDim"`
	Type    string `json:"type,omitempty"`
}

type toleranceJSON struct {
	Match string   `json:"match,omitempty"`
	L2    *float64 `json:"l2,omitempty"`
	Max   *float64 `json:"max,omitempty"`
	Log   *float64 `json:"log,omitempty"`
}

// FindDirs returns every folder at or below dir that holds a case.json, in order.
func FindDirs(dir string) ([]string, error) {
	var found []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && d.Name() == caseFile {
			found = append(found, filepath.Dir(path))
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("cases: %w", err)
	}
	return found, nil
}

// Write writes a case to a folder, which it makes, with its wanted outputs. The same
// case gives the same bytes.
func Write(dir string, c Case) error {
	wanted, err := c.Want()
	if err != nil {
		return err
	}
	tol := c.Limits()
	j := caseJSON{Name: c.Name, Op: c.Op.Name(), Math: c.Math.String(), Outputs: c.Outputs, Same: c.Same,
		Fields: map[string]json.RawMessage{}, Shapes: map[string][]int{}, Tolerance: tol.json()}
	k, err := kindOf(c.Op.Name())
	if err != nil {
		return err
	}
	if err := marshalFields(j.Fields, encodeFields(c.Op, k.needs...)); err != nil {
		return fmt.Errorf("cases: %s: %w", c.Name, err)
	}
	for _, p := range c.Params {
		fields := paramJSON{}
		if err := marshalFields(fields, encodeFields(p.Weights)); err != nil {
			return fmt.Errorf("cases: %s: %s: %w", c.Name, p.Field, err)
		}
		if len(fields) > 0 {
			if j.Params == nil {
				j.Params = map[string]paramJSON{}
			}
			j.Params[p.Field] = fields
		}
	}
	for _, h := range c.Caches {
		if j.Caches == nil {
			j.Caches = map[string]cacheJSON{}
		}
		j.Caches[h.Field] = cacheJSON{h.Config.Heads, h.Config.HeadDim, cacheTypeName(h.Config.Type)}
	}
	var tensors []safetensors.Tensor
	for _, t := range c.Inputs {
		tensors = append(tensors, t.file(t.Name))
	}
	for _, t := range wanted {
		tensors = append(tensors, t.file(wantPrefix+t.Name))
	}
	for _, p := range c.Params {
		tensors = append(tensors, weightTensors(p)...)
	}
	for _, h := range c.Caches {
		tensors = append(tensors, h.tensors()...)
	}
	for _, t := range tensors {
		j.Shapes[t.Name] = slices.Clone(t.Shape)
		if t.Shape == nil {
			j.Shapes[t.Name] = []int{}
		}
	}
	text, err := json.MarshalIndent(j, "", "  ")
	if err != nil {
		return fmt.Errorf("cases: %s: %w", c.Name, err)
	}
	var data bytes.Buffer
	if err := safetensors.Write(&data, tensors, nil); err != nil {
		return fmt.Errorf("cases: %s: %w", c.Name, err)
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return fmt.Errorf("cases: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, caseFile), append(text, '\n'), 0o666); err != nil {
		return fmt.Errorf("cases: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, tensorFile), data.Bytes(), 0o666); err != nil {
		return fmt.Errorf("cases: %w", err)
	}
	return nil
}

// marshalFields adds fields as JSON.
func marshalFields(to map[string]json.RawMessage, from map[string]any) error {
	for name, value := range from {
		text, err := json.Marshal(value)
		if err != nil {
			return fmt.Errorf("field %s: %w", name, err)
		}
		to[name] = text
	}
	return nil
}

func (t Tolerance) json() *toleranceJSON {
	if t.Match != Near {
		return &toleranceJSON{Match: t.Match.String()}
	}
	j := &toleranceJSON{L2: &t.L2, Max: &t.Max}
	if t.Log != 0 {
		j.Log = &t.Log
	}
	return j
}

// ReadDir reads the case of a folder. Errors name the file, the field or tensor, what
// was wanted and what was given.
func ReadDir(dir string) (Case, error) {
	j, err := readJSON(filepath.Join(dir, caseFile))
	if err != nil {
		return Case{}, fmt.Errorf("cases: %s: %w", filepath.Join(dir, caseFile), err)
	}
	if j.Name == "" {
		j.Name = filepath.Base(dir)
	}
	path := filepath.Join(dir, tensorFile)
	file := &tensorReader{}
	if _, err := os.Stat(path); err == nil { // an op may have no tensors
		if file, err = openTensors(path, j.Shapes); err != nil {
			return Case{}, fmt.Errorf("cases: %s: %w", path, err)
		}
	}
	c, err := j.assemble(file)
	if err != nil {
		return Case{}, fmt.Errorf("cases: %s: %w", dir, err)
	}
	if _, err := c.Resolve(); err != nil {
		return Case{}, fmt.Errorf("cases: %s: %w", dir, err)
	}
	return c, nil
}

func readJSON(path string) (caseJSON, error) {
	var j caseJSON
	f, err := os.Open(path)
	if err != nil {
		return j, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxCaseFile+1))
	if err != nil {
		return j, err
	}
	if len(text) > maxCaseFile {
		return j, invalid("want at most %d bytes", maxCaseFile)
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&j); err != nil {
		return j, fmt.Errorf("%w: %w", err, pass.ErrInvalid)
	}
	if _, err := d.Token(); err != io.EOF {
		return j, invalid("want one JSON object, given more after it")
	}
	return j, nil
}

// assemble makes the case of what both files hold.
func (j caseJSON) assemble(file *tensorReader) (Case, error) {
	k, err := kindOf(strings.ToLower(j.Op))
	if err != nil {
		return Case{}, err
	}
	c := Case{Name: j.Name, Same: j.Same}
	switch strings.ToLower(j.Math) {
	case "", "exact":
	case "fast":
		c.Math = pass.Fast
	default:
		return Case{}, invalid(`math: want "exact" or "fast", given %q`, j.Math)
	}
	if c.Op, err = decodeFields(k.zero, "fields: "+k.zero.Name(), j.Fields); err != nil {
		return Case{}, err
	}
	if err := file.sort(&c, k, j); err != nil {
		return Case{}, err
	}
	if c.Op, err = inferFields(c.Op, k, j.Fields, slices.Concat(c.Inputs, c.Wanted)); err != nil {
		return Case{}, err
	}
	c.Outputs = j.Outputs
	if c.Outputs == nil {
		c.Outputs = slices.Clone(k.outputs)
		for _, t := range c.Wanted {
			if !slices.Contains(c.Outputs, t.Name) && !strings.Contains(t.Name, ".") { // of no cache
				c.Outputs = append(c.Outputs, t.Name)
			}
		}
		for _, out := range sortedKeys(c.Same) {
			if !slices.Contains(c.Outputs, out) {
				c.Outputs = append(c.Outputs, out)
			}
		}
	}
	for out, in := range c.Same {
		if _, ok := find(c.Inputs, in); !ok {
			return Case{}, invalid("same: %s: want the name of an input, given %q", out, in)
		}
	}
	return c, j.tolerance(&c)
}

func (j caseJSON) tolerance(c *Case) error {
	if j.Tolerance == nil {
		return nil
	}
	tol := c.Limits() // what is not given stays as usual
	switch strings.ToLower(j.Tolerance.Match) {
	case "":
		if j.Tolerance.L2 != nil || j.Tolerance.Max != nil {
			tol.Match = Near
		}
	case "near":
		tol.Match = Near
	case "values":
		tol = Tolerance{Match: Values}
	case "bits":
		tol = Tolerance{Match: Bits}
	default:
		return invalid(`tolerance: match: want "near", "values" or "bits", given %q`, j.Tolerance.Match)
	}
	if j.Tolerance.L2 != nil {
		tol.L2 = *j.Tolerance.L2
	}
	if j.Tolerance.Max != nil {
		tol.Max = *j.Tolerance.Max
	}
	if j.Tolerance.Log != nil {
		tol.Log = *j.Tolerance.Log
	}
	if !(tol.L2 >= 0 && tol.Max >= 0 && tol.Log >= 0) {
		return invalid("tolerance: want l2, max and log of at least 0, given %v, %v and %v", tol.L2, tol.Max, tol.Log)
	}
	c.Tolerance = tol
	return nil
}
