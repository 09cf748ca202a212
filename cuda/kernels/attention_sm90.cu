// Attention of many queries on warpgroups of capability 9.0, with one half of each operand:
// while products run, the softmax of what came out before does (Shah et al.,
// FlashAttention-3, 2024).
#include "attention_queries.cuh"
#include "sm90.cuh"

namespace attention {

// The tile of a block: two warpgroups of 64 queries each, over pairs of blocks of keys,
// which a third warpgroup fetches into Stages places.
template <int D, int Stages>
struct WideTile {
	static constexpr int Groups = 2, Rows = 64 * Groups, Keys = 2 * BlockRows, Block = BlockRows * D;
	static constexpr int Stage = 2 * Block;  // halves
	using Scores = typename Weights<Keys>::Scores;

	struct Barriers {
		Mbarrier keys[Stages], values[Stages];            // have arrived
		Mbarrier keys_free[Stages], values_free[Stages];  // all warps are done with
	};

	static __device__ half* keys(int stage) { return dynamic_shared<half>() + stage * Stage; }
	static __device__ half* values(int stage) { return dynamic_shared<half>() + (Stages + stage) * Stage; }
	static __device__ Barriers& barriers() { return *reinterpret_cast<Barriers*>(dynamic_shared<half>() + 2 * Stages * Stage); }

	static __device__ void prepare() {
		if (threadIdx.x == 0) {
			Barriers& b = barriers();
			for (int i = 0; i < Stages; i++) {
				mbarrier_init(&b.keys[i], 1);
				mbarrier_init(&b.values[i], 1);
				mbarrier_init(&b.keys_free[i], 4 * Groups);
				mbarrier_init(&b.values_free[i], 4 * Groups);
			}
			mbarrier_ready();
		}
		__syncthreads();
	}

	static __device__ void fetch_one(half* to, const half* from, Mbarrier* full, Mbarrier* free, int round) {
		if (round > 0) mbarrier_wait(free, (round - 1) % 2);
		mbarrier_expect(full, Stage * sizeof(half));
		bulk_copy(to, from, Stage * sizeof(half), full);
	}

	// fetch brings keys and values of all steps. One thread does it.
	static __device__ void fetch(const Slab& slab, int start, int steps) {
		Barriers& b = barriers();
		const int64_t from = (static_cast<int64_t>(slab.number) * slab.a.Blocks + start / BlockRows) * Block;
		for (int i = 0; i < steps; i++) {
			const int stage = i % Stages, round = i / Stages;
			fetch_one(keys(stage), slab.a.Keys + from + static_cast<int64_t>(i) * Stage, &b.keys[stage], &b.keys_free[stage], round);
			fetch_one(values(stage), slab.a.Values + from + static_cast<int64_t>(i) * Stage, &b.values[stage], &b.values_free[stage], round);
		}
	}

	// scores begins the products of a warpgroup's queries and the keys of a stage.
	static __device__ void scores(Scores& s, const QueryRows<D, false, true>& q, int stage) {
#pragma unroll
		for (int b = 0; b < 2; b++) {
#pragma unroll
			for (int step = 0; step < D / 16; step++) {
				const half* at = keys(stage) + b * Block + step / 4 * (BlockRows * 64) + step % 4 * 16;
				wgmma_f16<BlockRows>(s[b], q.kept[0][step], panel(at), step > 0);
			}
		}
		wgmma_commit();
	}

	// weigh begins to add the values of a stage, weighted, to o.
	static __device__ void weigh(float (&o)[D / 2], const uint32_t (&p)[Keys / 16][4], int stage) {
#pragma unroll
		for (int k = 0; k < Keys / 16; k++) wgmma_f16<D>(o, p[k], panel(values(stage) + k / 4 * Block + k % 4 * 16));
		wgmma_commit();
	}

	// pack makes operands of weights, and nothing of those whose values have no part.
	static __device__ void pack(uint32_t (&p)[Keys / 16][4], const Scores& s, const bool (&used)[2]) {
#pragma unroll
		for (int k = 0; k < Keys / 16; k++) {
#pragma unroll
			for (int e = 0; e < 4; e++) {
				const int at = 4 * (2 * (k % 4) + e / 2) + e % 2 * 2;
				p[k][e] = pack_half(s[k / 4][at], s[k / 4][at + 1]);
			}
		}
		if (used[0] && used[1]) return;
#pragma unroll
		for (int k = 0; k < Keys / 16; k++) {
#pragma unroll
			for (int e = 0; e < 4; e++) p[k][e] = used[k / 4] ? p[k][e] : 0;
		}
	}
};

// A block computes 128 queries of one head of one item; x counts as in attention.cu. The
// scores of a step are begun, then the sums of the step before; the softmax needs the scores
// alone. With Turns, the two warpgroups begin products in turn, so that one's softmax runs
// beside the other's products.
template <int D, int Stages, bool Turns>
__device__ void flash_wide(const Attention& a) {
	release_dependents();
	using T = WideTile<D, Stages>;
	constexpr int Keys = T::Keys;
	const Slab slab(a, blockIdx.x / a.Tiles);
	const int first = (a.Tiles - 1 - blockIdx.x % a.Tiles) * T::Rows;
	const Reach reach(slab, first, T::Rows, Keys);
	const int steps = max(ceil_div(reach.end - reach.start, Keys), 0);
	T::prepare();
	if (warp_id() < 4) {
		registers_less<24>();
		if (threadIdx.x == 0) T::fetch(slab, reach.start, steps);
		return;
	}
	registers_more<240>();
	typename T::Barriers& barriers = T::barriers();
	const int group = warp_id() / 4 - 1, group_first = first + 64 * group;
	const int row = group_first + warp_id() % 4 * 16 + lane_id() / 4;  // and row + 8
	const float* key_factors = a.KeyFactors + static_cast<int64_t>(slab.number) * a.Blocks + reach.start / BlockRows;
	const float* value_factors = a.ValueFactors + static_cast<int64_t>(slab.number) * a.Blocks + reach.start / BlockRows;
	QueryRows<D, false, true> q;
	q.load(slab, a.Q, row, nullptr);

	Weights<Keys> weights;
	float o[D / 2] = {}, fade[2];
	typename T::Scores s;
	uint32_t p[Keys / 16][4];
	float downs[2], units[2];  // factors of a step's blocks
	const auto take_factors = [&](int i) {
#pragma unroll
		for (int b = 0; b < 2; b++) downs[b] = key_factors[2 * i + b], units[b] = value_factors[2 * i + b];
	};
	const auto soften = [&](int i) {
		float factor[2][2];
#pragma unroll
		for (int b = 0; b < 2; b++) factor[0][b] = factor_of(q.down[0], downs[b]), factor[1][b] = factor_of(q.down[1], downs[b]);
		const int key = reach.start + i * Keys;
		if (reach.ragged(key, Keys)) Weights<Keys>::hide(slab, s, row, key);
		const float change = weights.take_units(units);
		weights.weigh(s, factor, fade);
		fade[0] *= change, fade[1] *= change;
	};
	if (Turns && group == 1 && steps > 1) barrier_arrive(1, 256);
	if (steps > 0) {
		take_factors(0);
		mbarrier_wait(&barriers.keys[0], 0);
		wgmma_fence();
		T::scores(s, q, 0);
		wgmma_wait<0>();
		wgmma_keep(s[0]), wgmma_keep(s[1]);
		if (lane_id() == 0) mbarrier_arrive(&barriers.keys_free[0]);
		soften(0);
		T::pack(p, s, weights.used);
		if (steps > 1) mbarrier_wait(&barriers.keys[1 % Stages], 1 / Stages % 2);
	}
	for (int i = 1; i < steps; i++) {
		const int stage = i % Stages, before = (i - 1) % Stages;
		take_factors(i);
		mbarrier_wait(&barriers.values[before], (i - 1) / Stages % 2);
		if (Turns) barrier_sync(1 + group, 256);
		wgmma_fence();
		T::scores(s, q, stage);
		T::weigh(o, p, before);
		if (Turns && !(group == 1 && i == steps - 1)) barrier_arrive(2 - group, 256);
		wgmma_wait<1>();
		wgmma_keep(s[0]), wgmma_keep(s[1]);
		if (lane_id() == 0) mbarrier_arrive(&barriers.keys_free[stage]);
		soften(i);
		// The compiler would wait for the sums before it weighs, were there no loop between.
		wgmma_keep(s[0]), wgmma_keep(s[1]);
		if (i + 1 < steps) mbarrier_wait(&barriers.keys[(i + 1) % Stages], (i + 1) / Stages % 2);
		wgmma_wait<0>();
		wgmma_keep(o);
		if (lane_id() == 0) mbarrier_arrive(&barriers.values_free[before]);
		if (warp_ballot(fade[0] != 1.0f || fade[1] != 1.0f)) {
#pragma unroll
			for (int k = 0; k < D / 2; k++) o[k] *= fade[k / 2 % 2];
		}
		T::pack(p, s, weights.used);
	}
	if (steps > 0) {
		const int last = (steps - 1) % Stages;
		mbarrier_wait(&barriers.values[last], (steps - 1) / Stages % 2);
		wgmma_fence();
		T::weigh(o, p, last);
		wgmma_wait<0>();
		wgmma_keep(o);
	}
	float share[2];
	weights.shares(share);
	slab.template store<D>(o, row, share, weights.unit);
	if (weights.odd) {
		barrier_sync(3 + group, 128);
		slab.add_odd(group_first, 64, reach.start, reach.end, threadIdx.x % 128, 128);
	}
}

}  // namespace attention
