{{/*
The largest of each stretch of 1024 numbers of an item; NaN is larger than all, since it
reaches all that is scaled by the result.
*/}}
struct Words {
	numbers: u32,
	stretches: u32,
	from_numbers: u32,
	tiles: u32,
	first_tile: u32,
}
@group(0) @binding(0) var<uniform> words: Words;
@group(0) @binding(1) var<storage, read_write> tops: array<f32>;
@group(0) @binding(2) var<storage, read> numbers: array<f32>;
{{template "nan"}}

var<workgroup> shares: array<vec2<f32>, 64>;

@compute @workgroup_size(64)
fn top(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
	let number = words.first_tile + group.x + group.y * groups.x;
	if (number >= words.tiles) {
		return;
	}
	let start = words.from_numbers + number / words.stretches * words.numbers;
	let first = number % words.stretches * 1024u;
	var most = -3.4028234e38;
	var odd_one = 0.0;
	for (var i = first + thread; i < min(first + 1024u, words.numbers); i += 64u) {
		let v = numbers[start + i];
		most = max(most, v);
		odd_one = select(odd_one, v, is_nan(vec4<f32>(v)).x);
	}
	shares[thread] = vec2<f32>(most, odd_one);
	workgroupBarrier();
	if (thread == 0u) {
		for (var i = 1u; i < 64u; i++) {
			most = max(most, shares[i].x);
			odd_one += shares[i].y;
		}
		tops[number] = select(most, odd_one, is_nan(vec4<f32>(odd_one)).x);
	}
}
