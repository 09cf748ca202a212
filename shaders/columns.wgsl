{{/*
Sums down the rows of 32 columns side by side: an invocation has the column thread % 32,
and the rows thread/32, thread/32 + Down, ….
*/}}
{{define "column_sums"}}
var<workgroup> shares: array<vec2<f32>, {{mul 32 .Down}}>;

// total adds v up over the invocations of a column.
fn total(v: vec2<f32>, thread: u32) -> vec2<f32> {
	workgroupBarrier();
	shares[thread] = v;
	workgroupBarrier();
	var sum = shares[thread % 32u];
	{{range $i := seq (sub .Down 1)}}
	sum += shares[thread % 32u + {{mul (add $i 1) 32}}u];
	{{end}}
	return sum;
}
{{end}}
