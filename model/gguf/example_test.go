package gguf_test

import (
	"bytes"
	"fmt"
	"log"

	"github.com/tandem-gpu/tandem/model/gguf"
	"github.com/tandem-gpu/tandem/pass"
)

func Example() {
	var b bytes.Buffer
	err := gguf.Write(&b, []gguf.Tensor{
		gguf.Of(pass.Float32s("enc.conv.0.weight", []float32{1, 2, 3, 4, 5, 6}, 3, 2)),
	}, gguf.Metadata{"general.architecture": "whisper", "whisper.vocab_size": uint32(51864)})
	if err != nil {
		log.Fatal(err)
	}

	f, err := gguf.Read(&b)
	if err != nil {
		log.Fatal(err)
	}
	w, err := f.Tensor("enc.conv.0.weight")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(f.Names(), w.Type, w.Shape)
	size, err := f.Metadata().Int("whisper.vocab_size")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(size)
	_, err = f.Metadata().Int("general.architecture")
	fmt.Println(err)
	// Output:
	// [enc.conv.0.weight] F32 [3 2]
	// 51864
	// gguf: key "general.architecture": want an integer, given string: invalid
}
