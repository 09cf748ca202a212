{{/*
Permute: words are moved, never numbers. gather takes elements of the output, or with
Vectors four at a time, in order. transpose is for what gather would read with a stride:
it takes tiles of 32 × 32 of the axis that is last in the output (along) and the one that
is last in the input (across) through workgroup memory.
*/}}
struct Words {
	units: u32,
	row_units: u32,
	rows: u32,
	y: u32,
	y_item: u32,
	y_middle: u32,
	y_row: u32,
	x: u32,
	x_outer: u32,
	x_middle: u32,
	x_inner: u32,
	x_along: u32,
	inner: u32,
	tiles: u32,
	first_tile: u32,
	along: u32,
	across: u32,
	tiles_along: u32,
	tiles_across: u32,
	y_outer: u32,
	y_inner: u32,
	y_across: u32,
}
@group(0) @binding(0) var<uniform> words: Words;
{{if .Vectors}}
@group(0) @binding(1) var<storage, read_write> y: array<vec4<u32>>;
@group(0) @binding(2) var<storage, read> x: array<vec4<u32>>;
{{else}}
@group(0) @binding(1) var<storage, read_write> y: array<u32>;
@group(0) @binding(2) var<storage, read> x: array<u32>;
{{end}}

{{if eq .Entry "gather"}}
@compute @workgroup_size(64)
fn gather(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
	let width = groups.x * 64u;
	for (var unit = id.x + id.y * width; unit < words.units; unit += width * groups.y) {
		let column = unit % words.row_units{{if .Vectors}} * 4u{{end}};
		let item = unit / words.row_units / words.rows;
		let row = unit / words.row_units % words.rows;
		let here = words.x + item * words.x_outer + row / words.inner * words.x_middle + row % words.inner * words.x_inner + column * words.x_along;
		let at = words.y + item * words.y_item + row / words.inner * words.y_middle + row % words.inner * words.y_row + column;
		y[at{{if .Vectors}} / 4u{{end}}] = x[here{{if .Vectors}} / 4u{{end}}];
	}
}
{{else}}
var<workgroup> staged: array<array<u32, 33>, 32>;

@compute @workgroup_size({{mul 32 .Down}})
fn transpose(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
	let number = words.first_tile + group.x + group.y * groups.x;
	if (number >= words.tiles) {
		return;
	}
	let across = number % words.tiles_across * 32u;
	let along = number / words.tiles_across % words.tiles_along * 32u;
	let outer = number / words.tiles_across / words.tiles_along;
	let here = words.x + outer / words.inner * words.x_outer + outer % words.inner * words.x_inner;
	let at = words.y + outer / words.inner * words.y_outer + outer % words.inner * words.y_inner;
	let lane = thread % 32u;
	for (var i = thread / 32u; i < 32u; i += {{.Down}}u) {
		if (along + i < words.along && across + lane < words.across) {
			staged[i][lane] = x[here + (along + i) * words.x_along + across + lane];
		}
	}
	workgroupBarrier();
	for (var i = thread / 32u; i < 32u; i += {{.Down}}u) {
		if (across + i < words.across && along + lane < words.along) {
			y[at + (across + i) * words.y_across + along + lane] = staged[lane][i];
		}
	}
}
{{end}}
