{{/*
Attention of a few queries over many keys. A workgroup takes up to Few queries of one slab
and a stretch of 256 keys, which it reads once; the stretches lie at fixed places, so that
the sums do not depend on how many there are at the same time. What it finds, for each
query the largest score, the sum of exponentials below it and the sum of values, goes to
scratch memory, and attention_join.wgsl joins the stretches. With Direct there is one
stretch only, and the output is made here.
*/}}
struct Words {
	queries: u32,
	keys: u32,
	heads: u32,
	dim: u32,
	scale: u32,
	q: u32,
	q_row: u32,
	q_item: u32,
	o: u32,
	o_row: u32,
	o_item: u32,
	k: u32,
	k_row: u32,
	k_item: u32,
	v: u32,
	v_row: u32,
	v_item: u32,
	left: u32,
	right: u32,
	first_slab: u32,
	first_position: u32,
	span: u32,
	lengths: u32,
	key_numbers: u32,
	keys_each: u32,
	keys_valid: u32,
	keys_added: u32,
	query_groups: u32,
	splits: u32,
	all_splits: u32,
	chunk_slab: u32,
	tiles: u32,
	first_tile: u32,
	from_slab: u32,
	from_query: u32,
	row_count: u32,
}
@group(0) @binding(0) var<uniform> words: Words;
{{template "attention_queries" .}}
{{template "attention_keys" .}}
{{if .Direct}}
{{template "attention_output" .}}
{{else}}
@group(0) @binding({{.OutBinding}}) var<storage, read_write> found: array<vec4<f32>>;
{{end}}
{{template "lengths" .}}
{{template "key_numbers" .}}

var<workgroup> staged: array<array<vec4<f32>, {{.HeadQuads}}>, {{.Few}}>;
var<workgroup> scores: array<array<f32, 256>, {{.Few}}>;
var<workgroup> shares: array<array<f32, 16>, {{.Few}}>;
var<workgroup> tops: array<array<f32, 16>, {{.Few}}>;
var<workgroup> sums: array<vec4<f32>, {{.Threads}}>;

// seen says whether the query at a position may see a key.
fn seen(position: i32, key_position: i32) -> bool {
	return key_position <= position + i32(words.right) && key_position >= position - i32(words.left);
}

@compute @workgroup_size({{.Threads}})
fn split(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
	let number = words.first_tile + group.x + group.y * groups.x;
	if (number >= words.tiles) {
		return;
	}
	let stretch = words.first_position / 256u + number % words.splits;
	let first_query = words.from_query + number / words.splits % words.query_groups * {{.Few}}u;
	let slab = words.from_slab + number / words.splits / words.query_groups;
	let item = slab / words.heads;
	let head = slab % words.heads;
	let queries = length_of(item, words.queries, 0u);
	let keys = keys_of(item);
	let first_key = stretch * 256u;
	let count = min(max(keys, first_key) - first_key, 256u);
	let position = i32(first_query) + i32({{if eq .Source "rows"}}words.{{end}}keys) - i32(words.queries);
	for (var i = thread; i < {{mul .Few .HeadQuads}}u; i += {{.Threads}}u) {
		let row = first_query + i / {{.HeadQuads}}u;
		var x = vec4<f32>(0.0);
		if (row < queries) {
			x = query(words.q + item * words.q_item + row * words.q_row + head * words.dim, i % {{.HeadQuads}}u);
		}
		staged[i / {{.HeadQuads}}u][i % {{.HeadQuads}}u] = x;
	}
	workgroupBarrier();
	for (var at = thread; at < 256u; at += {{.Threads}}u) {
		{{range $i := seq .Few}}
		var score{{$i}} = 0.0;
		{{end}}
		if (at < count) {
			for (var quad = 0u; quad < {{.HeadQuads}}u; quad++) {
				let x = key(slab, first_key + at, quad);
				{{range $i := seq .Few}}
				{
					let y = staged[{{$i}}][quad];
					score{{$i}} = fma(x.x, y.x, score{{$i}});
					score{{$i}} = fma(x.y, y.y, score{{$i}});
					score{{$i}} = fma(x.z, y.z, score{{$i}});
					score{{$i}} = fma(x.w, y.w, score{{$i}});
				}
				{{end}}
			}
		}
		{{range $i := seq .Few}}
		scores[{{$i}}][at] = select(-3.0e38, score{{$i}}, at < count{{if $.Banded}} && seen(position + {{$i}}, i32(first_key + at)){{end}});
		{{end}}
	}
	workgroupBarrier();

	// Sixteen invocations for each query find the largest score and the exponentials.
	let mine = thread / 16u;
	let lane = thread % 16u;
	if (mine < {{.Few}}u) {
		var most = scores[mine][lane];
		for (var i = 1u; i < 16u; i++) {
			most = max(most, scores[mine][lane + i * 16u]);
		}
		tops[mine][lane] = most;
	}
	workgroupBarrier();
	if (mine < {{.Few}}u) {
		var most = -1.0e37;
		for (var i = 0u; i < 16u; i++) {
			most = max(most, tops[mine][i]);
		}
		var sum = 0.0;
		for (var i = 0u; i < 16u; i++) {
			let score = scores[mine][lane + i * 16u];
			// exp2 may make anything of NaN.
			let seen_weight = select(exp2(score - most), score, (bitcast<u32>(score) & 0x7fffffffu) > 0x7f800000u);
			let weight = select(seen_weight, 0.0, bitcast<u32>(score) == bitcast<u32>(-3.0e38));
			scores[mine][lane + i * 16u] = weight;
			sum += weight;
		}
		shares[mine][lane] = sum;
	}
	workgroupBarrier();

	// An invocation has one quad of the output, and every Groups-th key.
	let quad = thread % {{.HeadQuads}}u;
	{{range $i := seq .Few}}
	var o{{$i}} = vec4<f32>(0.0);
	{{end}}
	for (var at = thread / {{.HeadQuads}}u; at < count; at += {{.Groups}}u) {
		if (thread < {{mul .Groups .HeadQuads}}u) {
			let x = value(slab, first_key + at, quad);
			{{range $i := seq .Few}}
			{
				let weight = scores[{{$i}}][at];
				o{{$i}} = fma(vec4<f32>(weight), {{if $.Banded}}select(x, vec4<f32>(0.0), weight == 0.0){{else}}x{{end}}, o{{$i}});
			}
			{{end}}
		}
	}
	{{range $i := seq .Few}}
	workgroupBarrier();
	sums[thread] = o{{$i}};
	workgroupBarrier();
	if (thread < {{$.HeadQuads}}u && first_query + {{$i}}u < words.from_query + words.row_count) {
		var sum = sums[thread];
		for (var i = 1u; i < {{$.Groups}}u; i++) {
			sum += sums[thread + i * {{$.HeadQuads}}u];
		}
		var total = shares[{{$i}}][0];
		for (var i = 1u; i < 16u; i++) {
			total += shares[{{$i}}][i];
		}
		{{if $.Direct}}
		let live = !(total == 0.0) && first_query + {{$i}}u < queries;
		store(words.o + item * words.o_item + (first_query + {{$i}}u) * words.o_row + head * words.dim, quad, select(vec4<f32>(0.0), sum / total, live));
		{{else}}
		let at = (((slab - words.chunk_slab) * words.row_count + first_query + {{$i}}u - words.from_query) * words.all_splits + stretch) * {{add $.HeadQuads 1}}u;
		found[at + 1u + quad] = sum;
		if (quad == 0u) {
			var most = -1.0e37;
			for (var i = 0u; i < 16u; i++) {
				most = max(most, tops[{{$i}}][i]);
			}
			found[at] = vec4<f32>(most, total, 0.0, 0.0);
		}
		{{end}}
	}
	{{end}}
}
