{{/*
What LogMel does with the logarithms of an item. Entry scale bounds them from below by the
largest of the item and scales them; a workgroup takes 1024 values. Entry bins takes eight
bins over time to 32 lanes, subtracts their mean and with PerBin divides by their deviation.
*/}}
struct Words {
	frame: u32,
	hop: u32,
	mels: u32,
	left: u32,
	right: u32,
	drop: u32,
	samples: u32,
	frames: u32,
	eps: u32,
	groups: u32,
	y: u32,
	y_row: u32,
	y_item: u32,
	lengths: u32,
	tiles: u32,
	first_tile: u32,
}
@group(0) @binding(0) var<uniform> words: Words;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
{{if eq .Entry "scale"}}
@group(0) @binding(2) var<storage, read> largest: array<f32>;
{{end}}
{{template "lengths" .}}
{{template "mel_frames" .}}
{{template "nan"}}

var<workgroup> shares: array<vec2<f32>, {{.Threads}}>;

{{if eq .Entry "bins"}}
// column returns the sum over the lanes of an invocation's bin.
fn column(thread: u32, v: f32) -> f32 {
	workgroupBarrier();
	shares[thread] = vec2<f32>(v, 0.0);
	workgroupBarrier();
	var sum = 0.0;
	for (var i = thread % 8u; i < {{.Threads}}u; i += 8u) {
		sum += shares[i].x;
	}
	return sum;
}
{{end}}

@compute @workgroup_size({{.Threads}})
fn {{.Entry}}(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
	let number = words.first_tile + group.x + group.y * groups.x;
	if (number >= words.tiles) {
		return;
	}
	let item = number / words.groups;
	let length = length_of(item, words.samples, {{if .Reflect}}max(words.left, words.right){{else}}0u{{end}});
	let frames = frames_of(length);
	let start = words.y + item * words.y_item;
	{{if eq .Entry "scale"}}
	var top = -3.4028234e38;
	var odd_one = 0.0;
	for (var i = thread; i < frames; i += {{.Threads}}u) {
		let v = largest[item * words.frames + i];
		top = max(top, v);
		odd_one = select(odd_one, v, is_nan(vec4<f32>(v)).x);
	}
	shares[thread] = vec2<f32>(top, odd_one);
	workgroupBarrier();
	for (var i = 0u; i < {{.Threads}}u; i++) {
		top = max(top, shares[i].x);
		odd_one += shares[i].y;
	}
	let given = is_nan(vec4<f32>(odd_one)).x;
	let first = number % words.groups * 1024u;
	for (var i = first + thread; i < min(first + 1024u, frames * words.mels); i += {{.Threads}}u) {
		let at = start + i / words.mels * words.y_row + i % words.mels;
		y[at] = select((max(y[at], top - 8.0) + 4.0) * 0.25, odd_one, given);
	}
	{{else}}
	let bin = number % words.groups * 8u + thread % 8u;
	let lane = thread / 8u;
	let count = {{if .PerBin}}min(length / words.hop, frames){{else}}frames{{end}};
	let live = bin < words.mels;
	var sum = 0.0;
	if (live) {
		for (var i = lane; i < count; i += {{div .Threads 8}}u) {
			sum += y[start + i * words.y_row + bin];
		}
	}
	let mean = column(thread, sum) / f32(max(count, 1u));
	{{if .PerBin}}
	sum = 0.0;
	if (live) {
		for (var i = lane; i < count; i += {{div .Threads 8}}u) {
			let d = y[start + i * words.y_row + bin] - mean;
			sum = fma(d, d, sum);
		}
	}
	let variance = column(thread, sum) / f32(max(count, 2u) - 1u);
	let scale = 1.0 / (sqrt(variance) + bitcast<f32>(words.eps));
	{{end}}
	if (live) {
		for (var i = lane; i < frames; i += {{div .Threads 8}}u) {
			let at = start + i * words.y_row + bin;
			{{if .PerBin}}
			y[at] = select(0.0, (y[at] - mean) * scale, i < count);
			{{else}}
			y[at] = y[at] - mean;
			{{end}}
		}
	}
	{{end}}
}
