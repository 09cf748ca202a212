{{/*
Numbers that are rounded where the text says so. What includes one of these declares
words.zero, which is 0: no host sets it.

A driver may contract a·b + c, and does it in one specialisation of a kernel and not in
another. Then an op in parts has other bits than the op. So products are added by fma, and
others go through settled before anything is added to them: quotients and square roots
too, which are products with a reciprocal, and fma(a, b, 0.0).
*/}}
{{define "settled"}}
// settled is v, in a way that no compiler sees through.
fn settled(v: f32) -> f32 { return bitcast<f32>(bitcast<u32>(v) ^ words.zero); }
{{end}}

{{define "settled_quad"}}
fn settled_quad(v: vec4<f32>) -> vec4<f32> {
	return bitcast<vec4<f32>>(bitcast<vec4<u32>>(v) ^ vec4<u32>(words.zero));
}
{{end}}

{{define "settle"}}{{if eq . "f32"}}settled{{else}}settled_quad{{end}}{{end}}

{{/* Sums that lose next to nothing, of vec4<f32> or f32 as the argument says. */}}
{{define "fine"}}
{{if eq . "f32"}}{{template "settled"}}{{else}}{{template "settled_quad"}}{{end}}

// A Fine sum is its upper part and what that lost when it was rounded.
struct Fine {
	high: {{.}},
	low: {{.}},
}

// plus adds v, by Knuth's error-free sum of two numbers of any size. A compiler that took
// x − (x − y) for y would undo it.
fn plus(sum: Fine, v: {{.}}) -> Fine {
	let high = {{template "settle" .}}(sum.high + v);
	let of_v = {{template "settle" .}}(high - sum.high);
	let of_sum = {{template "settle" .}}(high - of_v);
	return Fine(high, sum.low + ((sum.high - of_sum) + (v - of_v)));
}

// whole rounds a sum. Of an infinity the lower part is no number.
fn whole(sum: Fine) -> {{.}} {
	return select(sum.high, sum.high + sum.low, abs(sum.high) <= {{.}}(3.4e38));
}
{{end}}
