{{define "nan"}}
// is_nan looks at the bits: a comparison may be compiled as if NaN did not exist.
fn is_nan(v: vec4<f32>) -> vec4<bool> {
	return (bitcast<vec4<u32>>(v) & vec4<u32>(0x7fffffffu)) > vec4<u32>(0x7f800000u);
}

// is_negative is v < 0: neither for −0 nor for NaN.
fn is_negative(v: vec4<f32>) -> vec4<bool> {
	return (bitcast<vec4<u32>>(v) - vec4<u32>(0x80000001u)) <= vec4<u32>(0x7f7fffffu);
}
{{end}}

{{define "exp"}}
// exp_within is e^x for x clamped to ±87, where it neither overflows nor vanishes, with
// a relative error of about 1e-7; what it makes of NaN is not defined. x = n·ln 2 + r and
// a polynomial of degree 6 in r. ln 2 has two parts; n times the first, 22713/32768, is
// exact, and an integer product, because compilers may add up two products of floats.
fn exp_within(v: vec4<f32>) -> vec4<f32> {
	let x = clamp(v, vec4<f32>(-87.0), vec4<f32>(87.0));
	let n = round(x * 1.44269504);
	let m = vec4<i32>(n);
	let r = fma(n, vec4<f32>(-1.42860682e-6), x - vec4<f32>(m * vec4<i32>(22713i)) * 3.0517578125e-5);
	var p = fma(r, vec4<f32>(0.001395054), vec4<f32>(0.008368918));
	p = fma(p, r, vec4<f32>(0.041666206));
	p = fma(p, r, vec4<f32>(0.16666518));
	p = fma(p, r, vec4<f32>(0.5));
	p = fma(p * r, r, r) + 1.0;
	return p * bitcast<vec4<f32>>(vec4<u32>(m + vec4<i32>(127i)) << vec4<u32>(23u));
}
{{end}}

{{define "sigmoid"}}
fn sigmoid(v: vec4<f32>) -> vec4<f32> {
	return select(1.0 / (1.0 + exp_within(-v)), v, is_nan(v));
}
{{end}}

{{define "tanh"}}
// tanh_of uses (1 − e^−2|v|)/(1 + e^−2|v|), or the Taylor series where that difference
// would lose digits.
fn tanh_of(v: vec4<f32>) -> vec4<f32> {
	let e = exp_within(-2.0 * abs(v));
	let large = (1.0 - e) / (1.0 + e);
	let w = min(v * v, vec4<f32>(0.25));
	var p = fma(w, vec4<f32>(-0.008863236), vec4<f32>(0.021869488));
	p = fma(p, w, vec4<f32>(-0.053968254));
	p = fma(p, w, vec4<f32>(0.13333333));
	p = fma(p, w, vec4<f32>(-0.33333333));
	let small = fma(v * w, p, v);
	let sign = bitcast<vec4<u32>>(v) & vec4<u32>(0x80000000u);
	let outer = bitcast<vec4<f32>>(bitcast<vec4<u32>>(large) | sign);
	return select(select(small, outer, abs(v) > vec4<f32>(0.35)), v, is_nan(v));
}
{{end}}

{{define "gelu"}}
// gelu is v·Phi(v) with Phi(v) = erfc(−v/√2)/2. For z ≥ 0, erfc(z) = e^(−z²)·t·q(t) with
// t = 1/(1 + z/2) and a polynomial q fitted for this file; erfc is off by less than 1e-7.
//
// gelu_share is what v is multiplied by, once it is bounded from below: the share of
// −infinity is 0.
fn gelu_share(v: vec4<f32>) -> vec4<f32> {
	let z = min(abs(v) * 0.70710678, vec4<f32>(20.0));
	let t = 1.0 / fma(z, vec4<f32>(0.5), vec4<f32>(1.0));
	var q = fma(t, vec4<f32>(0.06230759), vec4<f32>(-0.23529573));
	q = fma(q, t, vec4<f32>(0.15653238));
	q = fma(q, t, vec4<f32>(0.27103254));
	q = fma(q, t, vec4<f32>(0.15267752));
	q = fma(q, t, vec4<f32>(0.3148129));
	q = fma(q, t, vec4<f32>(0.27793282));
	let part = 0.5 * q * t;
	let e = exp_within(-z * z);
	return select(fma(-part, e, vec4<f32>(1.0)), part * e, is_negative(v));
}

fn gelu_bounded(v: vec4<f32>) -> vec4<f32> {
	return select(v, vec4<f32>(0.0), v < vec4<f32>(-13.0));
}

fn gelu(v: vec4<f32>) -> vec4<f32> {
	return select(gelu_bounded(v) * gelu_share(v), v, is_nan(v));
}

fn gelu_onto(c: vec4<f32>, v: vec4<f32>) -> vec4<f32> {
	return select(fma(gelu_bounded(v), gelu_share(v), c), v, is_nan(v));
}
{{end}}

{{define "epilogue"}}
{{template "nan"}}
{{if or (eq .Epilogue "silu") (eq .Epilogue "tanh") (eq .Epilogue "sigmoid") (eq .Epilogue "gelu") (eq .Epilogue "gelu-residual")}}
{{template "exp"}}
{{end}}
{{if or (eq .Epilogue "silu") (eq .Epilogue "sigmoid")}}
{{template "sigmoid"}}
{{end}}
{{if eq .Epilogue "tanh"}}
{{template "tanh"}}
{{end}}
{{if or (eq .Epilogue "gelu") (eq .Epilogue "gelu-residual")}}
{{template "gelu"}}
{{end}}
// finish is the epilogue {{.Epilogue}} of v, where c was before.
fn finish(v: vec4<f32>, c: vec4<f32>, alpha: f32) -> vec4<f32> {
	{{if eq .Epilogue "none"}}return v;
	{{else if eq .Epilogue "silu"}}return select(v * sigmoid(v), vec4<f32>(0.0), is_negative(v + 87.0));
	{{else if eq .Epilogue "relu"}}return select(v, vec4<f32>(0.0), is_negative(v));
	{{else if eq .Epilogue "leaky"}}return select(v, v * alpha, is_negative(v));
	{{else if eq .Epilogue "residual"}}return fma(vec4<f32>(alpha), v, c);
	{{else if eq .Epilogue "gelu"}}return gelu(v);
	{{else if eq .Epilogue "gelu-residual"}}return gelu_onto(c, v);
	{{else if eq .Epilogue "tanh"}}return tanh_of(v);
	{{else if eq .Epilogue "sigmoid"}}return sigmoid(v);
	{{end}}
}
{{end}}
