package resample

import (
	"fmt"
	"math"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/tandem-gpu/tandem/pass"
)

// block is the number of input samples that are taken at a time.
const block = 4096

// A Resampler resamples a stream that comes in pieces of any size, in memory that
// depends on the ratio of the rates alone. One goroutine at a time may use it.
//
// [New] makes one; the zero Resampler gives no output. However the input is cut, the
// output is that of [Resample], bit for bit.
type Resampler struct {
	f     *filter
	buf   []float64 // input, from the first sample that the next output needs on
	at    int       // where that one lies in buf
	ahead int64     // input samples after the one at or before the next output's time
	phase int64     // the next output lies phase/up behind that sample
}

// New returns a Resampler from a rate of in to a rate of out samples a second. Rates
// below 1 or above 2^24, and ratios of 256 and more, are errors that wrap
// pass.ErrInvalid.
func New(in, out int) (*Resampler, error) {
	f, err := newFilter(in, out)
	if err != nil {
		return nil, fmt.Errorf("resample: %w", err)
	}
	return f.stream(), nil
}

func (f *filter) stream() *Resampler {
	r := &Resampler{f: f, buf: make([]float64, f.before, f.taps+block)}
	r.reset()
	return r
}

func (r *Resampler) reset() {
	r.buf = r.buf[:r.f.before]
	clear(r.buf)
	r.at, r.ahead, r.phase = 0, 0, 0
}

// Process takes the next samples of the input and appends to dst all output that can be
// computed by now; it returns the extended slice. The output runs behind the input by
// [Resampler.Delay] samples of the input.
func (r *Resampler) Process(dst, src []float32) []float32 {
	return r.process(dst, src, math.MaxInt)
}

// Flush ends the stream: it appends the rest of the output to dst and returns the
// extended slice. The Resampler is then as new.
func (r *Resampler) Flush(dst []float32) []float32 {
	if r.f == nil {
		return dst
	}
	dst = r.flush(dst, math.MaxInt)
	r.reset()
	return dst
}

// process is Process up to a length of dst.
func (r *Resampler) process(dst, src []float32, most int) []float32 {
	if r.f == nil {
		return dst
	}
	r.ahead += int64(len(src))
	for len(src) > 0 && len(dst) < most {
		r.shift()
		n := len(r.buf)
		k := min(len(src), cap(r.buf)-n)
		r.buf = r.buf[:n+k]
		for i, v := range src[:k] {
			r.buf[n+i] = float64(v)
		}
		src = src[k:]
		dst = r.emit(dst, most)
	}
	return dst
}

// flush continues the input with zeros, up to a length of dst.
func (r *Resampler) flush(dst []float32, most int) []float32 {
	for r.ahead > 0 && len(dst) < most {
		r.shift()
		n := len(r.buf)
		r.buf = r.buf[:cap(r.buf)]
		clear(r.buf[n:])
		dst = r.emit(dst, most)
	}
	return dst
}

// Delay returns how many input samples after the time of an output sample have to be
// there before Process can return it.
func (r *Resampler) Delay() int {
	if r.f == nil {
		return 0
	}
	return r.f.taps - r.f.before - 1
}

// shift makes room in a full buffer.
func (r *Resampler) shift() {
	if len(r.buf) == cap(r.buf) {
		r.buf = r.buf[:copy(r.buf, r.buf[r.at:])]
		r.at = 0
	}
}

// emit appends the output for which there is input, up to a length of dst.
func (r *Resampler) emit(dst []float32, most int) []float32 {
	f := r.f
	for r.ahead > 0 && len(dst) < most && r.at+f.taps <= len(r.buf) {
		dst = append(dst, f.sample(r.buf[r.at:r.at+f.taps], r.phase))
		r.phase += f.down
		step := r.phase / f.up
		r.phase -= step * f.up
		r.at += int(step)
		r.ahead -= step
	}
	return dst
}

// Resample resamples a whole signal, on all processors. The limits of the rates are
// those of [New]. The result never shares memory with samples.
func Resample(samples []float32, in, out int) ([]float32, error) {
	f, err := newFilter(in, out)
	if err != nil {
		return nil, fmt.Errorf("resample: %w", err)
	}
	if in == out {
		return append([]float32{}, samples...), nil
	}
	n, err := f.length(len(samples))
	if err != nil {
		return nil, fmt.Errorf("resample: %w", err)
	}
	result := make([]float32, n)
	// Pieces are large against the overlap of their inputs.
	piece := max(16*block, int(int64(16*f.taps)*f.up/f.down)+1)
	var next atomic.Int64
	work := func() {
		for {
			i := next.Add(int64(piece)) - int64(piece)
			if i >= int64(n) {
				return
			}
			f.part(result[i:min(int64(n), i+int64(piece))], samples, i)
		}
	}
	var wait sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), (n+piece-1)/piece) {
		wait.Go(work)
	}
	wait.Wait()
	return result, nil
}

// length returns the number of output samples for n of input.
func (f *filter) length(n int) (int, error) {
	const most = 1<<63 - 1
	if int64(n) > (most-f.down)/f.up {
		return 0, fmt.Errorf("%d samples are too many: %w", n, pass.ErrInvalid)
	}
	m := (int64(n)*f.up + f.down - 1) / f.down
	if m > (1<<48) || int64(int(m)) != m {
		return 0, fmt.Errorf("%d samples of output are too many: %w", m, pass.ErrInvalid)
	}
	return int(m), nil
}

// part computes the output samples from number i on: a stream that begins there.
func (f *filter) part(dst, samples []float32, i int64) {
	r := f.stream()
	t := i * f.down
	n := t / f.up
	r.phase = t - n*f.up
	// What lies before is known here, as far as it is not before the start.
	past := samples[max(0, n-int64(f.before)):n]
	for j, v := range past {
		r.buf[f.before-len(past)+j] = float64(v)
	}
	end := min(int64(len(samples)), n+(int64(len(dst))*f.down)/f.up+int64(f.taps))
	full := r.process(dst[:0], samples[n:end], len(dst))
	r.flush(full, len(dst))
}
