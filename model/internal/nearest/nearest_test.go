package nearest_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tandem-gpu/tandem/model/internal/nearest"
)

func TestName(t *testing.T) {
	t.Parallel()
	names := []string{"a", "encoder.0.bias", "encoder.0.weight", "encoder.1.weight", "model.norm.weight", "norms"}
	for _, c := range []struct{ want, near string }{
		{"encoder.0.weights", "encoder.0.weight"},
		{"encoder.0.wieght", "encoder.0.weight"},
		{"encoder.2.weight", "encoder.0.weight"}, // the first of equals
		{"encodr.1.weight", "encoder.1.weight"},
		{"norm.weight", "model.norm.weight"},
		{"net.norms", "norms"},
		{"norm", "norms"},
		{"quite.another.name", ""},
		{"orm.weight", ""},
		{"b", ""},
		{"", ""},
		{strings.Repeat("x", 1000), ""},
	} {
		got, ok := nearest.Name(c.want, names)
		require.Equal(t, c.near, got, c.want)
		require.Equal(t, c.near != "", ok, c.want)
	}
	require.Equal(t, `; nearest is "norms"`, nearest.Hint("norm", names))
	require.Empty(t, nearest.Hint("quite.another.name", names))
	require.Empty(t, nearest.Hint("abc", nil))
}
