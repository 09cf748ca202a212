package wav_test

import (
	"bytes"
	"fmt"
	"log"

	"github.com/tandem-gpu/tandem/model/wav"
)

func Example() {
	var file bytes.Buffer
	if err := wav.Write(&file, 16000, []float32{0, 0.25, -0.5}); err != nil {
		log.Fatal(err)
	}
	samples, format, err := wav.Decode(&file)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(format)
	fmt.Println(samples)
	// Output:
	// PCM 16 bit, 16000 Hz, 1 channel
	// [0 0.25 -0.5]
}
