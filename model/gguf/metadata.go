package gguf

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/tandem-gpu/tandem/model/internal/nearest"
	"github.com/tandem-gpu/tandem/pass"
)

// Metadata are the metadata of a file, by key. A value is an int8, int16, int32, int64,
// uint8, uint16, uint32, uint64, float32, float64, bool or string, a slice of one of
// these types, or a slice of slices: a []any of values that are slices themselves.
//
// The methods return a value of the type that their name says. The error for a key that
// does not exist gives the nearest one that does; the error for another type names both.
type Metadata map[string]any

// Keys returns the keys, sorted.
func (m Metadata) Keys() []string { return slices.Sorted(maps.Keys(m)) }

// Has reports whether there is a value of the given key.
func (m Metadata) Has(key string) bool {
	_, ok := m[key]
	return ok
}

// Int returns an integer of any size, with or without sign, that fits an int.
func (m Metadata) Int(key string) (int, error) {
	v, err := m.find(key)
	if err != nil {
		return 0, err
	}
	n, ok, err := integer(key, v)
	if err == nil && !ok {
		err = mismatch(key, "an integer", v)
	}
	return n, err
}

// Ints returns an array of integers, as Int does. The slice is the caller's.
func (m Metadata) Ints(key string) ([]int, error) {
	v, err := m.find(key)
	if err != nil {
		return nil, err
	}
	switch v := v.(type) {
	case []int8:
		return integers(key, v)
	case []int16:
		return integers(key, v)
	case []int32:
		return integers(key, v)
	case []int64:
		return integers(key, v)
	case []uint8:
		return integers(key, v)
	case []uint16:
		return integers(key, v)
	case []uint32:
		return integers(key, v)
	case []uint64:
		return integers(key, v)
	}
	return nil, mismatch(key, "an array of integers", v)
}

// Float returns a float32 or float64.
func (m Metadata) Float(key string) (float64, error) {
	v, err := m.find(key)
	if err != nil {
		return 0, err
	}
	switch v := v.(type) {
	case float32:
		return float64(v), nil
	case float64:
		return v, nil
	}
	return 0, mismatch(key, "a float", v)
}

// Floats returns an array of float32 or float64. The slice is the caller's.
func (m Metadata) Floats(key string) ([]float64, error) {
	v, err := m.find(key)
	if err != nil {
		return nil, err
	}
	switch v := v.(type) {
	case []float32:
		out := make([]float64, len(v))
		for i, x := range v {
			out[i] = float64(x)
		}
		return out, nil
	case []float64:
		return slices.Clone(v), nil
	}
	return nil, mismatch(key, "an array of floats", v)
}

// Bool returns a bool.
func (m Metadata) Bool(key string) (bool, error) { return as[bool](m, key, "a bool") }

// String returns a string.
func (m Metadata) String(key string) (string, error) { return as[string](m, key, "a string") }

// Strings returns an array of strings. The slice is the caller's.
func (m Metadata) Strings(key string) ([]string, error) {
	v, err := as[[]string](m, key, "an array of strings")
	return slices.Clone(v), err
}

func (m Metadata) find(key string) (any, error) {
	v, ok := m[key]
	if !ok {
		return nil, fmt.Errorf("gguf: no key %.200q among %d%s: %w", key, len(m), nearest.Hint(key, m.Keys()), pass.ErrInvalid)
	}
	return v, nil
}

func as[T any](m Metadata, key, want string) (T, error) {
	var zero T
	v, err := m.find(key)
	if err != nil {
		return zero, err
	}
	if t, ok := v.(T); ok {
		return t, nil
	}
	return zero, mismatch(key, want, v)
}

func mismatch(key, want string, given any) error {
	return fmt.Errorf("gguf: key %.200q: want %s, given %s: %w", key, want, typeOf(given), pass.ErrInvalid)
}

// typeOf names the type of a value.
func typeOf(v any) string {
	if _, ok := v.([]any); ok {
		return "[][]"
	}
	return fmt.Sprintf("%T", v)
}

// integer converts an integer, and reports whether v is one.
func integer(key string, v any) (int, bool, error) {
	switch v := v.(type) {
	case int8:
		return int(v), true, nil
	case int16:
		return int(v), true, nil
	case int32:
		return int(v), true, nil
	case int64:
		if int64(int(v)) != v {
			return 0, true, fmt.Errorf("gguf: key %.200q: %d does not fit an int: %w", key, v, pass.ErrInvalid)
		}
		return int(v), true, nil
	case uint8:
		return int(v), true, nil
	case uint16:
		return int(v), true, nil
	case uint32:
		return integer(key, uint64(v))
	case uint64:
		if v > math.MaxInt {
			return 0, true, fmt.Errorf("gguf: key %.200q: %d does not fit an int: %w", key, v, pass.ErrInvalid)
		}
		return int(v), true, nil
	}
	return 0, false, nil
}

func integers[T any](key string, values []T) ([]int, error) {
	out := make([]int, len(values))
	for i, v := range values {
		var err error
		if out[i], _, err = integer(key, v); err != nil {
			return nil, err
		}
	}
	return out, nil
}
