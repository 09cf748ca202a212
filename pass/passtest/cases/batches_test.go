package cases

import (
	"reflect"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tandem-gpu/tandem/pass"
)

// Every op has cases of one item and of the batches that it is held to, every day.
func TestEveryOpHasBatches(t *testing.T) {
	t.Parallel()
	found := map[string][]int{}
	for _, e := range All() {
		if e.Full {
			continue
		}
		checked, err := e.Case().Resolve()
		require.NoError(t, err)
		n := 0
		if p, ok := checked.Op.(pass.Permute); ok {
			n = p.Dims[0]
		} else {
			n = int(reflect.ValueOf(checked.Op).FieldByName("Batch").Int())
		}
		found[e.Op] = append(found[e.Op], n)
	}
	for _, op := range Ops() {
		for _, n := range append(batchSizes(), 1) {
			require.True(t, slices.Contains(found[op], n), "%s: no case of %d items", op, n)
		}
	}
}

func TestRagged(t *testing.T) {
	t.Parallel()
	require.Equal(t, []int{4, 3, 2, 1, 0, 4, 3}, ragged(7, 4))
	require.Equal(t, []uint32{0, 3, 6, 1}, ascending(4, 7))
}
