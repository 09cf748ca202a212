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

// group_moments leaves the moments of a chunk. What is read a second time is in L1.
__device__ void group_moments(const GroupNorm& a) {
	using T = rows::Team<256, 256>;
	const Chunk c(a);
	const uint32_t quads = (a.Cols + 3) / 4, live = c.end - c.first;
	const float* x = rows::at(a.X, c.item, c.first, 0);
	const bool wide = a.Vectors & rows::VectorX;
	const float count = (float)((int64_t)live * a.Cols);
	float4 sum = {0.0f, 0.0f, 0.0f, 0.0f};
#pragma unroll 4
	for (Walk w(threadIdx.x, quads); w.row < live; w.next()) {
		const int64_t column = 4 * (int64_t)w.quad;
		sum = plus(sum, rows::load(x + w.row * a.X.Row + column, a.Cols - column, wide));
	}
	const float rough = T::total<0>(rows::across(sum)) / fmaxf(count, 1.0f);
	Deviation d;
#pragma unroll 4
	for (Walk w(threadIdx.x, quads); w.row < live; w.next()) {
		const int64_t column = 4 * (int64_t)w.quad;
		d.of(rows::load(x + w.row * a.X.Row + column, a.Cols - column, wide), rough, a.Cols - column);
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

// group_apply normalises a chunk. Four quads a thread are under way at a time, the first
// of them while moments are merged.
__device__ void group_apply(const GroupNorm& a) {
	const Chunk c(a);
	const uint32_t quads = (a.Cols + 3) / 4, live = c.end - c.first, all = min(a.Chunk, a.Rows - c.first);
	const float* x = rows::at(a.X, c.item, c.first, 0);
	float* y = rows::at(a.Y, c.item, c.first, 0);
	Walk w(threadIdx.x, quads);
	Walk ahead = w;
	float4 v[4];
	const auto fetch = [&] {
#pragma unroll
		for (int i = 0; i < 4; i++, ahead.next()) {
			const int64_t column = 4 * (int64_t)ahead.quad;
			v[i] = {0.0f, 0.0f, 0.0f, 0.0f};
			if (ahead.row < live) v[i] = rows::load(x + ahead.row * a.X.Row + column, a.Cols - column, a.Vectors & rows::VectorX);
		}
	};
	fetch();
	const Origin o = merged(a, c.item);
	while (w.row < all) {
#pragma unroll
		for (int i = 0; i < 4; i++, w.next()) {
			const int64_t column = 4 * (int64_t)w.quad;
			float4 r = {0.0f, 0.0f, 0.0f, 0.0f};
			if (w.row < live) r = weighed(a, column, minus(v[i], o.rough), o.fine, o.scale);
			if (w.row < all) rows::store(y + w.row * a.Y.Row + column, a.Cols - column, a.Vectors & rows::VectorY, r);
		}
		fetch();
	}
}

}  // namespace norms
