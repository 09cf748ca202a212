// Attention of many queries on warpgroups of capability 9.0, with one half of each operand.
#include "attention_wide_relative.cuh"
#include "attention_wide_walk.cuh"

namespace attention {

// A WideWork is 64·Groups queries of one head of one item; numbers count as x does in
// attention.cu.
template <typename Tile>
struct WideWork {
	Slab slab;
	int first;
	Reach reach;
	int steps;

	__device__ WideWork(const Attention& a, uint32_t number)
	    : slab(a, number / a.Tiles), first((a.Tiles - 1 - number % a.Tiles) * Tile::Rows), reach(slab, first, Tile::Rows, Tile::Keys),
	      steps(max(ceil_div(reach.end - reach.start, Tile::Keys), 0)) {}
};

// A block does every gridDim.x-th work: while it ends one, keys of the next arrive. It takes
// all numbers for usual ones where the factors of blocks are, and does a work again if they
// turn out not to be.
template <int D, int Stages, int Groups, bool Turns>
__device__ void flash_wide(const Attention& a) {
	using T = WideTile<D, Stages, Groups>;
	T::prepare();
	wait_dependency();
	release_dependents();
	typename T::Barriers& barriers = T::barriers();
	typename T::Turn turn;
	if (warp_id() < 4) {
		registers_less<24>();
		if (warp_id() > 0) return;
		bool fresh = true;
		for (int round = 0; round < 2; round++) {
			if (lane_id() == 0) {
				for (uint32_t number = blockIdx.x, i = 0; number < a.Works; number += gridDim.x, i++) {
					if (round == 1 && !barriers.again[i]) continue;
					const WideWork<T> work(a, number);
					T::fetch(work.slab, work.reach.start, work.steps, turn, fresh);
				}
			}
			__syncwarp();
			if (round == 0) barrier_sync(8, T::Threads);
		}
		return;
	}
	registers_more<240>();
	const int group = warp_id() / 4 - 1;
	for (int round = 0; round < 2; round++) {
		for (uint32_t number = blockIdx.x, i = 0; number < a.Works; number += gridDim.x, i++) {
			if (round == 1 && !barriers.again[i]) continue;
			const WideWork<T> work(a, number);
			const Slab& slab = work.slab;
			const int group_first = work.first + 64 * group, steps = work.steps;
			const int row = group_first + warp_id() % 4 * 16 + lane_id() / 4;  // and row + 8
			const int64_t block = static_cast<int64_t>(slab.number) * a.Blocks + work.reach.start / BlockRows;
			const Factors keys(a.KeyFactors + block, T::Blocks * steps), values(a.ValueFactors + block, T::Blocks * steps);
			typename T::Queries q;
			q.load(slab, a.Q, row, nullptr);
			float o[D / 2] = {}, share[2];
			if (keys.usual() && values.usual() && round == 0) {
				UsualWeights<T> weights(q.down);
				if (steps > 0) walk<Turns, Groups, D, T>(slab, work.reach, q, weights, o, steps, turn, group, row);
				weights.shares(share);
				slab.template store<D>(o, row, share, 1.0f);
				if (weights.failed()) barriers.again[i] = 1;
				continue;
			}
			ScaledWeights<T> weights(slab, q.down, work.reach.start);
			if (steps > 0) walk<Turns, Groups, D, T>(slab, work.reach, q, weights, o, steps, turn, group, row);
			weights.shares(share);
			slab.template store<D>(o, row, share, weights.unit);
			if (weights.odd) {
				barrier_sync(4 + group, 128);
				slab.add_odd(group_first, 64, work.reach.start, work.reach.end, threadIdx.x % 128, 128);
			}
		}
		if (round == 0) barrier_sync(8, T::Threads);
	}
}

// The same with relative positions; a block computes 128 queries.
template <int D>
__device__ void flash_wide_relative(const Attention& a) {
	using T = RelativeTile<D>;
	T::prepare();
	wait_dependency();
	release_dependents();
	const Slab slab(a, blockIdx.x / a.Tiles);
	const int first = (a.Tiles - 1 - blockIdx.x % a.Tiles) * T::Rows;
	const Reach reach(slab, first, T::Rows, T::Keys);
	const int steps = max(ceil_div(reach.end - reach.start, T::Keys), 0);
	typename T::Barriers& barriers = T::barriers();
	typename T::Walk walk;
	if (warp_id() < 4) {
		registers_less<24>();
		if (warp_id() > 0) return;
		if (lane_id() == 0) T::fetch(slab, first, reach.start, steps, walk);
		__syncwarp();
		barrier_sync(8, T::Threads);
		if (barriers.again == 0) return;
		if (lane_id() == 0) T::fetch(slab, first, reach.start, steps, walk);
		return;
	}
	registers_more<240>();
	const int group = warp_id() / 4 - 1, group_first = first + 64 * group;
	const int row = group_first + warp_id() % 4 * 16 + lane_id() / 4;  // and row + 8
	const int64_t block = static_cast<int64_t>(slab.number) * a.Blocks + reach.start / BlockRows;
	const int64_t position = static_cast<int64_t>(slab.head) * 2 * a.Blocks + T::stretch(slab, first, reach.start);
	const Factors keys(a.KeyFactors + block, steps), values(a.ValueFactors + block, steps), positions(a.PositionFactors + position, steps > 0 ? steps + 2 : 0);
	typename T::Queries q, q2;
	q.load(slab, a.Q, row, nullptr);
	q2.load(slab, a.Q2, row, nullptr);
	const bool usual = keys.usual() && values.usual() && positions.usual();
	float o[D / 2] = {}, share[2];
	if (usual) {
		UsualWeights<T> weights(q.down);
		if (steps > 0) walk_relative<true, D>(slab, reach, first, q, q2, weights, o, steps, walk, group, row);
		weights.shares(share);
		slab.template store<D>(o, row, share, 1.0f);
		if (weights.failed()) barriers.again = 1;
		barrier_sync(8, T::Threads);
		if (barriers.again == 0) return;
#pragma unroll
		for (int k = 0; k < D / 2; k++) o[k] = 0.0f;
	}
	ScaledWeights<T> weights(slab, q.down, reach.start);
	if (steps > 0) walk_relative<false, D>(slab, reach, first, q, q2, weights, o, steps, walk, group, row);
	weights.shares(share);
	slab.template store<D>(o, row, share, weights.unit);
	if (weights.odd) {
		barrier_sync(4 + group, 128);
		slab.add_odd(group_first, 64, reach.start, reach.end, threadIdx.x % 128, 128);
	}
	if (!usual) barrier_sync(8, T::Threads);
}

}  // namespace attention
