{{/*
Numbers that lie on the device. One that is out of range sets a bit in the status word,
which makes the run fail, and is replaced by one that is harmless.
*/}}
{{define "lengths"}}
{{if eq .Lengths "device"}}
@group(0) @binding({{.LengthsBinding}}) var<storage, read> lengths: array<u32>;
@group(0) @binding({{.StatusBinding}}) var<storage, read_write> status: array<atomic<u32>>;

// length_of returns the steps of an item of at most the given number. No length from 1
// to the given minimum is allowed.
fn length_of(item: u32, most: u32, minimum: u32) -> u32 {
	let n = lengths[words.lengths + item];
	if (n > most || (n > 0u && n <= minimum)) {
		atomicOr(&status[0], {{.Fault}}u);
		return select(most, 0u, n <= minimum);
	}
	return n;
}
{{else if eq .Lengths "fixed"}}
@group(0) @binding({{.LengthsBinding}}) var<storage, read> lengths: array<u32>;

fn length_of(item: u32, most: u32, minimum: u32) -> u32 { return lengths[words.lengths + item]; }
{{else}}
fn length_of(item: u32, most: u32, minimum: u32) -> u32 { return most; }
{{end}}
{{end}}

{{define "state_rows"}}
{{if ne .StateRows "none"}}
@group(0) @binding({{.RowsBinding}}) var<storage, read> state_rows: array<u32>;
{{end}}
{{if and (eq .StateRows "device") (ne .Lengths "device")}}
@group(0) @binding({{.StatusBinding}}) var<storage, read_write> status: array<atomic<u32>>;
{{end}}

// row_of returns the row of the state that an item uses; 0xffffffff if it has none.
fn row_of(item: u32) -> u32 {
	{{if eq .StateRows "none"}}
	return item;
	{{else if eq .StateRows "fixed"}}
	return state_rows[words.rows + item];
	{{else}}
	let row = state_rows[words.rows + item];
	if (row >= words.states) {
		atomicOr(&status[0], {{.Fault}}u);
		return 0xffffffffu;
	}
	return row;
	{{end}}
}
{{end}}
