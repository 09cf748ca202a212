{{/*
Map, Magnitude, Add, Scale, GLU and SwiGLU (both: gate). A unit is one element, or with
Vectors four of them. Elements are held as u32, so that those which only pass keep their
bits. InPlace: x is y, which is bound once.
*/}}
struct Words {
	units: u32,
	row_units: u32,
	rows: u32,
	x: u32,
	x_row: u32,
	x_item: u32,
	y: u32,
	y_row: u32,
	y_item: u32,
	alpha: u32,
	columns: u32,
	b: u32,
	b_row: u32,
	b_item: u32,
}
@group(0) @binding(0) var<uniform> words: Words;
{{if .Vectors}}
@group(0) @binding(1) var<storage, read_write> y: array<vec4<u32>>;
{{if not .InPlace}}
@group(0) @binding(2) var<storage, read> x: array<vec4<u32>>;
{{end}}

fn load(at: u32) -> vec4<u32> { return {{if .InPlace}}y{{else}}x{{end}}[at / 4u]; }

fn store(at: u32, v: vec4<u32>) { y[at / 4u] = v; }
{{else}}
@group(0) @binding(1) var<storage, read_write> y: array<u32>;
{{if not .InPlace}}
@group(0) @binding(2) var<storage, read> x: array<u32>;
{{end}}

fn load(at: u32) -> vec4<u32> { return vec4<u32>({{if .InPlace}}y{{else}}x{{end}}[at]); }

fn store(at: u32, v: vec4<u32>) { y[at] = v.x; }
{{end}}

{{if eq .Entry "map"}}
{{template "epilogue" .}}

fn apply(at: u32) -> vec4<u32> {
	let v = bitcast<vec4<f32>>(load(at));
	return bitcast<vec4<u32>>(finish(v, v, bitcast<f32>(words.alpha)));
}
{{else if eq .Entry "scale"}}
fn apply(at: u32) -> vec4<u32> {
	return bitcast<vec4<u32>>(bitcast<vec4<f32>>(load(at)) * bitcast<f32>(words.alpha));
}
{{else if eq .Entry "add"}}
{{if .Vectors}}
@group(0) @binding({{.BBinding}}) var<storage, read> b: array<vec4<f32>>;

fn added(at: u32) -> vec4<f32> { return b[at / 4u]; }
{{else}}
@group(0) @binding({{.BBinding}}) var<storage, read> b: array<f32>;

fn added(at: u32) -> vec4<f32> { return vec4<f32>(b[at]); }
{{end}}

fn apply(at: u32, at_b: u32) -> vec4<u32> {
	return bitcast<vec4<u32>>(bitcast<vec4<f32>>(load(at)) + added(at_b));
}
{{else if eq .Entry "gate"}}
{{template "nan"}}
{{template "exp"}}

// apply is x·sigmoid(gate), with Swish times the gate. The exponential of a negative gate
// comes in two factors, since it may be too small for one but meet a large x.
fn apply(at: u32) -> vec4<u32> {
	let x = bitcast<vec4<f32>>(load(at{{if .GateFirst}} + words.columns{{end}}));
	let gate = bitcast<vec4<f32>>(load(at{{if not .GateFirst}} + words.columns{{end}}));
	let root = exp_within(-0.5 * abs(gate));
	let factor = select(vec4<f32>(1.0), root, is_negative(gate));
	let open = factor * {{if .Swish}}gate * {{end}}x * factor / fma(root, root, vec4<f32>(1.0));
	return bitcast<vec4<u32>>(select(open, gate, is_nan(gate)));
}
{{else}}
// apply is sqrt(re² + im²). Both are scaled by a power of two, so that the larger is
// about one. An infinity outdoes NaN.
fn apply(at: u32) -> vec4<u32> {
	let re = load(at);
	let im = load(at + words.columns);
	let a = re & vec4<u32>(0x7fffffffu);
	let b = im & vec4<u32>(0x7fffffffu);
	let large = max(a, b);
	let exponent = clamp(large & vec4<u32>(0x7f800000u), vec4<u32>(0x00800000u), vec4<u32>(0x7e000000u));
	let down = bitcast<vec4<f32>>(vec4<u32>(0x7f000000u) - exponent);
	let s = bitcast<vec4<f32>>(a) * down;
	let t = bitcast<vec4<f32>>(b) * down;
	let length = bitcast<vec4<u32>>(sqrt(fma(s, s, t * t)) * bitcast<vec4<f32>>(exponent));
	let infinity = vec4<u32>(0x7f800000u);
	let special = select(vec4<u32>(0x7fc00000u), infinity, (a == infinity) | (b == infinity));
	return select(length, special, large >= infinity);
}
{{end}}

@compute @workgroup_size(64)
fn {{.Entry}}(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
	let width = groups.x * 64u;
	for (var unit = id.x + id.y * width; unit < words.units; unit += width * groups.y) {
		let row = unit / words.row_units;
		let column = unit % words.row_units{{if .Vectors}} * 4u{{end}};
		let item = row / words.rows;
		let at = words.x + item * words.x_item + row % words.rows * words.x_row + column;
		{{if eq .Entry "add"}}
		let v = apply(at, words.b + item * words.b_item + row % words.rows * words.b_row + column);
		{{else}}
		let v = apply(at);
		{{end}}
		store(words.y + item * words.y_item + row % words.rows * words.y_row + column, v);
	}
}
