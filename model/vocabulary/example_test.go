package vocabulary_test

import (
	"fmt"

	"github.com/tandem-gpu/tandem/model/vocabulary"
)

func Example() {
	pieces := vocabulary.New(vocabulary.SentencePiece, "▁caf", "<0xC3>", "<0xA9>", "</s>")
	fmt.Println(pieces.Text([]int{0, 1, 2, 3}))
	bytes := vocabulary.New(vocabulary.ByteLevel, "c", "af", "Ã©", "Ġau")
	fmt.Println(bytes.Text([]int{0, 1, 2, 3}))
	// Output:
	// café
	// café au
}
