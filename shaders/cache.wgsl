{{/*
Append: rows of keys and values go to their places in a piece of a cache; see
attention_keys.wgsl for how they lie. A unit is a quad of a key and of a value.
*/}}
struct Words {
	units: u32,
	row_units: u32,
	rows: u32,
	k: u32,
	k_row: u32,
	k_item: u32,
	v: u32,
	v_row: u32,
	v_item: u32,
	at: u32,
	at_each: u32,
	at_valid: u32,
	at_added: u32,
	heads: u32,
	first_slab: u32,
	end_slab: u32,
	first_position: u32,
	span: u32,
	first_item: u32,
}
@group(0) @binding(0) var<uniform> words: Words;
{{if .Vectors}}
@group(0) @binding(1) var<storage, read> k: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> v: array<vec4<f32>>;
{{else}}
@group(0) @binding(1) var<storage, read> k: array<f32>;
@group(0) @binding(2) var<storage, read> v: array<f32>;
{{end}}
{{if eq .Type "F16"}}
@group(0) @binding(3) var<storage, read_write> keys: array<vec2<u32>>;
@group(0) @binding(4) var<storage, read_write> values: array<vec2<u32>>;

// narrow rounds to F16; NaN stays NaN. A finite number that would become infinity sets a
// bit of the status word, and the run fails.
fn narrow(x: vec4<f32>) -> vec2<u32> {
	let bits = bitcast<vec4<u32>>(x) & vec4<u32>(0x7fffffffu);
	let beyond = select(vec4<u32>(0u), vec4<u32>(1u), bits >= vec4<u32>(0x477ff000u)) * select(vec4<u32>(0u), vec4<u32>(1u), bits < vec4<u32>(0x7f800000u));
	if ((beyond.x | beyond.y | beyond.z | beyond.w) != 0u) {
		atomicOr(&status[0], {{.Beyond}}u);
	}
	let signs = (bitcast<vec4<u32>>(x) >> vec4<u32>(16u)) & vec4<u32>(0x8000u);
	let held = bitcast<vec4<f32>>(min(bits, vec4<u32>(0x477fe000u)));
	let pair = vec2<u32>(pack2x16float(held.xy), pack2x16float(held.zw));
	let small = vec4<u32>(pair.x & 0xffffu, pair.x >> 16u, pair.y & 0xffffu, pair.y >> 16u);
	let large = select(vec4<u32>(0x7c00u), vec4<u32>(0x7e00u), bits > vec4<u32>(0x7f800000u));
	let all = select(small, large, bits >= vec4<u32>(0x477ff000u)) | signs;
	return vec2<u32>(all.x | (all.y << 16u), all.z | (all.w << 16u));
}
{{else}}
@group(0) @binding(3) var<storage, read_write> keys: array<vec4<f32>>;
@group(0) @binding(4) var<storage, read_write> values: array<vec4<f32>>;

fn narrow(x: vec4<f32>) -> vec4<f32> { return x; }
{{end}}
{{if .Indexed}}
@group(0) @binding({{.AtBinding}}) var<storage, read> indices: array<u32>;
{{end}}
{{if or .Indexed (eq .Type "F16")}}
@group(0) @binding({{.StatusBinding}}) var<storage, read_write> status: array<atomic<u32>>;
{{end}}

@compute @workgroup_size(64)
fn {{.Entry}}(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
	let width = groups.x * 64u;
	for (var unit = id.x + id.y * width; unit < words.units; unit += width * groups.y) {
		let row = unit / words.row_units;
		let column = unit % words.row_units;
		let item = words.first_item + row / words.rows;
		let quads = words.row_units / words.heads;
		let slab = item * words.heads + column / quads;
		let quad = column % quads;
		var position = words.at_added + row % words.rows;
		{{if .Indexed}}
		let at = indices[words.at + item * words.at_each];
		if (at >= words.at_valid) {
			atomicOr(&status[0], {{.Fault}}u);
			continue;
		}
		position += at;
		{{end}}
		if (slab < words.first_slab || slab >= words.end_slab || position < words.first_position || position >= words.first_position + words.span) {
			continue;
		}
		let from_k = words.k + item * words.k_item + row % words.rows * words.k_row + column * 4u;
		let from_v = words.v + item * words.v_item + row % words.rows * words.v_row + column * 4u;
		{{if .Vectors}}
		let x = k[from_k / 4u];
		let y = v[from_v / 4u];
		{{else}}
		let x = vec4<f32>(k[from_k], k[from_k + 1u], k[from_k + 2u], k[from_k + 3u]);
		let y = vec4<f32>(v[from_v], v[from_v + 1u], v[from_v + 2u], v[from_v + 3u]);
		{{end}}
		let here = slab - words.first_slab;
		let step = position - words.first_position;
		keys[(here * quads + quad) * words.span + step] = narrow(x);
		values[(here * words.span + step) * quads + quad] = narrow(y);
	}
}
