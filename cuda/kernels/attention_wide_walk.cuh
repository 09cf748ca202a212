// The walk of a warpgroup's queries over keys: while products run, the softmax of what came
// out before does (Shah et al., FlashAttention-3, 2024).
#pragma once

#include "attention_wide.cuh"

namespace attention {

// walk goes over the keys of a warpgroup's queries: the scores of a step are begun, then the
// sums of the step before; the softmax needs the scores alone. With Turns, the warpgroups
// begin products in turn, so that one's softmax runs beside the other's products.
template <bool Turns, int Groups, int D, typename Tile, typename W>
__device__ void walk(const Slab& slab, const Reach& reach, const typename Tile::Queries& q, W& weights, float (&o)[D / 2], int steps,
                     typename Tile::Turn& turn, int group, int row) {
	constexpr int Keys = Tile::Keys;
	typename Tile::Barriers& barriers = Tile::barriers();
	typename Tile::Scores s;
	typename Tile::Operands operands[Tile::Twofold ? 2 : 1];
	typename Tile::Turn before;
	const auto hide = [&](int i) {
		const int key = reach.start + i * Keys;
		if (reach.ragged(key, Keys)) Weights<Keys>::cut(slab, s, row, key);
	};
	if (Turns && group == Groups - 1 && steps > 1) barrier_arrive(1, 256);
	weights.take(0);
	const uint32_t first = shfl(turn.stage, 0);
	mbarrier_wait(&barriers.keys[turn.stage], turn.parity);
	wgmma_fence();
	Tile::scores(s, q, first);
	wgmma_wait<0>();
	wgmma_keep(s[0]), wgmma_keep(s[1]);
	Tile::leave(&barriers.keys_free[turn.stage]);
	hide(0);
	weights.weigh(s, operands[0], [] {});
	before = turn;
	turn.next();

	const auto step = [&](int i, const typename Tile::Operands& p, typename Tile::Operands& next) {
		weights.take(i);
		const uint32_t now = shfl(turn.stage, 0), past = shfl(before.stage, 0);
		mbarrier_wait(&barriers.keys[turn.stage], turn.parity);
		mbarrier_wait(&barriers.values[before.stage], before.parity);
		if (Turns) barrier_sync(1 + group, 256);
		wgmma_fence();
		Tile::scores(s, q, now);
		Tile::weigh(o, p, past);
		if (Turns && !(group == Groups - 1 && i == steps - 1)) barrier_arrive(1 + (group + 1) % Groups, 256);
		wgmma_wait<1>();
		wgmma_keep(s[0]), wgmma_keep(s[1]);
		Tile::leave(&barriers.keys_free[turn.stage]);
		hide(i);
		weights.weigh(s, next, [&] {
			wgmma_wait<0>();
			wgmma_keep(o);
			Tile::leave(&barriers.values_free[before.stage]);
		});
		if (weights.faded()) {
#pragma unroll
			for (int k = 0; k < D / 2; k++) o[k] *= weights.fade[k / 2 % 2];
		}
		before = turn;
		turn.next();
	};
	const auto finish = [&](const typename Tile::Operands& p) {
		const uint32_t past = shfl(before.stage, 0);
		mbarrier_wait(&barriers.values[before.stage], before.parity);
		wgmma_fence();
		Tile::weigh(o, p, past);
		wgmma_wait<0>();
		wgmma_keep(o);
		Tile::leave(&barriers.values_free[before.stage]);
	};
	if constexpr (Tile::Twofold) {
		int i = 1;
		for (; i + 1 < steps; i += 2) {
			step(i, operands[0], operands[1]);
			step(i + 1, operands[1], operands[0]);
		}
		if (i < steps) {
			step(i, operands[0], operands[1]);
			finish(operands[1]);
		} else {
			finish(operands[0]);
		}
	} else {
		for (int i = 1; i < steps; i++) step(i, operands[0], operands[0]);
		finish(operands[0]);
	}
}

}  // namespace attention
