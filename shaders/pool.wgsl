{{/*
StatsPool. A workgroup takes 32 channels of a line of an item for one mask. Sums are taken
in stretches of 16 rows an invocation, since widths may be long. Long lines are cut at
fixed places into chunks: moments leaves for each chunk and channel its weights, mean in
two parts and sum of squared distances from it, and join merges those of a line.

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
	chunk: u32,
	chunks: u32,
	from_part: u32,
	tiles: u32,
	first_tile: u32,
	zero: u32,
}
@group(0) @binding(0) var<uniform> words: Words;
{{if eq .Entry "moments"}}
@group(0) @binding(1) var<storage, read_write> parts: array<vec4<f32>>;
{{else}}
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
{{end}}
{{if eq .Entry "join"}}
@group(0) @binding(2) var<storage, read> parts: array<vec4<f32>>;
{{else}}
@group(0) @binding(2) var<storage, read> x: array<f32>;
@group(0) @binding(3) var<storage, read> mask: array<f32>;
@group(0) @binding(4) var<storage, read> frames: array<u32>;
{{template "column_sums" .}}
{{end}}
{{template "nan"}}
{{template "settled"}}

// and_weight counts one more weight in (largest, sum of the others, sum of their squares).
fn and_weight(all: vec4<f32>, w: f32) -> vec4<f32> {
	let less = min(all.x, w);
	return vec4<f32>(max(all.x, w), all.y + less, fma(less, less, all.z), 0.0);
}
{{if ne .Entry "moments"}}
// finish stores mean and deviation of a channel of a line.
fn finish(item: u32, row: u32, line: u32, column: u32, weights: vec4<f32>, mean: f32, squares: f32) {
	let empty = weights.x + weights.y == 0.0;
	let weight = select(weights.x + weights.y, 1.0, empty);
	let divisor = fma(2.0 * weights.x, weights.y, fma(weights.y, weights.y, -weights.z)) / weight;
	let single = divisor <= 1e-12 * weight;
	let variance = select(squares / divisor, 0.0, single || empty);
	let deviation = sqrt(select(max(variance, 1e-10), variance, is_nan(vec4<f32>(variance)).x));
	let at = words.y + item * words.y_item + row * words.y_row + column * words.height + line;
	y[at] = select(mean, 0.0, empty);
	y[at + words.channels * words.height] = deviation;
}
{{end}}

{{if eq .Entry "join"}}
@compute @workgroup_size(64)
fn join(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
	let number = words.first_tile + group.x + group.y * groups.x;
	if (number >= words.tiles) {
		return;
	}
	let column = number % words.blocks * 64u + thread;
	if (column >= words.channels) {
		return;
	}
	let line = number / words.blocks;
	let start = words.from_part + (line * words.chunks * words.channels + column) * 2u;
	let step = words.channels * 2u;
	var weights = vec4<f32>(0.0);
	var origin = 0.0;
	for (var i = 0u; i < words.chunks; i++) {
		let part = parts[start + i * step];
		// The first chunk with weight says where means are counted from.
		origin = select(origin, parts[start + i * step + 1u].x, weights.x + weights.y == 0.0);
		weights = and_weight(weights, part.x) + vec4<f32>(0.0, part.yz, 0.0);
	}
	var sum = 0.0;
	for (var i = 0u; i < words.chunks; i++) {
		let part = parts[start + i * step + 1u];
		let weight = parts[start + i * step].x + parts[start + i * step].y;
		sum = fma(weight, (part.x - origin) + part.y, sum);
	}
	let total_weight = weights.x + weights.y;
	let mean = settled(sum / select(total_weight, 1.0, total_weight == 0.0));
	var squares = 0.0;
	for (var i = 0u; i < words.chunks; i++) {
		let part = parts[start + i * step + 1u];
		let weight = parts[start + i * step].x + parts[start + i * step].y;
		let d = ((part.x - origin) + part.y) - mean;
		squares += select(0.0, fma(weight * d, d, part.z), weight != 0.0);
	}
	finish(line / words.height / words.masks, line / words.height % words.masks, line % words.height, column, weights, origin + mean, squares);
}
{{else}}
var<workgroup> weight_shares: array<vec4<f32>, {{.Down}}>;

@compute @workgroup_size({{mul 32 .Down}})
fn {{.Entry}}(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
	let number = words.first_tile + group.x + group.y * groups.x;
	if (number >= words.tiles) {
		return;
	}
	let column = number % words.blocks * 32u + thread % 32u;
	let channel = min(column, words.channels - 1u);
	let first = number / words.blocks % words.chunks * words.chunk;
	let end = min(first + words.chunk, words.width);
	let line = number / words.blocks / words.chunks % words.height;
	let row = number / words.blocks / words.chunks / words.height % words.masks;
	let item = number / words.blocks / words.chunks / words.height / words.masks;
	let start = words.x + item * words.x_item + line * words.width * words.x_row + channel;
	let weigh = words.mask + item * words.mask_item + row * words.mask_row;

	var weights = vec4<f32>(0.0);
	var sum = 0.0;
	for (var block = first + thread / 32u; block < end; block += {{mul 16 .Down}}u) {
		var weights_here = vec4<f32>(0.0);
		var sum_here = 0.0;
		for (var i = block; i < min(block + {{mul 16 .Down}}u, end); i += {{.Down}}u) {
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
	let rough = settled(sum / weight);
	var rest = vec2<f32>(0.0);
	for (var block = first + thread / 32u; block < end; block += {{mul 16 .Down}}u) {
		var rest_here = vec2<f32>(0.0);
		for (var i = block; i < min(block + {{mul 16 .Down}}u, end); i += {{.Down}}u) {
			let d = x[start + i * words.x_row] - rough;
			let w = mask[weigh + frames[words.frames + i]];
			rest_here = vec2<f32>(fma(w, d, rest_here.x), fma(w * d, d, rest_here.y));
		}
		rest += rest_here;
	}
	rest = total(rest, thread);
	let fine = settled(rest.x / weight);
	let squares = fma(-fine, rest.x, rest.y);
	if (thread < 32u && column < words.channels) {
		{{if eq .Entry "moments"}}
		let at = words.from_part + (number / words.blocks * words.channels + column) * 2u;
		parts[at] = weights;
		parts[at + 1u] = vec4<f32>(rough, fine, squares, 0.0);
		{{else}}
		finish(item, row, line, column, weights, rough + fine, squares);
		{{end}}
	}
}
{{end}}
