// Attention of a few queries over many keys, as decoders have it, in FP32: keys and values
// are read once, at the speed of memory. It also stands in where attention.cu needs more
// shared memory than there is.
#include "attention_parts.cuh"

namespace attention {

constexpr int SplitThreads = 256, SplitKeys = 128, MostQuads = 64;
constexpr int KeyLanes = 8;                            // that share a key
constexpr int KeysAtOnce = SplitThreads / KeyLanes;    // of a block
constexpr int InFlight = SplitKeys / KeysAtOnce;        // keys of a thread
constexpr int QuadsAtOnce = 2;                         // and parts of them
constexpr int ValuesAhead = 8;                         // loaded before there are weights
constexpr int PiecesAtOnce = 16;                       // whose loads join has in flight

// What the threads of a block share.
template <int Few, bool Relative>
struct SplitShared {
	float4 queries[Few][MostQuads];
	float4 queries2[Relative ? Few : 1][MostQuads];
	float weights[Few][SplitKeys];  // at first scores; −1 for a key that is not seen
	float4 sums[SplitThreads];
	float tops[Few], totals[Few];
};

__device__ inline float dot(float4 a, float4 b, float sum) {
	return fmaf(a.w, b.w, fmaf(a.z, b.z, fmaf(a.y, b.y, fmaf(a.x, b.x, sum))));
}

__device__ inline void stage(float4* to, const View& v, uint32_t item, uint32_t head, int row, int queries, int dim) {
	for (int i = threadIdx.x; i < dim / 4; i += SplitThreads) {
		float4 x = {0.0f, 0.0f, 0.0f, 0.0f};
		if (row < queries) {
			const float* p = v.P + item * v.Batch + row * v.Row + static_cast<int64_t>(head) * dim + 4 * i;
			x = load_quad(p, is_aligned(p, 16));
		}
		to[i] = x;
	}
}

// A block takes Few queries of a head of an item and a piece of its keys; x counts pieces,
// groups of Few of the launch's queries, heads, items. Eight lanes share a key; four keys of each are in
// flight. A warp weighs the keys of a query. For the output, a thread has four dimensions
// and every so manieth key of the piece.
template <typename T, int Few, bool Relative>
__device__ void split(const AttentionSplit& a) {
	release_dependents();
	__shared__ SplitShared<Few, Relative> s;
	const uint32_t piece = blockIdx.x % a.Pieces, group = blockIdx.x / a.Pieces % a.Groups, slab = blockIdx.x / a.Pieces / a.Groups;
	const uint32_t item = slab / a.Heads, head = slab % a.Heads;
	const int keys = keys_of(a, item), queries = count_of(a.Lengths, item);
	const int first = a.First + group * Few, first_key = piece * SplitKeys, count = min(keys - first_key, SplitKeys);
	if (count <= 0 && a.Pieces > 1) return;
	const int dim = a.Dim, quads = dim / 4, thread = threadIdx.x, lane = lane_id();
	const int offset = first + (a.Moving ? keys : static_cast<int>(a.Most)) - static_cast<int>(a.Queries);

	// What does not need the queries is on its way while they arrive.
	const T* k = reinterpret_cast<const T*>(a.K) + item * a.KItem + head * a.KHead + first_key * a.KRow;
	const bool key_vectors = quads_aligned(reinterpret_cast<const T*>(a.K), a.KRow, a.KHead, a.KItem);
	const int from = thread / KeyLanes;  // and every KeysAtOnce-th key after it
	float4 x[QuadsAtOnce][InFlight];
	const auto load_keys = [&](int first_quad) {
#pragma unroll
		for (int u = 0; u < QuadsAtOnce; u++) {
#pragma unroll
			for (int i = 0; i < InFlight; i++) {
				const int j = from + i * KeysAtOnce, quad = first_quad + u * KeyLanes;
				x[u][i] = {0.0f, 0.0f, 0.0f, 0.0f};
				if (j < count && quad < quads) x[u][i] = load_quad(k + j * a.KRow + 4 * quad, key_vectors);
			}
		}
	};
	load_keys(thread % KeyLanes);
	const int value_quad = thread % quads, groups = SplitThreads / quads, mine = thread / quads;
	const T* v = reinterpret_cast<const T*>(a.V) + item * a.VItem + head * a.VHead + first_key * a.VRow + 4 * value_quad;
	const bool value_vectors = quads_aligned(reinterpret_cast<const T*>(a.V), a.VRow, a.VHead, a.VItem);
	float4 ahead[ValuesAhead];
	const auto load_values = [&](int first_value) {
#pragma unroll
		for (int i = 0; i < ValuesAhead; i++) {
			const int j = first_value + i * groups;
			ahead[i] = {0.0f, 0.0f, 0.0f, 0.0f};
			if (j < count) ahead[i] = load_quad(v + j * a.VRow, value_vectors);
		}
	};
	if (mine < groups) load_values(mine);

#pragma unroll 1
	for (int f = 0; f < Few; f++) {
		stage(s.queries[f], a.Q, item, head, first + f, queries, dim);
		if constexpr (Relative) stage(s.queries2[f], a.Q2, item, head, first + f, queries, dim);
	}
	__syncthreads();

	// Scores.
	float score[InFlight][Few] = {};
	for (int first_quad = thread % KeyLanes; first_quad < quads; first_quad += QuadsAtOnce * KeyLanes) {
		if (first_quad >= KeyLanes) load_keys(first_quad);
#pragma unroll
		for (int u = 0; u < QuadsAtOnce; u++) {
			const int quad = first_quad + u * KeyLanes;
			if (quad >= quads) break;
#pragma unroll
			for (int f = 0; f < Few; f++) {
				const float4 y = s.queries[f][quad];
#pragma unroll
				for (int i = 0; i < InFlight; i++) score[i][f] = dot(x[u][i], y, score[i][f]);
			}
			if constexpr (Relative) {
#pragma unroll 1
				for (int f = 0; f < Few; f++) {
					const float4 y = s.queries2[f][quad];
#pragma unroll
					for (int i = 0; i < InFlight; i++) {
						const int j = from + i * KeysAtOnce, row = first_key + j - first - f + static_cast<int>(a.Most) - 1;
						if (j >= count || first + f >= queries) continue;
						const float* p = a.Positions.P + row * a.Positions.Row + static_cast<int64_t>(head) * dim + 4 * quad;
						const float part = dot(load_quad(p, is_aligned(p, 16)), y, 0.0f);
#pragma unroll
						for (int g = 0; g < Few; g++) score[i][g] += g == f ? part : 0.0f;
					}
				}
			}
		}
	}
#pragma unroll
	for (int i = 0; i < InFlight; i++) {
		const int j = from + i * KeysAtOnce;
#pragma unroll
		for (int f = 0; f < Few; f++) {
			const float sum = warp_sum<KeyLanes>(score[i][f]);
			if (lane % KeyLanes == f % KeyLanes) s.weights[f][j] = sum;
		}
	}
	__syncthreads();

	// Weights, relative to a power of two that is at least as large as the largest.
	if (warp_id() < Few) {
		const int f = warp_id(), p = offset + f;
		constexpr int Each = SplitKeys / 32;
		float x[Each], most = unseen();
		bool seen[Each];
#pragma unroll
		for (int i = 0; i < Each; i++) {
			const int j = lane + 32 * i, key = first_key + j;
			seen[i] = j < count && key <= p + a.Right && key >= p - a.Left;
			x[i] = s.weights[f][j] * a.Scale;
			if (seen[i]) most = fmaxf(most, x[i]);
		}
		const float top = ceilf(warp_max(most)), base = top == unseen() ? 0.0f : top;
		float total = 0.0f;
#pragma unroll
		for (int i = 0; i < Each; i++) {
			const float w = weight_of(x[i] - base);
			s.weights[f][lane + 32 * i] = seen[i] ? w : -1.0f;
			total += seen[i] ? w : 0.0f;
		}
		total = warp_sum(total);
		if (lane == 0) s.tops[f] = top, s.totals[f] = total;
	}
	__syncthreads();

	// Values.
	float4 o[Few];
#pragma unroll
	for (int f = 0; f < Few; f++) o[f] = {0.0f, 0.0f, 0.0f, 0.0f};
	if (mine < groups) {
		for (int first_value = mine; first_value < count; first_value += ValuesAhead * groups) {
			if (first_value > mine) load_values(first_value);
#pragma unroll
			for (int i = 0; i < ValuesAhead; i++) {
				const int j = min(first_value + i * groups, SplitKeys - 1);
#pragma unroll
				for (int f = 0; f < Few; f++) {
					const float w = s.weights[f][j];
					if (w < 0.0f) continue;  // a value that is not seen may be NaN
					o[f].x = fmaf(w, ahead[i].x, o[f].x), o[f].y = fmaf(w, ahead[i].y, o[f].y);
					o[f].z = fmaf(w, ahead[i].z, o[f].z), o[f].w = fmaf(w, ahead[i].w, o[f].w);
				}
			}
		}
	}
#pragma unroll
	for (int f = 0; f < Few; f++) {
		const int row = first + f;
		__syncthreads();
		s.sums[thread] = o[f];
		__syncthreads();
		if (mine > 0 || row >= static_cast<int>(a.First + a.Rows)) continue;
		float4 sum = s.sums[value_quad];
		for (int i = 1; i < groups; i++) {
			const float4 x = s.sums[value_quad + i * quads];
			sum.x += x.x, sum.y += x.y, sum.z += x.z, sum.w += x.w;
		}
		const float total = s.totals[f];
		float* to;
		if (a.Pieces > 1) {
			to = a.Found + ((static_cast<int64_t>(slab) * a.Rows + row - a.First) * a.Pieces + piece) * (4 + dim);
			if (value_quad == 0) to[0] = s.tops[f], to[1] = total;
			to += 4 + 4 * value_quad;
		} else {
			const float share = 1.0f / total;
			const bool live = row < queries && total != 0.0f;
			sum.x = live ? sum.x * share : 0.0f, sum.y = live ? sum.y * share : 0.0f;
			sum.z = live ? sum.z * share : 0.0f, sum.w = live ? sum.w * share : 0.0f;
			to = a.O.P + item * a.O.Batch + row * a.O.Row + static_cast<int64_t>(head) * dim + 4 * value_quad;
		}
		if (is_aligned(to, 16)) {
			store4(to, sum);
		} else {
			to[0] = sum.x, to[1] = sum.y, to[2] = sum.z, to[3] = sum.w;
		}
	}
}

// A block makes a query's row of a head of an item; x counts queries, heads, items. A
// thread has four dimensions and goes through the pieces in order.
__device__ inline void join(const AttentionJoin& a) {
	release_dependents();
	const uint32_t row = a.First + blockIdx.x % a.Rows, slab = blockIdx.x / a.Rows, item = slab / a.Heads, head = slab % a.Heads;
	const uint32_t quad = threadIdx.x;
	if (quad >= a.Dim / 4) return;
	const int pieces = ceil_div(keys_of(a, item), static_cast<uint32_t>(SplitKeys)), step = 4 + a.Dim;
	float4 sum = {0.0f, 0.0f, 0.0f, 0.0f};
	if (row < count_of(a.Lengths, item)) {
		const float* found = a.Found + static_cast<int64_t>(blockIdx.x) * a.Pieces * step;
		float top = unseen(), total = 0.0f;
		for (int first = 0; first < pieces; first += PiecesAtOnce) {
			float tops[PiecesAtOnce], totals[PiecesAtOnce], most = top;
			float4 x[PiecesAtOnce];
#pragma unroll
			for (int i = 0; i < PiecesAtOnce; i++) {
				tops[i] = unseen(), totals[i] = 0.0f, x[i] = {0.0f, 0.0f, 0.0f, 0.0f};
				if (first + i >= pieces) continue;
				const float* p = found + static_cast<int64_t>(first + i) * step;
				tops[i] = p[0], totals[i] = p[1], x[i] = load4(p + 4 + 4 * quad);
			}
#pragma unroll
			for (int i = 0; i < PiecesAtOnce; i++) most = fmaxf(most, tops[i]);
			const float base = most == unseen() ? 0.0f : most, before = weight_of(top - base);
			top = most;
			total *= before;
			sum.x *= before, sum.y *= before, sum.z *= before, sum.w *= before;
#pragma unroll
			for (int i = 0; i < PiecesAtOnce; i++) {
				const float share = weight_of(tops[i] - base);
				total = fmaf(totals[i], share, total);
				sum.x = fmaf(x[i].x, share, sum.x), sum.y = fmaf(x[i].y, share, sum.y);
				sum.z = fmaf(x[i].z, share, sum.z), sum.w = fmaf(x[i].w, share, sum.w);
			}
		}
		const float inverse = total == 0.0f ? 0.0f : 1.0f / total;
		sum.x *= inverse, sum.y *= inverse, sum.z *= inverse, sum.w *= inverse;
	}
	float* to = a.O.P + item * a.O.Batch + row * a.O.Row + static_cast<int64_t>(head) * a.Dim + 4 * quad;
	if (is_aligned(to, 16)) {
		store4(to, sum);
	} else {
		to[0] = sum.x, to[1] = sum.y, to[2] = sum.z, to[3] = sum.w;
	}
}

}  // namespace attention
