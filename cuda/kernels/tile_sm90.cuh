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
#include "tile_sm90_results.cuh"

namespace tile {

template <int TileColumns, int Products, int Blocks>
struct Wide {
	static constexpr int Rows = 128, Depth = 64, Warps = 8;  // warps that multiply
	static constexpr int PartsA = Products >= 2 ? 2 : 1, PartsB = Products == 3 ? 2 : 1;
	static constexpr int SizeA = Rows * Depth, SizeB = TileColumns * Depth;  // elements of a part
	static constexpr int Stage = PartsA * SizeA + PartsB * SizeB;
	static constexpr int Sums = TileColumns / 2;  // of a thread
	static constexpr uint32_t Turn = 1;           // a barrier of those that multiply

	using Results = WideResults<TileColumns, Products>;
	static constexpr int Stages = (227 * 1024 - 256 - Warps * Results::PlaceSize * 4) / (Stage * 2);

	// A warpgroup that writes has no products. So where another tile follows, the second leaves the
	// last stages of a tile alone until the first has its sums, which it has sooner then, and
	// multiplies while that one writes. They are all that wait in shared memory but one, into which
	// the next tile comes.
	static constexpr uint32_t Behind = Stages - 1;

	half* stages;
	float* places;  // of the warps that multiply; see Results
	Mbarrier *full, *empty;
	uint32_t* counts;  // of tiles: all, down and across; found once, since divisions take long

	__device__ Wide()
	    : stages(dynamic_shared<half>()),
	      places(reinterpret_cast<float*>(stages + Stages * Stage)),
	      full(reinterpret_cast<Mbarrier*>(places + Warps * Results::PlaceSize)),
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

	__device__ static uint32_t warp() { return warp_id() - 4; }  // of those that multiply

	// Tiles are numbered in groups of eight clusters down the rows, so that what runs at a
	// time shares operands in the cache.
	__device__ void count(const Tile& a) {
		counts[1] = ceil_div(a.Rows / a.ItemRows * ceil_div(a.ItemRows, (uint32_t)Rows), (uint32_t)Blocks);
		counts[2] = ceil_div(a.Columns, (uint32_t)TileColumns);
		counts[0] = counts[1] * counts[2];
	}
	__device__ WidePlace placeOf(const Tile& a, uint32_t tile) const {
		const uint32_t down = counts[1], across = counts[2], rank = Blocks > 1 ? cluster_rank() : 0;
		constexpr uint32_t Group = 8;
		const uint32_t group = tile / (Group * across), in = tile - group * Group * across;
		const uint32_t high = min(Group, down - group * Group);
		const uint32_t each = ceil_div(a.ItemRows, (uint32_t)Rows);
		const uint32_t number = (group * Group + in % high) * Blocks + rank, item = number / each;
		return {item, item < a.Rows / a.ItemRows ? (number - item * each) * Rows : a.ItemRows, in / high * TileColumns};
	}

	// left and right ask for the copies of a stage's operands. After the product weights are not
	// needed again before those of all other layers were, nor is a left operand that nothing else
	// reads, and both make room for what the next kernels read.
	__device__ void left(const WideTile& w, uint32_t stage, uint32_t k, const WidePlace& p, CachePolicy once) {
		half* to = stages + stage * Stage;
		Mbarrier* const b = &full[stage];
		if (w.Tile.Last) {  // else without any policy: naming the usual one takes a hundredth longer
			bulk_load(to, &w.A, b, once, k, p.row, p.item);
			if (Products >= 2) bulk_load(to + SizeA, &w.ALow, b, once, k, p.row, p.item);
		} else {
			bulk_load(to, &w.A, b, k, p.row, p.item);
			if (Products >= 2) bulk_load(to + SizeA, &w.ALow, b, k, p.row, p.item);
		}
	}
	__device__ void right(const WideTile& w, uint32_t stage, uint32_t k, const WidePlace& p, CachePolicy once) {
		const uint32_t rank = Blocks > 1 ? cluster_rank() : 0;
		constexpr uint32_t Part = TileColumns / Blocks;
		constexpr uint16_t All = (1u << Blocks) - 1;
		Mbarrier* const b = &full[stage];
		half* to = stages + stage * Stage + PartsA * SizeA + rank * Part * Depth;
		if constexpr (Blocks == 1) {
			bulk_load(to, &w.B, b, once, k, p.column);
			if (Products == 3) bulk_load(to + SizeB, &w.BLow, b, once, k, p.column);
		} else {
			bulk_load_cluster(to, &w.B, b, All, once, k, p.column + rank * Part);
			if (Products == 3) bulk_load_cluster(to + SizeB, &w.BLow, b, All, once, k, p.column + rank * Part);
		}
	}

	// produce asks for the copies of all tiles of the block. The right operand is weights,
	// which no kernel before writes: the first stages of it come while those end.
	//
	// What arrives at a block of a cluster that has ended is a fault. So in the end it waits for
	// all to have left its stages, though nothing comes into them any more.
	__device__ void produce(const WideTile& w) {
		const Tile& a = w.Tile;
		const uint32_t tiles = counts[0], first = blockIdx.x / Blocks;
		const CachePolicy once = policy_evict_first();
		uint32_t early = 0;
		if (first < tiles) {
			const WidePlace p = placeOf(a, first);
			for (uint32_t k = 0; k < a.Depth && early < Stages; k += Depth, early++) {
				mbarrier_expect(&full[early], Stage * 2);
				right(w, early, k, p, once);
			}
		}
		wait_dependency();
		Slot slot;
		for (uint32_t tile = first; tile < tiles; tile += gridDim.x / Blocks) {
			const WidePlace p = placeOf(a, tile);
			for (uint32_t k = 0; k < a.Depth; k += Depth, slot.next()) {
				if (early > 0) {
					early--;
				} else {
					mbarrier_wait(&empty[slot.index], slot.round ^ 1);
					mbarrier_expect(&full[slot.index], Stage * 2);
					right(w, slot.index, k, p, once);
				}
				left(w, slot.index, k, p, once);
			}
		}
		if constexpr (Blocks > 1) {
			for (int i = 0; i < Stages; i++, slot.next()) mbarrier_wait(&empty[slot.index], slot.round ^ 1);
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
	//
	// Little must lie between the instructions of two products: descriptors of a stage are those
	// of the first, moved on, and of numbers that the compiler knows to be the same in all lanes,
	// so that uniform registers hold them. In descriptors, eight halves are 1.
	//
	// In turns: see Behind.
	__device__ void rounded(const Tile& a, float (&sum)[Sums], uint32_t half64, Slot& slot, bool turns) {
		const uint64_t left = panel(stages + half64 * 64 * Depth), right = panel(stages + SizeA);
		const uint32_t all = ceil_div(a.Depth, (uint32_t)Depth);
		turns &= all > Behind;
		uint32_t end = turns && half64 == 1 ? all - Behind : all;
		for (uint32_t k = 0; k < all; end = all) {
			if (k > 0) barrier_sync(Turn, 256);
			for (uint32_t from = k; k < end; k++, slot.next()) {
				const uint32_t stage = shfl(slot.index * (Stage / 8), 0);
				mbarrier_wait(&full[slot.index], slot.round);
				wgmma_fence();
#pragma unroll
				for (int i = 0; i < Depth; i += 16) {
					wgmma_f16<TileColumns>(sum, further(left, stage + i / 8), further(right, stage + i / 8), k > 0 || i > 0);
				}
				wgmma_commit();
				wgmma_wait<1>();
				if (k > from) leave(slot.before());
			}
			wgmma_wait<0>();
			wgmma_keep(sum);
			leave(slot.before());
		}
		if (turns && half64 == 0) barrier_arrive(Turn, 256);
	}

	// split sums the products of split operands: chains of half a stage, corrections first,
	// which are added in F32. Longer chains would lose more to the tensor cores' truncation
	// than the other library's sums to rounding, where sums are short.
	__device__ void split(const Tile& a, float (&sum)[Sums], uint32_t half64, Slot& slot) {
		constexpr int Chain = 32;
		const uint64_t high = panel(stages + half64 * 64 * Depth), right = panel(stages + PartsA * SizeA);
		const uint64_t low = further(high, SizeA / 8), rightLow = further(right, SizeB / 8);
#pragma unroll
		for (int i = 0; i < Sums; i++) sum[i] = 0.0f;
		for (uint32_t k = 0; k < a.Depth; k += Depth, slot.next()) {
			const uint32_t stage = shfl(slot.index * (Stage / 8), 0);
			mbarrier_wait(&full[slot.index], slot.round);
#pragma unroll
			for (int begin = 0; begin < Depth; begin += Chain) {
				float chain[Sums];
				wgmma_fence();
#pragma unroll
				for (int i = begin; i < begin + Chain; i += 16) {
					wgmma_f16<TileColumns>(chain, further(low, stage + i / 8), further(right, stage + i / 8), i > begin);
					if (Products == 3) wgmma_f16<TileColumns>(chain, further(high, stage + i / 8), further(rightLow, stage + i / 8));
				}
#pragma unroll
				for (int i = begin; i < begin + Chain; i += 16) {
					wgmma_f16<TileColumns>(chain, further(high, stage + i / 8), further(right, stage + i / 8));
				}
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
		} else {
			registers_more<More>();
			wait_dependency();
			const uint32_t half64 = shfl(group - 1, 0);
			Slot slot;
			for (uint32_t tile = blockIdx.x / Blocks; tile < counts[0]; tile += gridDim.x / Blocks) {
				float sum[Sums];
				const Results results(a, placeOf(a, tile), warp());
				if constexpr (Products == 1) {
					rounded(a, sum, half64, slot, counts[0] - tile > gridDim.x / Blocks);
				} else {
					split(a, sum, half64, slot);
				}
				results.write(a, places + warp() * Results::PlaceSize, sum);
			}
		}
	}
};

// wide makes the tiles of a product of 128 rows and Columns columns.
template <int Columns, int Products, int Blocks>
__device__ void wide(const WideTile& w) {
	Wide<Columns, Products, Blocks>().run(w);
}

}  // namespace tile
