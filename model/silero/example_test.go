package silero_test

import (
	"context"
	"fmt"
	"log"

	"github.com/tandem-gpu/tandem/model/silero"
	"github.com/tandem-gpu/tandem/model/testdata/audio"
	"github.com/tandem-gpu/tandem/model/wav"
	"github.com/tandem-gpu/tandem/pass/cpu"
)

// The speech of a whole recording.
func Example() {
	ctx := context.Background()
	dev, err := cpu.Open(cpu.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer dev.Close()
	model, err := silero.Load(ctx, dev, silero.Embedded())
	if err != nil {
		log.Fatal(err)
	}
	defer model.Close()

	samples, _, err := wav.Decode(audio.JFK()) // 16 kHz mono
	if err != nil {
		log.Fatal(err)
	}
	probabilities, err := model.Probabilities(ctx, samples)
	if err != nil {
		log.Fatal(err)
	}
	segments, err := silero.Segments(probabilities, len(samples), silero.DefaultParams())
	if err != nil {
		log.Fatal(err)
	}
	for _, s := range segments {
		fmt.Println(s)
	}
	// Output:
	// 0.322-2.270
	// 3.266-4.446
	// 5.378-7.678
	// 8.162-10.622
}

// Speech that is told of while the audio arrives.
func ExampleStream() {
	ctx := context.Background()
	dev, err := cpu.Open(cpu.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer dev.Close()
	model, err := silero.Load(ctx, dev, silero.Embedded())
	if err != nil {
		log.Fatal(err)
	}
	defer model.Close()
	stream, err := model.NewStream(ctx)
	if err != nil {
		log.Fatal(err)
	}
	defer stream.Close()
	detector, err := silero.NewDetector(silero.DefaultParams())
	if err != nil {
		log.Fatal(err)
	}

	samples, _, err := wav.Decode(audio.JFK())
	if err != nil {
		log.Fatal(err)
	}
	for heard := 0; heard < 48000; heard += 160 { // 10 ms arrive
		probabilities, err := stream.Feed(ctx, samples[heard:heard+160])
		if err != nil {
			log.Fatal(err)
		}
		for _, p := range probabilities {
			for _, e := range detector.Feed(p) {
				fmt.Printf("after %.2f s: %v at %.3f s\n", float64(heard+160)/silero.SampleRate, e.Kind, float64(e.Sample)/silero.SampleRate)
			}
		}
	}
	// Output:
	// after 0.64 s: start at 0.322 s
	// after 2.40 s: end at 2.270 s
}
