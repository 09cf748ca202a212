{{/*
Copy and Fill: words are moved, never numbers. A unit is one element, or with Vectors four.
*/}}
struct Words {
	units: u32,
	row_units: u32,
	rows: u32,
	to: u32,
	to_row: u32,
	to_item: u32,
	to_index: u32,
	to_each: u32,
	to_valid: u32,
	source: u32,
	source_row: u32,
	source_item: u32,
	source_index: u32,
	source_each: u32,
	source_valid: u32,
	value: u32,
}
@group(0) @binding(0) var<uniform> words: Words;
{{if .Vectors}}
@group(0) @binding(1) var<storage, read_write> dest: array<vec4<u32>>;
{{else}}
@group(0) @binding(1) var<storage, read_write> dest: array<u32>;
{{end}}
{{if eq .Entry "copy"}}
{{if .Vectors}}
@group(0) @binding(2) var<storage, read> source: array<vec4<u32>>;
{{else}}
@group(0) @binding(2) var<storage, read> source: array<u32>;
{{end}}
{{if .SourceIndex}}
@group(0) @binding({{.SourceBinding}}) var<storage, read> source_index: array<u32>;
{{end}}
{{if .ToIndex}}
@group(0) @binding({{.ToBinding}}) var<storage, read> to_index: array<u32>;
{{end}}
{{if or .SourceIndex .ToIndex}}
@group(0) @binding({{.StatusBinding}}) var<storage, read_write> status: array<atomic<u32>>;
{{end}}
{{end}}

@compute @workgroup_size(64)
fn {{.Entry}}(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
	let width = groups.x * 64u;
	for (var unit = id.x + id.y * width; unit < words.units; unit += width * groups.y) {
		let row = unit / words.row_units;
		let column = unit % words.row_units{{if .Vectors}} * 4u{{end}};
		let item = row / words.rows;
		var at = words.to + item * words.to_item + row % words.rows * words.to_row + column;
		{{if eq .Entry "copy"}}
		var start = words.source + item * words.source_item + row % words.rows * words.source_row + column;
		{{if .SourceIndex}}
		let source_first = source_index[words.source_index + item * words.source_each];
		if (source_first >= words.source_valid) {
			atomicOr(&status[0], {{.Fault}}u);
			continue;
		}
		start += source_first * words.source_row;
		{{end}}
		{{if .ToIndex}}
		let to_first = to_index[words.to_index + item * words.to_each];
		if (to_first >= words.to_valid) {
			atomicOr(&status[0], {{.Fault}}u);
			continue;
		}
		at += to_first * words.to_row;
		{{end}}
		dest[at{{if .Vectors}} / 4u{{end}}] = source[start{{if .Vectors}} / 4u{{end}}];
		{{else}}
		dest[at{{if .Vectors}} / 4u{{end}}] = {{if .Vectors}}vec4<u32>(words.value){{else}}words.value{{end}};
		{{end}}
	}
}
