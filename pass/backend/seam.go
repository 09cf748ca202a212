// Package backend makes a [pass.Device] out of a small implementation of a device.
//
// Everything that does not depend on what computes is here, once: handles and who may
// use them, recording, the lifetimes of temporaries, the ordered queue of a session
// and its pump, cutting runs into parts by cost, cancelling, sticky errors, closing in
// any order. A backend implements [Hardware], [Stream] and [Program], and receives
// checked ops.
package backend

import (
	"context"
	"io"

	"github.com/tandem-gpu/tandem/pass"
)

// Hardware is what a backend implements for a device. Its methods may be called from
// any goroutine.
type Hardware interface {
	// Info describes the device.
	Info() pass.Info
	// Load lays out checked weights on the device.
	Load(ctx context.Context, w pass.Weights, shape pass.ParamShape) (Memory, error)
	// NewStream opens the queue of one session.
	NewStream(cfg pass.SessionConfig) (Stream, error)
	// Rate returns how much the device does in a second, as far as is known; cost is
	// turned to time with it. A device that has not been measured counts as slow.
	Rate() pass.Cost
	// Close is called once, after all streams and memory were closed.
	Close() error
}

// Memory is memory of a device: a param or the state of a session. Free is called
// once, when no work that uses it is left.
type Memory interface{ Free() }

// A Stream is the ordered queue of one session. Its calls come one at a time, except
// that Alloc, NewCache, Free and Compile may come while parts are in flight. Host data are
// words: the bits of float32 or uint32 elements.
type Stream interface {
	// Alloc makes memory of n zero elements of 4 bytes.
	Alloc(t pass.DType, n int) (Memory, error)
	// NewCache makes empty memory for keys and values, of a checked configuration.
	NewCache(cfg pass.CacheConfig) (Memory, error)
	// Write and Read move elements from offset on; no part is in flight meanwhile.
	Write(ctx context.Context, m Memory, offset int, data []uint32) error
	Read(ctx context.Context, m Memory, offset int, data []uint32) error
	// Compile makes a recording ready to run.
	Compile(ctx context.Context, p *Plan) (Program, error)
	// Close is called once, after all programs and memory were freed.
	Close() error
}

// A Program is a compiled recording. Its work is a row of pieces; a part of a run is
// some pieces that follow each other.
type Program interface {
	// Pieces returns the cost of each piece; at least one.
	Pieces() []pass.Cost
	// Submit starts the pieces [from, to) of a job, after the parts submitted before.
	// The part that begins at piece 0 takes the inputs to the device first; the part
	// that ends at the last piece brings back the outputs.
	Submit(job *Job, from, to int) (Ticket, error)
	// Dump describes how the program does its work, a line for each step.
	Dump(w io.Writer) error
	// Free is called once, when no part is in flight.
	Free()
}

// A Ticket stands for a part that was submitted.
type Ticket interface {
	// Wait returns when the part is done. After the last part of a job its outputs are
	// filled. It is called once for every ticket, in order, and is bounded: a part that
	// does not finish is an error.
	Wait() error
}

// A Job is one run of a program.
type Job struct {
	Serial  uint64     // unique in the process; never 0
	Inputs  [][]uint32 // one for each input of the plan
	Outputs [][]uint32 // one for each output of the plan, to be filled
	Backend any        // the backend's own, kept when the job is used again
}

// A Plan is a recording as a backend compiles it. Its steps and temporaries, with the ops
// and all that steps hold, are there until the program is freed or rests (see [Keepable]):
// then their memory is another recording's.
type Plan struct {
	Label   string
	Math    pass.Math
	Steps   []pass.Checked // ops in order
	Temps   []Temp         // temporaries and inputs
	Inputs  []int          // index in Temps of each input
	States  []Memory       // buffers of the session that the steps use
	Outputs []Output

	places map[pass.Ref]Place // of buffers of the session
	states []pass.Ref         // of States
	params map[pass.Ref]Memory
	caches map[pass.Ref]Memory
}

// A Temp is memory that is needed from step First (−1: filled before the first step)
// to step Last (len(Steps): copied out after the last), both included.
type Temp struct {
	Type        pass.DType
	Len         int
	First, Last int
}

// An Output is a run of elements that is copied to the host after the last step.
type Output struct {
	Place  Place
	Type   pass.DType
	Offset int
	Len    int
}

// A Place is where a buffer lies.
type Place struct {
	State bool // in Plan.States, else in Plan.Temps
	Index int
}

// Place returns where a buffer of the plan lies.
func (p *Plan) Place(b pass.Buffer) Place {
	if ref := b.Ref(); ref.Recording != 0 { // numbered as they were made
		return Place{Index: int(ref.ID) - 1}
	}
	return p.places[b.Ref()]
}

// Param returns what Hardware.Load made of a param of the plan.
func (p *Plan) Param(h pass.Param) Memory { return p.params[h.Ref()] }

// Cache returns what Stream.NewCache made of a cache of the plan.
func (p *Plan) Cache(h pass.Cache) Memory { return p.caches[h.Ref()] }
