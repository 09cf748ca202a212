package tandem_test

import (
	"context"
	"fmt"
	"log"

	"github.com/tandem-gpu/tandem"
	"github.com/tandem-gpu/tandem/pass"
)

// A matrix times a vector.
func ExampleOpen() {
	ctx := context.Background()
	dev, err := tandem.Open(ctx, "cpu") // or "cuda", "gpu", "cpu": a GPU if there is one, else plain Go
	if err != nil {
		log.Fatal(err)
	}
	defer dev.Close()
	w, err := dev.Load(ctx, pass.LinearWeights{Parts: []pass.Tensor{pass.Float32s("w", []float32{1, 2, 3, 4, 5, 6}, 2, 3)}})
	if err != nil {
		log.Fatal(err)
	}
	session, err := dev.NewSession(pass.SessionConfig{})
	if err != nil {
		log.Fatal(err)
	}
	var in pass.Input
	var out pass.Output
	rec, err := session.Record(ctx, pass.RecordOptions{}, func(p pass.Pass) {
		in = p.Input(pass.F32, 3)
		y := p.Temp(pass.F32, 2)
		p.Do(pass.Gemm{A: in.View(), W: w, C: y.View(), Rows: 1})
		out = p.Output(y.View(), 2)
	})
	if err != nil {
		log.Fatal(err)
	}
	run, err := rec.Run(ctx, in.F32([]float32{1, 0, -1}))
	if err != nil {
		log.Fatal(err)
	}
	y := make([]float32, 2)
	if err := run.ReadF32(out, y); err != nil {
		log.Fatal(err)
	}
	fmt.Println(dev.Info().Backend, y)
	// Output: cpu [-2 -2]
}

// Nothing is opened for a name that is not known.
func ExampleOpen_error() {
	_, err := tandem.Open(context.Background(), "tpu", "cpu")
	fmt.Println(err)
	// Output: tandem: open: no device is called "tpu"; the names are cuda, gpu, software, cpu: invalid
}
