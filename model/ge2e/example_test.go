package ge2e_test

import (
	"context"
	"fmt"
	"log"

	"github.com/tandem-gpu/tandem/model/ge2e"
	"github.com/tandem-gpu/tandem/model/internal/undertest"
	"github.com/tandem-gpu/tandem/model/testdata/audio"
	"github.com/tandem-gpu/tandem/model/wav"
	"github.com/tandem-gpu/tandem/pass/cpu"
)

// Two halves of a recording, compared. The weights here are random; those of the
// published network come from a file, with ge2e.Resemblyzer().
func Example() {
	ctx := context.Background()
	dev, err := cpu.Open(cpu.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer dev.Close()
	file := undertest.Source{} // safetensors.Open("ge2e.safetensors")
	file.Random("lstm.weight_ih_l0", 1, 0, 4*16, 40)
	file.Random("lstm.weight_hh_l0", 1, 0, 4*16, 16)
	file.Random("lstm.bias_ih_l0", 1, 0, 4*16)
	file.Random("lstm.bias_hh_l0", 1, 0, 4*16)
	file.Random("linear.weight", 1, 0, 8, 16)
	file.Random("linear.bias", 1, 0, 8)
	m, err := ge2e.Load(ctx, dev, file, ge2e.Config{Layers: 1, Hidden: 16, Width: 8})
	if err != nil {
		log.Fatal(err)
	}
	defer m.Close()

	samples, _, err := wav.Decode(audio.JFK()) // 16 kHz mono
	if err != nil {
		log.Fatal(err)
	}
	half := len(samples) / 2
	first, err := m.Embed(ctx, samples[:half])
	if err != nil {
		log.Fatal(err)
	}
	second, err := m.Embed(ctx, samples[half:])
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(first.Windows), "and", len(second.Windows), "windows")
	fmt.Println("alike:", ge2e.Cosine(first.Embedding, second.Embedding) > 0.7)
	// Output:
	// 6 and 6 windows
	// alike: true
}
