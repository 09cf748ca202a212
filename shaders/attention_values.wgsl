{{/*
What a tile of attention.wgsl adds to the output: the exponentials of its scores, which are
in registers, times the values. Both are staged, quad j of everybody's keys at a time, Step
keys of them.
*/}}
{{define "attention_values"}}
{{$rows := mul .Down .RowQuads}}
{{$width := mul .Across .Slabs}}
{{$threads := mul .Across .Down}}
		{{range $j := seq .KeyQuads}}
		for (var part = 0u; part < {{div (mul $.Across 4) $.Step}}u; part++) {
			workgroupBarrier();
			if (live) {
				if (part == 0u) {
					{{range $i := seq $.RowQuads}}
					{
						let place = (down + {{mul $i $.Down}}u) ^ (across % {{$.Banks}}u);
						{{range $l := seq 4}}
						pool[(across * 4u + {{$l}}u) * {{$rows}}u + place] = vec4<f32>(
							{{- range $r := seq 4}}{{if $r}}, {{end}}s{{add (mul $i 4) $r}}_{{$j}}.{{lane $l}}{{end -}}
						);
						{{end}}
					}
					{{end}}
				}
				for (var b = thread; b < {{mul $.Step $width}}u; b += {{$threads}}u) {
					let slot = part * {{$.Step}}u + b / {{$width}}u;
					let quad = b % {{$width}}u;
					let row = first_key + i32(slot / 4u) * {{mul $.KeyQuads 4}} + {{mul $j 4}} + i32(slot % 4u);
					var x = vec4<f32>(0.0);
					if (row < keys && quad < quads) {
						x = value(slab, u32(row), quad);
					}
					pool[{{$.ValuePlace}}u + b] = x;
				}
			}
			workgroupBarrier();
			{{if $.Banded}}
			if (live && ragged) {
				// A value that a row does not see may be NaN.
				for (var slot = 0u; slot < {{$.Step}}u; slot++) {
					let in_part = part * {{$.Step}}u + slot;
					{{range $i := seq $.RowQuads}}
					let p{{$i}} = pool[in_part * {{$rows}}u + ((down + {{mul $i $.Down}}u) ^ (in_part / 4u % {{$.Banks}}u))];
					{{end}}
					{{range $u := seq $.Slabs}}
					let x{{$u}} = pool[{{$.ValuePlace}}u + slot * {{$width}}u + across + {{mul $u $.Across}}u];
					{{end}}
					{{range $i := seq (mul $.RowQuads 4)}}
					if (p{{quotient $i 4}}.{{lane (mod $i 4)}} != 0.0) {
						{{range $u := seq $.Slabs}}
						o{{$i}}_{{$u}} = fma(vec4<f32>(p{{quotient $i 4}}.{{lane (mod $i 4)}}), x{{$u}}, o{{$i}}_{{$u}});
						{{end}}
					}
					{{end}}
				}
			}
			{{end}}
			if (live{{if $.Banded}} && !ragged{{end}}) {
				for (var slot = 0u; slot < {{$.Step}}u; slot++) {
					let in_part = part * {{$.Step}}u + slot;
					{{range $i := seq $.RowQuads}}
					let p{{$i}} = pool[in_part * {{$rows}}u + ((down + {{mul $i $.Down}}u) ^ (in_part / 4u % {{$.Banks}}u))];
					{{end}}
					{{range $u := seq $.Slabs}}
					let x{{$u}} = pool[{{$.ValuePlace}}u + slot * {{$width}}u + across + {{mul $u $.Across}}u];
					{{end}}
					{{range $i := seq (mul $.RowQuads 4)}}{{range $u := seq $.Slabs}}
					o{{$i}}_{{$u}} = fma(vec4<f32>(p{{quotient $i 4}}.{{lane (mod $i 4)}}), x{{$u}}, o{{$i}}_{{$u}});
					{{end}}{{end}}
				}
			}
		}
		{{end}}
{{end}}
