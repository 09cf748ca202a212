{{/*
The right-hand operand and the output that matrix products have in common: weights
[column][k] of type Type, each row filled up with zeros to words.stride values, and sums
that get a bias and an epilogue.
*/}}
{{define "weights"}}
{{if eq .Type "F32"}}
@group(0) @binding(1) var<storage, read> weights: array<vec4<f32>>;

fn load_b(column: u32, k: u32) -> vec4<f32> {
	return weights[((words.first + min(column, words.columns - 1u)) * words.stride + k) / 4u];
}
{{else if eq .Type "F16"}}
@group(0) @binding(1) var<storage, read> weights: array<vec2<u32>>;

fn load_b(column: u32, k: u32) -> vec4<f32> {
	let pair = weights[((words.first + min(column, words.columns - 1u)) * words.stride + k) / 4u];
	return vec4<f32>(unpack2x16float(pair.x), unpack2x16float(pair.y));
}
{{else if eq .Type "BF16"}}
@group(0) @binding(1) var<storage, read> weights: array<vec2<u32>>;

fn load_b(column: u32, k: u32) -> vec4<f32> {
	let pair = weights[((words.first + min(column, words.columns - 1u)) * words.stride + k) / 4u];
	return bitcast<vec4<f32>>(vec4<u32>(pair.x << 16u, pair.x & 0xffff0000u, pair.y << 16u, pair.y & 0xffff0000u));
}
{{else if eq .Type "Q8_0"}}
@group(0) @binding(1) var<storage, read> weights: array<u32>;
@group(0) @binding({{.ScaleBinding}}) var<storage, read> scales: array<u32>;

{{template "signed"}}

fn load_b(column: u32, k: u32) -> vec4<f32> {
	let at = (words.first + min(column, words.columns - 1u)) * words.stride + k;
	let block = at / 32u;
	let pair = unpack2x16float(scales[block / 2u]);
	return signed_bytes(weights[at / 4u]) * select(pair.x, pair.y, block % 2u == 1u);
}
{{end}}
{{end}}

{{define "signed"}}
// signed_bytes takes a word apart into four signed numbers, the lowest byte first.
fn signed_bytes(word: u32) -> vec4<f32> {
	return vec4<f32>(bitcast<vec4<i32>>(vec4<u32>(word << 24u, word << 16u, word << 8u, word)) >> vec4<u32>(24u));
}
{{end}}

{{define "output"}}
{{template "epilogue" .}}
{{if .Vectors}}
@group(0) @binding({{.OutBinding}}) var<storage, read_write> out: array<vec4<f32>>;
{{else}}
@group(0) @binding({{.OutBinding}}) var<storage, read_write> out: array<f32>;
{{end}}
{{if .Bias}}
@group(0) @binding({{.BiasBinding}}) var<storage, read> bias: array<f32>;
{{end}}

// biased returns the biases of four columns. Beyond the last they are those of the last.
fn biased(column: u32) -> vec4<f32> {
	{{if .Bias}}
	let at = vec4<u32>(words.bias) + min(vec4<u32>(column) + vec4<u32>(0u, 1u, 2u, 3u), vec4<u32>(words.columns - 1u));
	return vec4<f32>(bias[at.x], bias[at.y], bias[at.z], bias[at.w]);
	{{else}}
	return vec4<f32>(0.0);
	{{end}}
}

// put stores four columns of a row whose first column is element start of out. Pooled
// sums have been through the epilogue.
fn put(start: u32, column: u32, sums: vec4<f32>{{if .Ragged}}, live: bool{{end}}) {
	if (column >= words.columns) {
		return;
	}
	let at = start + column;
	var old = vec4<f32>(0.0);
	{{if .Vectors}}
	{{if .InPlace}}old = out[at / 4u];{{end}}
	{{else}}
	let count = min(words.columns - column, 4u);
	{{if .InPlace}}
	old.x = out[at];
	if (count > 1u) { old.y = out[at + 1u]; }
	if (count > 2u) { old.z = out[at + 2u]; }
	if (count > 3u) { old.w = out[at + 3u]; }
	{{end}}
	{{end}}
	{{if .Pooled}}
	var v = sums;
	{{else}}
	var v = finish(sums + biased(column), old, bitcast<f32>(words.alpha));
	{{end}}
	{{if .Ragged}}
	v = select(vec4<f32>(0.0), v, live);
	{{end}}
	{{if .Vectors}}
	out[at / 4u] = v;
	{{else}}
	out[at] = v.x;
	if (count > 1u) { out[at + 1u] = v.y; }
	if (count > 2u) { out[at + 2u] = v.z; }
	if (count > 3u) { out[at + 3u] = v.w; }
	{{end}}
}
{{end}}
