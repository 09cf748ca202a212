{{/*
GroupNorm. An item is cut at fixed places into chunks of rows. moments leaves of each
chunk its mean, in two parts so that an offset costs no digits, its sum of squared
distances from it, and how many elements it has. apply merges those of an item, in every
workgroup anew, and normalises a chunk.
*/}}
struct Words {
	rows: u32,
	item_rows: u32,
	columns: u32,
	quads: u32,
	x: u32,
	x_row: u32,
	x_item: u32,
	y: u32,
	y_row: u32,
	y_item: u32,
	eps: f32,
	chunk: u32,
	chunks: u32,
	lengths: u32,
	tiles: u32,
	first_tile: u32,
	zero: u32,
}
@group(0) @binding(0) var<uniform> words: Words;
{{if eq .Entry "apply"}}
{{template "row_output" .}}
{{end}}
{{template "row_input" .}}
@group(0) @binding({{.PartsBinding}}) var<storage, {{if eq .Entry "moments"}}read_write{{else}}read{{end}}> parts: array<vec4<f32>>;
{{template "row_sums" .}}
{{template "lengths" .}}
{{template "settled"}}
{{if eq .Entry "apply"}}
@group(0) @binding({{.WeightsBinding}}) var<storage, read> weights: array<vec4<f32>>;
{{end}}

fn across(v: vec4<f32>) -> f32 { return (v.x + v.y) + (v.z + v.w); }

@compute @workgroup_size({{.Threads}})
fn {{.Entry}}(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
	let number = words.first_tile + group.x + group.y * groups.x;
	if (number >= words.tiles) {
		return;
	}
	let item = number / words.chunks;
	let first = number % words.chunks * words.chunk;
	let length = length_of(item, words.item_rows, 0u);
	let end = clamp(length, first, min(first + words.chunk, words.item_rows));
	let start = words.x + item * words.x_item + first * words.x_row;
	{{if eq .Entry "moments"}}
	let count = (end - first) * words.quads;
	let elements = f32((end - first) * words.columns);
	var sum = vec4<f32>(0.0);
	for (var i = thread; i < count; i += {{.Threads}}u) {
		sum += load(start + i / words.quads * words.x_row, i % words.quads);
	}
	let rough = settled(total(vec2<f32>(across(sum), 0.0), thread).x / max(elements, 1.0));
	var rest = vec4<f32>(0.0);
	var squares = vec4<f32>(0.0);
	for (var i = thread; i < count; i += {{.Threads}}u) {
		let quad = i % words.quads;
		let d = within(quad, load(start + i / words.quads * words.x_row, quad) - vec4<f32>(rough));
		rest += d;
		squares = fma(d, d, squares);
	}
	let second = total(vec2<f32>(across(rest), across(squares)), thread);
	let fine = second.x / max(elements, 1.0);
	if (thread == 0u) {
		parts[number] = vec4<f32>(rough, fine, fma(-fine, second.x, second.y), elements);
	}
	{{else}}
	let origin = parts[item * words.chunks].x;
	var sum = vec2<f32>(0.0);
	for (var i = thread; i < words.chunks; i += {{.Threads}}u) {
		let part = parts[item * words.chunks + i];
		sum = vec2<f32>(sum.x + part.w, fma(part.w, (part.x - origin) + part.y, sum.y));
	}
	sum = total(sum, thread);
	let elements = max(sum.x, 1.0);
	let mean = settled(sum.y / elements);
	var squares = 0.0;
	for (var i = thread; i < words.chunks; i += {{.Threads}}u) {
		let part = parts[item * words.chunks + i];
		let d = ((part.x - origin) + part.y) - mean;
		squares += fma(part.w * d, d, part.z);
	}
	squares = total(vec2<f32>(squares, 0.0), thread).x;
	let scale = inverseSqrt(settled(squares / elements) + words.eps);
	let dest = words.y + item * words.y_item + first * words.y_row;
	let live = (end - first) * words.quads;
	let count = (min(first + words.chunk, words.item_rows) - first) * words.quads;
	for (var i = thread; i < count; i += {{.Threads}}u) {
		let quad = i % words.quads;
		var v = vec4<f32>(0.0);
		if (i < live) {
			v = ((load(start + i / words.quads * words.x_row, quad) - vec4<f32>(origin)) - vec4<f32>(mean)) * scale;
			v = {{if .Bias}}fma(v, weights[quad], weights[words.quads + quad]){{else}}v * weights[quad]{{end}};
		}
		store(dest + i / words.quads * words.y_row, quad, v);
	}
	{{end}}
}
