{{/*
Numbers of items, checked: for kernels that have no binding left for the status word.
*/}}
struct Words {
	units: u32,
	most: u32,
	lengths: u32,
}
@group(0) @binding(0) var<uniform> words: Words;
@group(0) @binding(1) var<storage, read_write> checked: array<u32>;
{{template "lengths" .}}

@compute @workgroup_size(64)
fn items(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
	let width = groups.x * 64u;
	for (var item = id.x + id.y * width; item < words.units; item += width * groups.y) {
		checked[item] = length_of(item, words.most, 0u);
	}
}
