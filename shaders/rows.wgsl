{{/*
What kernels have in common that take whole rows, each by Lanes invocations; a workgroup
takes Threads/Lanes rows. An invocation's share of a row are the quads (four columns)
lane, lane + Lanes, …. So a row has the same bits wherever it is, and however wide the
loads are.

Sums over the invocations of a row are taken in two steps of the same kind, Each at a time
and then Groups, because a barrier costs more than some loads of workgroup memory.
*/}}
{{define "row_input"}}
{{if .InPlace}}
{{else if .Vectors}}
@group(0) @binding({{.XBinding}}) var<storage, read> x: array<vec4<f32>>;
{{else}}
@group(0) @binding({{.XBinding}}) var<storage, read> x: array<f32>;
{{end}}

// load returns a quad of the row that starts at an element of x, with zeros beyond its end.
fn load(start: u32, quad: u32) -> vec4<f32> {
	{{if .Vectors}}
	return {{if .InPlace}}y{{else}}x{{end}}[start / 4u + quad];
	{{else}}
	let at = start + quad * 4u;
	let left = words.columns - quad * 4u;
	var v = vec4<f32>({{if .InPlace}}y{{else}}x{{end}}[at], 0.0, 0.0, 0.0);
	if (left > 1u) { v.y = {{if .InPlace}}y{{else}}x{{end}}[at + 1u]; }
	if (left > 2u) { v.z = {{if .InPlace}}y{{else}}x{{end}}[at + 2u]; }
	if (left > 3u) { v.w = {{if .InPlace}}y{{else}}x{{end}}[at + 3u]; }
	return v;
	{{end}}
}

// within is v without what lies beyond the end of the row.
fn within(quad: u32, v: vec4<f32>) -> vec4<f32> {
	return select(vec4<f32>(0.0), v, vec4<u32>(quad * 4u) + vec4<u32>(0u, 1u, 2u, 3u) < vec4<u32>(words.columns));
}
{{end}}

{{define "row_output"}}
{{if .Vectors}}
@group(0) @binding(1) var<storage, read_write> y: array<vec4<f32>>;
{{else}}
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
{{end}}

// store sets a quad of the row that starts at an element of y.
fn store(start: u32, quad: u32, v: vec4<f32>) {
	{{if .Vectors}}
	y[start / 4u + quad] = v;
	{{else}}
	let at = start + quad * 4u;
	let left = words.columns - quad * 4u;
	y[at] = v.x;
	if (left > 1u) { y[at + 1u] = v.y; }
	if (left > 2u) { y[at + 2u] = v.z; }
	if (left > 3u) { y[at + 3u] = v.w; }
	{{end}}
}
{{end}}

{{define "row_sums"}}
{{if gt .Lanes 1}}
var<workgroup> shares: array<vec2<f32>, {{.Threads}}>;
{{end}}
{{if gt .Groups 1}}
var<workgroup> sums: array<vec2<f32>, {{mul (div .Threads .Lanes) .Groups}}>;
{{end}}

// total adds v up over the invocations of a row.
fn total(v: vec2<f32>, thread: u32) -> vec2<f32> {
	{{if eq .Lanes 1}}
	return v;
	{{else}}
	let first = thread / {{.Lanes}}u * {{.Lanes}}u;
	{{if eq .Groups 1}}
	workgroupBarrier();
	{{end}}
	shares[thread] = v;
	workgroupBarrier();
	let group = thread % {{.Groups}}u;
	var sum = shares[first + group];
	{{range $i := seq (sub .Each 1)}}
	sum += shares[first + group + {{mul (add $i 1) $.Groups}}u];
	{{end}}
	{{if eq .Groups 1}}
	return sum;
	{{else}}
	let row = thread / {{.Lanes}}u * {{.Groups}}u;
	if (thread % {{.Lanes}}u < {{.Groups}}u) {
		sums[row + group] = sum;
	}
	workgroupBarrier();
	sum = sums[row];
	{{range $i := seq (sub .Groups 1)}}
	sum += sums[row + {{add $i 1}}u];
	{{end}}
	return sum;
	{{end}}
	{{end}}
}
{{end}}

{{define "row_largest"}}
{{if gt .Lanes 1}}
var<workgroup> key_shares: array<{{.Key}}, {{.Threads}}>;
{{end}}
{{if gt .Groups 1}}
var<workgroup> key_groups: array<{{.Key}}, {{mul (div .Threads .Lanes) .Groups}}>;
{{end}}

// largest returns the greatest key among the invocations of a row.
fn largest(v: {{.Key}}, thread: u32) -> {{.Key}} {
	{{if eq .Lanes 1}}
	return v;
	{{else}}
	let first = thread / {{.Lanes}}u * {{.Lanes}}u;
	{{if eq .Groups 1}}
	workgroupBarrier();
	{{end}}
	key_shares[thread] = v;
	workgroupBarrier();
	let group = thread % {{.Groups}}u;
	var top = key_shares[first + group];
	{{range $i := seq (sub .Each 1)}}
	top = greater(top, key_shares[first + group + {{mul (add $i 1) $.Groups}}u]);
	{{end}}
	{{if eq .Groups 1}}
	return top;
	{{else}}
	let row = thread / {{.Lanes}}u * {{.Groups}}u;
	if (thread % {{.Lanes}}u < {{.Groups}}u) {
		key_groups[row + group] = top;
	}
	workgroupBarrier();
	top = key_groups[row];
	{{range $i := seq (sub .Groups 1)}}
	top = greater(top, key_groups[row + {{add $i 1}}u]);
	{{end}}
	return top;
	{{end}}
	{{end}}
}
{{end}}

{{define "keys"}}
// key_of turns floats into numbers of the same order. −0 is as large as 0, and NaN as
// −infinity. No key is 0.
fn key_of(v: vec4<f32>) -> vec4<u32> {
	let given = bitcast<vec4<u32>>(v);
	let size = given & vec4<u32>(0x7fffffffu);
	let bits = select(select(given, vec4<u32>(0u), size == vec4<u32>(0u)), vec4<u32>(0xff800000u), size > vec4<u32>(0x7f800000u));
	return bits ^ select(vec4<u32>(0x80000000u), vec4<u32>(0xffffffffu), bits >= vec4<u32>(0x80000000u));
}

// value_of is the float of a key.
fn value_of(key: u32) -> f32 {
	return bitcast<f32>(key ^ select(0xffffffffu, 0x80000000u, key >= 0x80000000u));
}
{{end}}
