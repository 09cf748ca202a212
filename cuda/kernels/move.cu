// Copy, Fill, Permute and Advance: words are moved, never numbers.
#include "rows.cuh"

namespace move {

using rows::Each;
using rows::Place;

// Quads of words take the way of quads of floats, which keeps their bits.
__device__ inline const float* source(const uint32_t* p) { return reinterpret_cast<const float*>(p); }
__device__ inline float* target(uint32_t* p) { return reinterpret_cast<float*>(p); }

// A block takes 512 quads, a thread two of them; so in copy and gather.
__device__ void fill(const Fill& a) {
	Place p[Each];
	rows::places(a, p);
	const float v = float_of(a.Value);
#pragma unroll
	for (uint32_t i = 0; i < Each; i++)
		if (p[i].left > 0) rows::store(target(rows::at(a.Y, p[i])), p[i].left, a.Vectors & rows::VectorY, {v, v, v, v});
}

__device__ void copy(const Copy& a) {
	Place p[Each];
	rows::places(a, p);
	float4 v[Each];
	int64_t to[Each]; // row; below 0: none
#pragma unroll
	for (uint32_t i = 0; i < Each; i++) {
		to[i] = -1;
		uint32_t from_place, to_place;
		if (p[i].left <= 0 || !rows::place_of(a.FromRow, p[i].item, from_place) || !rows::place_of(a.ToRow, p[i].item, to_place)) continue;
		const uint32_t* x = rows::at(a.X, p[i]) + ((int64_t)from_place + a.FromRow.Added) * a.X.Row;
		v[i] = rows::load(source(x), p[i].left, a.Vectors & rows::VectorX);
		to[i] = (int64_t)to_place + a.ToRow.Added;
	}
#pragma unroll
	for (uint32_t i = 0; i < Each; i++)
		if (to[i] >= 0) rows::store(target(rows::at(a.Y, p[i]) + to[i] * a.Y.Row), p[i].left, a.Vectors & rows::VectorY, v[i]);
}

__device__ void gather(const Permute& a) {
	Place p[Each];
	rows::places(a, p);
	float4 v[Each];
#pragma unroll
	for (uint32_t i = 0; i < Each; i++) {
		if (p[i].left <= 0) continue;
		const int64_t start = p[i].item * a.From[0] + p[i].row / a.Inner * a.From[1] + p[i].row % a.Inner * a.From[2];
		const float* x = source(a.X.P + start + p[i].column * a.From[3]);
		if (a.From[3] == 1) {
			v[i] = rows::load(x, p[i].left, a.Vectors & rows::VectorX);
			continue;
		}
		v[i].x = x[0];
		if (p[i].left > 1) v[i].y = x[a.From[3]];
		if (p[i].left > 2) v[i].z = x[2 * a.From[3]];
		if (p[i].left > 3) v[i].w = x[3 * a.From[3]];
	}
#pragma unroll
	for (uint32_t i = 0; i < Each; i++)
		if (p[i].left > 0) rows::store(target(rows::at(a.Y, p[i])), p[i].left, a.Vectors & rows::VectorY, v[i]);
}

// A tile a block, through shared memory: what gather would read with a stride is read and
// written in rows.
__device__ void transpose(const Transpose& a) {
	release_dependents();
	__shared__ uint32_t staged[32][33];
	const uint32_t across = blockIdx.x % a.TilesAcross * 32, along = blockIdx.x / a.TilesAcross % a.TilesAlong * 32;
	const uint32_t outer = blockIdx.x / a.TilesAcross / a.TilesAlong;
	const uint32_t* x = a.X.P + outer / a.Inner * a.XOuter + outer % a.Inner * a.XInner;
	uint32_t* y = a.Y.P + outer / a.Inner * a.YOuter + outer % a.Inner * a.YInner;
	const uint32_t lane = threadIdx.x % 32;
#pragma unroll
	for (uint32_t i = threadIdx.x / 32; i < 32; i += 8)
		if (along + i < a.Along && across + lane < a.Across) staged[i][lane] = x[(along + i) * a.XAlong + across + lane];
	__syncthreads();
#pragma unroll
	for (uint32_t i = threadIdx.x / 32; i < 32; i += 8)
		if (across + i < a.Across && along + lane < a.Along) y[(across + i) * a.YAcross + along + lane] = staged[lane][i];
}

// An item a thread.
__device__ void advance(const Advance& a) {
	release_dependents();
	const uint32_t item = blockIdx.x * blockDim.x + threadIdx.x;
	if (item >= a.Batch) return;
	uint32_t* done = a.Done.P == nullptr ? nullptr : a.Done.P + item * a.Done.Row;
	if (done != nullptr && *done != 0) return;
	uint32_t* index = a.Index.P + item * a.Index.Row;
	const uint32_t count = *index;
	if (a.IDs.P != nullptr) {
		const uint64_t row = (uint64_t)count + a.Plus;
		if (row >= a.IDRows) {
			atomic_or(a.Status, StatusIndex);
			return;
		}
		const uint32_t newest = a.IDs.P[item * a.IDs.Batch + (int64_t)row * a.IDs.Row];
		bool stopped = false;
		for (uint32_t i = 0; i < a.Stops; i++) stopped = stopped || newest == a.Stop[i];
		if (stopped && done != nullptr) {
			*done = 1;
			return;
		}
	}
	if (count > 0xffffffffu - a.By) {
		atomic_or(a.Status, StatusIndex);
		return;
	}
	*index = count + a.By;
}

}  // namespace move
