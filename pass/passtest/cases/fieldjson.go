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

// encodeFields returns the fields of an op, or of weights, that are neither zero nor set
// by tensors, and those that are asked for even if zero.
func encodeFields(op any, needed ...string) map[string]any {
	fields := map[string]any{}
	v := reflect.ValueOf(op)
	for i := range v.NumField() {
		f := v.Field(i)
		name := v.Type().Field(i).Name
		if f.IsZero() && !negativeZero(f) && !slices.Contains(needed, name) || bySomethingElse(f) {
			continue
		}
		switch value := f.Interface().(type) {
		case pass.Items:
			fields[name] = value.Fixed()
		case pass.Index:
			fields[name], _ = value.Const()
		case pass.Epilogue, pass.Padding, pass.RopeStyle:
			fields[name] = fmt.Sprint(value)
		case pass.Mask:
			fields[name] = maskName(value)
		case pass.MelLog:
			fields[name] = melLogs[value]
		case pass.MelNormal:
			fields[name] = melNormals[value]
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

// bySomethingElse reports whether a field is set by tensors, or names weights.
func bySomethingElse(f reflect.Value) bool {
	switch f.Type() {
	case viewType, paramType, cacheType, tensorType:
		return true
	}
	return f.Kind() == reflect.String || f.Kind() == reflect.Slice && f.Type().Elem().Kind() != reflect.Uint32
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

// decodeFields returns the op, or the weights, with fields set from JSON. Names may be in
// any case. What names them in errors.
func decodeFields[T any](op T, what string, fields map[string]json.RawMessage) (T, error) {
	v := reflect.New(reflect.TypeOf(op)).Elem()
	v.Set(reflect.ValueOf(op))
	for _, name := range sortedKeys(fields) {
		f, known := settable(v, name)
		if !f.IsValid() {
			return op, invalid("%s: want one of %s, given %q", what, strings.Join(known, ", "), name)
		}
		if err := decodeField(f, fields[name]); err != nil {
			return op, fmt.Errorf("%s: %s: %w", what, name, err)
		}
	}
	return v.Interface().(T), nil
}

// settable returns the field of a name in any case, and the names of all fields that
// JSON may set.
func settable(v reflect.Value, name string) (field reflect.Value, known []string) {
	for i := range v.NumField() {
		f := v.Field(i)
		if bySomethingElse(f) {
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
		if err := json.Unmarshal(raw, target); err != nil || string(raw) == "null" {
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
		var s []int
		return set(&s, "[from, to]", func() error {
			if len(s) != 2 {
				return invalid("want [from, to], given %.80s", raw)
			}
			f.Set(reflect.ValueOf(pass.Span{From: s[0], To: s[1]}))
			return nil
		})
	case paddingType:
		return decodeName(f, raw, "zero", "reflect")
	case styleType:
		return decodeName(f, raw, "halves", "interleaved")
	case melLogType:
		return decodeName(f, raw, melLogs...)
	case melNormType:
		return decodeName(f, raw, melNormals...)
	case maskType:
		var name string
		return set(&name, `"none", "causal" or "band(left,right)"`, func() error {
			m, err := parseMask(name)
			if err == nil {
				f.Set(reflect.ValueOf(m))
			}
			return err
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
	case reflect.Float32, reflect.Float64:
		return decodeFloat(f, raw)
	case reflect.Array: // package json fills up and cuts off
		var list []int
		return set(&list, "a list of whole numbers", func() error {
			if len(list) != f.Len() {
				return invalid("want a list of %d whole numbers, given %.80s", f.Len(), raw)
			}
			for i, n := range list {
				f.Index(i).SetInt(int64(n))
			}
			return nil
		})
	case reflect.Slice:
		return set(f.Addr().Interface(), "a list of whole numbers", func() error { return nil })
	case reflect.Bool:
		return set(f.Addr().Interface(), "true or false", func() error { return nil })
	}
	return set(f.Addr().Interface(), "a whole number that fits "+f.Type().String(), func() error { return nil })
}

// The names of numbered choices, in their order.
var (
	melLogs    = []string{"power", "ln", "log10"}
	melNormals = []string{"as-is", "whisper", "per-bin", "mean"}
)

// decodeName sets a field to the place of a name in a list.
func decodeName(f reflect.Value, raw json.RawMessage, names ...string) error {
	var name string
	if err := json.Unmarshal(raw, &name); err == nil {
		for i, s := range names {
			if strings.EqualFold(s, name) {
				f.SetUint(uint64(i))
				return nil
			}
		}
	}
	return invalid("want one of %q, given %.80s", names, raw)
}

func maskName(m pass.Mask) string {
	switch left, right := m.Band(); m.Kind() {
	case pass.MaskCausal:
		return "causal"
	case pass.MaskBand:
		return fmt.Sprintf("band(%d,%d)", left, right)
	}
	return "none"
}

func parseMask(s string) (pass.Mask, error) {
	switch s = strings.ToLower(s); s {
	case "none":
		return pass.Mask{}, nil
	case "causal":
		return pass.Causal, nil
	}
	var left, right int
	if _, err := fmt.Sscanf(s, "band(%d,%d)", &left, &right); err != nil {
		return pass.Mask{}, invalid(`want "none", "causal" or "band(left,right)", given %.80q`, s)
	}
	return pass.Band(left, right), nil
}

// decodeFloat takes a number, or a string for what JSON has no number for.
func decodeFloat(f reflect.Value, raw json.RawMessage) error {
	text := strings.Trim(string(raw), `"`)
	v, err := strconv.ParseFloat(text, f.Type().Bits())
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
