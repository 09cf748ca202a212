// Package tune has the choices of kernels that were measured rather than derived: those
// of a user's tune file, and those of a table for known cards that is compiled in.
package tune

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

// A Key says on what measurements were made. They are used only where all of it is the
// same.
type Key struct {
	Device     string `json:"device"`     // name, as the driver gives it
	Capability int    `json:"capability"` // times ten
	SMs        int    `json:"sms"`        // that the context saw
	Driver     string `json:"driver"`     // version of the driver's API
	Kernels    string `json:"kernels"`    // digest of the images
}

// A File is what a tuner writes.
type File struct {
	Format int   `json:"format"` // 1
	Key    Key   `json:"key"`
	Pins   []Pin `json:"pins"`
}

// A Pin is the choice of one way to compute at a boundary, with what it was based on.
type Pin struct {
	Boundary string  `json:"boundary"` // "gemm exact 1500×1280×5120 f16"
	Choice   string  `json:"choice"`   // "wgmma 128×256"
	Seconds  float64 `json:"seconds"`  // of the choice, the median
	Rule     float64 `json:"rule"`     // seconds of what the rule would have chosen
	Error    float64 `json:"error"`    // relative L2 error against float64
	Bound    float64 `json:"bound"`    // that the error was held against
}

const format = 1

// mostBytes bounds a file: far above what any network needs.
const mostBytes = 16 << 20

// Read reads a tune file. A file with one row that is wrong is refused as a whole.
func Read(r io.Reader) (File, error) {
	data, err := io.ReadAll(io.LimitReader(r, mostBytes+1))
	if err != nil {
		return File{}, fmt.Errorf("tune: %w", err)
	}
	if len(data) > mostBytes {
		return File{}, fmt.Errorf("tune: want at most %d bytes", mostBytes)
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	var f File
	if err := d.Decode(&f); err != nil {
		return File{}, fmt.Errorf("tune: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return File{}, errors.New("tune: more behind the end")
	}
	if err := f.check(); err != nil {
		return File{}, fmt.Errorf("tune: %w", err)
	}
	return f, nil
}

func (f File) check() error {
	if f.Format != format {
		return fmt.Errorf("format: want %d, given %d", format, f.Format)
	}
	if f.Key.Device == "" || f.Key.Capability <= 0 || f.Key.SMs <= 0 || f.Key.Driver == "" || f.Key.Kernels == "" {
		return fmt.Errorf("key: want every field, given %+v", f.Key)
	}
	seen := map[string]bool{}
	for i, p := range f.Pins {
		switch {
		case p.Boundary == "" || p.Choice == "":
			return fmt.Errorf("pin %d: want a boundary and a choice, given %q, %q", i, p.Boundary, p.Choice)
		case seen[p.Boundary]:
			return fmt.Errorf("pin %d: %q is given twice", i, p.Boundary)
		case !(p.Seconds > 0) || !(p.Rule > 0):
			return fmt.Errorf("pin %d: %q: want times above 0, given %v, %v", i, p.Boundary, p.Seconds, p.Rule)
		case !(p.Bound > 0) || !(p.Error >= 0) || p.Error > p.Bound:
			return fmt.Errorf("pin %d: %q: want an error within its bound, given %v of %v", i, p.Boundary, p.Error, p.Bound)
		}
		seen[p.Boundary] = true
	}
	return nil
}

// Write writes a tune file.
func Write(w io.Writer, f File) error {
	f.Format = format
	f.Pins = slices.Clone(f.Pins) // the caller's stay in their order
	slices.SortFunc(f.Pins, func(a, b Pin) int { return strings.Compare(a.Boundary, b.Boundary) })
	if err := f.check(); err != nil {
		return fmt.Errorf("tune: %w", err)
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	if err := e.Encode(f); err != nil {
		return fmt.Errorf("tune: %w", err)
	}
	return nil
}

// ReadFile is Read of a file that must be for the given key.
func ReadFile(path string, k Key) (File, error) {
	f, err := os.Open(path)
	if err != nil {
		return File{}, fmt.Errorf("tune: %w", err)
	}
	defer f.Close()
	t, err := Read(f)
	if err != nil {
		return File{}, fmt.Errorf("%s: %w", path, err)
	}
	if t.Key != k {
		return File{}, fmt.Errorf("tune: %s: made for %+v, this is %+v", path, t.Key, k)
	}
	return t, nil
}

// table.json is a list of tune files, one of each card that was measured:
//
//	go run ./examples/tune --device cuda --time 8ms --limit 58s --out h200.json
//	(echo '['; cat h200.json; echo ']') > cuda/internal/tune/table.json
//
// A file has only what is quicker than before: what the table had already, and is still quickest,
// is taken over, with the times that were printed.
//
//go:embed table.json
var table []byte

// Table returns the pins that were measured on cards of this name and size, by whatever
// driver, with other builds of the kernels maybe; none for other cards.
func Table(k Key) ([]Pin, error) {
	var files []File
	if err := json.Unmarshal(table, &files); err != nil {
		return nil, fmt.Errorf("tune: table: %w", err)
	}
	for _, f := range files {
		if err := f.check(); err != nil {
			return nil, fmt.Errorf("tune: table: %w", err)
		}
		if f.Key.Device == k.Device && f.Key.Capability == k.Capability && f.Key.SMs == k.SMs {
			return f.Pins, nil
		}
	}
	return nil, nil
}
