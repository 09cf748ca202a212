{{/*
Gemm. Rows of all items of a batch are one row axis: row r is row r % item_rows of item
r / item_rows. Entries: tile for many rows, few for up to eight, which reads the weights
once.
*/}}
struct Words {
	rows: u32,
	item_rows: u32,
	k: u32,
	stride: u32,
	first: u32,
	columns: u32,
	steps: u32,
	a: u32,
	a_row: u32,
	a_item: u32,
	c: u32,
	c_row: u32,
	c_item: u32,
	bias: u32,
	alpha: u32,
	tiles: u32,
	first_tile: u32,
	tile_rows: u32,
	tile_columns: u32,
	zero: u32,
}
@group(0) @binding(0) var<uniform> words: Words;
{{if .Quads}}
@group(0) @binding(2) var<storage, read> a: array<vec4<f32>>;
{{else}}
@group(0) @binding(2) var<storage, read> a: array<f32>;
{{end}}
{{template "output" .}}
{{if .Fine}}{{if eq .Entry "few"}}{{template "fine" "f32"}}{{else}}{{template "fine" "vec4<f32>"}}{{end}}{{end}}

// row_of returns the first element of a row of A. Rows beyond the last are the last.
fn row_of(row: u32) -> u32 {
	let r = min(row, words.rows - 1u);
	return words.a + r / words.item_rows * words.a_item + r % words.item_rows * words.a_row;
}

// values returns four values of k of the row that starts at an element of A.
fn values(start: u32, k: u32) -> vec4<f32> {
	{{if .Quads}}
	if (k >= words.k) {
		return vec4<f32>(0.0);
	}
	return a[(start + k) / 4u];
	{{else}}
	let at = start + k;
	if (k + 4u <= words.k) {
		return vec4<f32>(a[at], a[at + 1u], a[at + 2u], a[at + 3u]);
	}
	var v = vec4<f32>(0.0);
	if (k < words.k) { v.x = a[at]; }
	if (k + 1u < words.k) { v.y = a[at + 1u]; }
	if (k + 2u < words.k) { v.z = a[at + 2u]; }
	return v;
	{{end}}
}

fn store(row: u32, column: u32, sums: vec4<f32>) {
	put(words.c + row / words.item_rows * words.c_item + row % words.item_rows * words.c_row, column, sums);
}

{{if eq .Entry "tile"}}
{{template "weights" .}}
struct Place { start: u32 }

fn place_a(row: u32) -> Place { return Place(row_of(row)); }

fn load_a(place: Place, k: u32) -> vec4<f32> { return values(place.start, k); }

{{template "tile" .}}
{{else}}
{{template "few" .}}
{{end}}
