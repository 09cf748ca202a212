package gguf

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tandem-gpu/tandem/pass"
)

func TestMetadata(t *testing.T) {
	t.Parallel()
	m := everything
	for key, want := range map[string]int{"i8": -8, "i16": -16, "i32": -32, "i64": math.MinInt64, "u8": 8, "u16": 16, "u32": math.MaxUint32} {
		got, err := m.Int(key)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	for key, want := range map[string][]int{"i8s": {-1, 2}, "i16s": {-3}, "i32s": {4, -5}, "i64s": {6}, "u8s": {1}, "u16s": {2, 3}, "u32s": {4}} {
		got, err := m.Ints(key)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	for key, want := range map[string]float64{"f32": 1.5, "f64": math.Pi} {
		got, err := m.Float(key)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	for key, want := range map[string][]float64{"f32s": {0.5, -1}, "f64s": {2.5}, "none": {}} {
		got, err := m.Floats(key)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	yes, err := m.Bool("yes")
	require.NoError(t, err)
	require.True(t, yes)
	text, err := m.String("text")
	require.NoError(t, err)
	require.Equal(t, "ünï", text)
	texts, err := m.Strings("texts")
	require.NoError(t, err)
	require.Equal(t, []string{"a", "", "ccc"}, texts)
	texts[0] = "changed"
	require.Equal(t, []string{"a", "", "ccc"}, m["texts"])
	require.True(t, m.Has("yes"))
	require.False(t, m.Has("no"))

	for says, err := range map[string]error{
		`gguf: key "u64": 18446744073709551615 does not fit an int: invalid`: second(m.Int("u64")),
		`gguf: key "u64s": 9223372036854775808 does not fit an int: invalid`: second(m.Ints("u64s")),
		`gguf: key "f32": want an integer, given float32: invalid`:           second(m.Int("f32")),
		`gguf: key "i32": want an array of integers, given int32: invalid`:   second(m.Ints("i32")),
		`gguf: key "u8": want a float, given uint8: invalid`:                 second(m.Float("u8")),
		`gguf: key "u8s": want an array of floats, given []uint8: invalid`:   second(m.Floats("u8s")),
		`gguf: key "text": want a bool, given string: invalid`:               second(m.Bool("text")),
		`gguf: key "nested": want a string, given [][]: invalid`:             second(m.String("nested")),
		`gguf: key "text": want an array of strings, given string: invalid`:  second(m.Strings("text")),
		`gguf: no key "nestet" among 26; nearest is "nested": invalid`:       second(m.Ints("nestet")),
		`gguf: no key "general.architecture" among 0: invalid`:               second(Metadata(nil).String("general.architecture")),
	} {
		require.ErrorIs(t, err, pass.ErrInvalid)
		require.EqualError(t, err, says)
	}
}

func second[T any](_ T, err error) error { return err }
