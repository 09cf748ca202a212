package resample_test

import (
	"fmt"
	"log"

	"github.com/tandem-gpu/tandem/model/resample"
)

// Audio that comes in pieces, from 48 kHz to the 16 kHz that speech networks take.
func ExampleResampler() {
	r, err := resample.New(48000, 16000)
	if err != nil {
		log.Fatal(err)
	}
	piece := make([]float32, 4800)
	var out []float32
	for range 10 {
		out = r.Process(out, piece)
	}
	fmt.Println(len(out))
	out = r.Flush(out)
	fmt.Println(len(out))
	// Output:
	// 15919
	// 16000
}
