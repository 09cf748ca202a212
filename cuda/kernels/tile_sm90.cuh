// Products of F16 rows by warpgroups, from bulk copies; see WideTile in tile_sm90.go.
//
// A block has a warpgroup that asks for copies, of which one thread is busy, and two that
// multiply: each 64 of the tile's 128 rows. Operands come in stages 64 elements deep, each
// with a barrier that says that it is full and one that it is empty. Blocks are as many as
// the device has room for; each goes through its share of the tiles, so that the copies for
// a tile begin while the results of the one before are written.
//
// Blocks of a cluster have the same columns and rows that follow each other. Each copies
// its part of B, into the shared memory of all of them.
#pragma once

#include "sm90.cuh"
#include "tile_store.cuh"

namespace tile {

template <int TileColumns, int Products, int Blocks>
struct Wide {
	static constexpr int Rows = 128, Depth = 64, Warps = 8;  // warps that multiply
	static constexpr int PartsA = Products >= 2 ? 2 : 1, PartsB = Products == 3 ? 2 : 1;
	static constexpr int SizeA = Rows * Depth, SizeB = TileColumns * Depth;  // elements of a part
	static constexpr int Stage = PartsA * SizeA + PartsB * SizeB;
	static constexpr int Sums = TileColumns / 2;  // of a thread

	// Results are written in pieces of 32 columns. A warp turns those of its 16 rows around in
	// a place of shared memory, so that whole lines of memory are written.
	static constexpr int PieceRows = 16, PieceColumns = 32, PieceSums = PieceRows * PieceColumns / 32;
	static constexpr int Pieces = TileColumns / PieceColumns;
	static constexpr int PlaceSize = PieceRows * PieceColumns;  // of a warp
	static constexpr int Stages = (227 * 1024 - 256 - Warps * PlaceSize * 4) / (Stage * 2);

	half* stages;
	float* places;
	Mbarrier *full, *empty;
	uint32_t* counts;  // of tiles: all, down and across; found once, since divisions take long

	__device__ Wide()
	    : stages(dynamic_shared<half>()),
	      places(reinterpret_cast<float*>(stages + Stages * Stage)),
	      full(reinterpret_cast<Mbarrier*>(places + Warps * PlaceSize)),
	      empty(full + Stages),
	      counts(reinterpret_cast<uint32_t*>(empty + Stages)) {}

	// A Slot is a place in the ring of stages, and how often it was passed.
	struct Slot {
		uint32_t index = 0, round = 0;

		__device__ void next() {
			if (++index == Stages) {
				index = 0;
				round ^= 1;
			}
		}
		__device__ uint32_t before() const { return index == 0 ? Stages - 1 : index - 1; }
	};

	// A Place is what a block of a cluster computes of one of its tiles.
	struct Place {
		uint32_t item, row, column;  // row within the item; beyond its end if there is nothing
	};

	__device__ static uint32_t warp() { return warp_id() - 4; }  // of those that multiply

	// Tiles are numbered in groups of eight clusters down the rows, so that what runs at a
	// time shares operands in the cache.
	__device__ void count(const Tile& a) {
		counts[1] = ceil_div(a.Rows / a.ItemRows * ceil_div(a.ItemRows, (uint32_t)Rows), (uint32_t)Blocks);
		counts[2] = ceil_div(a.Columns, (uint32_t)TileColumns);
		counts[0] = counts[1] * counts[2];
	}
	__device__ Place placeOf(const Tile& a, uint32_t tile) const {
		const uint32_t down = counts[1], across = counts[2], rank = Blocks > 1 ? cluster_rank() : 0;
		constexpr uint32_t Group = 8;
		const uint32_t group = tile / (Group * across), in = tile - group * Group * across;
		const uint32_t high = min(Group, down - group * Group);
		const uint32_t each = ceil_div(a.ItemRows, (uint32_t)Rows);
		const uint32_t number = (group * Group + in % high) * Blocks + rank, item = number / each;
		return {item, item < a.Rows / a.ItemRows ? (number - item * each) * Rows : a.ItemRows, in / high * TileColumns};
	}

	// left and right ask for the copies of a stage's operands.
	__device__ void left(const WideTile& w, uint32_t stage, uint32_t k, const Place& p) {
		half* to = stages + stage * Stage;
		bulk_load(to, &w.A, &full[stage], k, p.row, p.item);
		if (Products >= 2) bulk_load(to + SizeA, &w.ALow, &full[stage], k, p.row, p.item);
	}
	__device__ void right(const WideTile& w, uint32_t stage, uint32_t k, const Place& p) {
		const uint32_t rank = Blocks > 1 ? cluster_rank() : 0;
		constexpr uint32_t Part = TileColumns / Blocks;
		constexpr uint16_t All = (1u << Blocks) - 1;
		Mbarrier* const b = &full[stage];
		half* to = stages + stage * Stage + PartsA * SizeA + rank * Part * Depth;
		if constexpr (Blocks == 1) {
			bulk_load(to, &w.B, b, k, p.column);
			if (Products == 3) bulk_load(to + SizeB, &w.BLow, b, k, p.column);
		} else {
			bulk_load_cluster(to, &w.B, b, All, k, p.column + rank * Part);
			if (Products == 3) bulk_load_cluster(to + SizeB, &w.BLow, b, All, k, p.column + rank * Part);
		}
	}

	// produce asks for the copies of all tiles of the block. The right operand is weights,
	// which no kernel before writes: the first stages of it come while those end.
	__device__ void produce(const WideTile& w) {
		const Tile& a = w.Tile;
		const uint32_t tiles = counts[0], first = blockIdx.x / Blocks;
		uint32_t early = 0;
		if (first < tiles) {
			const Place p = placeOf(a, first);
			for (uint32_t k = 0; k < a.Depth && early < Stages; k += Depth, early++) {
				mbarrier_expect(&full[early], Stage * 2);
				right(w, early, k, p);
			}
		}
		wait_dependency();
		Slot slot;
		for (uint32_t tile = first; tile < tiles; tile += gridDim.x / Blocks) {
			const Place p = placeOf(a, tile);
			for (uint32_t k = 0; k < a.Depth; k += Depth, slot.next()) {
				if (early > 0) {
					early--;
				} else {
					mbarrier_wait(&empty[slot.index], slot.round ^ 1);
					mbarrier_expect(&full[slot.index], Stage * 2);
					right(w, slot.index, k, p);
				}
				left(w, slot.index, k, p);
			}
		}
	}

	// fetch brings what the results of the block's last tile need near: no products run while
	// these are written.
	__device__ void fetch(const Tile& a) {
		const uint32_t first = blockIdx.x / Blocks, step = gridDim.x / Blocks;
		if (first >= counts[0]) return;
		const Place p = placeOf(a, first + (counts[0] - 1 - first) / step * step);
		for (uint32_t c = p.column + 8 * lane_id(); c < min(p.column + TileColumns, a.Columns); c += 8 * 32) {
			if (a.BScale != nullptr) touch(a.BScale + c);
			if (a.Bias != nullptr) touch(a.Bias + c);
		}
	}

	// A piece is written by quarters of four rows: eight lanes have a row, and each four of its
	// columns.
	__device__ static uint32_t rowOf(uint32_t i) { return lane_id() / 8 + 4 * i; }

	// Groups of eight columns are exchanged, so that what lanes write at once lies in different
	// banks.
	__device__ static uint32_t at(uint32_t row, uint32_t column) { return row * PieceColumns + (column ^ (row & 3) * 8); }
	__device__ static void turn(float* to, const float* sums) {
		const uint32_t g = lane_id() / 4, t = lane_id() % 4;
#pragma unroll
		for (int n = 0; n < PieceColumns; n += 8) {
			const float* s = sums + n / 2;
			store2(to + at(g, n + 2 * t), {s[0], s[1]});
			store2(to + at(g + 8, n + 2 * t), {s[2], s[3]});
		}
	}

	// direct reports whether the results of a piece are what most are: whole, without lengths
	// and columns that are given again, and with an epilogue that the networks have.
	__device__ static bool direct(const Tile& a, uint32_t column) {
		const uint32_t kind = a.Epilogue.Kind;
		return (kind == KindNone || kind == KindReLU || kind == KindLeaky || kind == KindGELU) && a.Dual == nullptr &&
		       a.Residual.P == nullptr && a.LengthStride == 0 && column + PieceColumns <= a.Columns && (a.Scales != nullptr || quads(a));
	}

	// write_direct writes a piece of that kind, from the row `first` of the item on. It decides
	// once for the four quads of a lane: a warp is almost alone, and each decision takes as long
	// as a dozen of results. What is beyond the rows is computed from the last one.
	__device__ static void write_direct(const Tile& a, const Quad& q, const float* mine, uint32_t item, uint32_t first, uint32_t rows) {
		float v[4][4], scale[4];
		uint32_t within[4];
#pragma unroll
		for (uint32_t i = 0; i < 4; i++) {
			within[i] = min(rowOf(i), rows - 1) + first;
			scale[i] = a.AScale[a.ScaleRows == 1 ? item * a.ItemRows + within[i] : item];
			const float4 s = load4(mine + at(rowOf(i), lane_id() % 8 * 4));
			v[i][0] = s.x, v[i][1] = s.y, v[i][2] = s.z, v[i][3] = s.w;
		}
#pragma unroll
		for (int i = 0; i < 4; i++) {
#pragma unroll
			for (int j = 0; j < 4; j++) v[i][j] = a.BScale == nullptr ? v[i][j] * scale[i] : unscale(v[i][j], scale[i], q.scale[j]);
		}
		float* const c = a.C.P + item * a.C.Batch;
#pragma unroll
		for (int i = 0; i < 4; i++) {
#pragma unroll
			for (int j = 0; j < 4; j++) v[i][j] += q.bias[j];
		}
		if (a.Epilogue.Kind == KindGELU) {
#pragma unroll
			for (int i = 0; i < 4; i++) {
#pragma unroll
				for (int j = 0; j < 4; j++) v[i][j] = gelu(v[i][j]);
			}
		} else if (a.Epilogue.Kind != KindNone) {
#pragma unroll
			for (int i = 0; i < 4; i++) {
#pragma unroll
				for (int j = 0; j < 4; j++) v[i][j] = apply_light(a.Epilogue, v[i][j], 0.0f);
			}
		}
		if (a.Scales == nullptr) {
#pragma unroll
			for (uint32_t i = 0; i < 4; i++) {
				if (rowOf(i) < rows) store_global4(c + within[i] * a.C.Row + q.column, {v[i][0], v[i][1], v[i][2], v[i][3]});
			}
			return;
		}
#pragma unroll
		for (uint32_t i = 0; i < 4; i++) {
			const uint32_t number = item * a.ItemRows + within[i];
			const Scale s = scale_of(fminf(fmaf(a.Norms[number], a.Reach, a.Lift), a.Most));
			if (rowOf(i) >= rows) continue;
			half* const h = reinterpret_cast<half*>(c + within[i] * a.C.Row) + q.column;
			*reinterpret_cast<uint2*>(h) = {pack_half(v[i][0] * s.factor, v[i][1] * s.factor), pack_half(v[i][2] * s.factor, v[i][3] * s.factor)};
			if (q.column == 0) a.Scales[number] = s.inverse;
		}
	}

	// finish writes the results of a warp.
	__device__ void finish(const Tile& a, const Place& p, const float (&sum)[Sums]) {
		const uint32_t first = p.row + warp() * PieceRows, rows = min((uint32_t)PieceRows, a.ItemRows > first ? a.ItemRows - first : 0);
		float* const mine = places + warp() * PlaceSize;
		if (rows == 0) return;
		// What needs no more than that goes straight from the registers: it waits for nothing.
		if (plain(a, p.column, TileColumns)) {
			const uint32_t g = first + lane_id() / 4;
			store_plain<TileColumns / 8>(a, line_of(a, p.item, g), line_of(a, p.item, g + 8), p.column + 2 * (lane_id() % 4), sum);
			return;
		}
#pragma unroll 1
		for (uint32_t piece = 0; piece < Pieces; piece++) {
			const uint32_t column = p.column + piece * PieceColumns;
			if (column >= a.Columns) return;
			const Quad q = quad_of(a, column + lane_id() % 8 * 4);
#pragma unroll
			for (int i = 0; i < Pieces; i++) {
				if (piece == i) turn(mine, sum + i * PieceSums);
			}
			__syncwarp();
			if (direct(a, column)) {
				write_direct(a, q, mine, p.item, first, rows);
			} else {
				store_rows<4, 1>(
				    a, q, rowOf(0), rows, [&](uint32_t i) { return row_of(a, p.item, first + i); },
				    [&](uint32_t i) { return load4(mine + at(i, lane_id() % 8 * 4)); });
			}
			__syncwarp();
		}
	}

	// leave says that this warp needs a stage no more, to all blocks that write it.
	__device__ void leave(uint32_t index) {
		if constexpr (Blocks == 1) {
			if (lane_id() == 0) mbarrier_arrive(&empty[index]);
		} else {
			if (lane_id() < Blocks) mbarrier_arrive_remote(cluster_address(&empty[index], lane_id()));
		}
	}

	// rounded sums the products of rounded operands. The products of a stage run while those
	// of the next are waited for.
	__device__ void rounded(const Tile& a, float (&sum)[Sums], uint32_t half64, Slot& slot) {
		for (uint32_t k = 0; k < a.Depth; k += Depth, slot.next()) {
			const half* left = stages + slot.index * Stage + half64 * 64 * Depth;
			const half* right = stages + slot.index * Stage + SizeA;
			mbarrier_wait(&full[slot.index], slot.round);
			wgmma_fence();
#pragma unroll
			for (int i = 0; i < Depth; i += 16) {
				wgmma_f16<TileColumns>(sum, panel(left + i), panel(right + i), k > 0 || i > 0);
			}
			wgmma_commit();
			wgmma_wait<1>();
			if (k > 0) leave(slot.before());
		}
		wgmma_wait<0>();
		wgmma_keep(sum);
		leave(slot.before());
	}

	// split sums the products of split operands: chains of half a stage, corrections first,
	// which are added in F32. Longer chains would lose more to the tensor cores' truncation
	// than the other library's sums to rounding, where sums are short.
	__device__ void split(const Tile& a, float (&sum)[Sums], uint32_t half64, Slot& slot) {
		constexpr int Chain = 32;
#pragma unroll
		for (int i = 0; i < Sums; i++) sum[i] = 0.0f;
		for (uint32_t k = 0; k < a.Depth; k += Depth, slot.next()) {
			const half* left = stages + slot.index * Stage + half64 * 64 * Depth;
			const half* right = stages + slot.index * Stage + PartsA * SizeA;
			mbarrier_wait(&full[slot.index], slot.round);
#pragma unroll
			for (int begin = 0; begin < Depth; begin += Chain) {
				float chain[Sums];
				wgmma_fence();
#pragma unroll
				for (int i = begin; i < begin + Chain; i += 16) {
					wgmma_f16<TileColumns>(chain, panel(left + SizeA + i), panel(right + i), i > begin);
					if (Products == 3) wgmma_f16<TileColumns>(chain, panel(left + i), panel(right + SizeB + i));
				}
#pragma unroll
				for (int i = begin; i < begin + Chain; i += 16) wgmma_f16<TileColumns>(chain, panel(left + i), panel(right + i));
				wgmma_commit();
				wgmma_wait<0>();
				wgmma_keep(chain);
				if (begin + Chain == Depth) leave(slot.index);
#pragma unroll
				for (int i = 0; i < Sums; i++) sum[i] += chain[i];
			}
		}
	}

	__device__ void run(const WideTile& w) {
		const Tile& a = w.Tile;
		release_dependents();
		if (threadIdx.x == 0) {
			for (int i = 0; i < Stages; i++) {
				mbarrier_init(&full[i], 1);
				mbarrier_init(&empty[i], Warps * Blocks);
			}
			mbarrier_ready();
			count(a);
			fetch_map(&w.A);
			fetch_map(&w.B);
		}
		__syncthreads();
		if constexpr (Blocks > 1) {
			cluster_reach();
			cluster_wait();
		}
		// What a multiprocessor has for each thread of a block, moved to those that multiply.
		constexpr int Less = 24, More = 240;
		static_assert(128 * Less + Warps * 32 * More <= 65536 / (128 + Warps * 32) / 8 * 8 * (128 + Warps * 32), "registers of a block");
		const uint32_t group = threadIdx.x / 128;
		if (group == 0) {
			registers_less<Less>();
			if (warp_id() == 0 && elected()) produce(w);
			if (warp_id() == 1) {
				wait_dependency();  // which may empty the cache
				fetch(a);
			}
			__syncwarp();
			if constexpr (Blocks > 1) cluster_reach();
		} else {
			registers_more<More>();
			wait_dependency();
			Slot slot;
			for (uint32_t tile = blockIdx.x / Blocks; tile < counts[0]; tile += gridDim.x / Blocks) {
				float sum[Sums];
				if constexpr (Products == 1) {
					rounded(a, sum, group - 1, slot);
				} else {
					split(a, sum, group - 1, slot);
				}
				// Another block that is still at work needs the barriers, and no more.
				if (Blocks > 1 && counts[0] - tile <= gridDim.x / Blocks) cluster_reach();
				finish(a, placeOf(a, tile), sum);
			}
			if (Blocks > 1 && blockIdx.x / Blocks >= counts[0]) cluster_reach();
		}
		if constexpr (Blocks > 1) cluster_wait();
	}
};

// wide makes the tiles of a product of 128 rows and Columns columns.
template <int Columns, int Products, int Blocks>
__device__ void wide(const WideTile& w) {
	Wide<Columns, Products, Blocks>().run(w);
}

}  // namespace tile
