// The Fourier transform of a frame, by a warp in shared memory: Stockham's, of mixed radix
// (Cochran and others, What is the fast Fourier transform?, 1967). Each pass reads one
// pool and writes the other.
//
// A pass of radix r turns r transforms of length l each into one of length l·r:
//
//	y[j + k·m] = Σ over q < r of x[j + q·m + (k mod l)·m·r]·w^(q·k),  m = n/(l·r), j < m, k < l·r
//
// where w is the turn by 1/(l·r). Numbers are complex: float2, or Twofold where digits count.
#pragma once
#include "mel_twofold.cuh"
#include "rows.cuh"

namespace mel {

__device__ inline float2 plus(float2 a, float2 b) { return {a.x + b.x, a.y + b.y}; }
__device__ inline float2 minus(float2 a, float2 b) { return {a.x - b.x, a.y - b.y}; }
__device__ inline float2 times(float2 a, float2 b) { return {fmaf(a.x, b.x, -(a.y * b.y)), fmaf(a.x, b.y, a.y * b.x)}; }

// quarter turns by a quarter, clockwise, eighth by half of that.
__device__ inline float2 quarter(float2 a) { return {a.y, -a.x}; }
__device__ inline float2 eighth(float2 a) {
	constexpr float root = 0.70710678118654752f;
	return {root * (a.x + a.y), root * (a.y - a.x)};
}

// four transforms four numbers in place.
template <class V>
__device__ inline void four(V& a, V& b, V& c, V& d) {
	const V even = plus(a, c), odd = minus(a, c), sum = plus(b, d), turned = quarter(minus(b, d));
	a = plus(even, sum);
	b = plus(odd, turned);
	c = minus(even, sum);
	d = minus(odd, turned);
}

constexpr uint32_t InRegisters = 8; // numbers of a lane, where there is one pool

// A Pass is a pass of a transform of n = Half numbers.
struct Pass {
	uint32_t half, radix, done, m; // done: l
	float inverse;                 // of m

	// place splits the number of a group of r results, which are n/r apart, into the k mod l
	// that they share, and where the first of the r numbers lies that they are made of.
	__device__ uint32_t place(uint32_t group, uint32_t& k) const {
		k = (uint32_t)(((float)group + 0.5f) * inverse); // group/m: both are small
		return group + k * m * (radix - 1);
	}
	__device__ uint32_t step() const { return 2 * half / (done * radix); } // of the table of turns
};

// gather returns the numbers that a group is made of.
template <int R, class V>
__device__ void gather(const Pass& p, const V* from, uint32_t group, V (&v)[R]) {
	uint32_t k;
	const uint32_t at = p.place(group, k);
#pragma unroll
	for (int q = 0; q < R; q++) v[q] = from[at + q * p.m];
}

// spread writes the results of a group.
template <int R, class V>
__device__ void spread(const Pass& p, const V* turns, V* to, uint32_t group, V (&v)[R]) {
	const uint32_t groups = p.half / R;
	if (p.done > 1) { // in the first pass k is 0
		uint32_t k;
		p.place(group, k);
		const uint32_t by = k * p.step();
#pragma unroll
		for (int q = 1; q < R; q++) v[q] = times(v[q], turns[q * by]);
	}
	if constexpr (R == 2) {
		to[group] = plus(v[0], v[1]);
		to[group + groups] = minus(v[0], v[1]);
	} else if constexpr (R == 4) {
		four(v[0], v[1], v[2], v[3]);
#pragma unroll
		for (int s = 0; s < R; s++) to[group + s * groups] = v[s];
	} else if constexpr (R == 8) {
		// Two transforms of four, of the even and the odd numbers.
		four(v[0], v[2], v[4], v[6]);
		four(v[1], v[3], v[5], v[7]);
		const V odd[4] = {v[1], eighth(v[3]), quarter(v[5]), quarter(eighth(v[7]))};
#pragma unroll
		for (int s = 0; s < 4; s++) {
			to[group + s * groups] = plus(v[2 * s], odd[s]);
			to[group + (s + 4) * groups] = minus(v[2 * s], odd[s]);
		}
	} else {
		const uint32_t whole = 2 * p.half / R;
#pragma unroll
		for (int s = 0; s < R; s++) {
			V sum = v[0];
#pragma unroll
			for (int q = 1; q < R; q++) sum = plus(sum, times(v[q], turns[q * s % R * whole]));
			to[group + s * groups] = sum;
		}
	}
}

// radix_of makes the groups of a pass whose radix R is small enough for registers.
template <int R, class V>
__device__ void radix_of(const Pass& p, const V* turns, const V* from, V* to) {
	for (uint32_t group = lane_id(); group < p.half / R; group += 32) {
		V v[R];
		gather<R>(p, from, group, v);
		spread<R>(p, turns, to, group, v);
	}
}

// radix_within does the same in one pool, whose numbers, eight for each lane at most, are
// in registers between. Lanes without a group read another: branches would take registers.
template <int R, class V>
__device__ void radix_within(const Pass& p, const V* turns, V* pool) {
	V v[InRegisters / R][R];
#pragma unroll
	for (uint32_t i = 0; i < InRegisters / R; i++)
		gather<R>(p, pool, min(lane_id() + 32 * i, p.half / R - 1), v[i]);
	__syncwarp();
#pragma unroll
	for (uint32_t i = 0; i < InRegisters / R; i++)
		if (lane_id() + 32 * i < p.half / R) spread<R>(p, turns, pool, lane_id() + 32 * i, v[i]);
}

// radix_any makes the results of a pass one by one, in stretches: the radix may be a large
// prime.
template <class V>
__device__ void radix_any(const Pass& p, const V* turns, const V* from, V* to) {
	const uint32_t groups = p.half / p.radix, step = p.step(), all = 2 * p.half;
	for (uint32_t i = lane_id(); i < p.half; i += 32) {
		uint32_t k;
		const uint32_t at = p.place(i % groups, k), by = (k + p.done * (i / groups)) * step;
		V total = {}, sum = from[at];
		uint32_t turn = 0;
		for (uint32_t q = 1; q < p.radix; q++) {
			if (q % 32 == 0) {
				total = plus(total, sum);
				sum = {};
			}
			turn += by;
			if (turn >= all) turn -= all;
			sum = plus(sum, times(from[at + q * p.m], turns[turn]));
		}
		to[i] = plus(total, sum);
	}
}

// transform_within transforms the numbers in pool, of which each lane has eight at most, by
// radices of eight and less.
template <class V>
__device__ void transform_within(const Mel& a, const V* turns, V* pool) {
	uint32_t done = 1;
	for (uint32_t i = 0; i < a.Passes; i++) {
		const uint32_t radix = a.Radices[i], m = a.Half / (done * radix);
		const Pass p = {a.Half, radix, done, m, 1.0f / (float)m};
		if (radix == 8) {
			radix_within<8>(p, turns, pool);
		} else if (radix == 4) {
			radix_within<4>(p, turns, pool);
		} else {
			radix_within<2>(p, turns, pool);
		}
		__syncwarp();
		done *= radix;
	}
}

// transform transforms the numbers in pool and returns where the result is. Twofold numbers
// have no registers for three and five: those take the general way.
template <class V>
__device__ V* transform(const Mel& a, const V* turns, V* pool, V* other) {
	constexpr bool twofold = sizeof(V) > sizeof(float2);
	uint32_t done = 1;
	for (uint32_t i = 0; i < a.Passes; i++) {
		const uint32_t radix = a.Radices[i], m = a.Half / (done * radix);
		const Pass p = {a.Half, radix, done, m, 1.0f / (float)m};
		switch (radix) {
		case 2:
			radix_of<2>(p, turns, pool, other);
			break;
		case 4:
			radix_of<4>(p, turns, pool, other);
			break;
		case 8:
			radix_of<8>(p, turns, pool, other);
			break;
		default:
			if constexpr (!twofold) {
				if (radix == 3) {
					radix_of<3>(p, turns, pool, other);
					break;
				}
				if (radix == 5) {
					radix_of<5>(p, turns, pool, other);
					break;
				}
			}
			radix_any(p, turns, pool, other);
		}
		__syncwarp();
		V* const from = pool;
		pool = other;
		other = from;
		done *= radix;
	}
	return pool;
}

}  // namespace mel
