{{/*
Embed: rows of a table, picked by ids, with rows of positions added. A unit is four
columns. A table that is larger than a binding comes in pieces, which dispatches of their
own take: each stores the rows that are in its piece. Entry add adds rows of a piece
of the positions to what is there.
*/}}
{{define "embed_row"}}
{{if eq .Type "F32"}}
fn table_row(row: u32, column: u32) -> vec4<f32> {
	return bitcast<vec4<f32>>(table[(row * words.stride + column) / 4u]);
}
{{else if eq .Type "Q8_0"}}
@group(0) @binding({{.ScaleBinding}}) var<storage, read> scales: array<u32>;

{{template "signed"}}

fn table_row(row: u32, column: u32) -> vec4<f32> {
	let at = row * words.stride + column;
	let pair = unpack2x16float(scales[at / 64u]);
	return signed_bytes(table[at / 16u][at / 4u % 4u]) * select(pair.x, pair.y, at / 32u % 2u == 1u);
}
{{else}}
fn table_row(row: u32, column: u32) -> vec4<f32> {
	let at = row * words.stride + column;
	let eight = table[at / 8u];
	return halves_{{.Type}}(select(eight.xy, eight.zw, at / 4u % 2u == 1u));
}
{{end}}
{{end}}

{{define "halves"}}
fn halves_F16(pair: vec2<u32>) -> vec4<f32> {
	return vec4<f32>(unpack2x16float(pair.x), unpack2x16float(pair.y));
}

fn halves_BF16(pair: vec2<u32>) -> vec4<f32> {
	return bitcast<vec4<f32>>(vec4<u32>(pair.x << 16u, pair.x & 0xffff0000u, pair.y << 16u, pair.y & 0xffff0000u));
}
{{end}}
struct Words {
	units: u32,
	row_units: u32,
	rows: u32,
	y: u32,
	y_row: u32,
	y_item: u32,
	columns: u32,
	stride: u32,
	first: u32,
	count: u32,
	all: u32,
	ids: u32,
	ids_row: u32,
	ids_item: u32,
	id: u32,
	id_each: u32,
	id_valid: u32,
	position_stride: u32,
	position: u32,
	pos: u32,
	pos_each: u32,
	pos_valid: u32,
}
@group(0) @binding(0) var<uniform> words: Words;
{{if .Vectors}}
@group(0) @binding(1) var<storage, read_write> y: array<vec4<f32>>;
{{else}}
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
{{end}}
@group(0) @binding(2) var<storage, read> table: array<vec4<u32>>;
{{template "halves"}}
{{template "embed_row" .}}
{{if eq .Entry "embed"}}
@group(0) @binding({{.IDsBinding}}) var<storage, read> ids: array<u32>;
{{if .IDIndex}}
@group(0) @binding({{.IDBinding}}) var<storage, read> id_index: array<u32>;
{{end}}
{{end}}
{{if .PosIndex}}
@group(0) @binding({{.PosBinding}}) var<storage, read> positions: array<u32>;
{{end}}
{{if ne .StatusBinding 0}}
@group(0) @binding({{.StatusBinding}}) var<storage, read_write> status: array<atomic<u32>>;
{{end}}
{{if ne .Positions "none"}}
@group(0) @binding({{.PositionsBinding}}) var<storage, read> position_table: array<vec4<u32>>;

fn position_row(row: u32, column: u32) -> vec4<f32> {
	let at = row * words.position_stride + column;
	{{if eq .Positions "F32"}}
	return bitcast<vec4<f32>>(position_table[at / 4u]);
	{{else}}
	let eight = position_table[at / 8u];
	return halves_{{.Positions}}(select(eight.xy, eight.zw, at / 4u % 2u == 1u));
	{{end}}
}
{{end}}

{{if or (eq .Entry "add") (ne .Positions "none")}}
// position_of returns the position of a row, and 1, or 0 if it is beyond the range.
fn position_of(item: u32, row: u32) -> vec2<u32> {
	{{if .PosIndex}}
	let start = positions[words.pos + item * words.pos_each];
	if (start >= words.pos_valid) {
		atomicOr(&status[0], {{.Fault}}u);
		return vec2<u32>(0u, 0u);
	}
	return vec2<u32>(start + words.position + row, 1u);
	{{else}}
	return vec2<u32>(words.position + row, 1u);
	{{end}}
}
{{end}}

{{if eq .Entry "embed"}}
// id_of returns the id of a row, 0 in place of one that is beyond the table, and 1, or 0
// if there is no id.
fn id_of(item: u32, row: u32) -> vec2<u32> {
	var at = words.ids + item * words.ids_item + row * words.ids_row;
	{{if .IDIndex}}
	let start = id_index[words.id + item * words.id_each];
	if (start >= words.id_valid) {
		atomicOr(&status[0], {{.Fault}}u);
		return vec2<u32>(0u, 0u);
	}
	at += start * words.ids_row;
	{{end}}
	let id = ids[at];
	if (id >= words.all) {
		atomicOr(&status[0], {{.Fault}}u);
		return vec2<u32>(0u, 1u);
	}
	return vec2<u32>(id, 1u);
}
{{end}}

@compute @workgroup_size(64)
fn {{.Entry}}(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
	let width = groups.x * 64u;
	for (var unit = id.x + id.y * width; unit < words.units; unit += width * groups.y) {
		let column = unit % words.row_units * 4u;
		let item = unit / words.row_units / words.rows;
		let row = unit / words.row_units % words.rows;
		{{if eq .Entry "embed"}}
		let picked = id_of(item, row);
		{{else}}
		let picked = position_of(item, row);
		{{end}}
		if (picked.y == 0u || picked.x - words.first >= words.count) {
			continue;
		}
		var v = table_row(picked.x - words.first, column);
		{{if ne .Positions "none"}}
		let position = position_of(item, row);
		if (position.y == 0u) {
			continue;
		}
		v += position_row(position.x, column);
		{{end}}
		let at = words.y + item * words.y_item + row * words.y_row + column;
		{{if .Vectors}}
		{{if eq .Entry "add"}}
		v += y[at / 4u];
		{{end}}
		y[at / 4u] = v;
		{{else}}
		let left = words.columns - column;
		{{range $i := seq 4}}
		if (left > {{$i}}u) { y[at + {{$i}}u] = {{if eq $.Entry "add"}}y[at + {{$i}}u] + {{end}}v.{{lane $i}}; }
		{{end}}
		{{end}}
	}
}
