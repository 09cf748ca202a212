package main

import (
	"bytes"
	"fmt"
	"image/color"
	"math"
	"os"
	"path/filepath"

	"github.com/tandem-gpu/tandem/model/silero"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
)

// The picture.
const (
	plotWidth  = 1600 // pixels
	plotHeight = 700
	plotDPI    = 144
	columns    = 1500 // about one a pixel
)

var (
	waveColour   = color.NRGBA{0x2b, 0x4c, 0x6f, 0xff}
	curveColour  = color.NRGBA{0xc2, 0x4b, 0x2a, 0xff}
	speechColour = color.NRGBA{0x7c, 0xb3, 0x8a, 0x50}
	gridColour   = color.NRGBA{0xe4, 0xe4, 0xe4, 0xff}
	faintColour  = color.NRGBA{0x70, 0x70, 0x70, 0xff}
)

// extremes are the smallest and largest of some samples.
type extremes struct{ min, max float32 }

// envelopeSamples is how many samples share extremes: 4 ms.
const envelopeSamples = 64

// appendEnvelope extends the envelope of the samples before at by those from there on.
func appendEnvelope(e []extremes, at int, samples []float32) []extremes {
	for i, v := range samples {
		if (at+i)%envelopeSamples == 0 {
			e = append(e, extremes{v, v})
			continue
		}
		last := &e[len(e)-1]
		last.min, last.max = min(last.min, v), max(last.max, v)
	}
	return e
}

// plotTo draws a result to a PNG file. A file that could not be written whole is removed.
func plotTo(path string, r *result, params silero.Params) error {
	picture, err := drawResult(r, params)
	if err != nil {
		return err
	}
	_, before := os.Lstat(path)
	if err := os.WriteFile(path, picture, 0o644); err != nil {
		if os.IsNotExist(before) {
			os.Remove(path)
		}
		return err
	}
	return nil
}

// drawResult returns the picture of a result as a PNG file.
func drawResult(r *result, params silero.Params) ([]byte, error) {
	length := seconds(r.samples).float()
	wave, loudest := newWavePlot(r, length)
	curve := newCurvePlot(params, length)
	speech := make([]spanOfTime, 0, len(r.segments))
	for _, s := range r.segments {
		speech = append(speech, spanOfTime{seconds(s.Start).float(), seconds(s.End).float()})
	}
	wave.Add(shade{speech, loudest}, waveform{r.envelope})
	if err := addCurve(curve, r, params, speech); err != nil {
		return nil, err
	}
	canvas := vgimg.NewWith(vgimg.UseWH(plotWidth*vg.Inch/plotDPI, plotHeight*vg.Inch/plotDPI), vgimg.UseDPI(plotDPI), vgimg.UseBackgroundColor(color.White))
	all := draw.Crop(draw.New(canvas), 12, -16, 10, -10)
	split := all.Min.Y + 0.45*(all.Max.Y-all.Min.Y)
	top := draw.Crop(all, 0, 0, split-all.Min.Y, 0)
	bottom := draw.Crop(all, 0, 0, 0, split-all.Max.Y-10)
	drawAligned([]*plot.Plot{wave, curve}, []draw.Canvas{top, bottom})
	var b bytes.Buffer
	if _, err := (vgimg.PngCanvas{Canvas: canvas}).WriteTo(&b); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// drawAligned draws plots below each other, with the same left and right ends.
func drawAligned(plots []*plot.Plot, canvases []draw.Canvas) {
	left, right := canvases[0].Min.X, canvases[0].Max.X
	for i, p := range plots {
		data := p.DataCanvas(canvases[i])
		left, right = max(left, data.Min.X), min(right, data.Max.X)
	}
	for i, p := range plots {
		c := canvases[i]
		data := p.DataCanvas(c)
		c.Min.X += left - data.Min.X
		c.Max.X -= data.Max.X - right
		p.Draw(c)
	}
}

// newPlot makes an empty plot over the time of the recording.
func newPlot(length float64) *plot.Plot {
	p := plot.New()
	p.X.Min, p.X.Max = 0, length
	p.X.Padding, p.Y.Padding = 0, 4
	for _, a := range []*plot.Axis{&p.X, &p.Y} {
		a.LineStyle.Color = faintColour
		a.Tick.LineStyle.Color = faintColour
		a.Tick.Label.Color = faintColour
		a.Tick.Label.Font = sans(8)
		a.Label.TextStyle.Font = sans(9)
		a.Label.TextStyle.Color = faintColour
	}
	return p
}

func sans(size font.Length) font.Font {
	return font.Font{Typeface: "Liberation", Variant: "Sans", Size: size}
}

// newWavePlot makes the upper plot, and returns the height that it shows.
func newWavePlot(r *result, length float64) (*plot.Plot, float64) {
	loudest := 1e-6
	for _, e := range r.envelope {
		loudest = max(loudest, math.Abs(float64(e.min)), math.Abs(float64(e.max)))
	}
	loudest *= 1.05
	p := newPlot(length)
	p.Title.Text = fmt.Sprintf("%s: %v s of speech in %v s", filepath.Base(r.name), r.speech(), seconds(r.samples))
	p.Title.TextStyle.Font = sans(11)
	p.Title.Padding = 6
	p.Y.Min, p.Y.Max = -loudest, loudest
	p.Y.Label.Text = "waveform"
	p.Y.Tick.Marker = plot.ConstantTicks{{Value: 0, Label: "0"}}
	p.X.Tick.Marker = plot.ConstantTicks{}
	p.X.LineStyle.Width = 0
	return p, loudest
}

// newCurvePlot makes the lower plot.
func newCurvePlot(params silero.Params, length float64) *plot.Plot {
	p := newPlot(length)
	p.Y.Min, p.Y.Max = 0, 1.02
	p.X.Label.Text = "time (s)"
	p.X.Tick.Marker = plot.TickerFunc(timeTicks)
	p.Y.Label.Text = "probability"
	ticks := plot.ConstantTicks{{Value: 0, Label: "0"}, {Value: 1, Label: "1"}}
	if t := params.Threshold; t > 0.1 && t < 0.9 {
		ticks = append(ticks, plot.Tick{Value: t, Label: fmt.Sprintf("%.3g", t)})
	}
	p.Y.Tick.Marker = ticks
	return p
}

// timeTicks puts at most about a dozen labels at round numbers.
func timeTicks(from, to float64) []plot.Tick {
	step := 0.01
	for k := 0; (to-from)/step > 12; k++ {
		step *= []float64{2, 2.5, 2}[k%3]
	}
	var ticks []plot.Tick
	for i := math.Ceil(from / step); i*step <= to*(1+1e-9); i++ {
		ticks = append(ticks, plot.Tick{Value: i * step, Label: fmt.Sprintf("%.6g", i*step)})
	}
	return ticks
}

// addCurve adds the probabilities, the threshold and the speech.
func addCurve(p *plot.Plot, r *result, params silero.Params, speech []spanOfTime) error {
	points := curve(r.probabilities)
	points[len(points)-1].X = min(points[len(points)-1].X, p.X.Max)
	line, err := plotter.NewLine(points)
	if err != nil {
		return err
	}
	line.Color, line.Width = curveColour, 1.2
	threshold, err := plotter.NewLine(plotter.XYs{{X: 0, Y: params.Threshold}, {X: p.X.Max, Y: params.Threshold}})
	if err != nil {
		return err
	}
	threshold.Color, threshold.Width = faintColour, 0.6
	threshold.Dashes = []vg.Length{4, 3}
	grid := plotter.NewGrid()
	grid.Vertical.Color, grid.Horizontal.Color = gridColour, color.Transparent
	p.Add(shade{speech, 1.02}, grid, threshold, line)
	return nil
}

// curve returns the points of probabilities, each in the middle of its chunk; where there
// are many more than columns, the mean of each column.
func curve(probabilities []float32) plotter.XYs {
	at := func(i int) float64 { return silero.ChunkSamples * (float64(i) + 0.5) / silero.SampleRate }
	var points plotter.XYs
	if len(probabilities) <= 2*columns {
		for i, v := range probabilities {
			points = append(points, plotter.XY{X: at(i), Y: float64(v)})
		}
		return points
	}
	for i := range columns {
		from, to := i*len(probabilities)/columns, (i+1)*len(probabilities)/columns
		sum := 0.0
		for _, v := range probabilities[from:to] {
			sum += float64(v)
		}
		points = append(points, plotter.XY{X: at((from + to) / 2), Y: sum / float64(to-from)})
	}
	return points
}

// A spanOfTime is from and to in seconds.
type spanOfTime struct{ from, to float64 }

// shade is a plotter of bands over the whole height.
type shade struct {
	spans  []spanOfTime
	height float64
}

// Plot implements plot.Plotter.
func (s shade) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	for _, span := range s.spans {
		left, right := x(span.from), x(span.to)
		bottom, top := y(p.Y.Min), y(min(p.Y.Max, s.height))
		c.FillPolygon(speechColour, []vg.Point{{X: left, Y: bottom}, {X: right, Y: bottom}, {X: right, Y: top}, {X: left, Y: top}})
	}
}

// waveform is a plotter of an envelope.
type waveform struct{ envelope []extremes }

// Plot implements plot.Plotter.
func (w waveform) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	n := min(columns, len(w.envelope))
	var upper, lower []vg.Point
	for i := range n {
		from, to := i*len(w.envelope)/n, (i+1)*len(w.envelope)/n
		e := w.envelope[from]
		for _, f := range w.envelope[from:to] {
			e.min, e.max = min(e.min, f.min), max(e.max, f.max)
		}
		at := x(float64(from+to) / 2 * envelopeSamples / silero.SampleRate)
		at = min(at, c.Max.X)
		upper = append(upper, vg.Point{X: at, Y: y(float64(e.max)) + 0.3})
		lower = append(lower, vg.Point{X: at, Y: y(float64(e.min)) - 0.3})
	}
	for i := len(lower) - 1; i >= 0; i-- {
		upper = append(upper, lower[i])
	}
	c.FillPolygon(waveColour, upper)
}
