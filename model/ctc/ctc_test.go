package ctc

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tandem-gpu/tandem/model/weights"
	"github.com/tandem-gpu/tandem/pass"
)

func TestCollapse(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		classes []uint32
		want    []Span
	}{
		{nil, nil},
		{[]uint32{9, 9, 9}, nil},
		{[]uint32{4}, []Span{{4, 0, 0}}},
		{[]uint32{4, 4, 9, 4, 5, 5, 5}, []Span{{4, 0, 1}, {4, 3, 3}, {5, 4, 6}}},
		{[]uint32{9, 0, 9, 9, 0, 0}, []Span{{0, 1, 1}, {0, 4, 5}}},
	} {
		require.Equal(t, c.want, Collapse(c.classes, 9), "%v", c.classes)
	}
}

func TestBlankIsAClass(t *testing.T) {
	t.Parallel()
	for _, blank := range []int{-1, 3} {
		l := weights.NewLoader(t.Context(), nil, nil)
		Load(l, "head", Config{Width: 2, Classes: 3, Blank: blank})
		_, err := l.Params()
		require.ErrorIs(t, err, pass.ErrInvalid)
	}
}
