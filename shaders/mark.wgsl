// The last dispatch of a submission. It reads what the submission wrote, so that it
// cannot run before that is there, and advances the count by which the host knows that
// the submission ran to its end.

@group(0) @binding(0) var<storage, read_write> timeline: array<u32>;
{{range $i := seq .Written}}
@group(0) @binding({{add $i 1}}) var<storage, read> written{{$i}}: array<u32>;
{{end}}

const STATUS = 0u; // what kernels found wrong since the last mark
const KEPT = 6u;   // what they found wrong in this run
const COUNT = 7u;
const SEEN = 8u;

@compute @workgroup_size(1)
fn mark() {
    var seen = 0u;
{{range $i := seq .Written}}
    seen = seen ^ written{{$i}}[0];
{{end}}
    timeline[SEEN] = seen;
    timeline[KEPT] = timeline[KEPT] | timeline[STATUS];
    timeline[STATUS] = 0u;
    timeline[COUNT] = timeline[COUNT] + 1u;
}
