{{/*
Conv2D as a matrix product without a stored column matrix: row r is pixel r % item_rows of
the output lines of item r / item_rows, and k runs over the taps of the kernel and, within
a tap, over the channels. With Quads four channels are one aligned vector; Channels is
their number if it is fixed in the text, which makes divisions cheap, else 0.
*/}}
struct Words {
	rows: u32,
	item_rows: u32,
	k: u32,
	stride: u32,
	first: u32,
	columns: u32,
	steps: u32,
	x: u32,
	x_row: u32,
	x_item: u32,
	y: u32,
	y_row: u32,
	y_item: u32,
	residual: u32,
	residual_row: u32,
	residual_item: u32,
	bias: u32,
	alpha: u32,
	tiles: u32,
	first_tile: u32,
	tile_rows: u32,
	tile_columns: u32,
	channels: u32,
	hop: u32,
	height: u32,
	width: u32,
	out_width: u32,
	first_line: u32,
}
@group(0) @binding(0) var<uniform> words: Words;
{{if .Quads}}
@group(0) @binding(2) var<storage, read> x: array<vec4<f32>>;
{{else}}
@group(0) @binding(2) var<storage, read> x: array<f32>;
{{end}}
{{template "output" .}}
{{template "weights" .}}
{{if .Residual}}
{{if .Vectors}}
@group(0) @binding({{.ResidualBinding}}) var<storage, read> residual: array<vec4<f32>>;
{{else}}
@group(0) @binding({{.ResidualBinding}}) var<storage, read> residual: array<f32>;
{{end}}

// kept returns the residual of four columns of a row.
fn kept(row: u32, column: u32) -> vec4<f32> {
	var v = vec4<f32>(0.0);
	if (column < words.columns) {
		let at = words.residual + row / words.item_rows * words.residual_item + row % words.item_rows * words.residual_row + column;
		{{if .Vectors}}
		v = residual[at / 4u];
		{{else}}
		let count = words.columns - column;
		v.x = residual[at];
		if (count > 1u) { v.y = residual[at + 1u]; }
		if (count > 2u) { v.z = residual[at + 2u]; }
		if (count > 3u) { v.w = residual[at + 3u]; }
		{{end}}
	}
	return v;
}
{{end}}

// A Place is where a row of the column matrix begins: the first element of its image, and
// the line and the column of its first tap, which may lie outside.
struct Place {
	item: u32,
	line: i32,
	column: i32,
}

fn place_a(row: u32) -> Place {
	let r = min(row, words.rows - 1u);
	let pixel = r % words.item_rows;
	let line = i32((words.first_line + pixel / words.out_width) * words.hop) - {{quotient .Size 2}};
	return Place(words.x + r / words.item_rows * words.x_item, line, i32(pixel % words.out_width * words.hop) - {{quotient .Size 2}});
}

// pixel returns the first element that a tap reads, or 0xffffffff for zeros.
fn pixel_of(place: Place, tap: u32) -> u32 {
	let line = u32(place.line + i32(tap / {{.Size}}u));
	let column = u32(place.column + i32(tap % {{.Size}}u));
	if (line >= words.height || column >= words.width) {
		return 0xffffffffu;
	}
	return place.item + (line * words.width + column) * words.x_row;
}

{{if not .Quads}}
// single returns one value of the column matrix.
fn single(place: Place, k: u32) -> f32 {
	if (k >= words.k) {
		return 0.0;
	}
	let at = pixel_of(place, k / {{if .Channels}}{{.Channels}}u{{else}}words.channels{{end}});
	if (at == 0xffffffffu) {
		return 0.0;
	}
	return x[at + k % {{if .Channels}}{{.Channels}}u{{else}}words.channels{{end}}];
}
{{end}}

fn load_a(place: Place, k: u32) -> vec4<f32> {
	{{if .Quads}}
	if (k >= words.k) {
		return vec4<f32>(0.0);
	}
	let at = pixel_of(place, k / {{if .Channels}}{{.Channels}}u{{else}}words.channels{{end}});
	if (at == 0xffffffffu) {
		return vec4<f32>(0.0);
	}
	return x[(at + k % {{if .Channels}}{{.Channels}}u{{else}}words.channels{{end}}) / 4u];
	{{else}}
	return vec4<f32>(single(place, k), single(place, k + 1u), single(place, k + 2u), single(place, k + 3u));
	{{end}}
}

fn store(row: u32, column: u32, sums: vec4<f32>) {
	let at = words.y + row / words.item_rows * words.y_item + row % words.item_rows * words.y_row;
	put(at, column, sums{{if .Residual}} + kept(row, column){{end}});
}

{{template "tile" .}}
