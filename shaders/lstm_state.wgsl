{{/*
The state of an LSTM between the rows that its user has and scratch memory with a row for
each item of the batch. Entry save writes the user's rows, load reads them.
*/}}
struct Words {
	units: u32,
	width: u32,
	states: u32,
	cells: u32,
	h: u32,
	h_row: u32,
	h_item: u32,
	c: u32,
	c_row: u32,
	c_item: u32,
	rows: u32,
}
@group(0) @binding(0) var<uniform> words: Words;
{{if eq .Entry "load"}}
@group(0) @binding(1) var<storage, read> h: array<u32>;
@group(0) @binding(2) var<storage, read> c: array<u32>;
@group(0) @binding(3) var<storage, read_write> scratch_h: array<u32>;
@group(0) @binding(4) var<storage, read_write> scratch_c: array<u32>;
{{else}}
@group(0) @binding(1) var<storage, read_write> h: array<u32>;
@group(0) @binding(2) var<storage, read_write> c: array<u32>;
@group(0) @binding(3) var<storage, read> scratch_h: array<u32>;
@group(0) @binding(4) var<storage, read> scratch_c: array<u32>;
{{end}}
{{template "state_rows" .}}

@compute @workgroup_size(64)
fn {{.Entry}}(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
	let stride = groups.x * 64u;
	for (var unit = id.x + id.y * stride; unit < words.units; unit += stride * groups.y) {
		let row = row_of(unit / words.width);
		if (row == 0xffffffffu) {
			continue;
		}
		let within = unit % words.width;
		let h_at = words.h + row * words.h_item + within / words.cells * words.h_row + within % words.cells;
		let c_at = words.c + row * words.c_item + within / words.cells * words.c_row + within % words.cells;
		{{if eq .Entry "load"}}
		scratch_h[unit] = h[h_at];
		scratch_c[unit] = c[c_at];
		{{else}}
		h[h_at] = scratch_h[unit];
		c[c_at] = scratch_c[unit];
		{{end}}
	}
}
