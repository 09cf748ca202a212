package parakeet_test

import (
	"context"
	"fmt"
	"log"

	"github.com/tandem-gpu/tandem/model/asr"
	"github.com/tandem-gpu/tandem/model/gguf"
	"github.com/tandem-gpu/tandem/model/parakeet"
	"github.com/tandem-gpu/tandem/model/wav"
	"github.com/tandem-gpu/tandem/pass/cpu"
)

// From a file of samples to text.
func Example() {
	ctx := context.Background()
	dev, err := cpu.Open(cpu.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer dev.Close()
	f, err := gguf.Open("parakeet-tdt_ctc-110m-F32.gguf")
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	cfg, err := parakeet.FromGGUF(f.Metadata())
	if err != nil {
		log.Fatal(err)
	}
	model, err := parakeet.Load(ctx, dev, f, cfg)
	if err != nil {
		log.Fatal(err)
	}
	defer model.Close()
	samples, _, err := wav.ReadFile("speech.wav") // mono at 16 kHz
	if err != nil {
		log.Fatal(err)
	}
	result, err := model.Transcribe(ctx, samples, asr.Options{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(result.Text)
}
