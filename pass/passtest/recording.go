package passtest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/tandem-gpu/tandem/pass"
)

// badCallbacks: a mistake inside the callback of Record comes out of Record, the first
// one alone, and leaves the device usable.
func badCallbacks(t testing.TB, s *suite) {
	dev, ses := s.session(t)
	w := one(t, dev)
	a := newAdder(t, ses, w, 4)
	record := func(f func(pass.Pass)) error {
		rec, err := ses.Record(background, pass.RecordOptions{Label: "callback"}, f)
		if err == nil {
			_ = rec.Close()
		}
		return err
	}
	fails(t, "panic", record(func(pass.Pass) { panic("out of cheese") }), pass.ErrInvalid, "out of cheese")
	a.add(t, "after a panic", 1, 1)
	fails(t, "panic of the runtime", record(func(p pass.Pass) {
		p.Do(pass.Fill{To: a.state.View(), Rows: 1, Cols: 4, Value: 9})
		var none []int
		_ = none[3]
	}), pass.ErrInvalid, "index out of range")
	fails(t, "panic with an error", record(func(pass.Pass) { panic(io.ErrNoProgress) }), pass.ErrInvalid, "Read")
	fails(t, "no callback", record(nil), pass.ErrInvalid)
	fails(t, "nil op", record(func(p pass.Pass) { p.Do(nil) }), pass.ErrInvalid)
	var typed *pass.Fill
	fails(t, "pointer that is nil", record(func(p pass.Pass) { p.Do(typed) }), pass.ErrInvalid)
	_, err := ses.Record(background, pass.RecordOptions{Math: 99}, func(pass.Pass) {})
	fails(t, "math that is none", err, pass.ErrInvalid)

	err = record(func(p pass.Pass) {
		p.Do(pass.Map{X: a.state.View(), Rows: 1, Cols: 4}) // the first mistake: no Y
		p.Do(pass.Gemm{})
		p.Temp(pass.F16, -1)
		p.Do(nil)
	})
	fails(t, "several mistakes", err, pass.ErrInvalid, "map", "Y")
	if err != nil && strings.Contains(err.Error(), "gemm") {
		t.Errorf("several mistakes: want the first alone, given: %v", err)
	}

	var kept pass.Pass
	ok(t, record(func(p pass.Pass) { kept = p }), "record")
	kept.Do(pass.Fill{To: a.state.View(), Rows: 1, Cols: 4, Value: 9})
	late := kept.Temp(pass.F32, 4)
	kept.Input(pass.F32, 4)
	kept.Output(a.state.View(), 4)
	fails(t, "temporary of a kept pass", record(func(p pass.Pass) { p.Do(pass.Map{X: late.View(), Y: a.state.View(), Rows: 1, Cols: 4}) }), pass.ErrInvalid)
	a.add(t, "at last", 2, 1, 2)
}

// progress is reported from 0 to 1, never backwards.
func progress(t testing.TB, s *suite) {
	dev, ses := s.session(t)
	var mu sync.Mutex
	var seen []float64
	l := newLabour(t, dev, ses, 30, func(done float64) {
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, done)
	})
	for range 2 {
		seen = nil
		_, err := l.rec.Run(background, l.bind())
		ok(t, err, "run")
		mu.Lock()
		if len(seen) == 0 || !slices.IsSorted(seen) || seen[0] < 0 || seen[len(seen)-1] != 1 {
			t.Errorf("progress: want numbers that rise to 1 by the end of Run, given %v", seen)
		}
		mu.Unlock()
	}
}

// dumps name what a recording does, and pass on errors of the writer.
func dumps(t testing.TB, s *suite) {
	dev, ses := s.session(t)
	a := newAdder(t, ses, one(t, dev), 4)
	var text bytes.Buffer
	ok(t, a.rec.Dump(&text), "dump")
	for _, name := range []string{"adder", "gemm"} {
		if !strings.Contains(text.String(), name) {
			t.Errorf("dump: want it to name %q, given:\n%s", name, text.String())
		}
	}
	full := errors.New("disk full")
	if err := a.rec.Dump(failingWriter{full}); !errors.Is(err, full) {
		t.Errorf("dump to a writer that fails: want %q, given %v", full, err)
	}
	info := dev.Info()
	if info.Backend == "" || info.Name == "" || info.API == "" || info.Kind == "" {
		t.Errorf("info: want backend, name, API and kind, given %+v", info)
	}
}

type failingWriter struct{ err error }

func (w failingWriter) Write([]byte) (int, error) { return 0, w.err }

// badWeights: Load says what is wrong with weights.
func badWeights(t testing.TB, s *suite) {
	dev := s.open(t)
	matrix := func(n, k int) pass.Tensor { return pass.Float32s("m", make([]float32, n*k), n, k) }
	broken := pass.Tensor{Name: "broken", Type: pass.F32, Shape: []int{2, 2}, Data: failingReader{}}
	short := pass.Tensor{Name: "short", Type: pass.F32, Shape: []int{2, 2}, Data: strings.NewReader("abc")}
	huge := pass.Tensor{Name: "huge", Type: pass.F32, Shape: []int{math.MaxInt / 4, 8}, Data: strings.NewReader("abc")}
	for _, row := range []struct {
		name string
		w    pass.Weights
		says string
	}{
		{"nil", nil, "nil"},
		{"no parts", pass.LinearWeights{Name: "empty"}, "empty"},
		{"parts of different k", pass.LinearWeights{Name: "uneven", Parts: []pass.Tensor{matrix(2, 3), matrix(2, 4)}}, "uneven"},
		{"bias", pass.LinearWeights{Name: "biased", Parts: []pass.Tensor{matrix(2, 3)}, Bias: make([]float32, 3)}, "bias"},
		{"dual", pass.LinearWeights{Name: "twofold", Parts: []pass.Tensor{matrix(2, 3)}, Dual: make([]float32, 3)}, "dual"},
		{"three axes", pass.LinearWeights{Name: "cube", Parts: []pass.Tensor{pass.Float32s("c", make([]float32, 8), 2, 2, 2)}}, "cube"},
		{"overflow", pass.LinearWeights{Parts: []pass.Tensor{huge}}, "huge"},
		{"conv of two axes", pass.ConvWeights{Name: "flat", Weight: matrix(2, 3)}, "flat"},
		{"conv bias", pass.ConvWeights{Name: "conv", Weight: pass.Float32s("c", make([]float32, 8), 2, 2, 2), Bias: []float32{1}}, "bias"},
		{"no layers", pass.LSTMWeights{Name: "stack"}, "stack"},
		{"lstm shapes", pass.LSTMWeights{Name: "stack", Layers: [][]pass.LSTMCell{{{Input: matrix(8, 3), Hidden: matrix(8, 3)}}}}, "stack"},
		{"gain", pass.NormWeights{Name: "level"}, "gain"},
		{"norm bias", pass.NormWeights{Name: "level", Gain: make([]float32, 3), Bias: make([]float32, 2)}, "bias"},
		{"odd rotation", pass.RopeWeights{Name: "wheel", Positions: 3, Rot: 3, Base: 10}, "wheel"},
		{"no base", pass.RopeWeights{Name: "wheel", Positions: 3, Rot: 2}, "base"},
		{"conv2d of another size", pass.Conv2DWeights{Name: "tile", Weight: pass.Float32s("c", make([]float32, 8), 2, 1, 2, 2)}, "tile"},
		{"conv2d bias", pass.Conv2DWeights{Name: "tile", Weight: pass.Float32s("c", make([]float32, 2), 2, 1, 1, 1), Bias: []float32{1}}, "bias"},
		{"even kernel", pass.ConvGLUWeights{Name: "gate", Weight: matrix(3, 4), Gain: make([]float32, 3), Shift: make([]float32, 3)}, "gate"},
		{"convglu without shift", pass.ConvGLUWeights{Name: "gate", Weight: matrix(3, 5), Gain: make([]float32, 3)}, "shift"},
		{"depthwise of two axes", pass.DepthwiseWeights{Name: "deep", Weight: matrix(3, 9)}, "deep"},
		{"first bias without first", pass.DepthwiseWeights{Name: "deep", Weight: pass.Float32s("c", make([]float32, 18), 2, 3, 3), FirstBias: make([]float32, 2)}, "first"},
		{"window longer than transform", pass.MelWeights{Name: "ear", Window: make([]float32, 9), FFT: 8, Hop: 1, Mels: 1, Bank: make([]float32, 5)}, "ear"},
		{"bank of another size", pass.MelWeights{Name: "ear", Window: make([]float32, 8), FFT: 8, Hop: 1, Mels: 2, Bank: make([]float32, 5)}, "bank"},
		{"hop", pass.MelWeights{Name: "ear", Window: make([]float32, 8), FFT: 8, Mels: 1, Bank: make([]float32, 5)}, "hop"},
	} {
		_, err := dev.Load(background, row.w)
		fails(t, "load: "+row.name, err, pass.ErrInvalid, row.says)
	}
	_, err := dev.Load(background, pass.LinearWeights{Parts: []pass.Tensor{broken}})
	fails(t, "load: reader that fails", err, errReader, "broken")
	_, err = dev.Load(background, pass.LinearWeights{Parts: []pass.Tensor{short}})
	fails(t, "load: data that end early", err, io.ErrUnexpectedEOF, "short")
	one(t, dev)
}

var errReader = errors.New("reader failed")

type failingReader struct{}

func (failingReader) ReadAt(_ []byte, at int64) (int, error) {
	return 0, fmt.Errorf("at %d: %w", at, errReader)
}
