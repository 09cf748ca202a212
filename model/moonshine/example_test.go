package moonshine_test

import (
	"context"
	"fmt"
	"log"

	"github.com/tandem-gpu/tandem/model/gguf"
	"github.com/tandem-gpu/tandem/model/moonshine"
	"github.com/tandem-gpu/tandem/model/wav"
	"github.com/tandem-gpu/tandem/pass/cpu"
)

// The text of a recording.
func Example() {
	ctx := context.Background()
	dev, err := cpu.Open(cpu.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer dev.Close()
	f, err := gguf.Open("moonshine-tiny-Q8_0.gguf")
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	cfg, err := moonshine.FromGGUF(f.Metadata())
	if err != nil {
		log.Fatal(err)
	}
	m, err := moonshine.Load(ctx, dev, f, cfg)
	if err != nil {
		log.Fatal(err)
	}
	defer m.Close()
	samples, _, err := wav.ReadFile("speech.wav") // mono, 16 kHz
	if err != nil {
		log.Fatal(err)
	}
	result, err := m.Transcribe(ctx, samples, moonshine.Options{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(result.Text)
}
