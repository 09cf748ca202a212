// The tile of the kernel of warpgroups with relative positions.
#pragma once

#include "attention_wide.cuh"

namespace attention {

// Two warpgroups of 64 queries each, over blocks of 64 keys. Query i and key j of a step
// have distance j − i + key − first: column j − i + 64 of the products of the queries and 128
// positions, which are two blocks. The second group's begin 64 positions before the first's,
// so that a step of both needs three blocks, of which one is new. Blocks of positions come
// into a ring.
template <int D>
struct RelativeTile {
	static constexpr int Groups = 2, Rows = 64 * Groups, Keys = BlockRows, Blocks = 1, Block = BlockRows * D;
	static constexpr int Panel = BlockRows * 64, Stages = 2, Slots = 4;
	static constexpr uint32_t Threads = 128 * Groups + 32;  // that meet at the end of a walk
	static constexpr bool Twofold = false, Relative = true;
	// A row of a warp's band: odd, so that pairs along the diagonal are aligned, and 25 more
	// than a multiple of 32, so that they lie in different banks.
	static constexpr int Band = BlockRows + 16, Stride = 89;
	using Scores = typename Weights<Keys>::Scores;
	using Queries = QueryRows<D, false, true>;
	using Operands = uint32_t[Keys / 16][4];

	struct Barriers {
		Mbarrier keys[Stages], values[Stages], positions[Slots];  // have arrived
		Mbarrier keys_free[Stages], values_free[Stages], positions_free[Slots];
		uint32_t again;  // not all numbers were usual
	};

	// A Walk counts steps and blocks of positions, over both walks if there are two: the
	// numbers say the place, and the parity of its phase.
	struct Walk {
		uint32_t step = 0, position = 0;
	};
	static __device__ uint32_t stage_of(uint32_t step) { return step % Stages; }
	static __device__ uint32_t slot_of(uint32_t position) { return position % Slots; }
	static __device__ uint32_t step_parity(uint32_t step) { return step / Stages % 2; }
	static __device__ uint32_t slot_parity(uint32_t position) { return position / Slots % 2; }

	static __device__ half* keys() { return dynamic_shared<half>(); }
	static __device__ half* values() { return keys() + Stages * Block; }
	static __device__ half* positions() { return values() + Stages * Block; }
	static __device__ float* bands() { return reinterpret_cast<float*>(positions() + Slots * Block); }
	static __device__ Barriers& barriers() { return *reinterpret_cast<Barriers*>(bands() + 4 * Groups * 16 * Stride); }

	static __device__ void prepare() {
		if (threadIdx.x == 0) {
			Barriers& b = barriers();
			for (int i = 0; i < Stages; i++) {
				mbarrier_init(&b.keys[i], 1);
				mbarrier_init(&b.values[i], 1);
				mbarrier_init(&b.keys_free[i], 4 * Groups);
				mbarrier_init(&b.values_free[i], 4 * Groups);
			}
			for (int i = 0; i < Slots; i++) {
				mbarrier_init(&b.positions[i], 1);
				mbarrier_init(&b.positions_free[i], 4 * Groups);
			}
			b.again = 0;
			mbarrier_ready();
		}
		__syncthreads();
	}

	// stretch returns the number of the first block of positions of a tile's first step. The
	// distances of blocks begin at −64·Blocks.
	static __device__ int stretch(const Slab& slab, int first, int start) {
		return (start - first - Rows) / BlockRows + static_cast<int>(slab.a.Blocks);
	}

	static __device__ void fetch_one(half* to, const half* from, Mbarrier* full, Mbarrier* free, bool fresh, uint32_t parity) {
		if (!fresh) mbarrier_wait(free, parity ^ 1);
		mbarrier_expect(full, Block * sizeof(half));
		bulk_copy(to, from, Block * sizeof(half), full);
	}

	// fetch brings what all steps need. One thread does it.
	static __device__ void fetch(const Slab& slab, int first, int start, int steps, Walk& w) {
		Barriers& b = barriers();
		const int64_t from = (static_cast<int64_t>(slab.number) * slab.a.Blocks + start / BlockRows) * Block;
		const half *k = slab.a.Keys + from, *v = slab.a.Values + from;
		const half* p = slab.a.Positions + (static_cast<int64_t>(slab.head) * 2 * slab.a.Blocks + stretch(slab, first, start)) * Block;
		const auto position = [&] {
			const uint32_t i = slot_of(w.position);
			fetch_one(positions() + i * Block, p, &b.positions[i], &b.positions_free[i], w.position < Slots, slot_parity(w.position));
			p += Block;
			w.position++;
		};
		if (steps > 0) position(), position();
		for (int i = 0; i < steps; i++, k += Block, v += Block) {
			const uint32_t at = stage_of(w.step), parity = step_parity(w.step);
			position();
			fetch_one(keys() + at * Block, k, &b.keys[at], &b.keys_free[at], w.step < Stages, parity);
			fetch_one(values() + at * Block, v, &b.values[at], &b.values_free[at], w.step < Stages, parity);
			w.step++;
		}
	}

	// multiply begins the products of queries with a block of panels. The compiler knows its
	// number to be the same in all lanes, as WideTile says. In descriptors, eight halves are 1.
	static __device__ void multiply(float (&c)[BlockRows / 2], const Queries& q, const half* panels, uint32_t block) {
		const uint64_t at = panel(panels);
#pragma unroll
		for (int step = 0; step < D / 16; step++) {
			wgmma_f16<BlockRows>(c, q.kept[0][step], further(at, block * (Block / 8) + (step / 4 * Panel + step % 4 * 16) / 8), step > 0);
		}
		wgmma_commit();
	}

	// weigh begins to add the values of a stage, weighted, to o.
	static __device__ void weigh(float (&o)[D / 2], const Operands& p, uint32_t stage) {
		const uint64_t at = panel_across<BlockRows>(values());
#pragma unroll
		for (int k = 0; k < Keys / 16; k++) wgmma_f16<D, true>(o, p[k], further(at, stage * (Block / 8) + k * (16 * 64 / 8)));
		wgmma_commit();
	}

	// keep stores half of the products with positions, times factors, of which a warp needs
	// Band columns: from 48 − 16·warp on.
	static __device__ void keep(const float (&c)[BlockRows / 2], int which, const float (&factor)[2], float* band) {
		const int g = lane_id() / 4, t = lane_id() % 4, from = 64 * which - 48 + 16 * static_cast<int>(warp_id() % 4);
#pragma unroll
		for (int n = 0; n < BlockRows / 8; n++) {
			const int at = from + 8 * n;
			if (at < 0 || at >= Band) continue;
#pragma unroll
			for (int e = 0; e < 4; e++) band[(g + e / 2 * 8) * Stride + at + 2 * t + e % 2] = c[4 * n + e] * factor[e / 2];
		}
	}

	// join makes exponents of two of scores and what was kept: query r of a warp and key j
	// have column j − r + 16 of the band.
	static __device__ void join(Scores& s, const float (&factor)[2], const float* band) {
		const int g = lane_id() / 4, t = lane_id() % 4;
#pragma unroll
		for (int r = 0; r < 2; r++) {
			const float* from = band + (g + 8 * r) * (Stride - 1) + 2 * t + 16;
#pragma unroll
			for (int n = 0; n < BlockRows / 8; n++) {
				const float2 x = load2(from + 8 * n);
				s[0][4 * n + 2 * r] = fmaf(s[0][4 * n + 2 * r], factor[r], x.x);
				s[0][4 * n + 2 * r + 1] = fmaf(s[0][4 * n + 2 * r + 1], factor[r], x.y);
			}
		}
	}
};

// walk_relative goes over the keys of a warpgroup's queries: products with the first half of
// the positions, with keys, and the sums of the step before are begun; then those with the
// second half. The warpgroups do so in turn. Usual: all factors of blocks of keys and positions are 1.
template <bool Usual, int D, typename W>
__device__ void walk_relative(const Slab& slab, const Reach& reach, int first, const typename RelativeTile<D>::Queries& q,
                              const typename RelativeTile<D>::Queries& q2, W& weights, float (&o)[D / 2], int steps,
                              typename RelativeTile<D>::Walk& walk, int group, int row) {
	using T = RelativeTile<D>;
	typename T::Barriers& barriers = T::barriers();
	float* band = T::bands() + (warp_id() - 4) * 16 * T::Stride;
	const float* key_factors = slab.a.KeyFactors + static_cast<int64_t>(slab.number) * slab.a.Blocks + reach.start / BlockRows;
	const float* position_factors =
	    slab.a.PositionFactors + static_cast<int64_t>(slab.head) * 2 * slab.a.Blocks + T::stretch(slab, first, reach.start) + 1 - group;
	const float plain[2] = {factor_of(q.down[0], 1.0f), factor_of(q.down[1], 1.0f)};
	typename T::Scores s;
	typename T::Operands p;
	float half_band[BlockRows / 2];
	uint32_t step = walk.step, position = walk.position;  // that all are done with after the step
	const uint32_t ahead = 1 - group;
	mbarrier_wait(&barriers.positions[T::slot_of(position + ahead)], T::slot_parity(position + ahead));
	if (group == 1 && steps > 1) barrier_arrive(1, 256);

	const auto keep = [&](int i, int which) {
		float factor[2] = {q2.down[0], q2.down[1]};
		if (!Usual) {
#pragma unroll
			for (int r = 0; r < 2; r++) factor[r] *= position_factors[i + which];
		}
		T::keep(half_band, which, factor, band);
	};
	const auto soften = [&](int i, auto done) {
		__syncwarp();
		float factor[2] = {plain[0], plain[1]};
		if (!Usual) {
#pragma unroll
			for (int r = 0; r < 2; r++) factor[r] = factor_of(q.down[r], key_factors[i]);
		}
		T::join(s, factor, band);
		__syncwarp();
		const int key = reach.start + i * T::Keys;
		if (reach.ragged(key, T::Keys)) Weights<T::Keys>::hide(slab, s, row, key);
		weights.take(i);
		weights.weigh(s, p, done);
	};
	for (int i = 0; i < steps; i++) {
		const uint32_t stage = shfl(T::stage_of(step), 0), before = shfl(T::stage_of(step - 1), 0);
		const uint32_t low = shfl(T::slot_of(position + ahead), 0), high = shfl(T::slot_of(position + ahead + 1), 0);
		mbarrier_wait(&barriers.positions[high], T::slot_parity(position + ahead + 1));
		mbarrier_wait(&barriers.keys[stage], T::step_parity(step));
		if (i > 0) {
			mbarrier_wait(&barriers.values[before], T::step_parity(step - 1));
			barrier_sync(1 + group, 256);
		}
		wgmma_fence();
		T::multiply(half_band, q2, T::positions(), low);
		T::multiply(s[0], q, T::keys(), stage);
		if (i > 0) {
			T::weigh(o, p, before);
			wgmma_wait<2>();
		} else {
			wgmma_wait<1>();
		}
		wgmma_keep(half_band);
		keep(i, 0);
		wgmma_fence();
		T::multiply(half_band, q2, T::positions(), high);
		if (i > 0 && !(group == 1 && i == steps - 1)) barrier_arrive(2 - group, 256);
		wgmma_wait<0>();
		wgmma_keep(half_band), wgmma_keep(s[0]), wgmma_keep(o);
		if (lane_id() == 0) {
			mbarrier_arrive(&barriers.keys_free[stage]);
			if (i > 0) mbarrier_arrive(&barriers.values_free[before]);
		}
		keep(i, 1);
		soften(i, [] {});
		if (i > 0 && weights.faded()) {
#pragma unroll
			for (int k = 0; k < D / 2; k++) o[k] *= weights.fade[k / 2 % 2];
		}
		if (lane_id() == 0) mbarrier_arrive(&barriers.positions_free[T::slot_of(position)]);
		step++, position++;
	}
	const uint32_t last = shfl(T::stage_of(step - 1), 0);
	mbarrier_wait(&barriers.values[last], T::step_parity(step - 1));
	wgmma_fence();
	T::weigh(o, p, last);
	wgmma_wait<0>();
	wgmma_keep(o);
	if (lane_id() == 0) mbarrier_arrive(&barriers.values_free[last]);
	for (int i = 0; i < 2; i++, position++) {  // blocks of positions more than there are steps
		if (lane_id() == 0) mbarrier_arrive(&barriers.positions_free[T::slot_of(position)]);
	}
	walk.step = step;
	walk.position = position;
}

}  // namespace attention
