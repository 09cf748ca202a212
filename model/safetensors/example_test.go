package safetensors_test

import (
	"bytes"
	"fmt"
	"log"

	"github.com/tandem-gpu/tandem/model/safetensors"
	"github.com/tandem-gpu/tandem/pass"
)

func Example() {
	var b bytes.Buffer
	err := safetensors.Write(&b, []safetensors.Tensor{
		safetensors.Of(pass.Float32s("linear.weight", []float32{1, 2, 3, 4}, 2, 2)),
	}, map[string]string{"format": "pt"})
	if err != nil {
		log.Fatal(err)
	}

	f, err := safetensors.Read(&b)
	if err != nil {
		log.Fatal(err)
	}
	w, err := f.Tensor("linear.weight")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(f.Names(), w.Type, w.Shape)
	_, err = f.Tensor("liner.weight")
	fmt.Println(err)
	// Output:
	// [linear.weight] F32 [2 2]
	// safetensors: no tensor "liner.weight" among 1; nearest is "linear.weight": invalid
}
