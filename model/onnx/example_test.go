package onnx_test

import (
	"fmt"
	"log"

	"github.com/tandem-gpu/tandem/model/onnx"
)

func Example() {
	f, err := onnx.ReadFile("../silero/silero_vad_16k.onnx")
	if err != nil {
		log.Fatal(err)
	}
	w, err := f.Tensor("model.decoder.rnn.weight_ih")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(w.Type, w.Shape)
	// Output: F32 [512 128]
}
