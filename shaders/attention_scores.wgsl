{{/*
The scores of a tile of attention.wgsl: of queries and keys, and with Relative of second
queries and the positions between the two. Both are staged Depth elements of a head at a
time, and multiplied in registers.
*/}}
{{define "attention_positions"}}
{{if .Quads}}
@group(0) @binding({{.Q2Binding}}) var<storage, read> q2: array<vec4<f32>>;
@group(0) @binding({{.PositionsBinding}}) var<storage, read> positions: array<vec4<f32>>;
{{else}}
@group(0) @binding({{.Q2Binding}}) var<storage, read> q2: array<f32>;
@group(0) @binding({{.PositionsBinding}}) var<storage, read> positions: array<f32>;
{{end}}

fn query2(start: u32, quad: u32) -> vec4<f32> {
	let scale = bitcast<f32>(words.scale);
	{{if .Quads}}
	return q2[start / 4u + quad] * scale;
	{{else}}
	let at = start + quad * 4u;
	return vec4<f32>(q2[at], q2[at + 1u], q2[at + 2u], q2[at + 3u]) * scale;
	{{end}}
}

// relative returns a quad of a row of the positions, zeros beyond those that are bound.
fn relative(row: i32, head: u32, quad: u32) -> vec4<f32> {
	if (row < i32(words.from_position) || row >= i32(words.to_position)) {
		return vec4<f32>(0.0);
	}
	let at = words.positions + u32(row) * words.positions_row + head * words.dim + quad * 4u;
	{{if .Quads}}
	return positions[at / 4u];
	{{else}}
	return vec4<f32>(positions[at], positions[at + 1u], positions[at + 2u], positions[at + 3u]);
	{{end}}
}
{{end}}

{{define "attention_scores"}}
{{$rows := mul .Down .RowQuads}}
{{$columns := mul .Across .KeyQuads}}
{{$near := mul (add .Across .Down) .KeyQuads}}
{{$threads := mul .Across .Down}}
		for (var chunk = 0u; chunk < words.chunks; chunk++) {
			workgroupBarrier();
			if (live) {
				for (var b = thread; b < {{mul $rows (div .Depth 4)}}u; b += {{$threads}}u) {
					let quad = b % {{div .Depth 4}}u;
					let place = b / {{div .Depth 4}}u;
					let at = chunk * {{div .Depth 4}}u + quad;
					let row = first_query + row_quad(place) * 4u;
					var x0 = vec4<f32>(0.0);
					var x1 = vec4<f32>(0.0);
					var x2 = vec4<f32>(0.0);
					var x3 = vec4<f32>(0.0);
					if (at < quads) {
						{{range $i := seq 4}}
						if (row + {{$i}}u < queries) { x{{$i}} = query(q_start + (row + {{$i}}u) * words.q_row, at); }
						{{end}}
					}
					stage(0u, quad, {{$rows}}u, place ^ (quad * {{.RowShuffle}}u), x0, x1, x2, x3);
					{{if .Relative}}
					if (at < quads) {
						{{range $i := seq 4}}
						if (row + {{$i}}u < queries) { x{{$i}} = query2(q2_start + (row + {{$i}}u) * words.q2_row, at); }
						{{end}}
					}
					stage({{.Q2Place}}u, quad, {{$rows}}u, place ^ (quad * {{.RowShuffle}}u), x0, x1, x2, x3);
					{{end}}
				}
				for (var b = thread; b < {{mul $columns (div .Depth 4)}}u; b += {{$threads}}u) {
					{{if eq .Source "rows"}}
					let quad = b % {{div .Depth 4}}u;
					let place = b / {{div .Depth 4}}u;
					{{else}}
					let quad = b / {{$columns}}u;
					let place = b % {{$columns}}u;
					{{end}}
					let at = chunk * {{div .Depth 4}}u + quad;
					let row = first_key + i32(key_quad(place)) * 4;
					var x0 = vec4<f32>(0.0);
					var x1 = vec4<f32>(0.0);
					var x2 = vec4<f32>(0.0);
					var x3 = vec4<f32>(0.0);
					if (at < quads) {
						{{range $i := seq 4}}
						if (row + {{$i}} < keys) { x{{$i}} = key(slab, u32(row) + {{$i}}u, at); }
						{{end}}
					}
					stage({{.KeyPlace}}u, quad, {{$columns}}u, place ^ (quad * {{.KeyShuffle}}u), x0, x1, x2, x3);
				}
				{{if .Relative}}
				for (var b = thread; b < {{mul $near (div .Depth 4)}}u; b += {{$threads}}u) {
					let quad = b % {{div .Depth 4}}u;
					let place = b / {{div .Depth 4}}u;
					let at = chunk * {{div .Depth 4}}u + quad;
					let near_quad = place % {{add .Across .Down}}u * {{.KeyQuads}}u + place / {{add .Across .Down}}u;
					let row = first_key - i32(first_query) + i32(words.keys) - 1 + i32(near_quad) * 4 - {{mul $rows 4}};
					var x0 = vec4<f32>(0.0);
					var x1 = vec4<f32>(0.0);
					var x2 = vec4<f32>(0.0);
					var x3 = vec4<f32>(0.0);
					if (at < quads) {
						{{range $i := seq 4}}
						x{{$i}} = relative(row + {{$i}}, head, at);
						{{end}}
					}
					stage({{.RelativePlace}}u, quad, {{$near}}u, place ^ (quad * {{.RelativeShuffle}}u), x0, x1, x2, x3);
				}
				{{end}}
			}
			workgroupBarrier();
			if (live) {
				for (var quad = 0u; quad < {{div .Depth 4}}u; quad++) {
					{{range $i := seq .RowQuads}}
					let a{{$i}}_at = quad * {{mul $rows 4}}u + ((down + {{mul $i $.Down}}u) ^ (quad * {{$.RowShuffle}}u));
					{{end}}
					{{range $j := seq .KeyQuads}}
					let b{{$j}}_at = {{$.KeyPlace}}u + quad * {{mul $columns 4}}u + ((across + {{mul $j $.Across}}u) ^ (quad * {{$.KeyShuffle}}u));
					{{end}}
					{{if .Relative}}
					// Quad u of the relative positions that the invocation needs.
					let near = {{sub .Down 1}}u + across - down;
					{{range $u := seq (add .RowQuads .KeyQuads)}}
					let r{{$u}}_at = {{$.RelativePlace}}u + quad * {{mul $near 4}}u + ((near + {{add (mul (mod $u $.KeyQuads) (add $.Across $.Down)) (quotient $u $.KeyQuads)}}u) ^ (quad * {{$.RelativeShuffle}}u));
					{{end}}
					{{end}}
					{{range $d := seq 4}}
					{
						{{range $i := seq $.RowQuads}}
						let a{{$i}} = pool[a{{$i}}_at + {{mul $d $rows}}u];
						{{end}}
						{{range $j := seq $.KeyQuads}}
						let b{{$j}} = pool[b{{$j}}_at + {{mul $d $columns}}u];
						{{end}}
						{{range $i := seq (mul $.RowQuads 4)}}{{range $j := seq $.KeyQuads}}
						s{{$i}}_{{$j}} = fma(vec4<f32>(a{{quotient $i 4}}.{{lane (mod $i 4)}}), b{{$j}}, s{{$i}}_{{$j}});
						{{end}}{{end}}
						{{if $.Relative}}
						{{range $i := seq $.RowQuads}}
						let c{{$i}} = pool[{{$.Q2Place}}u + a{{$i}}_at + {{mul $d $rows}}u];
						{{end}}
						{{range $u := seq (add $.RowQuads $.KeyQuads)}}
						let r{{$u}} = pool[r{{$u}}_at + {{mul $d $near}}u];
						{{end}}
						{{range $i := seq (mul $.RowQuads 4)}}{{range $j := seq $.KeyQuads}}
						s{{$i}}_{{$j}} = fma(vec4<f32>(c{{quotient $i 4}}.{{lane (mod $i 4)}}), vec4<f32>(
							{{- range $l := seq 4}}{{$e := add (sub (add (mul $j 4) $l) $i) (mul $.RowQuads 4)}}{{if $l}}, {{end}}r{{quotient $e 4}}.{{lane (mod $e 4)}}{{end -}}
						), s{{$i}}_{{$j}});
						{{end}}{{end}}
						{{end}}
					}
					{{end}}
				}
			}
		}
{{end}}
