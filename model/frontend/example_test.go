package frontend_test

import (
	"context"
	"fmt"
	"log"

	"github.com/tandem-gpu/tandem/model/frontend"
	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/pass/cpu"
)

// Features of a second of silence: on Whisper's scale −1.5 everywhere.
func Example() {
	ctx := context.Background()
	dev, err := cpu.Open(cpu.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer dev.Close()
	mel, err := dev.Load(ctx, frontend.Whisper(80))
	if err != nil {
		log.Fatal(err)
	}
	ses, err := dev.NewSession(pass.SessionConfig{})
	if err != nil {
		log.Fatal(err)
	}
	const samples = frontend.SampleRate
	frames := mel.Shape().(pass.MelShape).Frames(samples)
	var audio pass.Input
	var features pass.Output
	rec, err := ses.Record(ctx, pass.RecordOptions{}, func(p pass.Pass) {
		audio = p.Input(pass.F32, samples)
		y := p.Temp(pass.F32, frames*80)
		p.Do(pass.LogMel{X: audio.View(), W: mel, Y: y.View(), Samples: samples})
		features = p.Output(y.View(), frames*80)
	})
	if err != nil {
		log.Fatal(err)
	}
	run, err := rec.Run(ctx, audio.F32(make([]float32, samples)))
	if err != nil {
		log.Fatal(err)
	}
	values := make([]float32, frames*80)
	if err := run.ReadF32(features, values); err != nil {
		log.Fatal(err)
	}
	fmt.Println(frames, "frames, the first value is", values[0])
	// Output: 100 frames, the first value is -1.5
}
