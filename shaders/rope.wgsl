{{/*
Rope: heads turned in place, a pair or with Vectors four pairs at a time. The table has
for each position cosines and then sines; it may come in pieces, which dispatches of their
own take.
*/}}
{{define "position"}}
{{if .PosIndex}}
@group(0) @binding({{.PosBinding}}) var<storage, read> positions: array<u32>;
@group(0) @binding({{.StatusBinding}}) var<storage, read_write> status: array<atomic<u32>>;

// position_of returns what the index of an item is, and 1, or 0 if it is beyond its range.
fn position_of(item: u32) -> vec2<u32> {
	let position = positions[words.pos + item * words.pos_each];
	if (position >= words.pos_valid) {
		atomicOr(&status[0], {{.Fault}}u);
		return vec2<u32>(0u, 0u);
	}
	return vec2<u32>(position, 1u);
}
{{else}}
fn position_of(item: u32) -> vec2<u32> { return vec2<u32>(0u, 1u); }
{{end}}
{{end}}

{{define "turn"}}
// turn turns a pair. Products are taken apart so that all kernels round alike.
fn turn(a: f32, b: f32, cosine: f32, sine: f32) -> vec2<f32> {
	return vec2<f32>(fma(a, cosine, -(b * sine)), fma(b, cosine, a * sine));
}
{{end}}
struct Words {
	units: u32,
	row_units: u32,
	rows: u32,
	x: u32,
	x_row: u32,
	x_item: u32,
	head: u32,
	half: u32,
	table_stride: u32,
	added: u32,
	first: u32,
	count: u32,
	pos: u32,
	pos_each: u32,
	pos_valid: u32,
}
@group(0) @binding(0) var<uniform> words: Words;
{{if .Vectors}}
@group(0) @binding(1) var<storage, read_write> x: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> table: array<vec4<f32>>;
{{else}}
@group(0) @binding(1) var<storage, read_write> x: array<f32>;
@group(0) @binding(2) var<storage, read> table: array<f32>;
{{end}}
{{template "position" .}}
{{template "turn"}}

@compute @workgroup_size(64)
fn {{.Entry}}(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
	let width = groups.x * 64u;
	for (var unit = id.x + id.y * width; unit < words.units; unit += width * groups.y) {
		let row = unit / words.row_units;
		let within = unit % words.row_units{{if .Vectors}} * 4u{{end}};
		let item = row / words.rows;
		let place = position_of(item);
		let position = place.x + words.added + row % words.rows - words.first;
		if (place.y == 0u || position >= words.count) {
			continue;
		}
		let pair = within % words.half;
		let start = words.x + item * words.x_item + row % words.rows * words.x_row + within / words.half * words.head;
		let at = position * words.table_stride + pair;
		{{if .Vectors}}
		let cosine = table[at / 4u];
		let sine = table[(at + words.half) / 4u];
		{{if .Interleaved}}
		let here = (start + 2u * pair) / 4u;
		let low = x[here];
		let high = x[here + 1u];
		let turned0 = turn(low.x, low.y, cosine.x, sine.x);
		let turned1 = turn(low.z, low.w, cosine.y, sine.y);
		let turned2 = turn(high.x, high.y, cosine.z, sine.z);
		let turned3 = turn(high.z, high.w, cosine.w, sine.w);
		x[here] = vec4<f32>(turned0, turned1);
		x[here + 1u] = vec4<f32>(turned2, turned3);
		{{else}}
		let here = (start + pair) / 4u;
		let there = (start + pair + words.half) / 4u;
		let a = x[here];
		let b = x[there];
		x[here] = fma(a, cosine, -(b * sine));
		x[there] = fma(b, cosine, a * sine);
		{{end}}
		{{else}}
		let here = start + {{if .Interleaved}}2u * {{end}}pair;
		let there = here + {{if .Interleaved}}1u{{else}}words.half{{end}};
		let turned = turn(x[here], x[there], table[at], table[at + words.half]);
		x[here] = turned.x;
		x[there] = turned.y;
		{{end}}
	}
}
