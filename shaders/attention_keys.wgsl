{{/*
What the kernels of attention have in common: queries, keys and values, and how many of
them an item has. A slab is a head of an item. Keys and values lie in rows of the user's
buffers (Source rows), or in a cache of F32 or F16: keys as [slab][quad][position] and
values as [slab][position][quad], where a quad is four elements of a head.
*/}}
{{define "attention_queries"}}
{{if .Quads}}
@group(0) @binding(1) var<storage, read> q: array<vec4<f32>>;
{{else}}
@group(0) @binding(1) var<storage, read> q: array<f32>;
{{end}}

// query returns a quad of the query that starts at an element of q, ready for exp2.
fn query(start: u32, quad: u32) -> vec4<f32> {
	let scale = bitcast<f32>(words.scale);
	{{if .Quads}}
	return q[start / 4u + quad] * scale;
	{{else}}
	let at = start + quad * 4u;
	return vec4<f32>(q[at], q[at + 1u], q[at + 2u], q[at + 3u]) * scale;
	{{end}}
}
{{end}}

{{define "attention_output"}}
{{if .Quads}}
@group(0) @binding({{.OutBinding}}) var<storage, read_write> o: array<vec4<f32>>;
{{else}}
@group(0) @binding({{.OutBinding}}) var<storage, read_write> o: array<f32>;
{{end}}

fn store(start: u32, quad: u32, v: vec4<f32>) {
	{{if .Quads}}
	o[start / 4u + quad] = v;
	{{else}}
	let at = start + quad * 4u;
	o[at] = v.x;
	o[at + 1u] = v.y;
	o[at + 2u] = v.z;
	o[at + 3u] = v.w;
	{{end}}
}
{{end}}

{{define "attention_keys"}}
{{if eq .Source "rows"}}
{{if .Quads}}
@group(0) @binding(2) var<storage, read> k: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read> v: array<vec4<f32>>;
{{else}}
@group(0) @binding(2) var<storage, read> k: array<f32>;
@group(0) @binding(3) var<storage, read> v: array<f32>;
{{end}}

// key returns a quad of a key of a slab.
fn key(slab: u32, position: u32, quad: u32) -> vec4<f32> {
	let at = words.k + slab / words.heads * words.k_item + position * words.k_row + slab % words.heads * words.dim + quad * 4u;
	{{if .Quads}}
	return k[at / 4u];
	{{else}}
	return vec4<f32>(k[at], k[at + 1u], k[at + 2u], k[at + 3u]);
	{{end}}
}

// value returns a quad of a value of a slab.
fn value(slab: u32, position: u32, quad: u32) -> vec4<f32> {
	let at = words.v + slab / words.heads * words.v_item + position * words.v_row + slab % words.heads * words.dim + quad * 4u;
	{{if .Quads}}
	return v[at / 4u];
	{{else}}
	return vec4<f32>(v[at], v[at + 1u], v[at + 2u], v[at + 3u]);
	{{end}}
}
{{else}}
{{if eq .Source "F16"}}
@group(0) @binding(2) var<storage, read> k: array<vec2<u32>>;
@group(0) @binding(3) var<storage, read> v: array<vec2<u32>>;

fn wide(pair: vec2<u32>) -> vec4<f32> {
	return vec4<f32>(unpack2x16float(pair.x), unpack2x16float(pair.y));
}
{{else}}
@group(0) @binding(2) var<storage, read> k: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read> v: array<vec4<f32>>;

fn wide(quad: vec4<f32>) -> vec4<f32> { return quad; }
{{end}}

fn key(slab: u32, position: u32, quad: u32) -> vec4<f32> {
	let row = (slab - words.first_slab) * words.dim / 4u + quad;
	return wide(k[row * words.span + position - words.first_position]);
}

fn value(slab: u32, position: u32, quad: u32) -> vec4<f32> {
	let row = (slab - words.first_slab) * words.span + position - words.first_position;
	return wide(v[row * words.dim / 4u + quad]);
}
{{end}}
{{end}}

{{define "key_numbers"}}
{{if ne .KeyNumbers "none"}}
@group(0) @binding({{.KeyNumbersBinding}}) var<storage, read> key_numbers: array<u32>;
{{end}}
{{if and (eq .KeyNumbers "device") (ne .Lengths "device")}}
@group(0) @binding({{.StatusBinding}}) var<storage, read_write> status: array<atomic<u32>>;
{{end}}

// keys_of returns how many keys an item has.
fn keys_of(item: u32) -> u32 {
	{{if eq .KeyNumbers "none"}}
	return words.keys;
	{{else if eq .KeyNumbers "fixed"}}
	return key_numbers[words.key_numbers + item];
	{{else}}
	let n = key_numbers[words.key_numbers + item * words.keys_each];
	if (n >= words.keys_valid) {
		atomicOr(&status[0], {{.Fault}}u);
		return 0u;
	}
	return n + words.keys_added;
	{{end}}
}
{{end}}
