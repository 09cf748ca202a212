{{/*
Advance: an invocation steps the counter of an item.
*/}}
struct Words {
	batch: u32,
	index: u32,
	index_row: u32,
	by: u32,
	done: u32,
	done_row: u32,
	ids: u32,
	ids_row: u32,
	ids_item: u32,
	ids_rows: u32,
	plus: u32,
	stops: u32,
	stop: array<vec4<u32>, 4>,
}
@group(0) @binding(0) var<uniform> words: Words;
@group(0) @binding(1) var<storage, read_write> index: array<u32>;
{{if .Done}}
@group(0) @binding({{.DoneBinding}}) var<storage, read_write> done: array<u32>;
{{end}}
{{if .IDs}}
@group(0) @binding({{.IDsBinding}}) var<storage, read> ids: array<u32>;
{{end}}
@group(0) @binding({{.StatusBinding}}) var<storage, read_write> status: array<atomic<u32>>;

@compute @workgroup_size(64)
fn advance(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
	let width = groups.x * 64u;
	for (var item = id.x + id.y * width; item < words.batch; item += width * groups.y) {
		{{if .Done}}
		let flag = words.done + item * words.done_row;
		if (done[flag] != 0u) {
			continue;
		}
		{{end}}
		let at = words.index + item * words.index_row;
		let count = index[at];
		{{if .IDs}}
		if (count >= words.ids_rows || count + words.plus >= words.ids_rows) {
			atomicOr(&status[0], {{.Fault}}u);
			continue;
		}
		{{if .Done}}
		let newest = ids[words.ids + item * words.ids_item + (count + words.plus) * words.ids_row];
		var stopped = false;
		for (var i = 0u; i < words.stops; i++) {
			stopped = stopped || newest == words.stop[i / 4u][i % 4u];
		}
		if (stopped) {
			done[flag] = 1u;
			continue;
		}
		{{end}}
		{{end}}
		if (count > 0xffffffffu - words.by) {
			atomicOr(&status[0], {{.Fault}}u);
			continue;
		}
		index[at] = count + words.by;
	}
}
