package cases

import (
	"reflect"

	"github.com/tandem-gpu/tandem/pass"
)

var (
	viewType     = reflect.TypeFor[pass.View]()
	paramType    = reflect.TypeFor[pass.Param]()
	itemsType    = reflect.TypeFor[pass.Items]()
	indexType    = reflect.TypeFor[pass.Index]()
	epilogueType = reflect.TypeFor[pass.Epilogue]()
	paddingType  = reflect.TypeFor[pass.Padding]()
	spanType     = reflect.TypeFor[pass.Span]()
	tensorType   = reflect.TypeFor[pass.Tensor]()
	cacheType    = reflect.TypeFor[pass.Cache]()
	maskType     = reflect.TypeFor[pass.Mask]()
	styleType    = reflect.TypeFor[pass.RopeStyle]()
	melLogType   = reflect.TypeFor[pass.MelLog]()
	melNormType  = reflect.TypeFor[pass.MelNormal]()
)

// Bind returns the op with its views, params and caches set: by the name of the field,
// as the case's tensors are named. A tensor for lengths or rows becomes numbers on the
// device; for an index of shape [] it becomes one index for the batch, else one for each
// item, plus the constant that the field holds.
func (c Case) Bind(views map[string]pass.View, params map[string]pass.Param, caches map[string]pass.Cache) (pass.Op, error) {
	op := reflect.New(reflect.TypeOf(c.Op)).Elem()
	op.Set(reflect.ValueOf(c.Op))
	for name, v := range views {
		f := op.FieldByName(name)
		if !f.IsValid() {
			return nil, invalid("%s: %s has no argument %q", c.Name, c.Op.Name(), name)
		}
		switch f.Type() {
		case viewType:
			f.Set(reflect.ValueOf(v))
		case itemsType:
			f.Set(reflect.ValueOf(pass.ItemsIn(v)))
		case indexType:
			x := pass.IndexEach(v)
			if t, _ := find(c.Inputs, name); len(t.Shape) == 0 {
				x = pass.IndexIn(v)
			}
			f.Set(reflect.ValueOf(x.Plus(f.Interface().(pass.Index).Addend())))
		default:
			return nil, invalid("%s: %s: field %s takes no tensor", c.Name, c.Op.Name(), name)
		}
	}
	for name, p := range params {
		f := op.FieldByName(name)
		if !f.IsValid() || f.Type() != paramType {
			return nil, invalid("%s: %s has no param %q", c.Name, c.Op.Name(), name)
		}
		f.Set(reflect.ValueOf(p))
	}
	for name, h := range caches {
		f := op.FieldByName(name)
		if !f.IsValid() || f.Type() != cacheType {
			return nil, invalid("%s: %s has no cache %q", c.Name, c.Op.Name(), name)
		}
		f.Set(reflect.ValueOf(h))
	}
	return op.Interface().(pass.Op), nil
}

// demandsExact reports whether the op has its field Exact set.
func demandsExact(op pass.Op) bool {
	f := reflect.ValueOf(op).FieldByName("Exact")
	return f.IsValid() && f.Bool()
}
