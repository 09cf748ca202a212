{{/*
StatsPool. A workgroup takes 32 channels of a line of an item for one mask. Sums are taken
in stretches of 16 rows an invocation, since widths may be long.

Of the weights, the largest is kept apart from the sums of the others and their squares:
Σw − (Σw²)/Σw is a small difference of large numbers where one weight outdoes all others,
but 2·largest·others + (others² − squares), over Σw, is not.
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
{{template "nan"}}

var<workgroup> weight_shares: array<vec4<f32>, {{.Down}}>;

// and_weight counts one more weight in (largest, sum of the others, sum of their squares).
fn and_weight(all: vec4<f32>, w: f32) -> vec4<f32> {
	let less = min(all.x, w);
	return vec4<f32>(max(all.x, w), all.y + less, fma(less, less, all.z), 0.0);
}

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

	var weights = vec4<f32>(0.0);
	var sum = 0.0;
	for (var block = thread / 32u; block < words.width; block += {{mul 16 .Down}}u) {
		var weights_here = vec4<f32>(0.0);
		var sum_here = 0.0;
		for (var i = block; i < min(block + {{mul 16 .Down}}u, words.width); i += {{.Down}}u) {
			let w = mask[weigh + frames[words.frames + i]];
			weights_here = and_weight(weights_here, w);
			sum_here = fma(w, x[start + i * words.x_row], sum_here);
		}
		weights = and_weight(weights, weights_here.x) + vec4<f32>(0.0, weights_here.yz, 0.0);
		sum += sum_here;
	}
	if (thread % 32u == 0u) {
		weight_shares[thread / 32u] = weights;
	}
	sum = total(vec2<f32>(sum, 0.0), thread).x;
	weights = weight_shares[0];
	{{range $i := seq (sub .Down 1)}}
	weights = and_weight(weights, weight_shares[{{add $i 1}}].x) + vec4<f32>(0.0, weight_shares[{{add $i 1}}].yz, 0.0);
	{{end}}
	let empty = weights.x + weights.y == 0.0;
	let weight = select(weights.x + weights.y, 1.0, empty);
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
	let divisor = fma(2.0 * weights.x, weights.y, fma(weights.y, weights.y, -weights.z)) / weight;
	let single = divisor <= 1e-12 * weight;
	let variance = select(fma(-fine, rest.x, rest.y) / divisor, 0.0, single || empty);
	let deviation = sqrt(select(max(variance, 1e-10), variance, is_nan(vec4<f32>(variance)).x));
	if (thread < 32u && column < words.channels) {
		let at = words.y + item * words.y_item + row * words.y_row + column * words.height + line;
		y[at] = select(rough + fine, 0.0, empty);
		y[at + words.channels * words.height] = deviation;
	}
}
