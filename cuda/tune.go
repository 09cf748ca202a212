package cuda

import (
	"io"

	"github.com/tandem-gpu/tandem/cuda/internal/tune"
	"github.com/tandem-gpu/tandem/pass"
)

// A Tunable is what the devices of [Open] can do beside a [pass.Device]'s work; type
// assertion finds it. It is for tools that measure which way to compute is fastest.
type Tunable interface {
	// Boundaries returns the choices that the device has made so far, by name.
	Boundaries() []Boundary
	// Force makes recordings that are made from now on take a way at a boundary, if it has
	// that way, whatever was measured; the empty way undoes it.
	Force(boundary, way string)
	// TuneKey returns on what measurements on this device are made.
	TuneKey() TuneKey
}

// What a tune file holds; see [WriteTuneFile].
type (
	TuneFile = tune.File
	TuneKey  = tune.Key
	TunePin  = tune.Pin
)

// WriteTuneFile writes what was measured, for [Config.TuneFile]. A pin without a time, or
// without an error that is within its bound, is refused.
func WriteTuneFile(w io.Writer, f TuneFile) error { return tune.Write(w, f) }

// ReadTuneFile reads what [WriteTuneFile] wrote, on whatever device. A file with one row
// that is wrong is refused as a whole.
func ReadTuneFile(r io.Reader) (TuneFile, error) { return tune.Read(r) }

// opened is a device with its hardware at hand.
type opened struct {
	pass.Device
	hw *device
}

// Boundaries implements Tunable.
func (o opened) Boundaries() []Boundary { return o.hw.choices.boundaries() }

// Force implements Tunable.
func (o opened) Force(boundary, way string) { o.hw.choices.force(boundary, way) }

// TuneKey implements Tunable.
func (o opened) TuneKey() TuneKey { return o.hw.key() }
