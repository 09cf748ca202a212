package cpu

import (
	"fmt"
	"math"

	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/pass/backend"
)

// mel is a loaded [pass.MelWeights].
type mel struct {
	pass.MelShape
	window    []float64
	bank      []melBand
	transform *transform
	bytes     int64
	ledger    *ledger
}

// A melBand is a row of a filter bank, from its first weight that is not zero to the
// last.
type melBand struct {
	first   int
	weights []float32
}

// Free implements backend.Memory.
func (w *mel) Free() {
	w.ledger.release(w.bytes)
	w.window, w.bank, w.transform = nil, nil, nil
}

func loadMel(l *ledger, w pass.MelWeights, s pass.MelShape) (backend.Memory, error) {
	bytes := 8*s.Frame + 16*s.FFT + 4*len(w.Bank)
	if err := l.reserve(bytes, 1); err != nil {
		return nil, err
	}
	m := &mel{MelShape: s, window: make([]float64, s.Frame), bank: make([]melBand, s.Mels), transform: newTransform(s.FFT), bytes: int64(bytes), ledger: l}
	for i, v := range w.Window {
		m.window[i] = float64(v)
	}
	for i := range m.bank {
		row := w.Bank[i*(s.FFT/2+1) : (i+1)*(s.FFT/2+1)]
		first, end := 0, len(row)
		for first < end && row[first] == 0 {
			first++
		}
		for end > first && row[end-1] == 0 {
			end--
		}
		m.bank[i] = melBand{first, append([]float32(nil), row[first:end]...)}
	}
	return m, nil
}

// Geometry of the work of a task.
const (
	melFrames = 16
	melBins   = 16
)

// logmel computes a [pass.LogMel] in float64, in two steps: the logarithms of chunks of
// frames, which lie in the output until, by the same chunks or by blocks of bins, they
// are normalised.
type logmel struct {
	x, y    view
	w       *mel
	batch   int
	samples int
	frames  int // of the samples
	chunks  int // of an item
	blocks  int // of bins
	lengths items
	largest []float32 // of each chunk
	space   []float32 // scratch
	share   bool
	second  bool // step
	first   int  // task of the piece in hand
}

// A melPart is some of the tasks of a step, a piece of its own.
type melPart struct {
	*logmel
	second bool
	tasks  pass.Span
}

func (p *program) logmel(m pass.LogMel, cost pass.Cost) []kernel {
	w := p.plan.Param(m.W).(*mel)
	k := &logmel{
		x: p.view(m.X), y: p.view(m.Y),
		w:     w,
		batch: m.Batch, samples: m.Samples,
		frames:  w.Frames(m.Samples),
		blocks:  (w.Mels + melBins - 1) / melBins,
		lengths: p.items("logmel", "Lengths", m.Lengths, m.Batch, func(int) int { return m.Samples }),
		share:   cost.FLOP > worthSharing,
	}
	k.chunks = (k.frames + melFrames - 1) / melFrames
	k.largest = make([]float32, k.batch*k.chunks)
	var all []kernel
	for _, s := range p.spans(cost, k.batch*k.chunks) {
		all = append(all, melPart{k, false, s})
	}
	if n := k.seconds(); n > 0 {
		elements := float64(k.batch) * float64(k.frames) * float64(w.Mels)
		for _, s := range p.spans(pass.Cost{FLOP: 12 * elements, Bytes: 12 * elements}, n) {
			all = append(all, melPart{k, true, s})
		}
	}
	return all
}

// seconds returns how many tasks the second step has.
func (l *logmel) seconds() int {
	switch l.w.Normalise {
	case pass.MelWhisper:
		return l.batch * l.chunks
	case pass.MelPerBin, pass.MelMean:
		return l.batch * l.blocks
	}
	return 0
}

func (l *logmel) variant() string { return fmt.Sprintf("factors %v", l.w.transform.factors) }

func (l *logmel) scratch(slots int) int {
	if !l.share {
		slots = 1
	}
	return slots * l.w.transform.size()
}

func (p melPart) run(t *team) error {
	if !p.second && p.tasks.From == 0 {
		if err := p.readLengths(); err != nil {
			return err
		}
	}
	p.logmel.second, p.first = p.second, p.tasks.From
	p.space = t.scratch
	return t.do(p.tasks.Len(), p.share, p.logmel)
}

func (l *logmel) readLengths() error {
	if err := l.lengths.read(l.samples); err != nil {
		return err
	}
	if pad := max(l.w.PadLeft, l.w.PadRight); l.w.Padding == pass.PadReflect {
		for b, n := range l.lengths.values {
			if n > 0 && n <= pad {
				return fmt.Errorf("logmel: Lengths: item %d: want more than the %d samples to reflect, or 0, given %d: %w", b, pad, n, pass.ErrInvalid)
			}
		}
	}
	return nil
}

func (l *logmel) task(i, slot int) {
	i += l.first
	switch {
	case !l.second:
		l.logarithms(i/l.chunks, i%l.chunks, l.w.transform.space(l.space[slot*l.w.transform.size():]))
	case l.w.Normalise == pass.MelWhisper:
		l.compress(i/l.chunks, i%l.chunks)
	default:
		l.normalise(i/l.blocks, i%l.blocks*melBins)
	}
}

// logarithms makes a chunk of frames of an item.
func (l *logmel) logarithms(b, chunk int, s spectrum) {
	length := l.lengths.values[b]
	frames := l.w.Frames(length)
	largest := float32(math.Inf(-1))
	for t := chunk * melFrames; t < min((chunk+1)*melFrames, l.frames); t++ {
		y := l.y.row(b, t, l.w.Mels)
		if t >= frames {
			clear(y)
			continue
		}
		l.w.frame(s.real, l.x.row(b, 0, length), t*l.w.Hop-l.w.PadLeft)
		l.w.transform.run(&s)
		for i := range y {
			y[i] = l.w.logarithm(l.w.bank[i].power(s.power))
			largest = max(largest, y[i])
		}
	}
	l.largest[b*l.chunks+chunk] = largest
}

// frame fills x with the windowed frame of a clip that begins at a sample, and zeros.
func (w *mel) frame(x []float64, clip []float32, from int) {
	frame := x[:w.Frame]
	clear(x[w.Frame:])
	gain, last := float64(w.Gain), len(clip)-1
	emphasis := float64(w.PreEmphasis)
	if w.PerFrame {
		emphasis = 0
	}
	for i := range frame {
		at := from + i
		if at < 0 || at > last {
			if w.Padding != pass.PadReflect {
				frame[i] = 0
				continue
			}
			if at < 0 {
				at = -at
			} else {
				at = 2*last - at
			}
		}
		v := float64(clip[at])
		if emphasis != 0 && at > 0 {
			v -= emphasis * float64(clip[at-1])
		}
		frame[i] = v * gain
	}
	if w.PerFrame {
		mean := 0.0
		for _, v := range frame {
			mean += v
		}
		mean /= float64(len(frame))
		before := frame[0] - mean
		for i, v := range frame {
			frame[i] = v - mean - float64(w.PreEmphasis)*before
			before = v - mean
		}
	}
	for i, v := range w.window {
		frame[i] *= v
	}
}

// power weighs a power spectrum.
func (b *melBand) power(spectrum []float64) float64 {
	sum := 0.0
	for i, v := range spectrum[b.first : b.first+len(b.weights)] {
		sum += v * float64(b.weights[i])
	}
	return sum
}

// logarithm applies the rules from the mel power on. NaN passes.
func (w *mel) logarithm(v float64) float32 {
	if w.Min != 0 && v < float64(w.Min) {
		v = float64(w.Min)
	}
	if w.Max != 0 && v > float64(w.Max) {
		v = float64(w.Max)
	}
	v += float64(w.Add)
	switch w.Log {
	case pass.MelLn:
		v = math.Log(v)
	case pass.MelLog10:
		v = math.Log10(v)
	}
	return float32(v)
}

// compress applies MelWhisper to a chunk of frames of an item.
func (l *logmel) compress(b, chunk int) {
	largest := float32(math.Inf(-1))
	for _, v := range l.largest[b*l.chunks : (b+1)*l.chunks] {
		largest = max(largest, v)
	}
	floor := largest - 8
	end := min((chunk+1)*melFrames, l.w.Frames(l.lengths.values[b]))
	for t := chunk * melFrames; t < end; t++ {
		y := l.y.row(b, t, l.w.Mels)
		for i, v := range y {
			y[i] = (max(v, floor) + 4) / 4
		}
	}
}

// normalise applies MelPerBin or MelMean to the bins of an item from the given one on.
func (l *logmel) normalise(b, from int) {
	to := min(from+melBins, l.w.Mels)
	length := l.lengths.values[b]
	frames := l.w.Frames(length)
	n := frames // that count
	if l.w.Normalise == pass.MelPerBin {
		n = min(length/l.w.Hop, frames)
	}
	var all [melBins]moments
	m := all[:to-from]
	for t := range n {
		for i, v := range l.y.row(b, t, to)[from:] {
			m[i].mean += float64(v)
		}
	}
	for i := range m {
		m[i].mean /= float64(n)
	}
	var scale [melBins]float64
	for i := range m {
		scale[i] = 1
	}
	if l.w.Normalise == pass.MelPerBin {
		for t := range n {
			for i, v := range l.y.row(b, t, to)[from:] {
				d := float64(v) - m[i].mean
				m[i].squares += d * d
			}
		}
		for i := range m {
			scale[i] = 1 / (math.Sqrt(m[i].squares/float64(max(n-1, 1))) + float64(l.w.NormaliseEps))
		}
	}
	for t := range n {
		y := l.y.row(b, t, to)[from:]
		for i, v := range y {
			y[i] = float32((float64(v) - m[i].mean) * scale[i])
		}
	}
	for t := n; t < frames; t++ {
		clear(l.y.row(b, t, to)[from:])
	}
}
