{{/*
DepthwiseConv2D: a unit is one channel, or with Vectors four of them, of a pixel of the
output. With First it makes the nine pixels that it needs of the image between, which is
never stored. The rows of the weights are nine taps and the bias, then those of First.
*/}}
struct Words {
	units: u32,
	row_units: u32,
	rows: u32,
	x: u32,
	x_row: u32,
	x_item: u32,
	y: u32,
	y_row: u32,
	y_item: u32,
	channels: u32,
	time: u32,
	frequency: u32,
	held: u32,
	first_row: u32,
	stride: u32,
	lengths: u32,
}
@group(0) @binding(0) var<uniform> words: Words;
@group(0) @binding(1) var<storage, read> weights: array<{{if .Vectors}}vec4<f32>{{else}}f32{{end}}>;
{{if and .Vectors (not .First)}}
@group(0) @binding(2) var<storage, read> x: array<vec4<f32>>;
{{else}}
@group(0) @binding(2) var<storage, read> x: array<f32>;
{{end}}
{{if .Vectors}}
@group(0) @binding(3) var<storage, read_write> y: array<vec4<f32>>;
{{else}}
@group(0) @binding(3) var<storage, read_write> y: array<f32>;
{{end}}
{{template "epilogue" .}}
{{template "lengths" .}}

fn weight(row: u32, channel: u32) -> vec4<f32> {
	{{if .Vectors}}
	return weights[(row * words.stride + channel) / 4u];
	{{else}}
	return vec4<f32>(weights[row * words.stride + channel]);
	{{end}}
}

// input returns what the image X has in a row and a column.
fn input(item: u32, row: u32, column: u32, channel: u32) -> vec4<f32> {
	let at = words.x + item * words.x_item + (row - words.held) * words.x_row + column{{if not .First}} * words.channels + channel{{end}};
	{{if and .Vectors (not .First)}}
	return x[at / 4u];
	{{else}}
	return vec4<f32>(x[at]);
	{{end}}
}

// halved returns the size of an axis after a convolution of stride 2.
fn halved(n: u32) -> u32 { return (n + 1u) / 2u; }

{{if .First}}
// between returns a pixel of the image between X, of length rows, and the output.
fn between(item: u32, length: u32, row: u32, column: u32, channel: u32) -> vec4<f32> {
	var sum = vec4<f32>(0.0);
	for (var i = 0u; i < 9u; i++) {
		// Before the first is as far out as behind the last.
		let from_row = row * 2u + i / 3u - 1u;
		let from_column = column * 2u + i % 3u - 1u;
		if (from_row < length && from_column < words.frequency) {
			sum = fma(input(item, from_row, from_column, channel), weight(10u + i, channel), sum);
		}
	}
	let v = sum + weight(19u, channel);
	return finish(v, v, 0.0);
}
{{end}}

@compute @workgroup_size(64)
fn {{.Entry}}(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
	let width = groups.x * 64u;
	for (var unit = id.x + id.y * width; unit < words.units; unit += width * groups.y) {
		let row = unit / words.row_units;
		let within = unit % words.row_units{{if .Vectors}} * 4u{{end}};
		let item = row / words.rows;
		let column = within / words.channels;
		let channel = within % words.channels;
		let out_row = words.first_row + row % words.rows;
		let length = length_of(item, words.time, 0u);
		let image = {{if .First}}halved(length){{else}}length{{end}};
		let image_width = {{if .First}}halved(words.frequency){{else}}words.frequency{{end}};
		var sum = vec4<f32>(0.0);
		if (out_row < halved(image)) {
			for (var i = 0u; i < 9u; i++) {
				let from_row = out_row * 2u + i / 3u - 1u;
				let from_column = column * 2u + i % 3u - 1u;
				if (from_row < image && from_column < image_width) {
					sum = fma({{if .First}}between(item, length, from_row, from_column, channel){{else}}input(item, from_row, from_column, channel){{end}}, weight(i, channel), sum);
				}
			}
			sum += weight(9u, channel);
		}
		let at = words.y + item * words.y_item + row % words.rows * words.y_row + within;
		{{if .Vectors}}
		y[at / 4u] = sum;
		{{else}}
		y[at] = sum.x;
		{{end}}
	}
}
