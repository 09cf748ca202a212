{{/*
ConvGLU: gate, depthwise convolution, norm and swish at once. A workgroup takes RowsEach
output rows; an invocation has Held quads of channels of all of them in registers, and
meets each input row that they need once. With Normalised a workgroup has all channels,
and the sums over a row go through workgroup memory; where the channels are too many to be
held (Held 0) they are computed again for each use. Otherwise it has 4·Threads·Held channels.
*/}}
{{$rows := seq .RowsEach}}
struct Words {
	rows: u32,
	channels: u32,
	taps: u32,
	input: u32,
	first_row: u32,
	x: u32,
	x_row: u32,
	x_item: u32,
	y: u32,
	y_row: u32,
	y_item: u32,
	lengths: u32,
	stride: u32,
	eps: u32,
	row_tiles: u32,
	column_tiles: u32,
	tiles: u32,
	first_tile: u32,
	zero: u32,
}
@group(0) @binding(0) var<uniform> words: Words;
@group(0) @binding(1) var<storage, read> weights: array<vec4<f32>>;
{{if .Vectors}}
@group(0) @binding(2) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read_write> y: array<vec4<f32>>;
{{else}}
@group(0) @binding(2) var<storage, read> x: array<f32>;
@group(0) @binding(3) var<storage, read_write> y: array<f32>;
{{end}}
{{template "epilogue" .}}
{{template "lengths" .}}
{{if .Normalised}}
{{template "settled"}}
{{template "settled_quad"}}
var<workgroup> shares: array<f32, {{mul .RowsEach .Threads}}>;
var<workgroup> sums: array<f32, {{mul .RowsEach (div .Threads 8)}}>;
var<workgroup> tops: array<f32, {{mul .RowsEach (div .Threads 64)}}>;
{{end}}

// load returns four values from an element of x on, of which count exist.
fn load(at: u32, count: u32) -> vec4<f32> {
	{{if .Vectors}}
	return x[at / 4u];
	{{else}}
	var v = vec4<f32>(x[at], 0.0, 0.0, 0.0);
	if (count > 1u) { v.y = x[at + 1u]; }
	if (count > 2u) { v.z = x[at + 2u]; }
	if (count > 3u) { v.w = x[at + 3u]; }
	return v;
	{{end}}
}

// weight returns a quad of a row of the weights: the taps, then bias, gain and shift.
fn weight(row: u32, quad: u32) -> vec4<f32> { return weights[row * words.stride + quad]; }

// gated returns a quad of a gated row, zeros outside of the item.
fn gated(item: u32, row: i32, length: u32, quad: u32) -> vec4<f32> {
	if (row < 0 || row >= i32(length)) {
		return vec4<f32>(0.0);
	}
	let at = words.x + item * words.x_item + u32(row) * words.x_row + quad * 4u;
	let count = words.channels - quad * 4u;
	return load(at, count) * sigmoid(load(at + words.channels, count));
}

fn store(item: u32, row: u32, quad: u32, v: vec4<f32>) {
	let at = words.y + item * words.y_item + row * words.y_row + quad * 4u;
	{{if .Vectors}}
	y[at / 4u] = v;
	{{else}}
	let count = words.channels - quad * 4u;
	y[at] = v.x;
	if (count > 1u) { y[at + 1u] = v.y; }
	if (count > 2u) { y[at + 2u] = v.z; }
	if (count > 3u) { y[at + 3u] = v.w; }
	{{end}}
}

// within is v without what lies beyond the last channel.
fn within(quad: u32, v: vec4<f32>) -> vec4<f32> {
	return select(vec4<f32>(0.0), v, vec4<u32>(quad * 4u) + vec4<u32>(0u, 1u, 2u, 3u) < vec4<u32>(words.channels));
}

{{if .Normalised}}
// add_up adds up the shares of each row, eight at a time.
fn add_up(thread: u32) {
	workgroupBarrier();
	for (var i = thread; i < {{mul .RowsEach (div .Threads 8)}}u; i += {{.Threads}}u) {
		let at = i / {{div .Threads 8}}u * {{.Threads}}u + i % {{div .Threads 8}}u;
		var sum = shares[at];
		{{range $j := seq 7}}
		sum += shares[at + {{mul (add $j 1) (div $.Threads 8)}}u];
		{{end}}
		sums[i] = sum;
	}
	workgroupBarrier();
	for (var i = thread; i < {{mul .RowsEach (div .Threads 64)}}u; i += {{.Threads}}u) {
		let at = i / {{div .Threads 64}}u * {{div .Threads 8}}u + i % {{div .Threads 64}}u;
		var sum = sums[at];
		{{range $j := seq 7}}
		sum += sums[at + {{mul (add $j 1) (div $.Threads 64)}}u];
		{{end}}
		tops[i] = sum;
	}
	workgroupBarrier();
}

// total returns the sum of a row.
fn total(row: u32) -> f32 {
	var sum = tops[row * {{div .Threads 64}}u];
	{{range $i := seq (sub (div .Threads 64) 1)}}
	sum += tops[row * {{div $.Threads 64}}u + {{add $i 1}}u];
	{{end}}
	return sum;
}
{{end}}

{{if eq .Held 0}}
// convolved returns a quad of a row before the norm.
fn convolved(item: u32, row: i32, length: u32, quad: u32) -> vec4<f32> {
	var sum = weight(words.taps, quad);
	for (var tap = 0u; tap < words.taps; tap++) {
		sum = fma(gated(item, row + i32(tap) - i32(words.taps / 2u), length, quad), weight(tap, quad), sum);
	}
	return within(quad, sum);
}
{{end}}

// finished returns what a quad becomes that was moved to its mean and is to be scaled.
fn finished(quad: u32, v: vec4<f32>, scale: f32) -> vec4<f32> {
	let u = fma(v * scale, weight(words.taps + 1u, quad), weight(words.taps + 2u, quad));
	return finish(u, u, 0.0);
}

@compute @workgroup_size({{.Threads}})
fn convglu(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
	let number = words.first_tile + group.x + group.y * groups.x;
	if (number >= words.tiles) {
		return;
	}
	let column_tile = number % words.column_tiles;
	let row_tile = number / words.column_tiles % words.row_tiles;
	let item = number / words.column_tiles / words.row_tiles;
	let length = length_of(item, words.input, 0u);
	let out_row = row_tile * {{.RowsEach}}u;
	let row = i32(words.first_row + out_row);
	let quads = (words.channels + 3u) / 4u;
	{{if eq .Held 0}}
	var sum = 0.0;
	for (var quad = thread; quad < quads; quad += {{.Threads}}u) {
		let v = convolved(item, row, length, quad);
		sum += (v.x + v.y) + (v.z + v.w);
	}
	shares[thread] = sum;
	add_up(thread);
	let mean = settled(total(0u) / f32(words.channels));
	sum = 0.0;
	for (var quad = thread; quad < quads; quad += {{.Threads}}u) {
		let v = within(quad, convolved(item, row, length, quad) - mean);
		sum = fma(v.x, v.x, fma(v.y, v.y, fma(v.z, v.z, fma(v.w, v.w, sum))));
	}
	workgroupBarrier();
	shares[thread] = sum;
	add_up(thread);
	let scale = 1.0 / sqrt(settled(total(0u) / f32(words.channels)) + bitcast<f32>(words.eps));
	for (var quad = thread; quad < quads; quad += {{.Threads}}u) {
		let v = finished(quad, convolved(item, row, length, quad) - mean, scale);
		store(item, out_row, quad, select(vec4<f32>(0.0), v, row < i32(length)));
	}
	{{else}}
	{{range $h := seq .Held}}
	let quad{{$h}} = column_tile * {{mul $.Threads $.Held}}u + thread + {{mul $h $.Threads}}u;
	{{range $r := $rows}}
	var v{{$r}}_{{$h}} = vec4<f32>(0.0);
	{{end}}
	if (quad{{$h}} < quads) {
		let bias = weight(words.taps, quad{{$h}});
		{{range $r := $rows}}
		v{{$r}}_{{$h}} = bias;
		{{end}}
		{{if $.Taps}}
		{{range $t := seq $.Taps}}
		let w{{$t}} = weight({{$t}}u, quad{{$h}});
		{{end}}
		{{range $u := seq (sub (add $.RowsEach $.Taps) 1)}}
		{
			let g = gated(item, row + {{$u}} - {{quotient $.Taps 2}}, length, quad{{$h}});
			{{range $r := $rows}}{{if and (le $r $u) (lt (sub $u $r) $.Taps)}}
			v{{$r}}_{{$h}} = fma(g, w{{sub $u $r}}, v{{$r}}_{{$h}});
			{{end}}{{end}}
		}
		{{end}}
		{{else}}
		for (var u = 0u; u < words.taps + {{sub $.RowsEach 1}}u; u++) {
			let g = gated(item, row + i32(u) - i32(words.taps / 2u), length, quad{{$h}});
			{{range $r := $rows}}
			if (u >= {{$r}}u && u < words.taps + {{$r}}u) { v{{$r}}_{{$h}} = fma(g, weight(u - {{$r}}u, quad{{$h}}), v{{$r}}_{{$h}}); }
			{{end}}
		}
		{{end}}
		{{range $r := $rows}}
		v{{$r}}_{{$h}} = within(quad{{$h}}, v{{$r}}_{{$h}});
		{{end}}
	}
	{{end}}
	{{if .Normalised}}
	{{range $r := $rows}}
	{
		var sum = vec4<f32>(0.0);
		{{range $h := seq $.Held}}
		sum += v{{$r}}_{{$h}};
		{{end}}
		shares[{{mul $r $.Threads}}u + thread] = (sum.x + sum.y) + (sum.z + sum.w);
	}
	{{end}}
	add_up(thread);
	{{range $r := $rows}}
	let mean{{$r}} = settled(total({{$r}}u) / f32(words.channels));
	{
		var sum = vec4<f32>(0.0);
		{{range $h := seq $.Held}}
		let d{{$h}} = within(quad{{$h}}, v{{$r}}_{{$h}} - mean{{$r}});
		sum = fma(d{{$h}}, d{{$h}}, sum);
		{{end}}
		sum = settled_quad(sum);
		shares[{{mul $r $.Threads}}u + thread] = (sum.x + sum.y) + (sum.z + sum.w);
	}
	{{end}}
	add_up(thread);
	{{end}}
	{{range $r := $rows}}
	if (out_row + {{$r}}u < words.rows) {
		let live = row + {{$r}} < i32(length);
		{{if $.Normalised}}
		let scale = 1.0 / sqrt(settled(total({{$r}}u) / f32(words.channels)) + bitcast<f32>(words.eps));
		{{end}}
		{{range $h := seq $.Held}}
		if (quad{{$h}} < quads) {
			let v = finished(quad{{$h}}, v{{$r}}_{{$h}}{{if $.Normalised}} - mean{{$r}}, scale{{else}}, 1.0{{end}});
			store(item, out_row + {{$r}}u, quad{{$h}}, select(vec4<f32>(0.0), v, live));
		}
		{{end}}
	}
	{{end}}
	{{end}}
}
