package cases

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/tandem-gpu/tandem/pass"
)

// encodeFields returns the fields of an op that are neither zero nor set by tensors,
// and those that are asked for even if zero.
func encodeFields(op pass.Op, needed ...string) map[string]any {
	fields := map[string]any{}
	v := reflect.ValueOf(op)
	for i := range v.NumField() {
		f := v.Field(i)
		name := v.Type().Field(i).Name
		if f.IsZero() && !negativeZero(f) && !slices.Contains(needed, name) || f.Type() == viewType || f.Type() == paramType {
			continue
		}
		switch value := f.Interface().(type) {
		case pass.Items:
			fields[name] = value.Fixed()
		case pass.Index:
			fields[name], _ = value.Const()
		case pass.Epilogue, pass.Padding:
			fields[name] = fmt.Sprint(value)
		case pass.Span:
			fields[name] = []int{value.From, value.To}
		case float32:
			fields[name] = floatJSON(value)
		default:
			fields[name] = value
		}
	}
	return fields
}

func negativeZero(f reflect.Value) bool {
	return f.Kind() == reflect.Float32 && math.Signbit(f.Float())
}

// floatJSON writes a float32 with the fewest digits that give it back; what JSON has
// no number for is written as a string.
func floatJSON(v float32) any {
	text := strconv.FormatFloat(float64(v), 'g', -1, 32)
	if math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) {
		return text
	}
	return json.Number(text)
}

// decodeFields returns the op with fields set from JSON. Names may be in any case.
func decodeFields(op pass.Op, fields map[string]json.RawMessage) (pass.Op, error) {
	v := reflect.New(reflect.TypeOf(op)).Elem()
	v.Set(reflect.ValueOf(op))
	for _, name := range sortedKeys(fields) {
		f, known := settable(v, name)
		if !f.IsValid() {
			return nil, invalid("fields: %s: want one of %s, given %q", op.Name(), strings.Join(known, ", "), name)
		}
		if err := decodeField(f, fields[name]); err != nil {
			return nil, fmt.Errorf("fields: %s: %w", name, err)
		}
	}
	return v.Interface().(pass.Op), nil
}

// settable returns the field of a name in any case, and the names of all fields that
// JSON may set.
func settable(v reflect.Value, name string) (field reflect.Value, known []string) {
	for i := range v.NumField() {
		f := v.Field(i)
		if f.Type() == viewType || f.Type() == paramType {
			continue
		}
		known = append(known, v.Type().Field(i).Name)
		if strings.EqualFold(v.Type().Field(i).Name, name) {
			field = f
		}
	}
	return field, known
}

func decodeField(f reflect.Value, raw json.RawMessage) error {
	set := func(target any, wanted string, use func() error) error {
		if err := json.Unmarshal(raw, target); err != nil {
			return invalid("want %s, given %.80s", wanted, raw)
		}
		return use()
	}
	switch f.Type() {
	case itemsType:
		var n []int
		return set(&n, "a list of whole numbers", func() error { f.Set(reflect.ValueOf(pass.Fixed(n...))); return nil })
	case indexType:
		var n int
		return set(&n, "a whole number", func() error { f.Set(reflect.ValueOf(pass.Const(n))); return nil })
	case spanType:
		var s [2]int
		return set(&s, "[from, to]", func() error { f.Set(reflect.ValueOf(pass.Span{From: s[0], To: s[1]})); return nil })
	case paddingType:
		var name string
		return set(&name, `"zero" or "reflect"`, func() error {
			for _, p := range []pass.Padding{pass.PadZero, pass.PadReflect} {
				if strings.EqualFold(p.String(), name) {
					f.Set(reflect.ValueOf(p))
					return nil
				}
			}
			return invalid(`want "zero" or "reflect", given %q`, name)
		})
	case epilogueType:
		var name string
		return set(&name, `a name such as "relu" or "leaky(0.01)"`, func() error {
			e, err := parseEpilogue(name)
			if err == nil {
				f.Set(reflect.ValueOf(e))
			}
			return err
		})
	}
	switch f.Kind() {
	case reflect.Float32:
		return decodeFloat(f, raw)
	case reflect.Bool:
		return set(f.Addr().Interface(), "true or false", func() error { return nil })
	}
	return set(f.Addr().Interface(), "a whole number that fits "+f.Type().String(), func() error { return nil })
}

// decodeFloat takes a number, or a string for what JSON has no number for.
func decodeFloat(f reflect.Value, raw json.RawMessage) error {
	text := strings.Trim(string(raw), `"`)
	v, err := strconv.ParseFloat(text, 32)
	if err != nil {
		return invalid(`want a number, "NaN", "+Inf" or "-Inf", given %.80s`, raw)
	}
	f.SetFloat(v)
	return nil
}

// parseEpilogue reads "relu" or "leaky(0.01)", as Epilogue.String writes it.
func parseEpilogue(s string) (pass.Epilogue, error) {
	name, factor, has := strings.Cut(strings.ToLower(s), "(")
	if !has {
		e, err := pass.ParseEpilogue(name, 0)
		if k := e.Kind(); k == pass.KindLeaky || k == pass.KindResidual {
			return pass.Epilogue{}, invalid(`want a factor in brackets as in "%s(0.5)", given %q`, name, s)
		}
		return e, err
	}
	alpha, err := strconv.ParseFloat(strings.TrimSuffix(factor, ")"), 32)
	if err != nil || !strings.HasSuffix(factor, ")") {
		return pass.Epilogue{}, invalid("want a factor in brackets, given %q", s)
	}
	return pass.ParseEpilogue(name, float32(alpha))
}

// inferFields sets the sizes that were left out from the shapes of tensors.
func inferFields(op pass.Op, k kind, given map[string]json.RawMessage, tensors []Tensor) (pass.Op, error) {
	v := reflect.New(reflect.TypeOf(op)).Elem()
	v.Set(reflect.ValueOf(op))
	for _, name := range k.needs {
		if !hasKey(given, name) {
			return nil, invalid("fields: %s: %s: want a value, given none", op.Name(), name)
		}
	}
	for _, t := range tensors {
		for axis, field := range k.sizes[t.Name] {
			at := len(t.Shape) - 3 + axis
			if field == "" || hasKey(given, field) || len(t.Shape) == 0 {
				continue
			}
			size := 1
			if at >= 0 {
				size = t.Shape[at]
			}
			if axis == 0 && size == 1 {
				continue // as if not given
			}
			if name, double := strings.CutPrefix(field, "2·"); double {
				if field = name; hasKey(given, field) {
					continue
				}
				size /= 2
			}
			v.FieldByName(field).SetInt(int64(size))
		}
	}
	return v.Interface().(pass.Op), nil
}

func hasKey(fields map[string]json.RawMessage, name string) bool {
	return slices.ContainsFunc(sortedKeys(fields), func(k string) bool { return strings.EqualFold(k, name) })
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
