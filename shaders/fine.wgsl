{{/*
Sums that lose next to nothing, of vec4<f32> or f32 as the argument says. What includes it
declares words.zero, which is 0.
*/}}
{{define "fine"}}
// settled is v, in a way that no compiler sees through. They may take x − (x − y) for y,
// which would undo plus.
fn settled(v: {{.}}) -> {{.}} {
	return bitcast<{{.}}>(bitcast<{{if eq . "f32"}}u32{{else}}vec4<u32>{{end}}>(v) ^ {{if eq . "f32"}}words.zero{{else}}vec4<u32>(words.zero){{end}});
}

// A Fine sum is its upper part and what that lost when it was rounded.
struct Fine {
	high: {{.}},
	low: {{.}},
}

// plus adds v, by Knuth's error-free sum of two numbers of any size.
fn plus(sum: Fine, v: {{.}}) -> Fine {
	let high = settled(sum.high + v);
	let of_v = settled(high - sum.high);
	let of_sum = settled(high - of_v);
	return Fine(high, sum.low + ((sum.high - of_sum) + (v - of_v)));
}

// whole rounds a sum. Of an infinity the lower part is no number.
fn whole(sum: Fine) -> {{.}} {
	return select(sum.high, sum.high + sum.low, abs(sum.high) <= {{.}}(3.4e38));
}
{{end}}
