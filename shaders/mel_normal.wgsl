{{/*
What LogMel does with the logarithms of an item. Entry scale bounds them from below by the
largest of the item and scales them; a workgroup takes 1024 values. Entry bins takes eight
bins over time to 32 lanes, subtracts their mean and with PerBin divides by their deviation.

Of a long item, frames are cut at fixed places into chunks of 256. moments leaves for each
chunk and bin what norm_group.wgsl does for a chunk, and apply merges that of all chunks.
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
	tops: u32,
	chunks: u32,
	tiles: u32,
	first_tile: u32,
	zero: u32,
}
@group(0) @binding(0) var<uniform> words: Words;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
{{if eq .Entry "scale"}}
@group(0) @binding(2) var<storage, read> largest: array<f32>;
{{else if eq .Entry "moments"}}
@group(0) @binding(2) var<storage, read_write> parts: array<vec4<f32>>;
{{else if eq .Entry "apply"}}
@group(0) @binding(2) var<storage, read> parts: array<vec4<f32>>;
{{end}}
{{template "lengths" .}}
{{template "mel_frames" .}}
{{template "nan"}}
{{template "settled"}}

var<workgroup> shares: array<vec2<f32>, {{.Threads}}>;

{{if ne .Entry "scale"}}
// column returns the sum over the lanes of an invocation's bin.
fn column(thread: u32, v: vec2<f32>) -> vec2<f32> {
	workgroupBarrier();
	shares[thread] = v;
	workgroupBarrier();
	var sum = vec2<f32>(0.0);
	for (var i = thread % 8u; i < {{.Threads}}u; i += 8u) {
		sum += shares[i];
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
	{{if or (eq .Entry "moments") (eq .Entry "apply")}}
	let item = number / words.groups / words.chunks;
	let chunk = number / words.groups % words.chunks;
	{{else}}
	let item = number / words.groups;
	{{end}}
	let length = length_of(item, words.samples, {{if .Reflect}}max(words.left, words.right){{else}}0u{{end}});
	let frames = frames_of(length);
	let start = words.y + item * words.y_item;
	{{if eq .Entry "scale"}}
	var top = -3.4028234e38;
	var odd_one = 0.0;
	for (var i = thread; i < words.tops; i += {{.Threads}}u) {
		let v = largest[item * words.tops + i];
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
	{{if eq .Entry "bins"}}
	// Logarithms may lie far from zero, close to each other: what is averaged is how far they
	// are from the first one, which is read by who writes it alone.
	if (lane == 0u) {
		var v = 0.0;
		if (live && count > 0u) {
			v = y[start + bin];
		}
		shares[thread].x = select(v, 0.0, (bitcast<u32>(v) & 0x7f800000u) == 0x7f800000u);
	}
	workgroupBarrier();
	let origin = shares[thread % 8u].x;
	var sum = 0.0;
	if (live) {
		for (var i = lane; i < count; i += {{div .Threads 8}}u) {
			sum += y[start + i * words.y_row + bin] - origin;
		}
	}
	let mean = settled(column(thread, vec2<f32>(sum, 0.0)).x / f32(max(count, 1u)));
	{{if .PerBin}}
	sum = 0.0;
	if (live) {
		for (var i = lane; i < count; i += {{div .Threads 8}}u) {
			let d = settled(y[start + i * words.y_row + bin] - origin) - mean;
			sum = fma(d, d, sum);
		}
	}
	let variance = column(thread, vec2<f32>(sum, 0.0)).x / f32(max(count, 2u) - 1u);
	let scale = 1.0 / (settled(sqrt(variance)) + bitcast<f32>(words.eps));
	{{end}}
	if (live) {
		for (var i = lane; i < frames; i += {{div .Threads 8}}u) {
			let at = start + i * words.y_row + bin;
			let v = settled(y[at] - origin) - mean;
			y[at] = {{if .PerBin}}select(0.0, v * scale, i < count){{else}}v{{end}};
		}
	}
	{{else}}
	let first = chunk * 256u;
	{{if eq .Entry "moments"}}
	let end = clamp(count, first, first + 256u);
	let elements = f32(end - first);
	var sum = 0.0;
	if (live) {
		for (var i = first + lane; i < end; i += {{div .Threads 8}}u) {
			sum += y[start + i * words.y_row + bin];
		}
	}
	let rough = settled(column(thread, vec2<f32>(sum, 0.0)).x / max(elements, 1.0));
	var rest = vec2<f32>(0.0);
	if (live) {
		for (var i = first + lane; i < end; i += {{div .Threads 8}}u) {
			let d = y[start + i * words.y_row + bin] - rough;
			rest = vec2<f32>(rest.x + d, fma(d, d, rest.y));
		}
	}
	rest = column(thread, rest);
	let fine = rest.x / max(elements, 1.0);
	if (live && lane == 0u) {
		parts[(item * words.chunks + chunk) * words.mels + bin] = vec4<f32>(rough, fine, fma(-fine, rest.x, rest.y), elements);
	}
	{{else}}
	let here = item * words.chunks * words.mels + min(bin, words.mels - 1u);
	let origin = parts[here].x;
	var sum = vec2<f32>(0.0);
	for (var i = lane; i < words.chunks; i += {{div .Threads 8}}u) {
		let part = parts[here + i * words.mels];
		sum = vec2<f32>(sum.x + part.w, fma(part.w, (part.x - origin) + part.y, sum.y));
	}
	sum = column(thread, sum);
	let mean = settled(sum.y / max(sum.x, 1.0));
	{{if .PerBin}}
	var squares = 0.0;
	for (var i = lane; i < words.chunks; i += {{div .Threads 8}}u) {
		let part = parts[here + i * words.mels];
		let d = ((part.x - origin) + part.y) - mean;
		squares += fma(part.w * d, d, part.z);
	}
	let variance = column(thread, vec2<f32>(squares, 0.0)).x / f32(max(count, 2u) - 1u);
	let scale = 1.0 / (settled(sqrt(variance)) + bitcast<f32>(words.eps));
	{{end}}
	if (live) {
		for (var i = first + lane; i < min(first + 256u, frames); i += {{div .Threads 8}}u) {
			let at = start + i * words.y_row + bin;
			let v = (y[at] - origin) - mean;
			y[at] = {{if .PerBin}}select(0.0, v * scale, i < count){{else}}v{{end}};
		}
	}
	{{end}}
	{{end}}
	{{end}}
}
