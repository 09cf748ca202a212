// Halves of keys and values whose numbers are of any size.
#pragma once

#include "attention_direct.cuh"

namespace attention {

// FloatRows are those of keys or values that a slab has, in fours.
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

	__device__ float4 load(const Slab& s, int row, int quad) const {
		if (row >= s.keys || quad * 4 >= s.dim) return {0.0f, 0.0f, 0.0f, 0.0f};
		return load4(P + row * Row + quad * 4);
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

	// factors finds those of count blocks of keys or values from a row on. All warps take part.
	static __device__ void factors(const Slab& s, const FloatRows& rows, bool values, int start, int count, float* to) {
		for (int b = warp_id(); b < count; b += Tile::Threads / 32) {
			float most = 0.0f;
			bool odd = false;
#pragma unroll 4
			for (int i = lane_id(); i < BlockRows * Quads; i += 32) {
				const float4 v = rows.load(s, start + b * BlockRows + i / Quads, i % Quads);
				most = fmaxf(fmaxf(most, fmaxf(magnitude(v.x), magnitude(v.y))), fmaxf(magnitude(v.z), magnitude(v.w)));
				odd |= !(finite(v.x) && finite(v.y) && finite(v.z) && finite(v.w));
			}
			const float down = power_for(warp_max(most)).down;
			odd = warp_ballot(odd);
			if (lane_id() == 0) to[b] = values && odd ? -down : down;
		}
	}

	// find finds those of all steps of a work.
	static __device__ void find(const Slab& s, int start, int steps) {
		const Attention& a = s.a;
		const int64_t block = static_cast<int64_t>(s.number) * a.Blocks + start / BlockRows;
		factors(s, FloatRows::keys(s), false, start, Tile::Blocks * steps, a.KeyFactors + block);
		factors(s, FloatRows::values(s), true, start, Tile::Blocks * steps, a.ValueFactors + block);
		barrier_sync(8, Tile::Threads);
	}

	template <bool Values>
	static __device__ void make(const Slab& s, const FloatRows& rows, const float* factors, int start, const typename Tile::Turn& turn) {
		typename Tile::Barriers& b = Tile::barriers();
		half* const stage = (Values ? Base::values() : Base::keys()) + turn.stage * Base::Stage;
		const auto inverse = [](float power) -> float { return float_of((254u << 23) - bits_of(fabsf(power))); };
		const float up[2] = {inverse(factors[0]), inverse(factors[1])};
		const auto half_of = [](float v, float up) -> float { return Values && !finite(v) ? 0.0f : v * up; };
		mbarrier_wait(Values ? &b.values_free[turn.stage] : &b.keys_free[turn.stage], turn.parity ^ 1);
#pragma unroll 4
		for (int i = threadIdx.x; i < Tile::Keys * Quads; i += 128) {
			const int row = i / Quads, quad = i % Quads;
			const float4 v = rows.load(s, start + row, quad);
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
