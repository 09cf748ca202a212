{{/*
Softmax, LogSoftmax (Log) and Argmax. Entries: row and best take rows that fit the
registers of their invocations. Longer ones are cut at fixed places into stretches of
Held·Lanes quads: part and best leave what they find of a stretch in parts, join and pick
go on from there.
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
	stretches: u32,
	tiles: u32,
	first_tile: u32,
	pos: u32,
	pos_each: u32,
	pos_valid: u32,
}
@group(0) @binding(0) var<uniform> words: Words;
{{if or (eq .Entry "row") (eq .Entry "join")}}
{{template "row_output" .}}
{{end}}
{{if ne .Entry "pick"}}
{{template "row_input" .}}
{{end}}
{{if and (or (eq .Entry "best") (eq .Entry "pick")) (not .Part)}}
@group(0) @binding(1) var<storage, read_write> ids: array<u32>;
{{template "position" .}}
{{end}}
{{if .Part}}
@group(0) @binding(1) var<storage, read_write> parts: array<vec2<u32>>;
{{else if or (eq .Entry "join") (eq .Entry "pick")}}
@group(0) @binding({{.PartsBinding}}) var<storage, read> parts: array<vec2<u32>>;
{{end}}
{{if or (eq .Entry "best") (eq .Entry "pick")}}
// greater prefers the lower place among equals.
fn greater(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
	return select(b, a, a.x > b.x || (a.x == b.x && a.y < b.y));
}

{{if not .Part}}
// put stores the place of the largest value of a row.
fn put(row: u32, place: u32) {
	let item = row / words.item_rows;
	let first = position_of(item);
	if (first.y != 0u) {
		ids[words.y + item * words.y_item + (first.x + row % words.item_rows) * words.y_row] = place;
	}
}
{{end}}
{{else}}
{{template "nan"}}
{{template "exp"}}
{{template "row_sums" .}}
fn greater(a: u32, b: u32) -> u32 { return max(a, b); }

// nothing is the key of −infinity, which NaN has too.
const nothing: u32 = 0x007fffffu;

// share_of returns e^(v − top). Where nothing is larger than −infinity it returns zeros,
// but for NaN.
fn share_of(v: vec4<f32>, top: u32) -> vec4<f32> {
	if (top == nothing) {
		return select(vec4<f32>(0.0), v, is_nan(v));
	}
	let d = v - vec4<f32>(value_of(top));
	let e = select(exp_within(d), vec4<f32>(0.0), is_negative(d + 87.0));
	return select(e, d, is_nan(d));
}

{{if .Log}}
// log_of is the logarithm of numbers from one on: the exponent, and 2·artanh of the rest.
fn log_of(v: f32) -> f32 {
	let bits = bitcast<u32>(v);
	let exponent = (bits + 0x4afb0du - 0x3f800000u) >> 23u;
	let f = bitcast<f32>(bits - (exponent << 23u)) - 1.0;
	let s = f / (2.0 + f);
	let z = s * s;
	let tail = fma(z, fma(z, fma(z, fma(z, 0.18181819, 0.22222222), 0.2857143), 0.4), 0.6666667);
	let log = fma(f32(exponent), 0.693145751953125, fma(f32(exponent), 1.42860682e-06, fma(s * z, tail, 2.0 * s)));
	return select(log, v, is_nan(vec4<f32>(v)).x);
}
{{end}}

// result returns what becomes of a quad whose shares are e, of the sum of all.
fn result(v: vec4<f32>, e: vec4<f32>, top: u32, sum: f32{{if .Log}}, log: f32{{end}}) -> vec4<f32> {
	let largest = value_of(top);
	{{if .Log}}
	return select((v - vec4<f32>(largest)) - vec4<f32>(log), vec4<f32>(largest + sum), top == nothing);
	{{else}}
	return select(e * (1.0 / sum), vec4<f32>(sum), top == nothing);
	{{end}}
}

fn across(v: vec4<f32>) -> f32 { return (v.x + v.y) + (v.z + v.w); }
{{end}}
{{template "keys"}}
{{if or (eq .Entry "row") (eq .Entry "part") (eq .Entry "best")}}
{{template "row_largest" .}}

// keys_within returns keys, with 0 for what lies beyond the end of the row.
fn keys_within(quad: u32, v: vec4<f32>) -> vec4<u32> {
	return select(vec4<u32>(0u), key_of(v), vec4<u32>(quad * 4u) + vec4<u32>(0u, 1u, 2u, 3u) < vec4<u32>(words.columns));
}
{{end}}
{{if eq .Entry "pick"}}
@compute @workgroup_size(64)
fn pick(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
	let row = words.first_tile * 64u + id.x + id.y * groups.x * 64u;
	if (row >= words.rows) {
		return;
	}
	var top = parts[row * words.stretches];
	for (var i = 1u; i < words.stretches; i++) {
		top = greater(top, parts[row * words.stretches + i]);
	}
	put(row, top.y);
}
{{else}}
@compute @workgroup_size({{.Threads}})
fn {{.Entry}}(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
	let number = words.first_tile + group.x + group.y * groups.x;
	if (number >= words.tiles) {
		return;
	}
	let first = number % words.stretches * {{mul .Held .Lanes}}u + thread % {{.Lanes}}u;
	let given = number / words.stretches * {{div .Threads .Lanes}}u + thread / {{.Lanes}}u;
	let row = min(given, words.rows - 1u);
	let live = given < words.rows;
	let item = row / words.item_rows;
	let start = words.x + item * words.x_item + row % words.item_rows * words.x_row;
	{{range $i := seq .Held}}
	let quad{{$i}} = first{{if gt $i 0}} + {{mul $i $.Lanes}}u{{end}};
	var v{{$i}} = within(quad{{$i}}, load(start, min(quad{{$i}}, words.quads - 1u)));
	{{end}}
	{{if eq .Entry "best"}}
	var top = vec2<u32>(0u, 0u);
	{{range $i := seq .Held}}
	{
		let keys = keys_within(quad{{$i}}, v{{$i}});
		{{range $j := seq 4}}
		if (keys.{{lane $j}} > top.x) {
			top = vec2<u32>(keys.{{lane $j}}, quad{{$i}} * 4u + {{$j}}u);
		}
		{{end}}
	}
	{{end}}
	top = largest(top, thread);
	if (live && thread % {{.Lanes}}u == 0u) {
		{{if .Part}}
		parts[row * words.stretches + number % words.stretches] = top;
		{{else}}
		put(row, top.y);
		{{end}}
	}
	{{else}}
	{{if eq .Entry "join"}}
	var top = 0u;
	for (var i = 0u; i < words.stretches; i++) {
		top = max(top, parts[row * words.stretches + i].x);
	}
	var sum = 0.0;
	for (var i = 0u; i < words.stretches; i++) {
		let part = parts[row * words.stretches + i];
		sum = fma(share_of(vec4<f32>(value_of(part.x)), top).x, bitcast<f32>(part.y), sum);
	}
	{{else}}
	var keys = vec4<u32>(0u);
	{{range $i := seq .Held}}
	keys = max(keys, keys_within(quad{{$i}}, v{{$i}}));
	{{end}}
	let top = largest(max(max(keys.x, keys.y), max(keys.z, keys.w)), thread);
	var shares_sum = vec4<f32>(0.0);
	{{range $i := seq .Held}}
	let e{{$i}} = within(quad{{$i}}, share_of(v{{$i}}, top));
	shares_sum += e{{$i}};
	{{end}}
	let sum = total(vec2<f32>(across(shares_sum), 0.0), thread).x;
	{{end}}
	{{if eq .Entry "part"}}
	if (live && thread % {{.Lanes}}u == 0u) {
		parts[row * words.stretches + number % words.stretches] = vec2<u32>(top, bitcast<u32>(sum));
	}
	{{else}}
	{{if .Log}}
	let log = log_of(sum);
	{{end}}
	let dest = words.y + item * words.y_item + row % words.item_rows * words.y_row;
	{{range $i := seq .Held}}
	if (live && quad{{$i}} < words.quads) {
		store(dest, quad{{$i}}, result(v{{$i}}, {{if eq $.Entry "join"}}share_of(v{{$i}}, top){{else}}e{{$i}}{{end}}, top, sum{{if $.Log}}, log{{end}}));
	}
	{{end}}
	{{end}}
	{{end}}
}
{{end}}
