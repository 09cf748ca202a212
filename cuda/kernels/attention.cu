// Attention of many queries over packed keys and values, without storing scores (Dao,
// FlashAttention-2, 2023), on matrix units that multiply halves.
#include "attention_tile.cuh"

namespace attention {

// A block computes 16·Warps queries of one head of one item; x counts the tiles of queries
// of a head, the last first, since under a causal mask they have the most keys, head after
// head and item after item. A warp has 16 queries and walks, with the other warps, over
// Keys keys at a time: scores, weights relative to a power of two that is at least as large
// as the largest yet, and the sum of values that they weigh. Sums depend on where a query
// and its keys are alone, not on what else is computed.
//
// Weights are at most 2^14, which leaves halves all digits of weights down to 2^−28 of the
// largest. Sums are in units of the values' factor of the step: a power of two, so that
// turning them to the next step's units is exact.
template <int D, int Keys, int Warps, bool Exact, bool Relative, bool Held>
__device__ void flash(const Attention& a) {
	using T = Tile<D, Keys, Warps, Exact, Relative, Held>;
	constexpr float Most = 14.0f;
	const uint32_t slab = blockIdx.x / a.Tiles, tile = a.Tiles - 1 - blockIdx.x % a.Tiles;
	const uint32_t item = slab / a.Heads, head = slab % a.Heads;
	const int keys = keys_of(a, item), queries = count_of(a.Lengths, item);
	const int first = tile * T::Rows, lane = lane_id();
	const int row = first + warp_id() * 16 + lane / 4;  // and row + 8
	const int offset = (a.Moving ? keys : static_cast<int>(a.Most)) - static_cast<int>(a.Queries);

	T t(a, slab, item, head, first, keys);
	typename T::Rows2 q, q2;
	q.load(a.Q, item, head, a.Dim, row, queries, a.Scale, t.queries(0));
	if constexpr (Relative) q2.load(a.Q2, item, head, a.Dim, row, queries, a.Scale, t.queries(1));

	// What any of the queries sees; what not all of them see is ragged.
	const int end = first < queries ? min(keys, min(first + T::Rows, queries) + offset + a.Right) : 0;
	const int start = max(first + offset - a.Left, 0) / Keys * Keys;
	const int whole_end = min(keys, first + offset + a.Right + 1), whole_start = first + T::Rows - 1 + offset - a.Left;

	float o[D / 8][4] = {};
	float sum[2] = {}, base[2] = {unseen(), unseen()};
	float unit = 0.0f, largest_unit = 0.0f;
	if (start < end) t.fetch_keys(start, true);
	for (int key = start; key < end; key += Keys) {
		copy_wait<0>();
		__syncthreads();  // keys have arrived, and all warps are done with the values before
		t.fetch_values(key);

		float s[Keys / 8][4];
		t.scores(s, q);
		float factor[2];
		const float down = t.key_factor(key);
#pragma unroll
		for (int r = 0; r < 2; r++) factor[r] = fminf(fmaxf(q.down[r] * down, 0x1p-126f), 0x1p127f);
		if constexpr (Relative) {
			t.relate(s, factor, q2, key);
			factor[0] = factor[1] = 1.0f;
		}
		if (key + Keys > whole_end || key < whole_start) {
#pragma unroll
			for (int n = 0; n < Keys / 8; n++) {
#pragma unroll
				for (int e = 0; e < 4; e++) {
					const int j = key + 8 * n + 2 * (lane % 4) + e % 2, p = row + e / 2 * 8 + offset;
					if (j >= keys || j > p + a.Right || j < p - a.Left) s[n][e] = unseen();
				}
			}
		}

		// Weights, in place of scores.
		float fade[2];
#pragma unroll
		for (int r = 0; r < 2; r++) {
			float most = fmaxf(s[0][2 * r], s[0][2 * r + 1]);
#pragma unroll
			for (int n = 1; n < Keys / 8; n++) most = fmaxf(most, fmaxf(s[n][2 * r], s[n][2 * r + 1]));
			most = warp_max<4>(most);
			const float next = fmaxf(base[r], ceilf(most * factor[r]));
			const float used = next == unseen() ? 0.0f : next;
			fade[r] = exp2_approx(base[r] - used);
			base[r] = next;
			float part[2] = {};
#pragma unroll
			for (int n = 0; n < Keys / 8; n++) {
#pragma unroll
				for (int e = 0; e < 2; e++) {
					float& x = s[n][2 * r + e];
					x = exp2_approx(fmaf(x, factor[r], Most - used));
					part[e] += x;
				}
			}
			sum[r] = fmaf(sum[r], fade[r], part[0] + part[1]);
		}

		// Values so much smaller than others that their part cannot be seen are left out.
		const float signed_unit = t.value_factor(key), next_unit = fabsf(signed_unit);
		largest_unit = fmaxf(largest_unit, next_unit);
		const bool tiny = next_unit < largest_unit * 0x1p-60f;
		if (!tiny) {
			if (unit != 0.0f) fade[0] *= unit / next_unit, fade[1] *= unit / next_unit;
			unit = next_unit;
		}
		if (warp_ballot(fade[0] != 1.0f || fade[1] != 1.0f)) {
#pragma unroll
			for (int n = 0; n < D / 8; n++) {
				o[n][0] *= fade[0], o[n][1] *= fade[0];
				o[n][2] *= fade[1], o[n][3] *= fade[1];
			}
		}

		copy_wait<0>();
		__syncthreads();  // values have arrived, and all warps are done with the keys
		if (key + Keys < end) t.fetch_keys(key + Keys, false);
		if (!tiny) t.weigh(o, s);
		if (signed_unit < 0.0f) t.add_odd_values(o, key, row, offset);
	}

#pragma unroll
	for (int r = 0; r < 2; r++) {
		const float total = warp_sum<4>(sum[r]);
		t.store(o, r, row + 8 * r, queries, total == 0.0f ? 0.0f : 1.0f / total, unit);
	}
}

}  // namespace attention
