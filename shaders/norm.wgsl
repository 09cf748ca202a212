{{/*
LayerNorm and L2Norm: entries layer and length. Rows of up to Held quads an invocation are
read once and held in registers; with Held 0 they are read as often as they are needed.

layer takes the mean, then what remains of the mean and the variance about it in one go:
so an offset costs no digits. With Rotated it reads back the row that it has stored, and
stores it turned.
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
	tiles: u32,
	first_tile: u32,
	turned: u32,
	turned_row: u32,
	turned_item: u32,
	head: u32,
	half: u32,
	table_stride: u32,
	table: u32,
	pos: u32,
	pos_each: u32,
	pos_valid: u32,
	zero: u32,
}
@group(0) @binding(0) var<uniform> words: Words;
{{template "row_output" .}}
{{template "row_input" .}}
{{template "row_sums" .}}
{{template "settled"}}
{{template "settled_quad"}}
{{if eq .Entry "layer"}}
@group(0) @binding({{.WeightsBinding}}) var<storage, read> weights: array<vec4<f32>>;
{{else}}
{{template "nan"}}
fn greater(a: u32, b: u32) -> u32 { return max(a, b); }

{{template "row_largest" .}}
{{end}}
{{if .Rotated}}
@group(0) @binding({{.TurnedBinding}}) var<storage, read_write> turned: array<f32>;
@group(0) @binding({{.TableBinding}}) var<storage, read> table: array<f32>;
{{template "position" .}}
{{template "turn"}}

fn stored(at: u32) -> f32 {
	{{if .Vectors}}
	return y[at / 4u][at % 4u];
	{{else}}
	return y[at];
	{{end}}
}

// turned_value returns a column of a row of y whose heads are turned by halves.
fn turned_value(start: u32, column: u32, at_table: u32) -> f32 {
	let within = column % words.head;
	let here = start + column;
	if (within < words.half) {
		return turn(stored(here), stored(here + words.half), table[at_table + within], table[at_table + words.half + within]).x;
	}
	if (within < 2u * words.half) {
		let pair = within - words.half;
		return turn(stored(here - words.half), stored(here), table[at_table + pair], table[at_table + words.half + pair]).y;
	}
	return stored(here);
}
{{end}}

fn across(v: vec4<f32>) -> f32 { return (v.x + v.y) + (v.z + v.w); }

@compute @workgroup_size({{.Threads}})
fn {{.Entry}}(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
	let number = words.first_tile + group.x + group.y * groups.x;
	if (number >= words.tiles) {
		return;
	}
	let lane = thread % {{.Lanes}}u;
	let given = number * {{div .Threads .Lanes}}u + thread / {{.Lanes}}u;
	let row = min(given, words.rows - 1u);
	let item = row / words.item_rows;
	let start = words.x + item * words.x_item + row % words.item_rows * words.x_row;
	let dest = words.y + item * words.y_item + row % words.item_rows * words.y_row;
	{{range $i := seq .Held}}
	let quad{{$i}} = lane{{if gt $i 0}} + {{mul $i $.Lanes}}u{{end}};
	var v{{$i}} = within(quad{{$i}}, load(start, min(quad{{$i}}, words.quads - 1u)));
	{{end}}
	{{if eq .Entry "layer"}}
	let count = f32(words.columns);
	var sum = vec4<f32>(0.0);
	{{if gt .Held 0}}
	{{range $i := seq .Held}}
	sum += v{{$i}};
	{{end}}
	{{else}}
	for (var q = lane; q < words.quads; q += {{.Lanes}}u) {
		sum += load(start, q);
	}
	{{end}}
	let rough = settled(total(vec2<f32>(across(sum), 0.0), thread).x / count);
	var rest = vec4<f32>(0.0);
	var squares = vec4<f32>(0.0);
	{{if gt .Held 0}}
	{{range $i := seq .Held}}
	v{{$i}} = within(quad{{$i}}, v{{$i}} - vec4<f32>(rough));
	rest += v{{$i}};
	squares = fma(v{{$i}}, v{{$i}}, squares);
	{{end}}
	{{else}}
	for (var q = lane; q < words.quads; q += {{.Lanes}}u) {
		let d = within(q, load(start, q) - vec4<f32>(rough));
		rest += d;
		squares = fma(d, d, squares);
	}
	{{end}}
	let second = total(vec2<f32>(across(rest), across(settled_quad(squares))), thread) / count;
	let fine = settled(second.x);
	let scale = inverseSqrt(max(fma(-fine, fine, second.y), 0.0) + words.eps);
	{{else}}
	var key = 0u;
	{{if gt .Held 0}}
	{{range $i := seq .Held}}
	key = max(key, size_of(v{{$i}}));
	{{end}}
	{{else}}
	for (var q = lane; q < words.quads; q += {{.Lanes}}u) {
		key = max(key, size_of(load(start, q)));
	}
	{{end}}
	// Everything is scaled by a power of two, so that the largest is about one.
	let exponent = clamp(largest(key, thread) & 0x7f800000u, 0x00800000u, 0x7e000000u);
	let down = bitcast<f32>(0x7f000000u - exponent);
	var squares = vec4<f32>(0.0);
	{{if gt .Held 0}}
	{{range $i := seq .Held}}
	v{{$i}} = v{{$i}} * down;
	squares = fma(v{{$i}}, v{{$i}}, squares);
	{{end}}
	{{else}}
	for (var q = lane; q < words.quads; q += {{.Lanes}}u) {
		let d = load(start, q) * down;
		squares = fma(d, d, squares);
	}
	{{end}}
	let sum = total(vec2<f32>(across(settled_quad(squares)), 0.0), thread).x;
	let length = max(sqrt(sum), words.eps * down);
	let scale = select(1.0 / length, sum, is_nan(vec4<f32>(sum)).x);
	{{end}}
	let live = given < words.rows;
	{{if gt .Held 0}}
	{{range $i := seq .Held}}
	if (live && quad{{$i}} < words.quads) {
		{{if eq $.Entry "layer"}}
		store(dest, quad{{$i}}, weighed(quad{{$i}}, (v{{$i}} - vec4<f32>(fine)) * scale));
		{{else}}
		store(dest, quad{{$i}}, v{{$i}} * scale);
		{{end}}
	}
	{{end}}
	{{else}}
	if (live) {
		for (var q = lane; q < words.quads; q += {{.Lanes}}u) {
			{{if eq .Entry "layer"}}
			store(dest, q, weighed(q, ((load(start, q) - vec4<f32>(rough)) - vec4<f32>(fine)) * scale));
			{{else}}
			store(dest, q, load(start, q) * down * scale);
			{{end}}
		}
	}
	{{end}}
	{{if .Rotated}}
	storageBarrier();
	let place = position_of(item);
	if (live && place.y != 0u) {
		let at_table = words.table + (place.x + row % words.item_rows) * words.table_stride;
		let to = words.turned + item * words.turned_item + row % words.item_rows * words.turned_row;
		for (var c = lane; c < words.columns; c += {{.Lanes}}u) {
			turned[to + c] = turned_value(dest, c, at_table);
		}
	}
	{{end}}
}

{{if eq .Entry "layer"}}
// weighed applies the gain of a quad of channels, and its bias if there is any.
fn weighed(quad: u32, v: vec4<f32>) -> vec4<f32> {
	{{if .Bias}}
	return fma(v, weights[quad], weights[words.quads + quad]);
	{{else}}
	return v * weights[quad];
	{{end}}
}
{{else}}
// size_of returns the bits of the largest magnitude.
fn size_of(v: vec4<f32>) -> u32 {
	let bits = bitcast<vec4<u32>>(v) & vec4<u32>(0x7fffffffu);
	return max(max(bits.x, bits.y), max(bits.z, bits.w));
}
{{end}}
