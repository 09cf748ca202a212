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
	static constexpr int Stages = 192 * 1024 / (Stage * 2);
	static constexpr int RoomRows = 16, RoomColumns = 64;  // in which a warp turns its results around
	static constexpr int Sums = TileColumns / 2;           // of a thread

	half* stages;
	float* room;
	Mbarrier *full, *empty;

	__device__ Wide()
	    : stages(dynamic_shared<half>()),
	      room(reinterpret_cast<float*>(stages + Stages * Stage)),
	      full(reinterpret_cast<Mbarrier*>(room + Warps * RoomRows * RoomColumns)),
	      empty(full + Stages) {}

	// A Slot is a place in the ring of stages, and how often it was passed.
	struct Slot {
		uint32_t index = 0, round = 0;

		__device__ void next() {
			if (++index == Stages) {
				index = 0;
				round ^= 1;
			}
		}
	};

	// A Place is what a block of a cluster computes of one of its tiles.
	struct Place {
		uint32_t item, row, column;  // row within the item; beyond its end if there is nothing
	};

	// Tiles are numbered in groups of eight clusters down the rows, so that what runs at a
	// time shares operands in the cache.
	__device__ static uint32_t tilesOf(const Tile& a, uint32_t& down, uint32_t& across) {
		const uint32_t each = ceil_div(a.ItemRows, (uint32_t)Rows);
		down = ceil_div(a.Rows / a.ItemRows * each, (uint32_t)Blocks);
		across = ceil_div(a.Columns, (uint32_t)TileColumns);
		return down * across;
	}
	__device__ static Place placeOf(const Tile& a, uint32_t tile, uint32_t down, uint32_t across, uint32_t rank) {
		constexpr uint32_t Group = 8;
		const uint32_t group = tile / (Group * across), in = tile - group * Group * across;
		const uint32_t high = min(Group, down - group * Group);
		const uint32_t each = ceil_div(a.ItemRows, (uint32_t)Rows);
		const uint32_t number = (group * Group + in % high) * Blocks + rank, item = number / each;
		return {item, item < a.Rows / a.ItemRows ? (number - item * each) * Rows : a.ItemRows, in / high * TileColumns};
	}

	// produce asks for the copies of all tiles of the block.
	__device__ void produce(const WideTile& w) {
		const Tile& a = w.Tile;
		uint32_t down, across;
		const uint32_t tiles = tilesOf(a, down, across), rank = Blocks > 1 ? cluster_rank() : 0;
		Slot slot;
		for (uint32_t tile = blockIdx.x / Blocks; tile < tiles; tile += gridDim.x / Blocks) {
			const Place p = placeOf(a, tile, down, across, rank);
			for (uint32_t k = 0; k < a.Depth; k += Depth, slot.next()) {
				mbarrier_wait(&empty[slot.index], slot.round ^ 1);
				Mbarrier* const b = &full[slot.index];
				mbarrier_expect(b, Stage * 2);
				half* to = stages + slot.index * Stage;
				bulk_load(to, &w.A, b, k, p.row, p.item);
				if (Products >= 2) bulk_load(to + SizeA, &w.ALow, b, k, p.row, p.item);
				to += PartsA * SizeA;
				if constexpr (Blocks == 1) {
					bulk_load(to, &w.B, b, k, p.column);
					if (Products == 3) bulk_load(to + SizeB, &w.BLow, b, k, p.column);
				} else {
					constexpr uint32_t Part = TileColumns / Blocks;
					constexpr uint16_t All = (1u << Blocks) - 1;
					to += rank * Part * Depth;
					bulk_load_cluster(to, &w.B, b, All, k, p.column + rank * Part);
					if (Products == 3) bulk_load_cluster(to + SizeB, &w.BLow, b, All, k, p.column + rank * Part);
				}
			}
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
	__device__ void rounded(float (&sum)[Sums], uint32_t depth, uint32_t half64, Slot& slot) {
		uint32_t before = 0;
		for (uint32_t k = 0; k < depth; k += Depth, slot.next()) {
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
			if (k > 0) leave(before);
			before = slot.index;
		}
		wgmma_wait<0>();
		wgmma_keep(sum);
		leave(before);
	}

	// split sums the products of split operands: chains of half a stage, corrections first,
	// which are added in F32. Longer chains would lose more to the tensor cores' truncation
	// than the other library's sums to rounding, where sums are short.
	__device__ void split(float (&sum)[Sums], uint32_t depth, uint32_t half64, Slot& slot) {
		constexpr int Chain = 32;
#pragma unroll
		for (int i = 0; i < Sums; i++) sum[i] = 0.0f;
		for (uint32_t k = 0; k < depth; k += Depth, slot.next()) {
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

	// finish stores the results of a warp's 16 rows. They are laid out as rows first, so that
	// whole lines of memory are written; groups of eight columns are exchanged, so that what
	// lanes write at once lies in different banks.
	__device__ void finish(const Tile& a, const float (&sum)[Sums], const Place& p, uint32_t warp) {
		float* const mine = room + warp * RoomRows * RoomColumns;
		auto at = [](uint32_t row, uint32_t column) { return row * RoomColumns + (column ^ (row & 3) * 8); };
		const uint32_t g = lane_id() / 4, t = lane_id() % 4, first = p.row + warp * RoomRows;
		if (plain(a, p.column, TileColumns)) {
			store_plain<TileColumns / 8>(a, line_of(a, p.item, first + g), line_of(a, p.item, first + g + 8), p.column + 2 * t, sum);
			return;
		}
		const uint32_t inRoom = lane_id() % 16 * 4;
#pragma unroll
		for (int c = 0; c < TileColumns; c += RoomColumns) {
			if (p.column + c >= a.Columns) break;
#pragma unroll
			for (int n = 0; n < RoomColumns; n += 8) {
				const float* s = &sum[(c + n) / 2];
				store2(mine + at(g, n + 2 * t), {s[0], s[1]});
				store2(mine + at(g + 8, n + 2 * t), {s[2], s[3]});
			}
			__syncwarp();
			const uint32_t end = min((uint32_t)RoomRows, a.ItemRows > first ? a.ItemRows - first : 0);
			store_rows<2, (TileColumns > 192 ? 1 : 4)>(
			    a, quad_of(a, p.column + c + inRoom), lane_id() / 16, end,
			    [&](uint32_t i) { return row_of(a, p.item, first + i); }, [&](uint32_t i) { return load4(mine + at(i, inRoom)); });
			__syncwarp();
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
			fetch_map(&w.A);
			fetch_map(&w.B);
		}
		if constexpr (Blocks > 1) {
			cluster_sync();
		} else {
			__syncthreads();
		}
		const uint32_t group = threadIdx.x / 128;
		if (group == 0) {
			registers_less<24>();
			if (warp_id() == 0 && elected()) produce(w);
			__syncwarp();
		} else {
			registers_more<240>();
			uint32_t down, across;
			const uint32_t tiles = tilesOf(a, down, across), rank = Blocks > 1 ? cluster_rank() : 0;
			Slot slot;
			for (uint32_t tile = blockIdx.x / Blocks; tile < tiles; tile += gridDim.x / Blocks) {
				float sum[Sums];
				if constexpr (Products == 1) {
					rounded(sum, a.Depth, group - 1, slot);
				} else {
					split(sum, a.Depth, group - 1, slot);
				}
				finish(a, sum, placeOf(a, tile, down, across, rank), warp_id() - 4);
			}
		}
		// A block that is done may still be written to by the others.
		if constexpr (Blocks > 1) cluster_sync();
	}
};

// wide makes the tiles of a product of 128 rows and Columns columns.
template <int Columns, int Products, int Blocks>
__device__ void wide(const WideTile& w) {
	Wide<Columns, Products, Blocks>().run(w);
}

}  // namespace tile
