{{/*
The recurrence of one LSTM layer. The products of the input are there already, with the
bias: a vector (i, f, g, o) for each item, step, direction and cell. A workgroup takes
Items items in one direction through the steps [first, last) of a stretch of time.

The product of h and the recurrent weights is shared out: an invocation sums a slice of k
for one cell of all items of the workgroup, and finishes that cell for the items that its
slice has to finish. Cells are taken Width at a time. h lies twice, for reading and for
writing, in workgroup memory or, where that is too small, in a scratch buffer.

With Fine sums lose next to nothing: that takes twice as long.
*/}}
struct Words {
	batch: u32,
	tiles: u32,
	workgroups: u32,
	first_tile: u32,
	direction: u32,
	steps: u32,
	first: u32,
	last: u32,
	forward: u32,
	backward: u32,
	time: u32,
	fresh: u32,
	y: u32,
	y_row: u32,
	y_item: u32,
	h: u32,
	h_row: u32,
	h_item: u32,
	c: u32,
	c_row: u32,
	c_item: u32,
	layer: u32,
	lengths: u32,
	rows: u32,
	states: u32,
	zero: u32,
}
@group(0) @binding(0) var<uniform> words: Words;
@group(0) @binding(1) var<storage, read> gates: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> weights: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read_write> y: array<f32>;
@group(0) @binding(4) var<storage, read_write> state_h: array<f32>;
@group(0) @binding(5) var<storage, read_write> state_c: array<f32>;
{{template "lengths" .}}
{{template "state_rows" .}}
{{template "nan"}}
{{template "exp"}}
{{template "sigmoid"}}
{{template "tanh"}}
{{if .Fine}}{{template "fine" "vec4<f32>"}}{{end}}

// Items of the workgroup: steps of each, and row of its state; 0xffffffff for none.
var<workgroup> item_length: array<u32, {{.Items}}>;
var<workgroup> item_row: array<u32, {{.Items}}>;
{{if .InWorkgroup}}
var<workgroup> hidden: array<f32, {{mul (mul 2 .Items) .Depth}}>;
var<workgroup> cells: array<f32, {{mul .Items .Hidden}}>;
{{else}}
@group(0) @binding({{.HiddenBinding}}) var<storage, read_write> hidden: array<f32>;
{{end}}
{{if gt .Slices 1}}
var<workgroup> partial: array<vec4<f32>, {{mul (mul .Slices .Items) .Width}}>;
{{end}}

fn h_at(item: u32, direction: u32, cell: u32) -> u32 {
	return words.h + item_row[item] * words.h_item + (words.layer + direction) * words.h_row + cell;
}

fn c_at(item: u32, direction: u32, cell: u32) -> u32 {
	return words.c + item_row[item] * words.c_item + (words.layer + direction) * words.c_row + cell;
}

@compute @workgroup_size({{mul .Width .Slices}})
fn steps(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
	let number = words.first_tile + group.x + group.y * groups.x;
	if (number >= words.workgroups) {
		return;
	}
	let direction = words.direction + number / words.tiles;
	let first_item = number % words.tiles * {{.Items}}u;
	let slice = thread / {{.Width}}u;
	let lane = thread % {{.Width}}u;
	let weights_at = (number / words.tiles) * {{mul .Depth .Hidden}}u;
	{{if .InWorkgroup}}
	let hidden_at = 0u;
	{{else}}
	let hidden_at = number * {{mul (mul 2 .Items) .Depth}}u;
	{{end}}

	for (var i = thread; i < {{.Items}}u; i += {{mul .Width .Slices}}u) {
		let item = first_item + i;
		item_length[i] = 0u;
		item_row[i] = 0xffffffffu;
		if (item < words.batch) {
			item_length[i] = length_of(item, words.time, 0u);
			item_row[i] = row_of(item);
		}
	}
	workgroupBarrier();
	for (var i = thread; i < {{mul .Items .Depth}}u; i += {{mul .Width .Slices}}u) {
		let item = i / {{.Depth}}u;
		let cell = i % {{.Depth}}u;
		var h = 0.0;
		if (cell < {{.Hidden}}u && item_row[item] != 0xffffffffu) {
			if (words.fresh == 0u) {
				h = state_h[h_at(item, direction, cell)];
			}
			{{if .InWorkgroup}}
			var c = 0.0;
			if (words.fresh == 0u) {
				c = state_c[c_at(item, direction, cell)];
			}
			cells[item * {{.Hidden}}u + cell] = c;
			{{else}}
			if (words.fresh != 0u) {
				state_c[c_at(item, direction, cell)] = 0.0;
			}
			{{end}}
		}
		hidden[hidden_at + i] = h;
		hidden[hidden_at + {{mul .Items .Depth}}u + i] = 0.0;
	}
	{{if not .InWorkgroup}}storageBarrier();{{end}}
	workgroupBarrier();

	let first_k = slice * {{div .Depth .Slices}}u;
	{{if gt .Held 0}}
	let held_cell = min(lane, {{sub .Hidden 1}}u);
	{{end}}
	{{range $i := seq .Held}}
	let held{{$i}} = weights[weights_at + (first_k + {{$i}}u) * {{$.Hidden}}u + held_cell];
	{{end}}
	for (var step = words.first; step < words.last; step++) {
		let local = select(step, words.steps - 1u - step, direction == 1u);
		let time = local + select(words.forward, words.backward, direction == 1u);
		let old = hidden_at + (step - words.first) % 2u * {{mul .Items .Depth}}u;
		let new_at = hidden_at + (step - words.first + 1u) % 2u * {{mul .Items .Depth}}u;
		for (var block = 0u; block < {{.Hidden}}u; block += {{.Width}}u) {
			let cell = min(block + lane, {{sub .Hidden 1}}u);
			{{range $i := seq .Finishes}}
			let item{{$i}} = min(first_item + slice{{if gt $i 0}} + {{mul $i $.Slices}}u{{end}}, words.batch - 1u);
			let gate{{$i}} = gates[((item{{$i}} * words.steps + local) * {{$.Directions}}u + direction) * {{$.Hidden}}u + cell];
			{{end}}
			{{range $b := seq .Items}}
			var sum{{$b}} = vec4<f32>(0.0);
			{{if $.Fine}}var fine{{$b}} = Fine(vec4<f32>(0.0), vec4<f32>(0.0));{{end}}
			{{end}}
			{{range $i := seq .Held}}{{range $b := seq $.Items}}
			sum{{$b}} = fma(vec4<f32>(hidden[old + {{mul $b $.Depth}}u + first_k + {{$i}}u]), held{{$i}}, sum{{$b}});
			{{end}}{{end}}
			for (var k = first_k + {{.Held}}u; k < first_k + {{div .Depth .Slices}}u; k += 4u) {
				let at = weights_at + k * {{.Hidden}}u + cell;
				{{range $i := seq 4}}
				let w{{$i}} = weights[at + {{mul $i $.Hidden}}u];
				{{end}}
				{{range $b := seq .Items}}{{range $i := seq 4}}
				sum{{$b}} = fma(vec4<f32>(hidden[old + {{mul $b $.Depth}}u + k + {{$i}}u]), w{{$i}}, sum{{$b}});
				{{end}}{{end}}
				{{if .Fine}}{{range $b := seq .Items}}
				fine{{$b}} = plus(fine{{$b}}, sum{{$b}});
				sum{{$b}} = vec4<f32>(0.0);
				{{end}}{{end}}
			}
			{{if .Fine}}{{range $b := seq .Items}}
			sum{{$b}} = whole(fine{{$b}}) + sum{{$b}};
			{{end}}{{end}}
			{{if gt .Slices 1}}
			{{range $b := seq .Items}}
			partial[(slice * {{$.Items}}u + {{$b}}u) * {{$.Width}}u + lane] = sum{{$b}};
			{{end}}
			workgroupBarrier();
			{{end}}
			{{range $i := seq .Finishes}}
			{
				let b = slice{{if gt $i 0}} + {{mul $i $.Slices}}u{{end}};
				if (b < {{$.Items}}u && block + lane < {{$.Hidden}}u) {
					{{if gt $.Slices 1}}
					var sum = gate{{$i}};
					{{range $s := seq $.Slices}}
					sum += partial[({{mul $s $.Items}}u + b) * {{$.Width}}u + lane];
					{{end}}
					{{else}}
					let sum = gate{{$i}} + sum{{$i}};
					{{end}}
					finish(b, first_item + b, direction, cell, time, old + b * {{$.Depth}}u + cell, new_at + b * {{$.Depth}}u + cell, sum);
				}
			}
			{{end}}
			{{if gt .Slices 1}}
			workgroupBarrier();
			{{end}}
		}
		{{if not .InWorkgroup}}storageBarrier();{{end}}
		{{if eq .Slices 1}}workgroupBarrier();{{end}}
	}
	let newest = hidden_at + (words.last - words.first) % 2u * {{mul .Items .Depth}}u;
	for (var i = thread; i < {{mul .Items .Hidden}}u; i += {{mul .Width .Slices}}u) {
		let item = i / {{.Hidden}}u;
		let cell = i % {{.Hidden}}u;
		if (item_row[item] != 0xffffffffu) {
			state_h[h_at(item, direction, cell)] = hidden[newest + item * {{.Depth}}u + cell];
			{{if .InWorkgroup}}
			state_c[c_at(item, direction, cell)] = cells[item * {{.Hidden}}u + cell];
			{{end}}
		}
	}
}

// finish turns the sums of the gates of one cell into its next c and h. A step at or
// beyond the item's length leaves both, and its output is zero.
fn finish(b: u32, item: u32, direction: u32, cell: u32, time: u32, old: u32, next: u32, sum: vec4<f32>) {
	if (item >= words.batch) {
		return;
	}
	var h = hidden[old];
	var out = 0.0;
	if (time < item_length[b] && item_row[b] != 0xffffffffu) {
		let open = sigmoid(sum);
		{{if .InWorkgroup}}
		let c = fma(open.y, cells[b * {{.Hidden}}u + cell], open.x * tanh_of(vec4<f32>(sum.z)).x);
		cells[b * {{.Hidden}}u + cell] = c;
		{{else}}
		let at = c_at(b, direction, cell);
		let c = fma(open.y, state_c[at], open.x * tanh_of(vec4<f32>(sum.z)).x);
		state_c[at] = c;
		{{end}}
		h = open.w * tanh_of(vec4<f32>(c)).x;
		out = h;
	}
	hidden[next] = h;
	y[words.y + item * words.y_item + time * words.y_row + direction * {{.Hidden}}u + cell] = out;
}
