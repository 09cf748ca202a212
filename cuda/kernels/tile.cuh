// Products of F16 rows on tensor cores, with sums in F32; see Tile in tile.go.
//
// Tensor cores truncate their sums, so that a long chain of products loses digits. Where
// operands are split (Products 2 or 3) a chain is one stage deep, corrections first, and
// what comes out is added to the sum in F32, which rounds.
#pragma once

#include "fragment.cuh"
#include "tile_store.cuh"

namespace tile {

constexpr int Depth = 32;           // of a stage, in elements
constexpr int Chunk = 8;            // elements that are copied at once
constexpr int Chunks = Depth / Chunk;

// Rows of a stage are 64 bytes. Their four chunks are exchanged so that the eight rows that
// a load of a matrix names lie in different banks.
__device__ inline uint32_t place(uint32_t row, uint32_t chunk) {
	return row * Depth + ((chunk ^ ((row >> 1) & 3)) * Chunk);
}

// A Walk goes through the steps of a sum: segments, and stages within them.
struct Walk {
	uint32_t segment, k;

	__device__ Walk(const Tile& a, uint32_t step) {
		const uint32_t steps = ceil_div(a.Depth, (uint32_t)Depth);
		segment = step / steps;
		k = (step - segment * steps) * Depth;
	}
	__device__ void next(const Tile& a) {
		k += Depth;
		if (k >= a.Depth) {
			k = 0;
			segment++;
		}
	}
};

// A Loader copies a thread's share of Rows rows of an operand into stages.
template <int Rows, int Threads>
struct Loader {
	static constexpr int Each = Rows * Chunks / Threads;
	static_assert(Each * Threads == Rows * Chunks, "threads share the chunks evenly");
	int64_t at[Each];  // element of the thread's chunk of each of its rows; −1: no row

	// Rows follow each other at the same distance.
	__device__ void along(uint32_t first, uint32_t rows, int64_t stride) {
#pragma unroll
		for (int i = 0; i < Each; i++) {
			const uint32_t row = first + threadIdx.x / Chunks + i * (Threads / Chunks);
			at[i] = row < rows ? row * stride + threadIdx.x % Chunks * Chunk : -1;
		}
	}
	// Rows are places of images.
	__device__ void over(const Tile& a, uint32_t first) {
#pragma unroll
		for (int i = 0; i < Each; i++) {
			const uint32_t row = first + threadIdx.x / Chunks + i * (Threads / Chunks);
			const uint32_t item = row / a.ItemRows, within = row - item * a.ItemRows;
			const uint32_t line = within / a.Width, x = within - line * a.Width;
			at[i] = -1;
			if (row < a.Rows) at[i] = item * a.AItem + line * a.ALine + x * a.AStep + threadIdx.x % Chunks * Chunk;
		}
	}
	// copy takes Depth elements from `from` on of each row, of which those below depth are
	// read and the others zero.
	__device__ void copy(half* stage, const half* p, int64_t from, uint32_t k, uint32_t depth) const {
		const uint32_t chunk = threadIdx.x % Chunks;
#pragma unroll
		for (int i = 0; i < Each; i++) {
			const uint32_t row = threadIdx.x / Chunks + i * (Threads / Chunks);
			const bool there = at[i] >= 0 && k + chunk * Chunk < depth;
			copy_async<16>(stage + place(row, chunk), there ? p + at[i] + from : p, there ? 16 : 0);
		}
	}
};

// A Warp multiplies its part of the stages. Fragments of A are loaded one after the other
// and those of B kept, since a warp has more rows than columns.
template <int Rows, int Columns>
struct Warp {
	static constexpr int M = Rows / 16, N = Columns / 8;
	uint32_t row, column;  // of the block's tile

	__device__ void products(float (&sum)[M][N][4], const half* a, const half* b, uint32_t depth) const {
		const uint32_t lane = lane_id();
		uint32_t right[N][2];
#pragma unroll
		for (int n = 0; n < N; n += 2) {
			uint32_t r[4];
			ldmatrix_x4(r, b + place(column + n * 8 + lane / 16 * 8 + lane % 8, depth / Chunk + lane / 8 % 2));
			right[n][0] = r[0];
			right[n][1] = r[1];
			right[n + 1][0] = r[2];
			right[n + 1][1] = r[3];
		}
#pragma unroll
		for (int m = 0; m < M; m++) {
			uint32_t left[4];
			ldmatrix_x4(left, a + place(row + m * 16 + lane % 16, depth / Chunk + lane / 16));
#pragma unroll
			for (int n = 0; n < N; n++) mma_f16(sum[m][n], left, right[n]);
		}
	}
};

// multiply makes a tile of the product. blockIdx.x numbers the tiles, in groups of eight
// down the rows, so that blocks that run side by side share operands in the cache;
// blockIdx.y the parts of the sum.
template <int TileRows, int TileColumns, int WarpRows, int WarpColumns, int Products>
__device__ void multiply(const Tile& a) {
	constexpr int Across = TileColumns / WarpColumns, Threads = TileRows / WarpRows * Across * 32;
	constexpr int Stages = TANDEM_ARCH < 80 ? 2 : Products == 1 ? 4 : 3;
	constexpr int Ahead = TANDEM_ARCH < 80 ? 1 : 2;  // fragments in registers, where copies take none
	constexpr int PartsA = Products >= 2 ? 2 : 1, PartsB = Products == 3 ? 2 : 1;
	constexpr int SizeA = TileRows * Depth, SizeB = TileColumns * Depth, Size = PartsA * SizeA + PartsB * SizeB;
	using Mine = Warp<WarpRows, WarpColumns>;
	release_dependents();

	const uint32_t down = ceil_div(a.Rows, (uint32_t)TileRows), across = ceil_div(a.Columns, (uint32_t)TileColumns);
	constexpr uint32_t Group = 8;
	const uint32_t group = blockIdx.x / (Group * across), in = blockIdx.x - group * Group * across;
	const uint32_t high = min(Group, down - group * Group);
	const uint32_t firstRow = (group * Group + in % high) * TileRows, firstColumn = in / high * TileColumns;

	const uint32_t steps = a.Segments * ceil_div(a.Depth, (uint32_t)Depth);
	const uint32_t begin = (uint32_t)((uint64_t)steps * blockIdx.y / a.Splits);
	const uint32_t end = (uint32_t)((uint64_t)steps * (blockIdx.y + 1) / a.Splits);

	half* stages = dynamic_shared<half>();
	Loader<TileRows, Threads> left;
	Loader<TileColumns, Threads> right;
	left.over(a, firstRow);
	right.along(firstColumn, a.Columns, a.BRow);
	Walk walk(a, begin);
	auto load = [&](uint32_t step) {
		if (step < end) {
			half* s = stages + (step - begin) % Stages * Size;
			const int64_t fromA = walk.segment * a.ASegment + walk.k, fromB = walk.segment * a.BSegment + walk.k;
			left.copy(s, a.A, fromA, walk.k, a.Depth);
			if (Products >= 2) left.copy(s + SizeA, a.ALow, fromA, walk.k, a.Depth);
			right.copy(s + PartsA * SizeA, a.B, fromB, walk.k, a.Depth);
			if (Products == 3) right.copy(s + PartsA * SizeA + SizeB, a.BLow, fromB, walk.k, a.Depth);
			walk.next(a);
		}
		copy_commit();
	};

	const Mine warp{warp_id() / Across * WarpRows, warp_id() % Across * WarpColumns};
	float total[Mine::M][Mine::N][4] = {};
#pragma unroll
	for (int i = 0; i < Stages - 1; i++) load(begin + i);
	for (uint32_t step = begin; step < end; step++) {
		copy_wait<Stages - 2>();
		__syncthreads();
		load(step + Stages - 1);
		const half* high = stages + (step - begin) % Stages * Size;
		const half* b = high + PartsA * SizeA;
		if (Products == 1) {
#pragma unroll Ahead
			for (int k = 0; k < Depth; k += 16) warp.products(total, high, b, k);
			continue;
		}
		float chain[Mine::M][Mine::N][4] = {};
#pragma unroll
		for (int k = 0; k < Depth; k += 16) {
			warp.products(chain, high + SizeA, b, k);
			if (Products == 3) warp.products(chain, high, b + SizeB, k);
		}
#pragma unroll
		for (int k = 0; k < Depth; k += 16) warp.products(chain, high, b, k);
#pragma unroll
		for (int m = 0; m < Mine::M; m++) {
#pragma unroll
			for (int n = 0; n < Mine::N; n++) {
#pragma unroll
				for (int i = 0; i < 4; i++) total[m][n][i] += chain[m][n][i];
			}
		}
	}
	copy_wait<0>();
	if (a.Splits == 1 && plain(a, firstColumn, TileColumns)) {
		const uint32_t g = lane_id() / 4, column = firstColumn + warp.column + lane_id() % 4 * 2;
#pragma unroll
		for (int m = 0; m < Mine::M; m++) {
			const uint32_t row = firstRow + warp.row + m * 16 + g;
			store_plain<Mine::N>(a, line_of(a, row), line_of(a, row + 8), column, &total[m][0][0]);
		}
		return;
	}
	__syncthreads();  // the stages become room for the results

	// Each warp lays its sums out as rows, so that whole lines of memory are written. Groups
	// of eight columns are exchanged, so that the four rows that lanes write at once lie in
	// different banks.
	float* room = dynamic_shared<float>() + warp_id() * WarpRows * WarpColumns;
	auto at = [](uint32_t row, uint32_t column) { return row * WarpColumns + (column ^ (row & 3) * 8); };
	const uint32_t g = lane_id() / 4, t = lane_id() % 4;
#pragma unroll
	for (int m = 0; m < Mine::M; m++) {
#pragma unroll
		for (int n = 0; n < Mine::N; n++) {
			store2(room + at(m * 16 + g, n * 8 + 2 * t), {total[m][n][0], total[m][n][1]});
			store2(room + at(m * 16 + g + 8, n * 8 + 2 * t), {total[m][n][2], total[m][n][3]});
		}
	}
	__syncwarp();
	const uint32_t inWarp = lane_id() % (WarpColumns / 4) * 4, column = firstColumn + warp.column + inWarp;
	const uint32_t first = lane_id() / (WarpColumns / 4);
	constexpr uint32_t Step = 128 / WarpColumns;
	auto sums = [&](uint32_t i) { return load4(room + at(i, inWarp)); };
	if (a.Splits == 1) {
		auto rows = [&](uint32_t i) { return row_of(a, firstRow + warp.row + i); };
		store_rows<Step, 4>(a, quad_of(a, column), first, WarpRows, rows, sums);
		return;
	}
	for (uint32_t i = first; i < WarpRows && firstRow + warp.row + i < a.Rows; i += Step) {
		const float4 v = sums(i);
		float* p = a.Sums + ((uint64_t)blockIdx.y * a.Rows + firstRow + warp.row + i) * a.Columns + column;
		if (column < a.Columns) p[0] = v.x;
		if (column + 1 < a.Columns) p[1] = v.y;
		if (column + 2 < a.Columns) p[2] = v.z;
		if (column + 3 < a.Columns) p[3] = v.w;
	}
}

}  // namespace tile
