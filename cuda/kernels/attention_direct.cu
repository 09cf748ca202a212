// Attention of many queries on warpgroups of capability 9.0 over keys and values in F32: the
// warpgroup that would ask for copies makes halves of them, while others multiply.
#include "attention_direct_general.cuh"
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
		first += cluster_rank() * Tile::Rows;
		const Reach own(slab, first, Tile::Rows, Tile::Keys);
		reach.whole_start = own.whole_start;
		reach.whole_end = own.whole_end;
	}
};

// A cluster does every n-th work, as flash_wide does. The first walk takes all numbers for
// usual ones; works of which they turn out not to be so are done again, with factors.
template <int D, int Stages, int Cluster, int Ahead>
__device__ void flash_direct(const AttentionDirect& d) {
	const Attention a = d.Op;  // the address of d is taken, and parameters through it would be kept in registers
	using T = DirectTile<D, Stages, Cluster, 0>;
	using Alone = DirectTile<D, Stages, 1, 1>;
	using Work = DirectWork<T, Cluster>;
	if (threadIdx.x == 0) fetch_map(&d.Keys), fetch_map(&d.Values);
	T::prepare();
	wait_dependency();
	T::ready();
	release_dependents();
	const uint32_t start = blockIdx.x / Cluster, every = gridDim.x / Cluster;
	const uint32_t* const again = T::state().again;
	if (warp_id() < 4) {
		registers_less<56>();
		typename T::Turn turn;
		Ring<Ahead> ring;
		for (uint32_t number = start, i = 0; number < a.Works; number += every, i++) {
			const Work work(a, number);
			Maker<D, Stages, Cluster, Ahead> maker(d, ring, work.slab, work.reach.start, work.steps);
			for (int step = 0; step < work.steps; step++) {
				maker.template make<false>(i, turn);
				maker.template make<true>(i, turn);
				turn.next();
			}
		}
		T::drain(turn);
		T::meet();
		using General = GeneralMaker<D, Stages>;
		typename Alone::Turn own;
		for (uint32_t number = start, i = 0; number < a.Works; number += every, i++) {
			if (!again[i]) continue;
			const Work work(a, number);
			const FloatRows k = FloatRows::keys(work.slab), v = FloatRows::values(work.slab);
			const int64_t block = static_cast<int64_t>(work.slab.number) * a.Blocks + work.reach.start / BlockRows;
			General::find(work.slab, work.reach.start, work.steps);
			for (int step = 0; step < work.steps; step++) {
				const int key = work.reach.start + step * T::Keys;
				General::template make<false>(work.slab, k, a.KeyFactors + block + T::Blocks * step, key, own);
				General::template make<true>(work.slab, v, a.ValueFactors + block + T::Blocks * step, key, own);
				own.next();
			}
		}
		return;
	}
	registers_more<224>();
	const int group = warp_id() / 4 - 1, warp_row = 64 * group + warp_id() % 4 * 16 + lane_id() / 4;
	typename T::Turn turn;
	NextQueries<typename T::Queries> next(T::waiting() + Maker<D, Stages, Cluster, Ahead>::Waiting);
	for (uint32_t number = start, i = 0; number < a.Works; number += every, i++) {
		const Work work(a, number);
		const int row = work.first + warp_row;  // and row + 8
		typename T::Queries q;
		{
			typename T::Queries::Numbers v;
			if (i > 0) next.read(v);
			else T::Queries::read(work.slab, a.Q, row, true, v);
			q.take(work.slab, v, nullptr);
		}
		if (number + every < a.Works) {
			const Work after(a, number + every);
			next.ask(after.slab, a.Q, after.first + warp_row);
		}
		float o[D / 2] = {}, share[2];
		UsualWeights<T> weights(q.down);
		if (work.steps > 0) walk<true, 2, D, T>(work.slab, work.reach, q, weights, o, work.steps, turn, group, row);
		weights.shares(share);
		work.slab.template store_quads<D>(o, row, share);
		if (warp_ballot(weights.failed())) T::repeat(i);
	}
	T::meet();
	typename Alone::Turn own;
	for (uint32_t number = start, i = 0; number < a.Works; number += every, i++) {
		if (!again[i]) continue;
		const Work work(a, number);
		const int row = work.first + warp_row;
		typename T::Queries q;
		q.load(work.slab, a.Q, row, nullptr);
		float o[D / 2] = {}, share[2];
		GeneralMaker<D, Stages>::find(work.slab, work.reach.start, work.steps);
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
