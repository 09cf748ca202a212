package shaders_test

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// A contraction is a sum of a product and something else that a driver may round once or
// twice, and the line that it is in.
type contraction struct{ what, line string }

// contractions finds those in the text of a kernel. It reads the WGSL that kernels are
// written in and follows products through variables, functions and what is free of
// rounding, but not through memory.
//
// What counts as a product is what hardware makes by a multiplication in the end: x·y,
// x/y (x times a reciprocal), sqrt(x) (x times a reciprocal root) and, since fma(x, y, 0.0)
// is x·y to a compiler, one fma alone on top of a zero. A product by a power of two is
// exact, however it is rounded.
func contractions(l lexer, text string) []contraction {
	r := &reader{lexer: l, structs: map[string]map[string]string{}, funcs: map[string]*function{}, globals: map[string]string{}}
	r.declare(text)
	for changed := true; changed; {
		changed = false
		for _, name := range r.order {
			if f := r.funcs[name]; f.stale {
				f.stale, changed = false, true
				r.function(f)
			}
		}
	}
	var found []contraction
	for _, name := range r.order {
		found = append(found, r.funcs[name].found...)
	}
	return found
}

// A value is what an expression has: its type, and whether it is a product or, if it is a
// literal, which number.
type value struct {
	typ     string
	product bool
	number  float64 // NaN: no literal
	shifted bool    // bits << 23, which are a power of two
	self    string  // the variable that it is, or that an fma adds to
	fma     bool
}

func (v value) float() bool { return strings.Contains(v.typ, "f32") }

// power reports whether a value is a power of two: a literal, or one made of its exponent.
func (v value) power() bool {
	if v.shifted {
		return true
	}
	m, _ := math.Frexp(math.Abs(v.number))
	return m == 0.5 || v.number == 0
}

// mark notes that a variable of a function is a product. Unless in a loop, what follows
// has not been read yet.
func (r *reader) mark(f *function, v *variable, product bool) {
	if product && !v.product {
		v.product = true
		f.stale = f.stale || f != r.f || r.depth > 0
	}
}

// markResult notes that the function returns a product.
func (r *reader) markResult(product bool) {
	if product && !r.f.product {
		r.f.product = true
		for _, f := range r.funcs {
			f.stale = f.stale || slices.ContainsFunc(f.tokens, func(t token) bool { return t.text == r.f.name })
		}
	}
}

func (r *reader) function(f *function) {
	r.f, r.at, r.decided, r.depth, r.loops, f.found = f, 0, 0, 0, nil, nil
	r.scopes = []map[string]*variable{{}}
	for _, p := range f.params {
		r.scopes[0][p.name] = p
	}
	for r.at < len(f.tokens) {
		r.statement()
	}
}

func (r *reader) open(loop bool) {
	r.scopes = append(r.scopes, map[string]*variable{})
	r.loops = append(r.loops, loop)
	if loop {
		r.depth++
	}
}

func (r *reader) statement() {
	switch r.peek() {
	case ";", "break", "continue":
		r.at++
	case "{":
		r.at++
		r.open(false)
	case "}":
		r.at++
		last := len(r.loops) - 1
		if r.loops[last] {
			r.depth--
		}
		r.loops, r.scopes = r.loops[:last], r.scopes[:len(r.scopes)-1]
	case "else":
		r.at++
	case "if":
		r.at++
		r.expression(0)
		r.want("{")
		r.open(false)
	case "for":
		r.at++
		r.want("(")
		r.open(true)
		r.simple()
		r.want(";")
		r.expression(0)
		r.want(";")
		r.simple()
		r.want(")")
		r.want("{")
	case "return":
		r.at++
		if r.peek() != ";" {
			r.markResult(r.expression(0).product)
		}
	default:
		r.simple()
	}
}

// simple reads a declaration, an assignment or a call.
func (r *reader) simple() {
	if r.peek() == "let" || r.peek() == "var" {
		r.at++
		name, typ := r.next(), ""
		if r.accept(":") {
			typ = r.next()
		}
		v := value{typ: typ, number: 0}
		if r.accept("=") {
			v = r.expression(0)
		}
		if r.decided == len(r.f.locals) {
			r.f.locals = append(r.f.locals, &variable{name: name, typ: v.typ, depth: r.depth})
		}
		local := r.f.locals[r.decided]
		r.decided++
		local.zero, local.alone = v.number == 0, false
		r.mark(r.f, local, v.product)
		r.scopes[len(r.scopes)-1][name] = local
		return
	}
	name := r.peek()
	target := r.expression(0)
	local := r.lookup(name)
	switch op := r.next(); op {
	case "=":
		v := r.expression(0)
		if local == nil {
			return
		}
		// In a loop within that of the declaration it is a sum of several.
		outside := r.depth == local.depth
		if v.fma && v.self == name {
			local.zero, local.alone = false, local.zero && outside
			return
		}
		local.zero, local.alone = v.number == 0 && outside, false
		r.mark(r.f, local, v.product)
	case "+=", "-=", "*=", "/=":
		v := r.combine(op[:1], target, r.expression(0))
		if local != nil {
			local.zero, local.alone = false, false
			r.mark(r.f, local, v.product)
		}
	case "^=", "|=", "&=":
		r.expression(0)
	case "+":
		r.want("+")
	default:
		r.at--
	}
}

func (r *reader) lookup(name string) *variable {
	for i := range slices.Backward(r.scopes) {
		if v := r.scopes[i][name]; v != nil {
			return v
		}
	}
	return nil
}

var precedence = map[string]int{
	"||": 1, "&&": 2, "|": 3, "^": 4, "&": 5, "==": 6, "!=": 6, "<": 7, ">": 7, "<=": 7, ">=": 7, "<<": 8, ">>": 8, "+": 9, "-": 9, "*": 10, "/": 10, "%": 10,
}

func (r *reader) expression(above int) value {
	left := r.unary()
	for {
		op := r.peek()
		p := precedence[op]
		if p <= above || op == "+" && r.at+1 < len(r.f.tokens) && r.f.tokens[r.at+1].text == "+" {
			return left
		}
		r.at++
		left = r.combine(op, left, r.expression(p))
	}
}

// combine returns what an operator makes of two values, and notes contractions.
func (r *reader) combine(op string, a, b value) value {
	v := value{typ: a.typ, number: math.NaN()}
	if !a.float() && b.float() || b.float() && strings.HasPrefix(b.typ, "vec") {
		v.typ = b.typ
	}
	if precedence[op] <= 7 {
		return value{typ: "bool", number: math.NaN()}
	}
	if !v.float() {
		v.shifted = op == "<<" && b.number == 23
		return v
	}
	switch op {
	case "+", "-":
		if a.product || b.product {
			r.f.found = append(r.f.found, contraction{"a product in a sum", r.line()})
		}
	case "*":
		v.product = !a.power() && !b.power()
	case "/":
		v.product = a.number != 1 && !b.power()
	case "%":
		r.f.found = append(r.f.found, contraction{"a remainder", r.line()})
	}
	return v
}

func (r *reader) unary() value {
	switch r.peek() {
	case "-", "!", "~", "&":
		r.at++
		v := r.unary()
		v.number, v.self = -v.number, ""
		return v
	}
	v := r.primary()
	for {
		switch r.peek() {
		case ".":
			r.at++
			field := r.next()
			if s, ok := r.structs[v.typ]; ok {
				v.typ = s[field]
				v.self = ""
			}
		case "[":
			r.at++
			r.expression(0)
			r.want("]")
			if !strings.HasPrefix(v.typ, "vec") {
				v.typ = strings.TrimPrefix(v.typ, "array<")
			}
			v.number, v.self = math.NaN(), ""
		default:
			return v
		}
	}
}

func (r *reader) primary() value {
	t := r.next()
	switch {
	case t == "(":
		v := r.expression(0)
		r.want(")")
		return v
	case t[0] >= '0' && t[0] <= '9':
		if strings.Contains(t, ".") || strings.Contains(t, "e-") {
			f, err := strconv.ParseFloat(t, 64)
			if err != nil {
				panic(err)
			}
			return value{typ: "f32", number: f}
		}
		v := value{typ: "u32", number: math.NaN()}
		if t == "23u" {
			v.number = 23
		}
		return v
	case r.peek() == "(":
		return r.call(t)
	}
	if v := r.lookup(t); v != nil {
		known := value{typ: v.typ, product: v.product || v.alone, number: math.NaN(), self: t}
		if v.zero && r.depth == v.depth {
			known.number = 0
		}
		return known
	}
	if typ, ok := r.globals[t]; ok {
		return value{typ: typ, number: math.NaN()}
	}
	if t == "true" || t == "false" {
		return value{typ: "bool", number: math.NaN()}
	}
	panic(fmt.Sprintf("%s: nothing is named %q in: %s", r.f.name, t, r.line()))
}

// Functions of WGSL whose result a driver may round in several ways: they are sums of
// products, or made of exp2 and log2 times a constant.
var loose = []string{"dot", "mix", "length", "distance", "normalize", "smoothstep", "cross", "reflect", "pow", "exp", "log", "sinh", "cosh", "tanh", "atan2", "fract", "degrees", "radians"}

func (r *reader) call(name string) value {
	r.want("(")
	var args []value
	for !r.accept(")") {
		args = append(args, r.expression(0))
		r.accept(",")
	}
	v := value{typ: name, number: math.NaN()}
	if f := r.funcs[name]; f != nil {
		for i, p := range f.params {
			r.mark(f, p, args[i].product)
		}
		v.typ, v.product = f.result, f.product
		return v
	}
	if slices.Contains(loose, name) {
		r.f.found = append(r.f.found, contraction{name, r.line()})
	}
	switch {
	case r.structs[name] != nil, strings.HasPrefix(name, "vec"), name == "f32", name == "u32", name == "i32":
		for _, a := range args {
			v.product = v.product || a.product
		}
		if len(args) == 1 {
			v.number, v.self = args[0].number, args[0].self
		}
	case strings.HasPrefix(name, "bitcast<"):
		v.typ, v.product, v.shifted = name[len("bitcast<"):len(name)-1], args[0].product, args[0].shifted
	case name == "fma":
		v.typ = args[0].typ
		v.product, v.self, v.fma = args[2].number == 0, args[2].self, true
	case name == "select":
		v.typ, v.product = args[0].typ, args[0].product || args[1].product
	case name == "abs":
		v.typ, v.product = args[0].typ, args[0].product
	case name == "sqrt":
		v.typ, v.product = args[0].typ, true
	case strings.HasPrefix(name, "unpack2x16float"):
		v.typ = "vec2<f32>"
	case len(args) > 0:
		v.typ = args[0].typ
	}
	return v
}
