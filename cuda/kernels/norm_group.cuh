// GroupNorm. An item is cut at fixed places into chunks of rows, a block each.
#pragma once
#include "norm.cuh"

namespace norms {

// A Walk goes over the quads of rows, 256 at a time, without dividing at every step.
struct Walk {
	uint32_t row, quad, quads, rows_on, quads_on;

	__device__ Walk(uint32_t start, uint32_t quads)
		: row(start / quads), quad(start % quads), quads(quads), rows_on(256 / quads), quads_on(256 % quads) {}

	__device__ void next() {
		row += rows_on;
		quad += quads_on;
		if (quad >= quads) {
			quad -= quads;
			row++;
		}
	}
};

// A Chunk is the rows [first, end) of an item that are within its length.
struct Chunk {
	uint32_t item, first, end;

	__device__ explicit Chunk(const GroupNorm& a) {
		item = blockIdx.x / a.Chunks;
		first = blockIdx.x % a.Chunks * a.Chunk;
		const uint32_t length = rows::number_of(a.Lengths, item, 0);
		end = max(min(min(first + a.Chunk, a.Rows), length), first);
	}
};

// Quads are the quads of a chunk that a thread takes at a time. All are on their way
// before the first arrives.
struct Quads {
	float4 v[4];

	// fetch loads what is within `live` rows, and moves on.
	__device__ void fetch(const GroupNorm& a, const float* x, Walk& w, uint32_t live) {
#pragma unroll
		for (int i = 0; i < 4; i++, w.next()) {
			const int64_t column = 4 * (int64_t)w.quad;
			v[i] = {0.0f, 0.0f, 0.0f, 0.0f};
			if (w.row < live) v[i] = rows::load(x + w.row * a.X.Row + column, a.Cols - column, a.Vectors & rows::VectorX);
		}
	}
};

// group_moments leaves the moments of a chunk. Chunks are read again for the distances
// from the mean only where a thread cannot hold its share.
__device__ void group_moments(const GroupNorm& a) {
	using T = rows::Team<256, 256>;
	release_dependents();
	const Chunk c(a);
	const uint32_t quads = (a.Cols + 3) / 4, live = c.end - c.first;
	const float* x = rows::at(a.X, c.item, c.first, 0);
	const float count = (float)((int64_t)live * a.Cols);
	const Walk start(threadIdx.x, quads);
	Walk ahead = start;
	Quads q;
	q.fetch(a, x, ahead, live);
	const bool all = ahead.row >= live;
	float4 sum = plus(plus(q.v[0], q.v[1]), plus(q.v[2], q.v[3]));
	while (ahead.row < live) {
		q.fetch(a, x, ahead, live);
		sum = plus(sum, plus(plus(q.v[0], q.v[1]), plus(q.v[2], q.v[3])));
	}
	const float rough = T::total<0>(rows::across(sum)) / fmaxf(count, 1.0f);
	Deviation d;
	Walk w = start;
	ahead = start;
	if (!all) q.fetch(a, x, ahead, live);
	while (w.row < live) {
#pragma unroll
		for (int i = 0; i < 4; i++, w.next())
			if (w.row < live) d.of(q.v[i], rough, (int64_t)a.Cols - 4 * (int64_t)w.quad);
		if (!all) q.fetch(a, x, ahead, live);
	}
	const float2 second = T::total<1>(d.sums());
	const float fine = second.x / fmaxf(count, 1.0f);
	if (threadIdx.x == 0) store4(a.Parts + 4 * (int64_t)blockIdx.x, {rough, fine, fmaf(-fine, second.x, second.y), count});
}

// An Origin is the mean of an item as two summands, and what to multiply by.
struct Origin {
	float rough, fine, scale;
};

// merged returns what the moments of all chunks of an item come to. Every block of the
// item does it anew: they are few, and a kernel for it would take longer.
__device__ inline Origin merged(const GroupNorm& a, uint32_t item) {
	using T = rows::Team<256, 256>;
	const float* parts = a.Parts + 4 * (int64_t)item * a.Chunks;
	const float rough = parts[0];
	float2 sum = {0.0f, 0.0f};
	for (uint32_t i = threadIdx.x; i < a.Chunks; i += 256) {
		const float4 p = load4(parts + 4 * i);
		sum = {sum.x + p.w, fmaf(p.w, (p.x - rough) + p.y, sum.y)};
	}
	sum = T::total<0>(sum);
	const float count = fmaxf(sum.x, 1.0f), fine = sum.y / count;
	float squares = 0.0f;
	for (uint32_t i = threadIdx.x; i < a.Chunks; i += 256) {
		const float4 p = load4(parts + 4 * i);
		const float d = ((p.x - rough) + p.y) - fine;
		squares += fmaf(p.w * d, d, p.z);
	}
	return {rough, fine, scale_of(T::total<1>(squares) / count, a.Eps)};
}

// group_apply normalises a chunk. The first quads are on their way while moments are
// merged.
__device__ void group_apply(const GroupNorm& a) {
	release_dependents();
	const Chunk c(a);
	const uint32_t quads = (a.Cols + 3) / 4, live = c.end - c.first, all = min(a.Chunk, a.Rows - c.first);
	const float* x = rows::at(a.X, c.item, c.first, 0);
	float* y = rows::at(a.Y, c.item, c.first, 0);
	Walk w(threadIdx.x, quads), ahead = w;
	Quads q;
	q.fetch(a, x, ahead, live);
	const Origin o = merged(a, c.item);
	while (w.row < all) {
		Walk to = w;
#pragma unroll
		for (int i = 0; i < 4; i++, w.next()) { // before the first is stored: no load passes a store
			if (w.row < live) q.v[i] = weighed(a, 4 * (int64_t)w.quad, minus(q.v[i], o.rough), o.fine, o.scale);
		}
#pragma unroll
		for (int i = 0; i < 4; i++, to.next()) {
			const int64_t column = 4 * (int64_t)to.quad;
			if (to.row < all) rows::store(y + to.row * a.Y.Row + column, a.Cols - column, a.Vectors & rows::VectorY, q.v[i]);
		}
		q.fetch(a, x, ahead, live); // zeros beyond the live rows
	}
}

}  // namespace norms
