package conformer

import "github.com/tandem-gpu/tandem/pass"

// A Batch is what an encoder is recorded for: some items, each of at most so many frames.
type Batch struct {
	Items  int // at least 1
	Frames int // mel frames of an item, with what fills it up
	// Lengths are the frames of each item after each stage of subsampling, the mel frames
	// first, those of the encoder last.
	Lengths []pass.Items
	// State is what the network keeps in a session, for encoders that need something.
	State pass.View
	// Trace, if not nil, is told of intermediate results by name: dense views
	// [Items][rows][cols] of copies, which it may make outputs of.
	Trace func(name string, v pass.View, rows, cols int)
}

// Last returns the lengths in frames of the encoder.
func (b *Batch) Last() pass.Items { return b.Lengths[len(b.Lengths)-1] }

// Note hands a dense view [Items][rows][cols] to Trace, as it is now.
func (b *Batch) Note(p pass.Pass, name string, v pass.View, rows, cols int) {
	if b.Trace == nil {
		return
	}
	to := p.Temp(pass.F32, b.Items*rows*cols).View()
	p.Do(pass.Copy{From: v, To: to, Rows: b.Items * rows, Cols: cols})
	b.Trace(name, to, rows, cols)
}
