package ctc_test

import (
	"fmt"

	"github.com/tandem-gpu/tandem/model/ctc"
	"github.com/tandem-gpu/tandem/model/pieces"
)

func ExampleCollapse() {
	list := pieces.Of("▁he", "l", "lo", "▁there")
	const blank = 4
	var ids []int
	for _, s := range ctc.Collapse([]uint32{4, 0, 0, 4, 1, 4, 2, 2, 3}, blank) {
		fmt.Printf("frames %d to %d: %s\n", s.First, s.Last, list.Piece(s.Token))
		ids = append(ids, s.Token)
	}
	fmt.Println(list.Text(ids))
	// Output:
	// frames 1 to 2: ▁he
	// frames 4 to 4: l
	// frames 6 to 7: lo
	// frames 8 to 8: ▁there
	// hello there
}
