{{/*
Attention of many queries, without storing scores. A workgroup takes a tile of queries of
one slab and walks over tiles of keys. Of the scores of a tile an invocation has rows of
RowQuads·4 queries and columns of KeyQuads·4 keys in registers, of the output the same
rows and Slabs quads. Both products stage their operands in workgroup memory: the scores
Depth elements of a head at a time, the output Step keys at a time.

Rows of a tile and keys of a tile belong to invocations in runs; in workgroup memory the
quads of a run lie apart, so that neighbours read neighbours. XOR with a depth or a key
keeps what is written side by side in different banks.

A row's sums depend on its number and that of the keys, not on its tile: cutting the
queries, and the choice of Down, change no bit.

The products of a tile are in files of their own: attention_scores.wgsl and
attention_values.wgsl.

With Partial only the keys from from_key to to_key are looked at, and what is found goes to
scratch memory, as that of attention_split.wgsl does, for attention_join.wgsl.
*/}}
{{$rows := mul .Down .RowQuads}}
{{$columns := mul .Across .KeyQuads}}
{{$threads := mul .Across .Down}}
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
	q2: u32,
	q2_row: u32,
	q2_item: u32,
	positions: u32,
	positions_row: u32,
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
	steps: u32,
	chunks: u32,
	query_tiles: u32,
	from_query: u32,
	from_key: u32,
	to_key: u32,
	from_position: u32,
	to_position: u32,
	chunk_slab: u32,
	row_count: u32,
	all_splits: u32,
	split: u32,
	tiles: u32,
	first_tile: u32,
}
@group(0) @binding(0) var<uniform> words: Words;
{{template "nan"}}
{{template "attention_queries" .}}
{{template "attention_keys" .}}
{{if .Partial}}
@group(0) @binding({{.OutBinding}}) var<storage, read_write> found: array<vec4<f32>>;
{{else}}
{{template "attention_output" .}}
{{end}}
{{if .Relative}}
{{template "attention_positions" .}}
{{end}}
{{template "lengths" .}}
{{template "key_numbers" .}}

// Places in the pool, in vectors. Staged are at first queries and keys; then the exponentials of
// scores and the values.
var<workgroup> pool: array<vec4<f32>, {{.Pool}}>;

// row_quad and key_quad return which quad of rows or keys lies at a place.
fn row_quad(place: u32) -> u32 { return place % {{.Down}}u * {{.RowQuads}}u + place / {{.Down}}u; }

fn key_quad(place: u32) -> u32 { return place % {{.Across}}u * {{.KeyQuads}}u + place / {{.Across}}u; }

// stage writes four vectors of one quad of the depth, turned, so that a vector holds four
// rows at one depth.
fn stage(from_place: u32, quad: u32, width: u32, place: u32, a: vec4<f32>, b: vec4<f32>, c: vec4<f32>, d: vec4<f32>) {
	let at = from_place + quad * 4u * width + place;
	pool[at] = vec4<f32>(a.x, b.x, c.x, d.x);
	pool[at + width] = vec4<f32>(a.y, b.y, c.y, d.y);
	pool[at + 2u * width] = vec4<f32>(a.z, b.z, c.z, d.z);
	pool[at + 3u * width] = vec4<f32>(a.w, b.w, c.w, d.w);
}

@compute @workgroup_size({{$threads}})
fn attention(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
	let number = words.first_tile + group.x + group.y * groups.x;
	if (number >= words.tiles) {
		return;
	}
	let slab = words.first_slab + number / words.query_tiles;
	let item = slab / words.heads;
	let head = slab % words.heads;
	let first_query = words.from_query + number % words.query_tiles * {{mul $rows 4}}u;
	let queries = length_of(item, words.queries, 0u);
	let keys = i32(keys_of(item));
	let across = thread % {{.Across}}u;
	let down = thread / {{.Across}}u;
	let quads = words.dim / 4u;

	// The keys that the tile sees are those of the tiles from start on, up to end.
	var end = select(0i, min(keys, i32(words.to_key)), first_query < queries);
	var start = i32(words.from_key);
	{{if .Banded}}
	let position = i32(first_query) + {{if eq .Source "rows"}}i32(words.keys){{else}}keys{{end}} - i32(words.queries);
	end = min(end, position + {{mul $rows 4}} + i32(words.right));
	start = max(start, max(position - i32(words.left), 0i) / {{mul $columns 4}} * {{mul $columns 4}});
	{{end}}

	let q_start = words.q + item * words.q_item + head * words.dim;
	{{if .Relative}}
	let q2_start = words.q2 + item * words.q2_item + head * words.dim;
	{{end}}
	{{range $i := seq (mul .RowQuads 4)}}{{range $u := seq $.Slabs}}
	var o{{$i}}_{{$u}} = vec4<f32>(0.0);
	{{end}}{{end}}
	{{range $i := seq .RowQuads}}
	var top{{$i}} = vec4<f32>(-1.0e37);
	var sum{{$i}} = vec4<f32>(0.0);
	{{end}}
	for (var step = 0u; step < words.steps; step++) {
		let first_key = start + i32(step) * {{mul $columns 4}};
		let live = first_key < end;
		{{range $i := seq (mul .RowQuads 4)}}{{range $j := seq $.KeyQuads}}
		var s{{$i}}_{{$j}} = vec4<f32>(0.0);
		{{end}}{{end}}
		{{template "attention_scores" .}}

		// Keys that are not seen: those beyond the last, and those outside of the band.
		let last_key = first_key + {{mul $columns 4}};
		let ragged = live && (last_key > keys{{if .Banded}} || last_key - 1 > position + i32(words.right) || first_key < position + {{sub (mul $rows 4) 1}} - i32(words.left){{end}});
		let mine = vec4<i32>(first_key + i32(across) * {{mul .KeyQuads 4}}) + vec4<i32>(0i, 1i, 2i, 3i);
		if (ragged) {
			{{range $i := seq (mul .RowQuads 4)}}{{range $j := seq $.KeyQuads}}
			s{{$i}}_{{$j}} = select(vec4<f32>(-3.0e38), s{{$i}}_{{$j}}, seen(mine + vec4<i32>({{mul $j 4}}i), keys{{if $.Banded}}, position + i32(down) * {{mul $.RowQuads 4}} + {{$i}}{{end}}));
			{{end}}{{end}}
		}

		// The largest score of each row, over the invocations that share it.
		workgroupBarrier();
		{{range $i := seq .RowQuads}}
		{
			{{range $r := seq 4}}
			{{$row := add (mul $i 4) $r}}
			var m{{$r}} = s{{$row}}_0;
			{{range $j := seq (sub $.KeyQuads 1)}}
			m{{$r}} = max(m{{$r}}, s{{$row}}_{{add $j 1}});
			{{end}}
			{{end}}
			let half0 = max(vec4<f32>(m0.x, m1.x, m2.x, m3.x), vec4<f32>(m0.y, m1.y, m2.y, m3.y));
			let half1 = max(vec4<f32>(m0.z, m1.z, m2.z, m3.z), vec4<f32>(m0.w, m1.w, m2.w, m3.w));
			pool[across * {{$rows}}u + ((down + {{mul $i $.Down}}u) ^ (across % {{$.Banks}}u))] = max(half0, half1);
		}
		{{end}}
		workgroupBarrier();
		if (live) {
			{{range $i := seq .RowQuads}}
			{
				var most = top{{$i}};
				for (var a = 0u; a < {{$.Across}}u; a++) {
					most = max(most, pool[a * {{$rows}}u + ((down + {{mul $i $.Down}}u) ^ (a % {{$.Banks}}u))]);
				}
				let fade = exp2(top{{$i}} - most);
				top{{$i}} = most;
				var total = vec4<f32>(0.0);
				// exp2 may make anything of NaN, a sum does not.
				var exponents = vec4<f32>(0.0);
				{{range $r := seq 4}}
				{{$row := add (mul $i 4) $r}}
				{{range $j := seq $.KeyQuads}}
				s{{$row}}_{{$j}} -= most.{{lane $r}};
				exponents.{{lane $r}} += (s{{$row}}_{{$j}}.x + s{{$row}}_{{$j}}.y) + (s{{$row}}_{{$j}}.z + s{{$row}}_{{$j}}.w);
				s{{$row}}_{{$j}} = exp2(s{{$row}}_{{$j}});
				{{end}}
				if (ragged) {
					{{range $j := seq $.KeyQuads}}
					s{{$row}}_{{$j}} = select(vec4<f32>(0.0), s{{$row}}_{{$j}}, seen(mine + vec4<i32>({{mul $j 4}}i), keys{{if $.Banded}}, position + i32(down) * {{mul $.RowQuads 4}} + {{$row}}{{end}}));
					{{end}}
				}
				{{range $j := seq $.KeyQuads}}
				total.{{lane $r}} += (s{{$row}}_{{$j}}.x + s{{$row}}_{{$j}}.y) + (s{{$row}}_{{$j}}.z + s{{$row}}_{{$j}}.w);
				{{end}}
				{{range $u := seq $.Slabs}}
				o{{$row}}_{{$u}} *= fade.{{lane $r}};
				{{end}}
				{{end}}
				sum{{$i}} = fma(sum{{$i}}, fade, select(total, exponents, is_nan(exponents)));
			}
			{{end}}
		}

		// The output, quad j of everybody's keys at a time.
		{{template "attention_values" .}}
	}

	// Every invocation has the sum over its own keys.
	workgroupBarrier();
	{{range $i := seq .RowQuads}}
	pool[across * {{$rows}}u + ((down + {{mul $i $.Down}}u) ^ (across % {{$.Banks}}u))] = sum{{$i}};
	{{end}}
	workgroupBarrier();
	{{if .Partial}}
	let each = quads + 1u;
	let found_start = ((slab - words.chunk_slab) * words.row_count * words.all_splits + words.split) * each;
	{{else}}
	let o_start = words.o + item * words.o_item + head * words.dim;
	{{end}}
	{{range $i := seq .RowQuads}}
	{
		var total = vec4<f32>(0.0);
		for (var a = 0u; a < {{$.Across}}u; a++) {
			total += pool[a * {{$rows}}u + ((down + {{mul $i $.Down}}u) ^ (a % {{$.Banks}}u))];
		}
		{{if not $.Partial}}
		let share = select(1.0 / total, vec4<f32>(0.0), total == vec4<f32>(0.0));
		{{end}}
		{{range $r := seq 4}}
		{
			let row = first_query + down * {{mul $.RowQuads 4}}u + {{add (mul $i 4) $r}}u;
			if (row < words.queries) {
				{{if $.Partial}}
				let at = found_start + (row - words.from_query) * words.all_splits * each;
				if (across == 0u) {
					found[at] = vec4<f32>(top{{$i}}.{{lane $r}}, total.{{lane $r}}, 0.0, 0.0);
				}
				{{else}}
				let live = row < queries;
				{{end}}
				{{range $u := seq $.Slabs}}
				if (across + {{mul $u $.Across}}u < quads) {
					{{if $.Partial}}
					found[at + 1u + across + {{mul $u $.Across}}u] = o{{add (mul $i 4) $r}}_{{$u}};
					{{else}}
					store(o_start + row * words.o_row, across + {{mul $u $.Across}}u, select(vec4<f32>(0.0), o{{add (mul $i 4) $r}}_{{$u}} * share.{{lane $r}}, live));
					{{end}}
				}
				{{end}}
			}
		}
		{{end}}
	}
	{{end}}
}

// seen says which keys a query may see{{if .Banded}} that stands at a position{{end}}.
fn seen(key: vec4<i32>, keys: i32{{if .Banded}}, position: i32{{end}}) -> vec4<bool> {
	{{if .Banded}}
	let far = (key < vec4<i32>(keys)) & (key <= vec4<i32>(position + i32(words.right)));
	return far & (key >= vec4<i32>(position - i32(words.left)));
	{{else}}
	return key < vec4<i32>(keys);
	{{end}}
}
