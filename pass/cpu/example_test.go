package cpu_test

import (
	"context"
	"fmt"
	"log"

	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/pass/cpu"
)

// A layer of three inputs and two outputs, recorded once and run twice.
func Example() {
	ctx := context.Background()
	dev, err := cpu.Open(cpu.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer dev.Close()
	w, err := dev.Load(ctx, pass.LinearWeights{
		Parts: []pass.Tensor{pass.Float32s("weight", []float32{
			1, 0, 2,
			0, -1, 1,
		}, 2, 3)},
		Bias: []float32{0.5, 0},
	})
	if err != nil {
		log.Fatal(err)
	}
	session, err := dev.NewSession(pass.SessionConfig{Label: "example"})
	if err != nil {
		log.Fatal(err)
	}
	var in pass.Input
	var out pass.Output
	layer, err := session.Record(ctx, pass.RecordOptions{Label: "layer"}, func(p pass.Pass) {
		in = p.Input(pass.F32, 3)
		y := p.Temp(pass.F32, 2).View()
		p.Do(pass.Gemm{A: in.View(), W: w, C: y, Rows: 1, Epilogue: pass.ReLU})
		out = p.Output(y, 2)
	})
	if err != nil {
		log.Fatal(err)
	}
	for _, x := range [][]float32{{1, 2, 3}, {0, 1, 0}} {
		run, err := layer.Run(ctx, in.F32(x))
		if err != nil {
			log.Fatal(err)
		}
		y := make([]float32, 2)
		if err := run.ReadF32(out, y); err != nil {
			log.Fatal(err)
		}
		run.Close()
		fmt.Println(y)
	}
	// Output:
	// [7.5 1]
	// [0.5 0]
}
