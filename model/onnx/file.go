package onnx

import (
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math"
	"os"
	"slices"
	"syscall"

	"github.com/tandem-gpu/tandem/model/internal/nearest"
	"github.com/tandem-gpu/tandem/pass"
)

// A File holds the weights of a model. It does not change, so any goroutine may use it.
type File struct {
	names   []string
	tensors map[string]*tensor
}

// Parse reads a model in memory. The File and the tensors that it returns refer to b,
// which must not be changed as long as they are used.
func Parse(b []byte) (*File, error) {
	f, err := parse(b)
	if err != nil {
		return nil, fmt.Errorf("onnx: %w", err)
	}
	return f, nil
}

// maxModel is how long a model may be in bytes: as long as a protobuf message.
const maxModel = math.MaxInt32

// Read reads a model from r to its end, into memory. It has at most 2 GiB.
func Read(r io.Reader) (*File, error) {
	if r == nil {
		return nil, fmt.Errorf("onnx: want an input, given nil: %w", pass.ErrInvalid)
	}
	b, err := io.ReadAll(io.LimitReader(r, maxModel+1))
	if err != nil {
		return nil, fmt.Errorf("onnx: %w", err)
	}
	if len(b) > maxModel {
		return nil, fmt.Errorf("onnx: want a model of at most %d bytes: %w", maxModel, pass.ErrInvalid)
	}
	return Parse(b)
}

// ReadFile reads the model at path, which its errors name, into memory.
func ReadFile(path string) (*File, error) {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return nil, fmt.Errorf("onnx: %w", &fs.PathError{Op: "read", Path: path, Err: syscall.EISDIR})
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("onnx: %w", err)
	}
	f, err := parse(b)
	if err != nil {
		return nil, fmt.Errorf("onnx: %s: %w", path, err)
	}
	return f, nil
}

// Names returns the names of all tensors, sorted. The slice is the caller's.
func (f *File) Names() []string { return slices.Clone(f.names) }

// Tensor returns the named tensor. The error for a name that does not exist gives the
// nearest one that does.
func (f *File) Tensor(name string) (pass.Tensor, error) {
	t, ok := f.tensors[name]
	if !ok {
		return pass.Tensor{}, fmt.Errorf("onnx: no tensor %.200q among %d%s: %w", name, len(f.names), nearest.Hint(name, f.names), pass.ErrInvalid)
	}
	p, err := t.toPass()
	if err != nil {
		return pass.Tensor{}, fmt.Errorf("onnx: %w", err)
	}
	return p, nil
}

// parse reads a ModelProto: 7 graph. A graph in several parts is their concatenation.
func parse(b []byte) (*File, error) {
	if len(b) == 0 {
		return nil, fmt.Errorf("empty input: %w", pass.ErrInvalid)
	}
	f := &File{tensors: map[string]*tensor{}}
	found := false
	err := each(b, func(x field) error {
		if x.number != 7 {
			return nil
		}
		found = true
		if err := x.is(wireBytes); err != nil {
			return err
		}
		return f.parseGraph(x.bytes)
	})
	if err != nil {
		return nil, fmt.Errorf("no ONNX model, or a damaged one: %w", err)
	}
	if !found {
		return nil, fmt.Errorf("no ONNX model: it has no graph: %w", pass.ErrInvalid)
	}
	f.names = slices.Sorted(maps.Keys(f.tensors))
	return f, nil
}

// parseGraph reads a GraphProto: 1 node · 5 initializer · 15 sparse_initializer.
func (f *File) parseGraph(message []byte) error {
	return each(message, func(x field) error {
		switch x.number {
		case 1, 5, 15:
			if err := x.is(wireBytes); err != nil {
				return fmt.Errorf("graph: %w", err)
			}
		}
		switch x.number {
		case 1:
			return f.parseNode(x.bytes)
		case 5:
			t, err := parseTensor(x.bytes)
			if err != nil {
				return fmt.Errorf("initializer: %w", err)
			}
			return f.add(t)
		case 15:
			return f.parseSparse(x.bytes)
		}
		return nil
	})
}

// parseSparse reads a SparseTensorProto: 1 values, which bear the name.
func (f *File) parseSparse(message []byte) error {
	return each(message, func(x field) error {
		if x.number != 1 {
			return nil
		}
		if err := x.is(wireBytes); err != nil {
			return fmt.Errorf("sparse initializer: %w", err)
		}
		t, err := parseTensor(x.bytes)
		if err != nil {
			return fmt.Errorf("sparse initializer: %w", err)
		}
		t.sparse = true
		return f.add(t)
	})
}

// parseNode reads a NodeProto, of which only Constant nodes matter: 2 output · 4 op_type
// · 5 attribute. The tensor is the attribute "value" and bears the name of the output.
func (f *File) parseNode(message []byte) error {
	var output, op string
	var attributes [][]byte
	err := each(message, func(x field) error {
		switch x.number {
		case 2:
			if output == "" {
				output = string(x.bytes)
			}
			return x.is(wireBytes)
		case 4:
			op = string(x.bytes)
			return x.is(wireBytes)
		case 5:
			attributes = append(attributes, x.bytes)
			return x.is(wireBytes)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("node: %w", err)
	}
	if op != "Constant" {
		return nil
	}
	for _, a := range attributes {
		if err := f.parseConstant(a, output); err != nil {
			return fmt.Errorf("constant %.200q: %w", output, err)
		}
	}
	return nil
}

// parseConstant reads an AttributeProto: 1 name · 5 t.
func (f *File) parseConstant(message []byte, output string) error {
	name := ""
	var value []byte
	err := each(message, func(x field) error {
		switch x.number {
		case 1:
			name = string(x.bytes)
			return x.is(wireBytes)
		case 5:
			value = x.bytes
			return x.is(wireBytes)
		}
		return nil
	})
	if err != nil || name != "value" || value == nil {
		return err
	}
	t, err := parseTensor(value)
	if err != nil {
		return err
	}
	t.name = output
	return f.add(t)
}

// add enters a tensor. One without a name cannot be asked for.
func (f *File) add(t *tensor) error {
	if t.name == "" {
		return nil
	}
	if _, ok := f.tensors[t.name]; ok {
		return fmt.Errorf("tensor %.200q comes twice: %w", t.name, pass.ErrInvalid)
	}
	f.tensors[t.name] = t
	return nil
}
