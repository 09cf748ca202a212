package ctc_test

import (
	"fmt"

	"github.com/tandem-gpu/tandem/model/ctc"
	"github.com/tandem-gpu/tandem/model/vocabulary"
)

func ExampleCollapse() {
	words := vocabulary.New(vocabulary.SentencePiece, "▁he", "l", "lo", "▁there")
	const blank = 4
	var ids []int
	for _, s := range ctc.Collapse([]uint32{4, 0, 0, 4, 1, 4, 2, 2, 3}, blank) {
		fmt.Printf("frames %d to %d: %s\n", s.First, s.Last, words.Token(s.Token))
		ids = append(ids, s.Token)
	}
	fmt.Println(words.Text(ids))
	// Output:
	// frames 1 to 2: ▁he
	// frames 4 to 4: l
	// frames 6 to 7: lo
	// frames 8 to 8: ▁there
	// hello there
}
