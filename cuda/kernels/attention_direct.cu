// Attention of many queries on warpgroups of capability 9.0 over keys and values in F32: the
// warpgroup that would ask for copies makes halves of them, while others multiply.
#include "attention_direct.cuh"
#include "attention_wide_walk.cuh"

namespace attention {

// A DirectWork is as many tiles of queries as a cluster has blocks; all of them go over the
// keys that any sees.
template <typename Tile, int Cluster>
struct DirectWork {
	Slab slab;
	int first;  // of the block
	Reach reach;
	int steps;

	__device__ DirectWork(const Attention& a, uint32_t number)
	    : slab(a, number / a.Tiles), first((a.Tiles - 1 - number % a.Tiles) * Cluster * Tile::Rows), reach(slab, first, Cluster * Tile::Rows, Tile::Keys),
	      steps(max(ceil_div(reach.end - reach.start, Tile::Keys), 0)) {
		if (Cluster == 1) return;
		first += cluster_rank() * Tile::Rows;
		const Reach own(slab, first, Tile::Rows, Tile::Keys);
		reach.whole_start = own.whole_start;
		reach.whole_end = own.whole_end;
	}
};

// A cluster does every n-th work, as flash_wide does. The first walk takes all numbers for
// usual ones; works of which they turn out not to be so are done again, with factors. What
// cannot be loaded by fours is all done in the second.
template <int D, int Stages, int Cluster, int Ahead>
__device__ void flash_direct(const Attention& a) {
	using T = DirectTile<D, Stages, Cluster, 0>;
	using Alone = DirectTile<D, Stages, 1, 1>;
	using Work = DirectWork<T, Cluster>;
	T::prepare();
	wait_dependency();
	release_dependents();
	const uint32_t start = blockIdx.x / Cluster, every = gridDim.x / Cluster;
	const bool key_vectors = quads_aligned(reinterpret_cast<const float*>(a.K), a.KRow, a.KHead, a.KItem);
	const bool value_vectors = quads_aligned(reinterpret_cast<const float*>(a.V), a.VRow, a.VHead, a.VItem);
	const bool whole = key_vectors && value_vectors && a.KRow == static_cast<int>(a.KRow) && a.VRow == static_cast<int>(a.VRow);
	const uint32_t* const again = T::state().again;
	if (warp_id() < 4) {
		registers_less<56>();
		typename T::Turn turn;
		for (uint32_t number = start, i = 0; whole && number < a.Works; number += every, i++) {
			const Work work(a, number);
			Maker<D, Stages, Cluster, Ahead> maker(work.slab, work.reach.start, work.steps);
			int rows = work.slab.keys - work.reach.start - maker.first();
			for (int step = 0; step < work.steps; step++) {
				maker.template make<false>(i, turn, rows > 0);
				maker.template make<true>(i, turn, rows > 0);
				turn.next();
				rows -= T::Keys;
			}
		}
		T::meet();
		using General = GeneralMaker<D, Stages>;
		typename Alone::Turn own;
		for (uint32_t number = start, i = 0; number < a.Works; number += every, i++) {
			if (whole && !again[i]) continue;
			const Work work(a, number);
			const FloatRows k = FloatRows::keys(work.slab), v = FloatRows::values(work.slab);
			const int64_t block = static_cast<int64_t>(work.slab.number) * a.Blocks + work.reach.start / BlockRows;
			General::factors(work.slab, k, key_vectors, false, work.reach.start, T::Blocks * work.steps, a.KeyFactors + block);
			General::factors(work.slab, v, value_vectors, true, work.reach.start, T::Blocks * work.steps, a.ValueFactors + block);
			barrier_sync(8, T::Threads);
			for (int step = 0; step < work.steps; step++) {
				const int key = work.reach.start + step * T::Keys;
				General::template make<false>(work.slab, k, key_vectors, a.KeyFactors + block + T::Blocks * step, key, own);
				General::template make<true>(work.slab, v, value_vectors, a.ValueFactors + block + T::Blocks * step, key, own);
				own.next();
			}
		}
		return;
	}
	registers_more<224>();
	const int group = warp_id() / 4 - 1, warp_row = 64 * group + warp_id() % 4 * 16 + lane_id() / 4;
	typename T::Turn turn;
	for (uint32_t number = start, i = 0; whole && number < a.Works; number += every, i++) {
		const Work work(a, number);
		const int row = work.first + warp_row;  // and row + 8
		typename T::Queries q;
		q.load(work.slab, a.Q, row, nullptr);
		float o[D / 2] = {}, share[2];
		UsualWeights<T> weights(q.down);
		if (work.steps > 0) walk<true, 2, D, T>(work.slab, work.reach, q, weights, o, work.steps, turn, group, row);
		weights.shares(share);
		work.slab.template store<D>(o, row, share, 1.0f);
		if (warp_ballot(weights.failed())) T::repeat(i);
	}
	T::meet();
	typename Alone::Turn own;
	for (uint32_t number = start, i = 0; number < a.Works; number += every, i++) {
		if (whole && !again[i]) continue;
		const Work work(a, number);
		const int row = work.first + warp_row;
		typename T::Queries q;
		q.load(work.slab, a.Q, row, nullptr);
		float o[D / 2] = {}, share[2];
		barrier_sync(8, T::Threads);
		ScaledWeights<Alone> weights(work.slab, q.down, work.reach.start);
		if (work.steps > 0) walk<true, 2, D, Alone>(work.slab, work.reach, q, weights, o, work.steps, own, group, row);
		weights.shares(share);
		work.slab.template store<D>(o, row, share, weights.unit);
		if (weights.odd) {
			barrier_sync(4 + group, 128);
			work.slab.add_odd(work.first + 64 * group, 64, work.reach.start, work.reach.end, threadIdx.x % 128, 128);
		}
	}
}

}  // namespace attention
