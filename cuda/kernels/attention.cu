// Attention of many queries over packed keys and values, without storing scores (Dao,
// FlashAttention-2, 2023), on matrix units that multiply halves.
#include "attention_tile.cuh"

namespace attention {

// A block computes 16·Warps queries of one head of one item; x counts the tiles of queries
// of a head, the last first, since under a causal mask they have the most keys, head after
// head and item after item. A warp has 16 queries and walks, with the other warps, over
// Keys keys at a time. While keys are multiplied, values arrive; while values are, the next
// keys do. Sums depend on where a query and its keys are alone, not on what else is
// computed.
template <int D, int Keys, int Warps, bool Exact, bool Relative, bool Held>
__device__ void flash(const Attention& a) {
	release_dependents();
	using T = Tile<D, Keys, Warps, Exact, Relative, Held>;
	const int first = (a.Tiles - 1 - blockIdx.x % a.Tiles) * T::Rows;
	const int row = first + warp_id() * 16 + lane_id() / 4;  // and row + 8
	const T t(Slab(a, blockIdx.x / a.Tiles), first);
	typename T::Queries q, q2;
	q.load(t, a.Q, row, t.kept_at(0));
	if constexpr (Relative) q2.load(t, a.Q2, row, t.kept_at(1));

	const Reach reach(t, first, T::Rows, Keys);
	Weights<Keys> weights;
	float o[D / 2] = {};
	if (reach.start < reach.end) t.fetch_keys(reach.start, true);
	for (int key = reach.start; key < reach.end; key += Keys) {
		copy_wait<0>();
		__syncthreads();  // keys have arrived, and all warps are done with the values before
		t.fetch_values(key);

		typename Weights<Keys>::Scores s;
		t.scores(s[0], q);
		const float down = t.key_factors[key / BlockRows];
		float factor[2][1] = {{factor_of(q.down[0], down)}, {factor_of(q.down[1], down)}};
		if constexpr (Relative) {
			t.relate(s[0], factor, q2, key);
			factor[0][0] = factor[1][0] = 1.0f;
		}
		if (reach.ragged(key, Keys)) Weights<Keys>::hide(t, s, row, key);
		const float change = weights.take_units({t.value_factors[key / BlockRows]});
		float fade[2];
		weights.weigh(s, factor, fade);
		fade[0] *= change, fade[1] *= change;
		if (warp_ballot(fade[0] != 1.0f || fade[1] != 1.0f)) {
#pragma unroll
			for (int i = 0; i < D / 2; i++) o[i] *= fade[i / 2 % 2];
		}

		copy_wait<0>();
		__syncthreads();  // values have arrived, and all warps are done with the keys
		if (key + Keys < reach.end) t.fetch_keys(key + Keys, false);
		if (weights.used[0]) t.weigh(o, s[0]);
	}
	float share[2];
	weights.shares(share);
	t.template store<D>(o, row, share, weights.unit);
	if (weights.odd) {
		__syncthreads();
		t.add_odd(first, T::Rows, reach.start, reach.end, threadIdx.x, T::Threads);
	}
}

}  // namespace attention
