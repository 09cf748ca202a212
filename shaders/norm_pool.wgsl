{{/*
PoolNorm. Time is cut at fixed places into chunks of Down·RowsEach pooled rows; a
workgroup takes a chunk of 32 channels of an item. Windows of Pool rows, if it is not 0, are unrolled so that all loads
of an invocation are on their way together. moments leaves for each chunk and
channel what norm_group.wgsl does for a chunk. apply merges them, pools again and
normalises: pooled values are not stored in between.
*/}}
struct Words {
	rows: u32,
	pooled: u32,
	pool: u32,
	columns: u32,
	blocks: u32,
	x: u32,
	x_row: u32,
	x_item: u32,
	y: u32,
	y_row: u32,
	y_item: u32,
	eps: f32,
	alpha: f32,
	chunks: u32,
	lengths: u32,
	first_bound: u32,
	last_bound: u32,
	gains: u32,
	biases: u32,
	tiles: u32,
	first_tile: u32,
	zero: u32,
}
@group(0) @binding(0) var<uniform> words: Words;
{{if eq .Entry "moments"}}
@group(0) @binding(1) var<storage, read_write> parts: array<vec4<f32>>;
{{else}}
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@group(0) @binding({{.PartsBinding}}) var<storage, read> parts: array<vec4<f32>>;
@group(0) @binding({{.WeightsBinding}}) var<storage, read> weights: array<f32>;
{{template "epilogue" .}}
{{end}}
@group(0) @binding(2) var<storage, read> x: array<f32>;
{{template "lengths" .}}
{{template "settled"}}
{{template "keys"}}
{{template "column_sums" .}}

{{if .Pooled}}
fn key(at: u32) -> u32 {
	let v = x[at];
	return key_of(vec4<f32>({{if .Abs}}bitcast<f32>(bitcast<u32>(v) & 0x7fffffffu){{else}}v{{end}})).x;
}
{{end}}

// pooled returns the maximum of a window of the channel that starts at an element of x.
fn pooled(start: u32, time: u32) -> f32 {
	{{if .Pooled}}
	let first = start + time * words.pool * words.x_row;
	var top = key(first);
	{{if gt .Pool 0}}
	{{range $i := seq (sub .Pool 1)}}
	top = max(top, key(first + {{add $i 1}}u * words.x_row));
	{{end}}
	{{else}}
	for (var i = 1u; i < words.pool; i++) {
		top = max(top, key(first + i * words.x_row));
	}
	{{end}}
	return value_of(top);
	{{else}}
	return x[start + time * words.x_row];
	{{end}}
}

@compute @workgroup_size({{mul 32 .Down}})
fn {{.Entry}}(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
	let number = words.first_tile + group.x + group.y * groups.x;
	if (number >= words.tiles) {
		return;
	}
	let column = number % words.blocks * 32u + thread % 32u;
	let channel = min(column, words.columns - 1u);
	let chunk = number / words.blocks % words.chunks;
	let item = number / words.blocks / words.chunks;
	let live = length_of(item, words.rows, 0u) / words.pool;
	let newest = max(live, 1u) - 1u; // beyond it nothing is read
	let start = words.x + item * words.x_item + channel;
	let first = chunk * {{mul .Down .RowsEach}}u + thread / 32u;
	{{range $i := seq .RowsEach}}
	let time{{$i}} = first{{if gt $i 0}} + {{mul $i $.Down}}u{{end}};
	let v{{$i}} = select(0.0, pooled(start, clamp(min(time{{$i}}, newest), words.first_bound, words.last_bound)), time{{$i}} < live);
	{{end}}
	{{if eq .Entry "moments"}}
	let count = f32(clamp(live, chunk * {{mul .Down .RowsEach}}u, (chunk + 1u) * {{mul .Down .RowsEach}}u) - chunk * {{mul .Down .RowsEach}}u);
	var sum = 0.0;
	{{range $i := seq .RowsEach}}
	sum += v{{$i}};
	{{end}}
	let rough = settled(total(vec2<f32>(sum, 0.0), thread).x / max(count, 1.0));
	var distances = 0.0;
	var squares = 0.0;
	{{range $i := seq .RowsEach}}
	let d{{$i}} = select(0.0, v{{$i}} - rough, time{{$i}} < live);
	distances += d{{$i}};
	squares = fma(d{{$i}}, d{{$i}}, squares);
	{{end}}
	let rest = total(vec2<f32>(distances, squares), thread);
	let fine = rest.x / max(count, 1.0);
	if (thread < 32u && column < words.columns) {
		parts[(item * words.chunks + chunk) * words.columns + column] = vec4<f32>(rough, fine, fma(-fine, rest.x, rest.y), count);
	}
	{{else}}
	let here = item * words.chunks * words.columns + channel;
	let origin = parts[here].x;
	var sum = vec2<f32>(0.0);
	for (var i = thread / 32u; i < words.chunks; i += {{.Down}}u) {
		let part = parts[here + i * words.columns];
		sum = vec2<f32>(sum.x + part.w, fma(part.w, (part.x - origin) + part.y, sum.y));
	}
	sum = total(sum, thread);
	let count = max(sum.x, 1.0);
	let mean = settled(sum.y / count);
	var squares = 0.0;
	for (var i = thread / 32u; i < words.chunks; i += {{.Down}}u) {
		let part = parts[here + i * words.columns];
		let d = ((part.x - origin) + part.y) - mean;
		squares += fma(part.w * d, d, part.z);
	}
	squares = total(vec2<f32>(squares, 0.0), thread).x;
	let scale = inverseSqrt(settled(squares / count) + words.eps);
	let gain = weights[words.gains + channel];
	{{if .Bias}}
	let bias = weights[words.biases + channel];
	{{else}}
	let bias = 0.0;
	{{end}}
	let dest = words.y + item * words.y_item + column;
	{{range $i := seq .RowsEach}}
	if (time{{$i}} < words.pooled && column < words.columns) {
		let v = fma(((v{{$i}} - origin) - mean) * scale, gain, bias);
		y[dest + time{{$i}} * words.y_row] = select(0.0, finish(vec4<f32>(v), vec4<f32>(v), words.alpha).x, time{{$i}} < live);
	}
	{{end}}
	{{end}}
}
