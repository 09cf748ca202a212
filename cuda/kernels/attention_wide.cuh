// The tile of the kernels of warpgroups for many queries, and the softmax of usual numbers.
#pragma once

#include "attention_queries.cuh"
#include "sm90.cuh"

namespace attention {

constexpr int WideWorks = 256;  // of a block at most: WideWorks in Go

// pack_weights makes operands of weights.
template <int Blocks>
__device__ inline void pack_weights(uint32_t (&p)[4 * Blocks][4], const float (&s)[Blocks][BlockRows / 2]) {
#pragma unroll
	for (int k = 0; k < 4 * Blocks; k++) {
#pragma unroll
		for (int e = 0; e < 4; e++) {
			const int at = 4 * (2 * (k % 4) + e / 2) + e % 2 * 2;
			p[k][e] = pack_half(s[k / 4][at], s[k / 4][at + 1]);
		}
	}
}

// The factors of blocks: usual ones are 1, or 0, of blocks of zeros. A lane has every 32nd; the
// first is on its way from the beginning.
struct Factors {
	const float* at;
	int count;
	float first;

	__device__ Factors(const float* at, int count) : at(at), count(count) {
		first = static_cast<int>(lane_id()) < count ? at[lane_id()] : 1.0f;
	}
	__device__ bool usual() const {
		bool ok = first == 1.0f || first == 0.0f;
		for (int i = lane_id() + 32; i < count; i += 32) {
			const float f = at[i];
			ok &= f == 1.0f || f == 0.0f;
		}
		return !warp_ballot(!ok);
	}
};

// The tile of a block: Groups warpgroups of 64 queries each, over pairs of blocks of keys,
// which one more warpgroup fetches into Stages places. Keys of a pair lie as panels of its
// 128 rows, values as panels of 64 rows, block after block.
template <int D, int Stages, int Groups>
struct WideTile {
	static constexpr int Rows = 64 * Groups, Keys = 2 * BlockRows, Block = BlockRows * D;
	static constexpr int Panel = BlockRows * 64, Blocks = 2;
	static constexpr int Stage = 2 * Block;  // halves
	static constexpr uint32_t Threads = 128 * Groups + 32;  // that meet at the end of a walk
	using Scores = typename Weights<Keys>::Scores;
	using Queries = QueryRows<D, false, true>;
	using Operands = uint32_t[Keys / 16][4];
	// Whether there are registers for the operands of two steps, so that those of one are made
	// while products use the other's.
	static constexpr bool Twofold = D == 64 && Groups == 2, Relative = false;

	struct Barriers {
		Mbarrier keys[Stages], values[Stages];            // have arrived
		Mbarrier keys_free[Stages], values_free[Stages];  // all warps are done with
		uint8_t again[WideWorks];                         // whether not all numbers of a work were usual
	};

	// A Turn is where the walk over steps is among the stages.
	struct Turn {
		uint32_t stage = 0, parity = 0;
		__device__ void next() {
			if (++stage == Stages) stage = 0, parity ^= 1;
		}
	};

	static __device__ half* keys() { return dynamic_shared<half>(); }
	static __device__ half* values() { return dynamic_shared<half>() + Stages * Stage; }
	static __device__ Barriers& barriers() { return *reinterpret_cast<Barriers*>(dynamic_shared<half>() + 2 * Stages * Stage); }

	static __device__ void prepare() {
		Barriers& b = barriers();
		if (threadIdx.x < WideWorks) b.again[threadIdx.x] = 0;
		if (threadIdx.x == 0) {
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

	// leave says that this warp is done with a place.
	static __device__ void leave(Mbarrier* b) {
		if (lane_id() == 0) mbarrier_arrive(b);
	}

	// fetch brings keys and values of all steps, round after round of stages. One thread
	// does it.
	static __device__ void fetch(const Slab& slab, int start, int steps, Turn& turn, bool& first) {
		Barriers& b = barriers();
		const int64_t from = (static_cast<int64_t>(slab.number) * slab.a.Blocks + start / BlockRows) * Block;
		const half *k = slab.a.Keys + from, *v = slab.a.Values + from;
		for (int i = 0; i < steps; i++, k += Stage, v += Stage) {
			half* to = keys() + turn.stage * Stage;
			if (!first) mbarrier_wait(&b.keys_free[turn.stage], turn.parity ^ 1);
			mbarrier_expect(&b.keys[turn.stage], Stage * sizeof(half));
			if (D == 64) {
				bulk_copy(to, k, Stage * sizeof(half), &b.keys[turn.stage]);
			} else {
				for (int p = 0; p < Stage / Panel; p++) {  // block after block becomes panel after panel
					bulk_copy(to + (p % (D / 64) * 2 + p / (D / 64)) * Panel, k + p * Panel, Panel * sizeof(half), &b.keys[turn.stage]);
				}
			}
			if (!first) mbarrier_wait(&b.values_free[turn.stage], turn.parity ^ 1);
			mbarrier_expect(&b.values[turn.stage], Stage * sizeof(half));
			bulk_copy(values() + turn.stage * Stage, v, Stage * sizeof(half), &b.values[turn.stage]);
			turn.next();
			if (turn.stage == 0) first = false;
		}
	}

	// scores begins the products of a warpgroup's queries and the keys of a stage, which the
	// compiler knows to be the same in all lanes: uniform registers hold descriptors then, and
	// little lies between two products. In descriptors, eight halves are 1.
	static __device__ void scores(Scores& s, const Queries& q, uint32_t stage) {
		const uint64_t at = panel(keys());
#pragma unroll
		for (int step = 0; step < D / 16; step++) {
			wgmma_f16<Keys>(reinterpret_cast<float(&)[Keys / 2]>(s), q.kept[0][step],
			                further(at, stage * (Stage / 8) + (step / 4 * (2 * Panel) + step % 4 * 16) / 8), step > 0);
		}
		wgmma_commit();
	}

	// weigh begins to add the values of a stage, weighted, to o.
	static __device__ void weigh(float (&o)[D / 2], const Operands& p, uint32_t stage) {
		const uint64_t at = panel_across<BlockRows>(values());
#pragma unroll
		for (int k = 0; k < Keys / 16; k++) {
			wgmma_f16<D, true>(o, p[k], further(at, stage * (Stage / 8) + (k / 4 * Block + k % 4 * (16 * 64)) / 8));
		}
		wgmma_commit();
	}
};

// Weights of keys and values whose blocks have any factors; see Weights. Relative: those of
// keys are part of the scores already.
template <typename Tile>
struct ScaledWeights : Weights<Tile::Keys> {
	using Base = Weights<Tile::Keys>;
	static constexpr int Blocks = Tile::Blocks;
	const float *key_factors, *value_factors;
	float down[2], downs[Blocks], units[Blocks], fade[2];

	__device__ ScaledWeights(const Slab& slab, const float (&down)[2], int start) : down{down[0], down[1]} {
		const int64_t at = static_cast<int64_t>(slab.number) * slab.a.Blocks + start / BlockRows;
		key_factors = slab.a.KeyFactors + at;
		value_factors = slab.a.ValueFactors + at;
	}

	__device__ void take(int i) {
#pragma unroll
		for (int b = 0; b < Blocks; b++) downs[b] = key_factors[Blocks * i + b], units[b] = value_factors[Blocks * i + b];
	}

	// weigh makes operands of the scores of the step that was taken. done waits for the
	// products before; with operands of one step, those are not used any more then.
	template <typename Done>
	__device__ void weigh(typename Tile::Scores& s, typename Tile::Operands& p, Done done) {
		float factor[2][Blocks];
#pragma unroll
		for (int b = 0; b < Blocks; b++) {
#pragma unroll
			for (int r = 0; r < 2; r++) factor[r][b] = Tile::Relative ? 1.0f : factor_of(down[r], downs[b]);
		}
		const float change = Base::take_units(units);
		Base::weigh(s, factor, fade);
		fade[0] *= change, fade[1] *= change;
		// The compiler would wait for the sums before it weighs, were there no loop between.
#pragma unroll
		for (int b = 0; b < Blocks; b++) wgmma_keep(s[b]);
		done();
		pack_weights(p, s);
#pragma unroll
		for (int b = 0; b < Blocks; b++) {
			if (Base::used[b]) continue;
#pragma unroll
			for (int k = 0; k < 4; k++) {
#pragma unroll
				for (int e = 0; e < 4; e++) p[4 * b + k][e] = 0;
			}
		}
	}

	__device__ bool faded() const { return warp_ballot(fade[0] != 1.0f || fade[1] != 1.0f); }
	__device__ bool failed() const { return false; }
};

// Weights where all factors are 1: powers of two of scores less a number that the first
// keys that a query sees set, so that their largest becomes 2^Top. Only sums beyond Limit,
// which later keys may lead to, call for another: what is in between keeps all digits of
// halves. A lane sums its own keys.
template <typename Tile>
struct UsualWeights {
	static constexpr int Blocks = Tile::Blocks;
	static constexpr float Top = 5.0f, Limit = 0x1p15f, unit = 1.0f;
	static constexpr bool odd = false;
	float factor[2], add[2] = {}, sum[2] = {}, fade[2];
	bool known[2] = {};            // whether add is set
	bool open = true;              // whether it is not, of some query of the warp
	bool lifted = false, wrong = false;

	__device__ explicit UsualWeights(const float (&down)[2]) : factor{factor_of(down[0], 1.0f), factor_of(down[1], 1.0f)} {
		if (Tile::Relative) factor[0] = factor[1] = 1.0f;  // scores have them already
	}

	__device__ void take(int) {}

	static __device__ float most_of(const typename Tile::Scores& s, int r) {
		float most = unseen();
#pragma unroll
		for (int b = 0; b < Blocks; b++) {
#pragma unroll
			for (int n = 0; n < BlockRows / 8; n++) most = fmaxf(most, fmaxf(s[b][4 * n + 2 * r], s[b][4 * n + 2 * r + 1]));
		}
		return warp_max<4>(most);
	}

	__device__ void begin(const typename Tile::Scores& s) {
#pragma unroll
		for (int r = 0; r < 2; r++) {
			const float most = most_of(s, r);
			if (known[r]) continue;
			known[r] = most != unseen();
			add[r] = known[r] ? Top - ceilf(most * factor[r]) : 0.0f;
		}
		open = warp_ballot(!known[0] || !known[1]);
	}

	__device__ void weigh_block(float (&s)[BlockRows / 2], float (&part)[2][2]) const {
#pragma unroll
		for (int i = 0; i < BlockRows / 2; i++) {
			const int r = i / 2 % 2;
			s[i] = weight_of(fmaf(s[i], factor[r], add[r]));
			part[r][i % 2] += s[i];
		}
	}

	template <typename Done>
	__device__ void weigh(typename Tile::Scores& s, typename Tile::Operands& p, Done done) {
		if (open) begin(s);
		float part[2][2] = {};
#pragma unroll
		for (int b = 0; b < Blocks; b++) weigh_block(s[b], part);
		if (Tile::Twofold) pack_weights(p, s);
		float total[2] = {part[0][0] + part[0][1], part[1][0] + part[1][1]};
		lifted = warp_ballot(!(total[0] <= Limit && total[1] <= Limit));
		if (lifted) {
			lift(s, total);
			if (Tile::Twofold) pack_weights(p, s);
		}
#pragma unroll
		for (int r = 0; r < 2; r++) sum[r] += total[r];
		done();
		if (!Tile::Twofold) pack_weights(p, s);
	}

	// lift turns queries whose sums are beyond Limit to larger numbers.
	__device__ void lift(typename Tile::Scores& s, float (&total)[2]) {
#pragma unroll
		for (int r = 0; r < 2; r++) {
			const bool high = warp_ballot(!(total[r] <= Limit)) >> (lane_id() & 28u) & 15u;
			const float most = most_of(s, r);
			const bool odd = !finite(warp_sum<4>(total[r]));
			const int exponent = high && !odd ? static_cast<int>(Top) + 126 - static_cast<int>(bits_of(most) >> 23) : 0;
			fade[r] = float_of(static_cast<uint32_t>(127 + exponent) << 23);
			add[r] += static_cast<float>(exponent);
			total[r] *= fade[r];
			sum[r] *= fade[r];
			wrong |= odd;
#pragma unroll
			for (int b = 0; b < Blocks; b++) {
#pragma unroll
				for (int n = 0; n < BlockRows / 8; n++) s[b][4 * n + 2 * r] *= fade[r], s[b][4 * n + 2 * r + 1] *= fade[r];
			}
		}
	}

	__device__ bool faded() const { return lifted; }
	__device__ bool failed() const { return wrong; }

	__device__ void shares(float (&share)[2]) const {
#pragma unroll
		for (int r = 0; r < 2; r++) {
			const float total = warp_sum<4>(sum[r]);
			share[r] = total == 0.0f ? 0.0f : 1.0f / total;
		}
	}
};

}  // namespace attention
