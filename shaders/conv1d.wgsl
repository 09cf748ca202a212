{{/*
Conv1D as a matrix product without a stored column matrix: row r is output step
first_step + r % item_rows of item r / item_rows, and k runs over the taps and, within a
tap, over the channels. Of a row of A that is dense in memory (Dense) the values of all
taps follow each other; with Quads four of them are one aligned vector.

With Pooled an output step is the largest of words.turns steps of the convolution, which
only registers see.
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
	bias: u32,
	alpha: u32,
	tiles: u32,
	first_tile: u32,
	tile_rows: u32,
	tile_columns: u32,
	channels: u32,
	kernel: u32,
	hop: u32,
	left: u32,
	right: u32,
	input: u32,
	first_step: u32,
	lengths: u32,
	turns: u32,
	lowest: u32,
}
@group(0) @binding(0) var<uniform> words: Words;
{{if .Quads}}
@group(0) @binding(2) var<storage, read> x: array<vec4<f32>>;
{{else}}
@group(0) @binding(2) var<storage, read> x: array<f32>;
{{end}}
{{template "output" .}}
{{template "weights" .}}
{{template "lengths" .}}

// A Place is where a row of the column matrix begins: the first element of its item, the
// input step of its first tap, which padding may put before the item, and the steps of
// the item; none if the output row lies beyond its end.
struct Place {
	item: i32,
	step: i32,
	length: i32,
}

fn place_a(row: u32{{if .Pooled}}, turn: u32{{end}}) -> Place {
	let r = min(row, words.rows - 1u);
	let item = r / words.item_rows;
	let length = length_of(item, words.input, {{if .Reflect}}max(words.left, words.right){{else}}0u{{end}});
	{{if .Pooled}}
	let first = (words.first_step + r % words.item_rows) * words.turns;
	let step = (first + turn) * words.hop;
	let last = (first + words.turns - 1u) * words.hop;
	{{else}}
	let step = (words.first_step + r % words.item_rows) * words.hop;
	let last = step;
	{{end}}
	let live = length > 0u && last + words.kernel <= length + words.left + words.right;
	return Place(i32(words.x + item * words.x_item), i32(step) - i32(words.left), select(0, i32(length), live));
}

fn element(at: i32) -> f32 {
	{{if .Quads}}
	return x[at / 4][at % 4];
	{{else}}
	return x[at];
	{{end}}
}

// source returns the input step that is read in place of a step, or −1 for a zero.
fn source(step: i32, length: i32) -> i32 {
	if (step >= 0 && step < length) {
		return step;
	}
	{{if .Reflect}}
	let mirrored = select(2 * (length - 1) - step, -step, step < 0);
	if (mirrored >= 0 && mirrored < length) {
		return mirrored;
	}
	{{end}}
	return -1;
}

// single returns one value of the column matrix.
fn single(place: Place, k: u32) -> f32 {
	if (k >= words.k) {
		return 0.0;
	}
	let step = source(place.step + i32(k / words.channels), place.length);
	if (step < 0) {
		return 0.0;
	}
	return element(place.item + step * i32(words.x_row) + i32(k % words.channels));
}

fn load_a(place: Place, k: u32) -> vec4<f32> {
	{{if .Dense}}
	let channels = i32(words.channels);
	let within = place.step * channels + i32(k);
	let at = place.item + within;
	let end = min(place.length * channels, within - i32(k) + i32(words.k));
	if (within >= 0 && within + 4 <= end) {
		{{if .Quads}}
		return x[at / 4];
		{{else}}
		return vec4<f32>(x[at], x[at + 1], x[at + 2], x[at + 3]);
		{{end}}
	}
	{{if not .Reflect}}
	// What lies before the item or behind it is padding, k by k.
	var v = vec4<f32>(0.0);
	{{range $i := seq 4}}
	if (within >= -{{$i}} && within + {{$i}} < end) { v.{{lane $i}} = element(at + {{$i}}); }
	{{end}}
	return v;
	{{end}}
	{{else if .Quads}}
	if (k >= words.k) {
		return vec4<f32>(0.0);
	}
	let step = source(place.step + i32(k / words.channels), place.length);
	if (step < 0) {
		return vec4<f32>(0.0);
	}
	return x[(place.item + step * i32(words.x_row) + i32(k % words.channels)) / 4];
	{{end}}
	{{if or (and .Dense .Reflect) (not (or .Dense .Quads))}}
	return vec4<f32>(single(place, k), single(place, k + 1u), single(place, k + 2u), single(place, k + 3u));
	{{end}}
}

{{if .Pooled}}
// gather returns the larger of what is so far and four columns of another step. Of
// several, NaN does not count.
fn gather(column: u32, best: vec4<f32>, sums: vec4<f32>, turn: u32) -> vec4<f32> {
	let v = {{if .Abs}}abs({{end}}finish(sums + biased(column), vec4<f32>(0.0), bitcast<f32>(words.alpha)){{if .Abs}}){{end}};
	{{if .Several}}
	let so_far = select(best, vec4<f32>(bitcast<f32>(words.lowest)), turn == 0u);
	return select(so_far, v, !is_nan(v) & (v > so_far));
	{{else}}
	return v;
	{{end}}
}
{{end}}

fn store(row: u32, column: u32, sums: vec4<f32>) {
	let at = words.y + row / words.item_rows * words.y_item + row % words.item_rows * words.y_row;
	put(at, column, sums{{if .Ragged}}, place_a(row{{if .Pooled}}, 0u{{end}}).length > 0{{end}});
}

{{template "tile" .}}
