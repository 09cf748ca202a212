{{/*
StatsPool. A workgroup takes 32 channels of a line of an item for one mask. Sums are taken
in stretches of 16 rows an invocation, since widths may be long.
*/}}
struct Words {
	height: u32,
	width: u32,
	channels: u32,
	masks: u32,
	blocks: u32,
	x: u32,
	x_row: u32,
	x_item: u32,
	mask: u32,
	mask_row: u32,
	mask_item: u32,
	y: u32,
	y_row: u32,
	y_item: u32,
	frames: u32,
	tiles: u32,
	first_tile: u32,
}
@group(0) @binding(0) var<uniform> words: Words;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@group(0) @binding(2) var<storage, read> x: array<f32>;
@group(0) @binding(3) var<storage, read> mask: array<f32>;
@group(0) @binding(4) var<storage, read> frames: array<u32>;
{{template "column_sums" .}}

@compute @workgroup_size({{mul 32 .Down}})
fn stats(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
	let number = words.first_tile + group.x + group.y * groups.x;
	if (number >= words.tiles) {
		return;
	}
	let column = number % words.blocks * 32u + thread % 32u;
	let channel = min(column, words.channels - 1u);
	let line = number / words.blocks % words.height;
	let row = number / words.blocks / words.height % words.masks;
	let item = number / words.blocks / words.height / words.masks;
	let start = words.x + item * words.x_item + line * words.width * words.x_row + channel;
	let weigh = words.mask + item * words.mask_item + row * words.mask_row;

	var weights = vec2<f32>(0.0);
	var sum = 0.0;
	for (var block = thread / 32u; block < words.width; block += {{mul 16 .Down}}u) {
		var weights_here = vec2<f32>(0.0);
		var sum_here = 0.0;
		for (var i = block; i < min(block + {{mul 16 .Down}}u, words.width); i += {{.Down}}u) {
			let w = mask[weigh + frames[words.frames + i]];
			weights_here += vec2<f32>(w, w * w);
			sum_here = fma(w, x[start + i * words.x_row], sum_here);
		}
		weights += weights_here;
		sum += sum_here;
	}
	weights = total(weights, thread);
	sum = total(vec2<f32>(sum, 0.0), thread).x;
	let empty = weights.x == 0.0;
	let weight = select(weights.x, 1.0, empty);
	let rough = sum / weight;
	var rest = vec2<f32>(0.0);
	for (var block = thread / 32u; block < words.width; block += {{mul 16 .Down}}u) {
		var rest_here = vec2<f32>(0.0);
		for (var i = block; i < min(block + {{mul 16 .Down}}u, words.width); i += {{.Down}}u) {
			let d = x[start + i * words.x_row] - rough;
			let w = mask[weigh + frames[words.frames + i]];
			rest_here += vec2<f32>(w * d, w * d * d);
		}
		rest += rest_here;
	}
	rest = total(rest, thread);
	let fine = rest.x / weight;
	let divisor = weight - weights.y / weight;
	// What a single column leaves of the divisor is rounding.
	let single = divisor <= 1e-6 * weight;
	let variance = select(fma(-fine, rest.x, rest.y) / divisor, 0.0, single || empty);
	if (thread < 32u && column < words.channels) {
		let at = words.y + item * words.y_item + row * words.y_row + column * words.height + line;
		y[at] = select(rough + fine, 0.0, empty);
		y[at + words.channels * words.height] = sqrt(max(variance, 1e-10));
	}
}
