{{/*
Joins what attention_split.wgsl found in stretches of keys: weighed by the largest score
of each. A unit is a quad of the output.
*/}}
struct Words {
	units: u32,
	row_units: u32,
	queries: u32,
	splits: u32,
	heads: u32,
	o: u32,
	o_row: u32,
	o_item: u32,
	from_slab: u32,
	from_query: u32,
	row_count: u32,
	lengths: u32,
}
@group(0) @binding(0) var<uniform> words: Words;
@group(0) @binding(1) var<storage, read> found: array<vec4<f32>>;
{{template "attention_output" .}}
{{template "lengths" .}}

@compute @workgroup_size(64)
fn join(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
	let width = groups.x * 64u;
	for (var unit = id.x + id.y * width; unit < words.units; unit += width * groups.y) {
		let row = unit / words.row_units;
		let quad = unit % words.row_units;
		let each = words.row_units + 1u;
		let first = row * words.splits * each;
		var most = found[first].x;
		for (var i = 1u; i < words.splits; i++) {
			most = max(most, found[first + i * each].x);
		}
		var total = 0.0;
		var sum = vec4<f32>(0.0);
		for (var i = 0u; i < words.splits; i++) {
			let top = found[first + i * each];
			let weight = exp2(top.x - most);
			total = fma(weight, top.y, total);
			sum = fma(vec4<f32>(weight), found[first + i * each + 1u + quad], sum);
		}
		let slab = words.from_slab + row / words.row_count;
		let query = words.from_query + row % words.row_count;
		let live = !(total == 0.0) && query < length_of(slab / words.heads, words.queries, 0u);
		let at = words.o + slab / words.heads * words.o_item + query * words.o_row + slab % words.heads * words.row_units * 4u;
		store(at, quad, select(vec4<f32>(0.0), sum / total, live));
	}
}
