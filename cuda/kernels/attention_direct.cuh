// The tile of the kernels that make halves of keys and values themselves.
#pragma once

#include "attention_wide.cuh"

namespace attention {

// The tile of a block of a cluster, each of which has 128 queries of a head, and makes its
// part of the halves of each step for all of them. Each set of barriers is for one walk over
// the works: blocks of the second walk are for themselves, Cluster 1.
//
// Shared memory holds the stages, these barriers, and F32 that is on its way.
template <int D, int Stages, int Cluster, int Set>
struct DirectTile : WideTile<D, Stages, 2> {
	using Base = WideTile<D, Stages, 2>;
	static constexpr uint32_t Makers = 4, Readers = 8, Threads = 384;  // warps, and threads of a block

	struct Barriers {
		Mbarrier keys[Stages], values[Stages];            // are there
		Mbarrier keys_free[Stages], values_free[Stages];  // all warps of the cluster are done with
	};
	struct alignas(16) State {
		Barriers sets[2];
		uint32_t again[WideWorks];  // whether not all numbers of a work were usual
	};

	static __device__ State& state() { return *reinterpret_cast<State*>(dynamic_shared<half>() + 2 * Stages * Base::Stage); }
	static __device__ float* waiting() { return reinterpret_cast<float*>(&state() + 1); }
	static __device__ Barriers& barriers() { return state().sets[Set]; }

	static __device__ void prepare() {
		State& s = state();
		if (threadIdx.x < WideWorks) s.again[threadIdx.x] = 0;
		if (threadIdx.x < 2 * Stages) {
			const uint32_t set = threadIdx.x / Stages, i = threadIdx.x % Stages, readers = set == 0 ? Readers * Cluster : Readers;
			Barriers& b = s.sets[set];
			mbarrier_init(&b.keys[i], Makers);
			mbarrier_init(&b.values[i], Makers);
			mbarrier_init(&b.keys_free[i], readers);
			mbarrier_init(&b.values_free[i], readers);
			mbarrier_ready();
		}
		__syncthreads();
		if constexpr (Cluster > 1) {
			cluster_reach();
			cluster_wait();
		}
	}

	static __device__ void leave(Mbarrier* b) {
		if constexpr (Cluster == 1) {
			if (lane_id() == 0) mbarrier_arrive(b);
		} else {
			if (lane_id() < Cluster) mbarrier_arrive_remote(cluster_address(b, lane_id()));
		}
	}

	// repeat notes that all blocks of the cluster are to do a work again. All lanes take part.
	static __device__ void repeat(int i) {
		if constexpr (Cluster == 1) {
			if (lane_id() == 0) state().again[i] = 1;
		} else {
			if (lane_id() < Cluster) store_remote(cluster_address(&state().again[i], lane_id()), 1u);
		}
	}

	// meet waits until the cluster has ended its walk. If nothing was noted, nothing is to be
	// ordered, and what was written to the device is not waited for.
	static __device__ void meet() {
		if constexpr (Cluster == 1) {
			barrier_sync(8, Threads);
		} else {
			uint32_t noted = 0;
			for (int i = lane_id(); i < WideWorks; i += 32) noted |= state().again[i];
			if (warp_ballot(noted != 0)) __threadfence();
			cluster_reach();
			cluster_wait();
		}
	}

	// Where four elements of a row begin, in halves from the begin of the stage: of keys, and of
	// values.
	static __device__ int key_place(int row, int quad) {
		return (quad / 16 * Base::Keys + row) * 64 + ((quad % 16 / 2) ^ (row % 8)) * 8 + quad % 2 * 4;
	}
	static __device__ int value_place(int row, int quad) {
		return row / BlockRows * Base::Block + (quad / 16 * BlockRows + row % BlockRows) * 64 + ((quad % 16 / 2) ^ (row % 8)) * 8 + quad % 2 * 4;
	}
};

__device__ inline void store_quad(half* to, uint2 h) { *reinterpret_cast<uint2*>(to) = h; }

// Rows are those of F32 that a slab has: of keys or of values.
struct FloatRows {
	const float* P;
	int64_t Row;

	static __device__ FloatRows keys(const Slab& s) {
		const Attention& a = s.a;
		return {reinterpret_cast<const float*>(a.K) + s.item * a.KItem + s.head * a.KHead, a.KRow};
	}
	static __device__ FloatRows values(const Slab& s) {
		const Attention& a = s.a;
		return {reinterpret_cast<const float*>(a.V) + s.item * a.VItem + s.head * a.VHead, a.VRow};
	}
};

// A Maker is a lane of the warpgroup that makes halves for the cluster, of numbers of a usual
// size: a block has Part rows of the pair of each step, a warp Own of them, which Each at a
// time are Quads fours of a lane. Copies of Ahead parts, of keys and values in turn, are on
// their way at any time; a lane reads what it has asked for itself, so that nothing is waited
// for but that. What is made goes into the block's own stage, and from there, by bulk copies,
// into those of the others.
template <int D, int Stages, int Cluster, int Ahead>
struct Maker {
	using Tile = DirectTile<D, Stages, Cluster, 0>;
	using Base = typename Tile::Base;
	using Turn = typename Tile::Turn;
	static constexpr int Part = Tile::Keys / Cluster, Own = Part / 4, Lanes = D / 4, Each = 32 / Lanes;
	static constexpr int Quads = Own / Each, Panels = D / 64, Batch = 2;  // read at a time: more take more registers than there are
	static_assert(Own % 8 == 0 && BlockRows % Own == 0, "rows of a warp lie in a row of a block");

	const float *keys, *values;  // to be asked for next
	int key_row, value_row;
	int left;       // rows that are there, from the lane's first of what is asked for next
	int parts;      // to be asked for
	uint32_t slot = 0;  // of the part that is made next, and of the one asked for then

	static __device__ int first() { return (Cluster > 1 ? static_cast<int>(cluster_rank()) : 0) * Part + warp_id() * Own; }
	static __device__ float* place(uint32_t slot) { return Tile::waiting() + slot * (Part * D) + threadIdx.x * 4; }

	__device__ Maker(const Slab& slab, int start, int steps) {
		const int quad = lane_id() % Lanes, row = start + first() + lane_id() / Lanes;
		const FloatRows k = FloatRows::keys(slab), v = FloatRows::values(slab);
		keys = k.P + row * k.Row + quad * 4;
		values = v.P + row * v.Row + quad * 4;
		key_row = static_cast<int>(k.Row);
		value_row = static_cast<int>(v.Row);
		left = quad * 4 < slab.dim ? slab.keys - row : 0;
		parts = 2 * steps;
#pragma unroll
		for (int i = 0; i < Ahead; i++) i % 2 == 0 ? ask<false>(i) : ask<true>(i);
	}

	// ask asks for a part, of keys and values in turn. Rows that are not there become 0.
	template <bool Values>
	__device__ void ask(uint32_t slot) {
		const float*& at = Values ? values : keys;
		const int64_t row = Values ? value_row : key_row;
		if (parts > 0) {
			const float* p = at;
#pragma unroll
			for (int j = 0; j < Quads; j++) {
				const bool there = j * Each < left;
				copy_async<16>(place(slot) + j * 512, there ? p : at, there ? 16 : 0);
				p += Each * row;
			}
			at += Tile::Keys * row;
			if (Values) left -= Tile::Keys;
			parts--;
		}
		copy_commit();
	}

	// make makes the keys or values of a step of work i. any: whether the warp has rows there.
	template <bool Values>
	__device__ void make(int i, const Turn& turn, bool any) {
		typename Tile::Barriers& b = Tile::barriers();
		half* const stage = (Values ? Base::values() : Base::keys()) + turn.stage * Base::Stage;
		const int lane = lane_id(), quad = lane % Lanes, row = lane / Lanes;
		const int warp = Values ? Tile::value_place(first(), 0) : Tile::key_place(first(), 0);
		const int panel = 64 * (Values ? BlockRows : Tile::Keys);
		half* const to = stage + warp + quad / 16 * panel + row * 64 + quad % 2 * 4;
		const int chunk = (quad % 16 / 2) ^ row;
		uint32_t most = 0;
		mbarrier_wait(Values ? &b.values_free[turn.stage] : &b.keys_free[turn.stage], turn.parity ^ 1);
		copy_wait<Ahead - 1>();
		const float* const from = place(slot);
#pragma unroll 1
		for (int n = 0; n < Quads; n += Batch) {
			float4 v[Batch];
#pragma unroll
			for (int j = 0; j < Batch; j++) v[j] = load4(from + (n + j) * 512);
#pragma unroll
			for (int j = 0; j < Batch; j++) {
				const uint2 h = {pack_half(v[j].x, v[j].y), pack_half(v[j].z, v[j].w)};
				most = larger_halves(larger_halves(most, h.x), h.y);
				store_quad(to + (n + j) * Each * 64 + (chunk ^ ((n + j) * Each % 8)) * 8, h);
			}
		}
		fence_async();
		// From 2^15 on, or no numbers; and whether there are any from 2^-10 on: of those that are
		// smaller halves have not all digits.
		const uint32_t largest = max(most >> 16, most & 0xffffu);
		if (warp_ballot(largest >= 0x7800u) || (any && !warp_ballot(largest >= 0x1400u))) Tile::repeat(i);
		Mbarrier* const full = Values ? &b.values[turn.stage] : &b.keys[turn.stage];
		if constexpr (Cluster > 1) {
			constexpr uint32_t Others = Cluster - 1;
			if (lane < Others * Panels) {
				const uint32_t other = (cluster_rank() + 1 + lane % Others) % Cluster;
				const half* from = stage + warp + lane / Others * panel;
				bulk_copy_remote(cluster_address(from, other), from, Own * 64 * sizeof(half), cluster_address(full, other));
			}
			if (lane == 0 && warp_id() == 0) mbarrier_expect(full, Others * Part * D * sizeof(half));
			else if (lane == 0) mbarrier_arrive(full);
		} else {
			if (lane == 0) mbarrier_arrive(full);
		}
		if (Ahead % 2 == 0) ask<Values>(slot);
		else ask<!Values>(slot);
		slot = slot + 1 == Ahead ? 0 : slot + 1;
	}
};

// The general way: a factor for each block, and numbers that are not finite left out of
// values, as attention_pack does it. All warps that make halves take part; a block of a
// cluster is for itself.
template <int D, int Stages>
struct GeneralMaker {
	using Tile = DirectTile<D, Stages, 1, 1>;
	using Base = typename Tile::Base;
	static constexpr int Quads = D / 4;

	static __device__ float4 load(const FloatRows& rows, bool vectors, const Slab& s, int row, int quad) {
		if (row >= s.keys || quad * 4 >= s.dim) return {0.0f, 0.0f, 0.0f, 0.0f};
		return load_quad(rows.P + row * rows.Row + quad * 4, vectors);
	}

	// factors finds those of count blocks of keys or values from a row on.
	static __device__ void factors(const Slab& s, const FloatRows& rows, bool vectors, bool values, int start, int count, float* to) {
		for (int b = warp_id(); b < count; b += Tile::Makers) {
			float most = 0.0f;
			bool odd = false;
#pragma unroll 4
			for (int i = lane_id(); i < BlockRows * Quads; i += 32) {
				const float4 v = load(rows, vectors, s, start + b * BlockRows + i / Quads, i % Quads);
				most = fmaxf(fmaxf(most, fmaxf(magnitude(v.x), magnitude(v.y))), fmaxf(magnitude(v.z), magnitude(v.w)));
				odd |= !(finite(v.x) && finite(v.y) && finite(v.z) && finite(v.w));
			}
			const float down = power_for(warp_max(most)).down;
			odd = warp_ballot(odd);
			if (lane_id() == 0) to[b] = values && odd ? -down : down;
		}
	}

	template <bool Values>
	static __device__ void make(const Slab& s, const FloatRows& rows, bool vectors, const float* factors, int start, const typename Tile::Turn& turn) {
		typename Tile::Barriers& b = Tile::barriers();
		half* const stage = (Values ? Base::values() : Base::keys()) + turn.stage * Base::Stage;
		const auto inverse = [](float power) -> float { return float_of((254u << 23) - bits_of(fabsf(power))); };
		const float up[2] = {inverse(factors[0]), inverse(factors[1])};
		const auto half_of = [](float v, float up) -> float { return Values && !finite(v) ? 0.0f : v * up; };
		mbarrier_wait(Values ? &b.values_free[turn.stage] : &b.keys_free[turn.stage], turn.parity ^ 1);
#pragma unroll 4
		for (int i = threadIdx.x; i < Tile::Keys * Quads; i += 128) {
			const int row = i / Quads, quad = i % Quads;
			const float4 v = load(rows, vectors, s, start + row, quad);
			const float f = row < BlockRows ? up[0] : up[1];
			store_quad(stage + (Values ? Tile::value_place(row, quad) : Tile::key_place(row, quad)),
			           {pack_half(half_of(v.x, f), half_of(v.y, f)), pack_half(half_of(v.z, f), half_of(v.w, f))});
		}
		fence_async();
		__syncwarp();
		if (lane_id() == 0) mbarrier_arrive(Values ? &b.values[turn.stage] : &b.keys[turn.stage]);
	}
};

}  // namespace attention
