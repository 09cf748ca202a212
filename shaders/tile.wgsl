{{/*
The tile machinery of a matrix product with rows, columns and a summed axis k:

	out[row][column] = Σ over k of a[row][k]·b[column][k]

A workgroup computes Tile × Tile sums, an invocation Rows × Columns of them in registers.
Each step stages 16 values of k of both operands in workgroup memory, k by k, so that the
sums read vectors; while they run, the next step is already on its way to registers.

Every sum adds its products in the order of k, whatever the tile. So the choice of a tile,
and cutting an op into parts, changes no bit.

What includes it declares: struct Place, place_a(row) → Place, load_a(Place, k) and
load_b(column, k) → vec4 of four values of k, zero beyond its end, and
store(row, column, vec4) for four columns. words has tiles, first_tile, tile_rows,
tile_columns and steps.

With Fine every sum goes to a Fine one after four products, and words has zero.

With Pooled a row has several sums for each column, one for each of words.turns, and
stores what gather(column, vec4 so far, vec4 of sums, turn) makes of them; place_a takes
the turn too.
*/}}
{{define "tile"}}
var<workgroup> staged_a: array<array<vec4<f32>, {{div .Tile 4}}>, 16>;
var<workgroup> staged_b: array<array<vec4<f32>, {{div .Tile 4}}>, 16>;

// place_tile returns the first row and column of a tile. Tiles go down eight rows before
// they go right, so that neighbours in time share both operands in the cache.
fn place_tile(number: u32) -> vec2<u32> {
	let band = 8u * words.tile_columns;
	let first = number / band * 8u;
	let height = min(words.tile_rows - first, 8u);
	let within = number % band;
	return vec2<u32>(first + within % height, within / height) * {{.Tile}}u;
}

@compute @workgroup_size({{mul .Tile 2}})
fn tile(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
	let number = words.first_tile + group.x + group.y * groups.x;
	if (number >= words.tiles) {
		return;
	}
	let corner = place_tile(number);
	let across = thread % {{div .Tile .Columns}}u;
	let down = thread / {{div .Tile .Columns}}u;

	// Half of the invocations fetch a, half b: four rows or columns, four values of k.
	// Neighbours fetch what lies side by side. The slots that they stage it in are
	// shuffled by k, or they would meet in one bank.
	let fetches_a = thread < {{.Tile}}u;
	let slot = thread % {{.Tile}}u / 4u;
	let quad = thread % 4u * 4u;
	let staged = slot ^ (quad / 2u);
	{{if .Pooled}}
	// The sums are taken once for each turn, and what the rows keep of them is gathered.
	{{range $i := seq .Rows}}{{range $j := seq (div $.Columns 4)}}
	var best{{$i}}_{{$j}} = vec4<f32>(0.0);
	{{end}}{{end}}
	for (var turn = 0u; turn < words.turns; turn++) {
	{{end}}
	var place0: Place;
	var place1: Place;
	var place2: Place;
	var place3: Place;
	let column = corner.y + slot * 4u;
	if (fetches_a) {
		let row = corner.x + slot * 4u;
		{{range $i := seq 4}}
		place{{$i}} = place_a(row + {{$i}}u{{if $.Pooled}}, turn{{end}});
		{{end}}
	}
	var next0 = vec4<f32>(0.0);
	var next1 = vec4<f32>(0.0);
	var next2 = vec4<f32>(0.0);
	var next3 = vec4<f32>(0.0);
	if (fetches_a) {
		{{range $i := seq 4}}
		next{{$i}} = load_a(place{{$i}}, quad);
		{{end}}
	} else {
		{{range $i := seq 4}}
		next{{$i}} = load_b(column + {{$i}}u, quad);
		{{end}}
	}

	{{range $i := seq .Rows}}{{range $j := seq (div $.Columns 4)}}
	var sum{{$i}}_{{$j}} = vec4<f32>(0.0);
	{{if $.Long}}var total{{$i}}_{{$j}} = vec4<f32>(0.0);{{end}}
	{{if $.Fine}}var fine{{$i}}_{{$j}} = Fine(vec4<f32>(0.0), vec4<f32>(0.0));{{end}}
	{{end}}{{end}}
	for (var step = 0u; step < words.steps; step++) {
		workgroupBarrier();
		if (fetches_a) {
			{{range $i := seq 4}}
			staged_a[quad + {{$i}}u][staged] = vec4<f32>(next0.{{lane $i}}, next1.{{lane $i}}, next2.{{lane $i}}, next3.{{lane $i}});
			{{end}}
		} else {
			{{range $i := seq 4}}
			staged_b[quad + {{$i}}u][staged] = vec4<f32>(next0.{{lane $i}}, next1.{{lane $i}}, next2.{{lane $i}}, next3.{{lane $i}});
			{{end}}
		}
		workgroupBarrier();
		if (step + 1u < words.steps) {
			let k = (step + 1u) * 16u + quad;
			if (fetches_a) {
				{{range $i := seq 4}}
				next{{$i}} = load_a(place{{$i}}, k);
				{{end}}
			} else {
				{{range $i := seq 4}}
				next{{$i}} = load_b(column + {{$i}}u, k);
				{{end}}
			}
		}
		{{range $k := seq 16}}
		{
			{{range $i := seq (div $.Rows 4)}}
			let a{{$i}} = staged_a[{{$k}}][(down + {{mul $i (div $.Tile $.Rows)}}u) ^ {{mul (quotient $k 4) 2}}u];
			{{end}}
			{{range $j := seq (div $.Columns 4)}}
			let b{{$j}} = staged_b[{{$k}}][(across + {{mul $j (div $.Tile $.Columns)}}u) ^ {{mul (quotient $k 4) 2}}u];
			{{end}}
			{{range $i := seq $.Rows}}{{range $j := seq (div $.Columns 4)}}
			sum{{$i}}_{{$j}} = fma(vec4<f32>(a{{quotient $i 4}}.{{lane (mod $i 4)}}), b{{$j}}, sum{{$i}}_{{$j}});
			{{if and $.Fine (eq (mod $k 4) 3)}}
			fine{{$i}}_{{$j}} = plus(fine{{$i}}_{{$j}}, sum{{$i}}_{{$j}});
			sum{{$i}}_{{$j}} = vec4<f32>(0.0);
			{{end}}
			{{end}}{{end}}
		}
		{{end}}
		{{if .Long}}
		// A sum of very many products is taken in stretches, or it would lose digits.
		if (step % 64u == 63u) {
			{{range $i := seq .Rows}}{{range $j := seq (div $.Columns 4)}}
			total{{$i}}_{{$j}} += sum{{$i}}_{{$j}};
			sum{{$i}}_{{$j}} = vec4<f32>(0.0);
			{{end}}{{end}}
		}
		{{end}}
	}
	{{if .Pooled}}
	{{range $i := seq .Rows}}{{range $j := seq (div $.Columns 4)}}
	best{{$i}}_{{$j}} = gather(corner.y + (across + {{mul $j (div $.Tile $.Columns)}}u) * 4u, best{{$i}}_{{$j}}, {{if $.Long}}total{{$i}}_{{$j}} + {{end}}sum{{$i}}_{{$j}}, turn);
	{{end}}{{end}}
	}
	{{end}}
	{{range $i := seq .Rows}}
	{
		let row = corner.x + (down + {{mul (quotient $i 4) (div $.Tile $.Rows)}}u) * 4u + {{mod $i 4}}u;
		if (row < words.rows) {
			{{range $j := seq (div $.Columns 4)}}
			store(row, corner.y + (across + {{mul $j (div $.Tile $.Columns)}}u) * 4u, {{if $.Pooled}}best{{$i}}_{{$j}}{{else if $.Fine}}whole(fine{{$i}}_{{$j}}){{else}}{{if $.Long}}total{{$i}}_{{$j}} + {{end}}sum{{$i}}_{{$j}}{{end}});
			{{end}}
		}
	}
	{{end}}
}
{{end}}
