{{/*
A product of up to eight rows, which reads the weights once. 64 invocations take Width
columns. They bring 2048 weights at a time to workgroup memory, side by side, with the
next ones on their way to registers; then each adds up one column for one or two rows. As
in the tile kernels a sum adds its products in the order of k, so both give the same bits.
*/}}
{{define "few"}}
{{template "weights" .}}
// A column takes one vector more than it has: so the columns begin in different banks.
var<workgroup> staged_b: array<array<vec4<f32>, {{add (div 512 .Width) 1}}>, {{.Width}}>;
var<workgroup> staged_a: array<array<vec4<f32>, {{div 512 .Width}}>, {{.FewRows}}>;
var<workgroup> sums: array<array<f32, {{.Width}}>, {{.FewRows}}>;

// weight returns four weights of a column, zeros beyond its end.
fn weight(column: u32, k: u32) -> vec4<f32> {
	if (k >= words.stride) {
		return vec4<f32>(0.0);
	}
	return load_b(column, k);
}

@compute @workgroup_size(64)
fn few(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
	let number = words.first_tile + group.x + group.y * groups.x;
	if (number >= words.tiles) {
		return;
	}
	let first = number * {{.Width}}u;
	{{range $i := seq 8}}
	let column{{$i}} = (thread + {{mul $i 64}}u) / {{div 512 $.Width}}u;
	let quad{{$i}} = (thread + {{mul $i 64}}u) % {{div 512 $.Width}}u;
	var b{{$i}} = weight(first + column{{$i}}, quad{{$i}} * 4u);
	{{end}}
	{{range $i := seq (quotient (add (mul .FewRows (div 512 .Width)) 63) 64)}}
	let row{{$i}} = min((thread + {{mul $i 64}}u) / {{div 512 $.Width}}u, {{sub $.FewRows 1}}u);
	let start{{$i}} = row_of(row{{$i}});
	var a{{$i}} = values(start{{$i}}, quad{{$i}} * 4u);
	{{end}}
	let mine = thread % {{.Width}}u;
	let part = thread / {{.Width}}u;
	{{range $r := seq .RowsEach}}
	var sum{{$r}} = 0.0;
	{{if $.Long}}var total{{$r}} = 0.0;{{end}}
	{{if $.Fine}}var fine{{$r}} = Fine(0.0, 0.0);{{end}}
	{{end}}
	for (var k = 0u; k < words.k; k += {{div 2048 .Width}}u) {
		workgroupBarrier();
		{{range $i := seq 8}}
		staged_b[column{{$i}}][quad{{$i}}] = b{{$i}};
		{{end}}
		{{range $i := seq (quotient (add (mul .FewRows (div 512 .Width)) 63) 64)}}
		staged_a[row{{$i}}][quad{{$i}}] = a{{$i}};
		{{end}}
		workgroupBarrier();
		let next = k + {{div 2048 .Width}}u;
		if (next < words.k) {
			{{range $i := seq 8}}
			b{{$i}} = weight(first + column{{$i}}, next + quad{{$i}} * 4u);
			{{end}}
			{{range $i := seq (quotient (add (mul .FewRows (div 512 .Width)) 63) 64)}}
			a{{$i}} = values(start{{$i}}, next + quad{{$i}} * 4u);
			{{end}}
		}
		if (part < {{.FewRows}}u) {
			let quads = min((words.k - k + 3u) / 4u, {{div 512 .Width}}u);
			for (var i = 0u; i < quads; i++) {
				let w = staged_b[mine][i];
				{{range $r := seq .RowsEach}}
				let v{{$r}} = staged_a[part + {{mul $r (div 64 $.Width)}}u][i];
				sum{{$r}} = fma(v{{$r}}.x, w.x, sum{{$r}});
				sum{{$r}} = fma(v{{$r}}.y, w.y, sum{{$r}});
				sum{{$r}} = fma(v{{$r}}.z, w.z, sum{{$r}});
				sum{{$r}} = fma(v{{$r}}.w, w.w, sum{{$r}});
				{{if $.Fine}}
				fine{{$r}} = plus(fine{{$r}}, sum{{$r}});
				sum{{$r}} = 0.0;
				{{end}}
				{{end}}
			}
			{{if .Long}}
			if (next % 1024u == 0u) {
				{{range $r := seq .RowsEach}}
				total{{$r}} += sum{{$r}};
				sum{{$r}} = 0.0;
				{{end}}
			}
			{{end}}
		}
	}
	if (part < {{.FewRows}}u) {
		{{range $r := seq .RowsEach}}
		sums[part + {{mul $r (div 64 $.Width)}}u][mine] = {{if $.Fine}}whole(fine{{$r}}){{else}}{{if $.Long}}total{{$r}} + {{end}}sum{{$r}}{{end}};
		{{end}}
	}
	workgroupBarrier();
	let row = thread / {{div .Width 4}}u;
	let at = thread % {{div .Width 4}}u * 4u;
	if (row < min(words.rows, {{.FewRows}}u)) {
		store(row, first + at, vec4<f32>(sums[row][at], sums[row][at + 1u], sums[row][at + 2u], sums[row][at + 3u]));
	}
}
{{end}}
