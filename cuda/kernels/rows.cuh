// What kernels have in common that take whole rows, or single elements of rows.
//
// A thread's share of a row are quads: four columns that follow each other. Quads are
// loaded as one vector where the host found all rows aligned (Vectors), else one by one;
// the sums are the same either way, so a row has the same bits wherever it lies.
#pragma once
#include "device.cuh"

namespace rows {

// Bits of the word Vectors of a kernel's parameters.
constexpr uint32_t VectorX = 1, VectorY = 2, VectorB = 4;

// load returns a quad of which `left` elements (1 or more) are within the row, and zeros
// for the others.
__device__ inline float4 load(const float* p, int64_t left, bool wide) {
	if (wide && left >= 4) return load4(p);
	float4 v = {p[0], 0.0f, 0.0f, 0.0f};
	if (left > 1) v.y = p[1];
	if (left > 2) v.z = p[2];
	if (left > 3) v.w = p[3];
	return v;
}

__device__ inline void store(float* p, int64_t left, bool wide, float4 v) {
	if (wide && left >= 4) {
		store4(p, v);
		return;
	}
	p[0] = v.x;
	if (left > 1) p[1] = v.y;
	if (left > 2) p[2] = v.z;
	if (left > 3) p[3] = v.w;
}

__device__ inline float across(float4 v) { return (v.x + v.y) + (v.z + v.w); }

// within returns v with `other` in place of what lies beyond the end of the row.
__device__ inline float4 within(float4 v, int64_t left, float other) {
	if (left >= 4) return v;
	return {left > 0 ? v.x : other, left > 1 ? v.y : other, left > 2 ? v.z : other, left > 3 ? v.w : other};
}

// A Place is a quad of one of the fields that an elementwise kernel visits.
struct Place {
	uint32_t item, row;
	int64_t column;
	int64_t left; // elements of the row from there on; 0 or less: no place
};

// divide returns n/By for n below 2^31; see Divisor in pointwise.go.
__device__ inline uint32_t divide(uint32_t n, const Divisor& d) { return (uint32_t)(((uint64_t)n * d.Factor) >> d.Shift); }

// place returns the place of unit number `unit` of batch × Rows × Quads. Of a division of
// 32 bits by a number that only the host knows, most is finding its inverse; one of 64
// takes longer than all else that a thread does.
template <class A>
__device__ Place place(const A& a, int64_t unit) {
	Place p = {0, 0, 0, 0};
	if (unit >= a.Units) return p;
	int64_t quad;
	if (a.Units == a.Quads.By) {
		quad = unit;
	} else if (a.Units < 1ll << 31) {
		const uint32_t row = divide((uint32_t)unit, a.Quads);
		quad = (uint32_t)unit - row * a.Quads.By;
		p.item = divide(row, a.Rows);
		p.row = row - p.item * a.Rows.By;
	} else {
		const int64_t row = unit / a.Quads.By;
		quad = unit % a.Quads.By;
		p.item = (uint32_t)(row / a.Rows.By);
		p.row = (uint32_t)(row % a.Rows.By);
	}
	p.column = 4 * quad;
	p.left = a.Cols - p.column;
	return p;
}

// at returns where an element of a view is.
template <class V>
__device__ auto at(const V& v, uint32_t item, uint32_t row, int64_t column) {
	return v.P + (int64_t)item * v.Batch + (int64_t)row * v.Row + column;
}

template <class V>
__device__ auto at(const V& v, const Place& p) {
	return at(v, p.item, p.row, p.column);
}

// All kernels of rows let those that depend on them begin at once: these wait for the end,
// but have been launched by then.
//
// Elementwise kernels have blocks of 256 threads, each of which takes two units: so that
// enough is under way to keep the memory busy.
constexpr uint32_t Each = 2, VisitThreads = 256;

template <class A>
__device__ void places(const A& a, Place (&p)[Each]) {
	release_dependents();
	for (uint32_t i = 0; i < Each; i++)
		p[i] = place(a, (int64_t)blockIdx.x * (VisitThreads * Each) + i * VisitThreads + threadIdx.x);
}

__device__ inline float larger(float a, float b) { return fmaxf(a, b); }
__device__ inline uint32_t larger(uint32_t a, uint32_t b) { return max(a, b); }
__device__ inline uint64_t larger(uint64_t a, uint64_t b) { return a > b ? a : b; }

// A Team is the threads that share a row: some lanes of a warp, all of them, or a block of
// Threads.
template <int Threads, int Lanes>
struct Team {
	static_assert(Lanes <= 32 || Lanes == Threads, "a warp or the block");
	static constexpr int Warps = Lanes / 32, Within = Lanes < 32 ? Lanes : 32;

	static __device__ uint32_t lane() { return threadIdx.x % Lanes; }

	// row returns the number of the row of all that this thread works on.
	static __device__ uint32_t row() { return blockIdx.x * (Threads / Lanes) + threadIdx.x / Lanes; }

	static __device__ void sync() {
		if (Lanes <= 32) __syncwarp();
		else __syncthreads();
	}

	// total adds up two values over the team. Slots are memory of the reduction: those that
	// follow each other without another barrier between them take different ones.
	template <int Slot>
	static __device__ float2 total(float2 v) {
		for (int mask = Within / 2; mask > 0; mask /= 2) {
			v.x += shfl_xor(v.x, mask);
			v.y += shfl_xor(v.y, mask);
		}
		if constexpr (Warps > 1) {
			__shared__ float2 shares[Warps];
			if (threadIdx.x % 32 == 0) shares[threadIdx.x / 32] = v;
			__syncthreads();
			v = shares[0];
			for (int i = 1; i < Warps; i++) {
				v.x += shares[i].x;
				v.y += shares[i].y;
			}
		}
		return v;
	}

	template <int Slot>
	static __device__ float total(float v) {
		v = warp_sum<Within>(v);
		if constexpr (Warps > 1) {
			__shared__ float shares[Warps];
			if (threadIdx.x % 32 == 0) shares[threadIdx.x / 32] = v;
			__syncthreads();
			v = shares[0];
			for (int i = 1; i < Warps; i++) v += shares[i];
		}
		return v;
	}

	// largest returns the largest value of the team: of floats, one that is not NaN.
	template <int Slot, typename V>
	static __device__ V largest(V v) {
		for (int mask = Within / 2; mask > 0; mask /= 2) v = larger(v, shfl_xor(v, mask));
		if constexpr (Warps > 1) {
			__shared__ V shares[Warps];
			if (threadIdx.x % 32 == 0) shares[threadIdx.x / 32] = v;
			__syncthreads();
			for (int i = 0; i < Warps; i++) v = larger(v, shares[i]);
		}
		return v;
	}
};

// split returns the item of a row among those of all items, and its number there. Of one
// item it is known without a division.
template <class A>
__device__ void split(const A& a, uint32_t number, uint32_t& item, uint32_t& row) {
	item = a.Count > a.Rows ? number / a.Rows : 0;
	row = number - item * a.Rows;
}

// take loads a thread's quads of a row: number first, first + Lanes, and so on. Beyond the
// row's end is what `beyond` says.
template <int Lanes, int Held>
__device__ void take(float4 (&v)[Held], const float* x, uint32_t first, uint32_t cols, bool wide, float beyond = 0.0f) {
#pragma unroll
	for (int i = 0; i < Held; i++) v[i] = {beyond, beyond, beyond, beyond};
	if (wide) {
		// No branches between the loads, so that all are on their way before one arrives.
		const uint32_t whole = cols / 4;
#pragma unroll
		for (int i = 0; i < Held; i++) {
			const uint32_t quad = first + i * Lanes;
			if (quad < whole) v[i] = load4(x + 4 * (int64_t)quad);
		}
		if (cols % 4 == 0) return;
	}
#pragma unroll
	for (int i = 0; i < Held; i++) {
		const int64_t column = 4 * (int64_t)(first + i * Lanes), left = cols - column;
		if (left > 0 && !(wide && left >= 4)) v[i] = within(load(x + column, left, false), left, beyond);
	}
}

// place_of returns what an index is for an item, beside what is always added to it, and
// whether it is within its range; if not, the status says so.
template <class I>
__device__ bool place_of(const I& index, uint32_t item, uint32_t& place) {
	place = 0;
	if (index.P == nullptr) return true;
	place = index.P[(int64_t)item * index.Each];
	if (place < index.Valid) return true;
	atomic_or(index.Status, StatusIndex);
	place = 0;
	return false;
}

// number_of returns the number of an item. None from 1 to the given minimum is allowed.
template <class I>
__device__ uint32_t number_of(const I& items, uint32_t item, uint32_t minimum) {
	if (items.P == nullptr) return items.Usual;
	const uint32_t n = items.P[item];
	if (n <= items.Usual && (n == 0 || n > minimum)) return n;
	if (items.Status != nullptr) atomic_or(items.Status, StatusIndex);
	return n <= minimum ? 0 : items.Usual;
}

}  // namespace rows
