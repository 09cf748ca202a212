package whisper_test

import (
	"context"
	"fmt"
	"log"

	"github.com/tandem-gpu/tandem/model/gguf"
	"github.com/tandem-gpu/tandem/model/wav"
	"github.com/tandem-gpu/tandem/model/whisper"
	"github.com/tandem-gpu/tandem/pass/cpu"
)

// Segments of a recording, with their times.
func Example() {
	ctx := context.Background()
	dev, err := cpu.Open(cpu.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer dev.Close()
	f, err := gguf.Open("whisper-tiny.en-q8_0.gguf")
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	cfg, err := whisper.FromGGUF(f.Metadata())
	if err != nil {
		log.Fatal(err)
	}
	m, err := whisper.Load(ctx, dev, f, cfg)
	if err != nil {
		log.Fatal(err)
	}
	defer m.Close()
	samples, _, err := wav.ReadFile("speech.wav") // mono, 16 kHz
	if err != nil {
		log.Fatal(err)
	}
	result, err := m.Transcribe(ctx, samples, whisper.Options{Mode: whisper.Timestamps})
	if err != nil {
		log.Fatal(err)
	}
	for _, s := range result.Segments {
		fmt.Printf("%v–%v %s\n", s.Start, s.End, s.Text)
	}
}
