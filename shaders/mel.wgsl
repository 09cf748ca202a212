{{/*
LogMel, up to the logarithm: a workgroup makes one frame. Its samples, in pairs taken as
complex numbers, go through a Fourier transform of mixed radix (Stockham's: each pass
reads all of the pool and then writes all of it), a step that takes the result apart, and
the bank. Half is the length of the transform, Each how many values an invocation has.

A pass of radix r makes transforms of length l·r of r of length l each:

	y[j + k·m] = Σ over q < r of x[j + q·m + (k mod l)·m·r]·w^(q·k),  m = n/(l·r), j < m, k < l·r

Long sums are taken in stretches of 32, or they would lose digits.

Tables are cosines and sines of a turn, the window, and for each bin of the bank where
its weights begin; then those.
*/}}
struct Words {
	radices: array<vec4<u32>, 3>,
	passes: u32,
	frame: u32,
	hop: u32,
	mels: u32,
	left: u32,
	right: u32,
	drop: u32,
	samples: u32,
	frames: u32,
	gain: u32,
	emphasis: u32,
	lowest: u32,
	highest: u32,
	added: u32,
	infinity: u32,
	window: u32,
	bank: u32,
	x: u32,
	x_item: u32,
	y: u32,
	y_row: u32,
	y_item: u32,
	lengths: u32,
	from_largest: u32,
	tiles: u32,
	first_tile: u32,
	zero: u32,
}
@group(0) @binding(0) var<uniform> words: Words;
@group(0) @binding(1) var<storage, read> tables: array<u32>;
@group(0) @binding(2) var<storage, read> x: array<f32>;
@group(0) @binding(3) var<storage, read_write> y: array<f32>;
{{if .Largest}}
@group(0) @binding({{.LargestBinding}}) var<storage, read_write> largest: array<f32>;
{{end}}
{{template "lengths" .}}
{{template "mel_frames" .}}
{{template "nan"}}
{{if .PerFrame}}{{template "settled"}}{{end}}

var<workgroup> pool: array<vec2<f32>, {{.Pool}}>;

// turn returns the complex number at a part of a turn, clockwise.
fn turn(at: u32) -> vec2<f32> {
	return vec2<f32>(bitcast<f32>(tables[at * 2u]), -bitcast<f32>(tables[at * 2u + 1u]));
}

fn times(a: vec2<f32>, b: vec2<f32>) -> vec2<f32> {
	return vec2<f32>(fma(a.x, b.x, -(a.y * b.y)), fma(a.x, b.y, a.y * b.x));
}

// clip returns a sample of an item of length samples, padded{{if not .PerFrame}} and with pre-emphasis{{end}}.
fn clip(item: u32, at: i32, length: i32) -> f32 {
	var i = at;
	{{if .Reflect}}
	i = select(i, -i, i < 0);
	i = select(i, 2 * (length - 1) - i, i >= length);
	{{end}}
	if (i < 0 || i >= length) {
		return 0.0;
	}
	let from_x = words.x + item * words.x_item + u32(i);
	var v = x[from_x];
	{{if not .PerFrame}}
	if (words.emphasis != 0u && i > 0) {
		v = fma(-bitcast<f32>(words.emphasis), x[from_x - 1u], v);
	}
	{{end}}
	return fma(v, bitcast<f32>(words.gain), bitcast<f32>(words.zero));
}

// logarithm is the {{.Log}} of a power within its bounds.
fn logarithm(power: f32) -> f32 {
	var v = power;
	let given = is_nan(vec4<f32>(v)).x;
	if (words.lowest != 0u) { v = max(v, bitcast<f32>(words.lowest)); }
	if (words.highest != 0u) { v = min(v, bitcast<f32>(words.highest)); }
	v += bitcast<f32>(words.added);
	{{if ne .Log "power"}}
	// v = m·2^e with m from √½ to √2, and ln m = 2·artanh((m − 1)/(m + 1)).
	let small = v < 1.17549435e-38;
	let bits = bitcast<u32>(select(v, v * 8388608.0, small));
	let shifted = bits - 0x3f3504f3u;
	let exponent = f32(bitcast<i32>(shifted) >> 23u) - select(0.0, 23.0, small);
	let m = bitcast<f32>((shifted & 0x007fffffu) + 0x3f3504f3u);
	let s = (m - 1.0) / (m + 1.0);
	let z = s * s;
	var p = fma(z, 0.18181818, 0.22222222);
	p = fma(p, z, 0.28571429);
	p = fma(p, z, 0.4);
	p = fma(p, z, 0.66666667);
	let fraction = fma(s * z, p, 2.0 * s);
	{{if eq .Log "log10"}}
	let log = fma(exponent, 0.30102999, fraction * 0.43429448);
	{{else}}
	let log = fma(exponent, 0.69314718, fraction);
	{{end}}
	// Of 0, of infinity, and of what is below 0.
	let infinity = bitcast<f32>(words.infinity);
	let nothing = bitcast<u32>(v) << 1u == 0u;
	let huge = bitcast<u32>(v) == words.infinity;
	let below = bitcast<u32>(v) > 0x80000000u;
	let edges = select(select(log, infinity, huge), -infinity, nothing);
	v = select(edges, bitcast<f32>(words.infinity | 0x00400000u), below);
	{{end}}
	return select(v, power, given);
}

@compute @workgroup_size({{.Threads}})
fn mel(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
	let number = words.first_tile + group.x + group.y * groups.x;
	if (number >= words.tiles) {
		return;
	}
	let item = number / words.frames;
	let frame = number % words.frames;
	let length = length_of(item, words.samples, {{if .Reflect}}max(words.left, words.right){{else}}0u{{end}});
	let live = frame < frames_of(length);
	let first = i32(frame * words.hop) - i32(words.left);
	let each = i32(length);

	{{if .PerFrame}}
	var share = 0.0;
	if (live) {
		for (var i = thread; i < words.frame; i += {{.Threads}}u) {
			share += clip(item, first + i32(i), each);
		}
	}
	pool[thread] = vec2<f32>(share, 0.0);
	workgroupBarrier();
	var sum_of_all = 0.0;
	for (var i = 0u; i < {{.Threads}}u; i++) {
		sum_of_all += pool[i].x;
	}
	let mean = settled(sum_of_all / f32(words.frame));
	workgroupBarrier();
	{{end}}
	for (var i = thread; i < {{.Half}}u; i += {{.Threads}}u) {
		var pair = vec2<f32>(0.0);
		{{range $part := seq 2}}
		{
			let at = i * 2u + {{$part}}u;
			if (live && at < words.frame) {
				let v = clip(item, first + i32(at), each);
				{{if $.PerFrame}}
				let before = clip(item, first + i32(max(at, 1u) - 1u), each);
				let w = fma(-bitcast<f32>(words.emphasis), before - mean, v - mean);
				{{else}}
				let w = v;
				{{end}}
				pair.{{lane $part}} = w * bitcast<f32>(tables[words.window + at]);
			}
		}
		{{end}}
		pool[i] = pair;
	}
	workgroupBarrier();

	var done = 1u;
	for (var pass_number = 0u; pass_number < words.passes; pass_number++) {
		let radix = words.radices[pass_number / 4u][pass_number % 4u];
		let whole = done * radix;
		let m = {{.Half}}u / whole;
		{{range $e := seq .Each}}
		var out{{$e}} = vec2<f32>(0.0);
		{
			let at = thread + {{mul $e $.Threads}}u;
			if (at < {{$.Half}}u) {
				let k = at / m;
				var place = at % m + k % done * m * radix;
				let step = k * {{mul 2 $.Half}}u / whole;
				var part = 0u;
				var sum = pool[place];
				for (var q = 1u; q < radix; q++) {
					if (q % 32u == 0u) {
						out{{$e}} += sum;
						sum = vec2<f32>(0.0);
					}
					place += m;
					part += step;
					part = select(part, part - {{mul 2 $.Half}}u, part >= {{mul 2 $.Half}}u);
					sum += times(pool[place], turn(part));
				}
				out{{$e}} += sum;
			}
		}
		{{end}}
		workgroupBarrier();
		{{range $e := seq .Each}}
		if (thread + {{mul $e $.Threads}}u < {{$.Half}}u) { pool[thread + {{mul $e $.Threads}}u] = out{{$e}}; }
		{{end}}
		workgroupBarrier();
		done = whole;
	}

	// The transform of the real samples, in pairs k and Half − k, and its power.
	{{range $e := seq .Each}}
	var low{{$e}} = 0.0;
	{
		let k = thread + {{mul $e $.Threads}}u;
		if (k < {{$.Half}}u) {
			let a = pool[k];
			let b = pool[({{$.Half}}u - k) % {{$.Half}}u];
			let even = vec2<f32>(a.x + b.x, a.y - b.y) * 0.5;
			let odd = vec2<f32>(a.y + b.y, b.x - a.x) * 0.5;
			let v = even + times(odd, turn(k));
			low{{$e}} = fma(v.x, v.x, v.y * v.y);
		}
	}
	{{end}}
	let last = pool[0].x - pool[0].y;
	workgroupBarrier();
	{{range $e := seq .Each}}
	if (thread + {{mul $e $.Threads}}u < {{$.Half}}u) { pool[thread + {{mul $e $.Threads}}u].x = low{{$e}}; }
	{{end}}
	workgroupBarrier();

	{{if .Largest}}
	var top = -3.4028234e38;
	var odd_one = 0.0;
	{{end}}
	for (var bin = thread; bin < words.mels; bin += {{.Threads}}u) {
		let from_bin = tables[words.bank + bin * 3u];
		let count = tables[words.bank + bin * 3u + 1u];
		let at = tables[words.bank + bin * 3u + 2u];
		var sum = 0.0;
		var total = 0.0;
		for (var i = 0u; i < count; i++) {
			if (i % 32u == 0u) {
				total += sum;
				sum = 0.0;
			}
			let k = from_bin + i;
			let power = select(pool[k % {{.Half}}u].x, last * last, k == {{.Half}}u);
			sum = fma(power, bitcast<f32>(tables[at + i]), sum);
		}
		let v = select(0.0, logarithm(total + sum), live);
		y[words.y + item * words.y_item + frame * words.y_row + bin] = v;
		{{if .Largest}}
		top = max(top, v);
		odd_one = select(odd_one, v, is_nan(vec4<f32>(v)).x);
		{{end}}
	}
	{{if .Largest}}
	// NaN among the values is the largest, since it reaches all of them.
	workgroupBarrier();
	pool[thread] = vec2<f32>(top, odd_one);
	workgroupBarrier();
	if (thread == 0u) {
		for (var i = 1u; i < {{.Threads}}u; i++) {
			top = max(top, pool[i].x);
			odd_one += pool[i].y;
		}
		let v = select(top, odd_one, is_nan(vec4<f32>(odd_one)).x);
		largest[words.from_largest + number] = select(-3.4028234e38, v, live);
	}
	{{end}}
}
