package weights_test

import (
	"bytes"
	"context"
	"fmt"
	"log"
	"strings"

	"github.com/tandem-gpu/tandem/model/gguf"
	"github.com/tandem-gpu/tandem/model/goldens"
	"github.com/tandem-gpu/tandem/model/onnx"
	"github.com/tandem-gpu/tandem/model/safetensors"
	"github.com/tandem-gpu/tandem/model/weights"
	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/pass/cpu"
)

// What networks load from.
var (
	_ weights.Source = (*safetensors.File)(nil)
	_ weights.Source = (*gguf.File)(nil)
	_ weights.Source = (*onnx.File)(nil)
	_ weights.Source = (*goldens.Case)(nil)
	_ weights.Source = (*weights.Loader)(nil)
)

// A network that is written for the names of one publisher loads a file that has others.
func Example() {
	var b bytes.Buffer
	err := gguf.Write(&b, []gguf.Tensor{
		gguf.Of(pass.Float32s("enc.blocks.0.attn.q.weight", make([]float32, 4*4), 4, 4)),
		gguf.Of(pass.Float32s("enc.blocks.0.attn.q.bias", make([]float32, 4), 4)),
		gguf.Of(pass.Float32s("enc.blocks.0.attn.k.weight", make([]float32, 4*4), 4, 4)),
	}, nil)
	if err != nil {
		log.Fatal(err)
	}
	f, err := gguf.Read(&b)
	if err != nil {
		log.Fatal(err)
	}
	dev, err := cpu.Open(cpu.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer dev.Close()

	names := strings.NewReplacer("model.encoder.layers.", "enc.blocks.", "self_attn.", "attn.", "_proj", "")
	l := weights.NewLoader(context.Background(), dev, weights.Renamed(f, names.Replace))
	layer := weights.Under(l, "model.encoder.layers.0.self_attn.")
	qk := l.Load(weights.Linear(layer, 4, weights.Rows("q_proj", 4, true), weights.Rows("k_proj", 4, false)))
	fmt.Println(qk.Shape())
	l.Load(weights.Linear(layer, 4, weights.Rows("v_proj", 4, false)))
	_, err = l.Params() // nothing stays on the device
	fmt.Println(err)
	// Output:
	// linear [8][4] F32
	// weights: tensor "v_proj.weight": want shape [4 4]: gguf: no tensor "enc.blocks.0.attn.v.weight" among 3; nearest is "enc.blocks.0.attn.k.weight": invalid
}
